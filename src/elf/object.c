#include "elf/object.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

/* Tables longer than this are taken for damage, not for data: the largest
 * dynamic sections and version tables in use are some kilobytes.  Strings may
 * overlap, so that their sum has to be limited too. */
enum {
	DYNAMIC_MOST = 256 * 1024,
	STRING_MOST = 64 * 1024,
	STRINGS_MOST = 1 << 20,
	VERSIONS_MOST = 1 << 12,
	NOTES_MOST = 1 << 20, /* of one segment, those behind are not looked at */
};

struct parse {
	struct elf_object *o;
	struct reader *r;
	struct names *names;
	struct arena *arena;
	size_t strings; /* bytes of all strings so far */
	char text[STRING_MOST];
};

static int fault(struct parse *p, enum elf_fault f, const char *detail)
{
	p->o->fault = f;
	p->o->detail = detail;
	return -1;
}

uint64_t elf_offset_of(const struct elf_object *o, uint64_t vaddr, uint64_t length)
{
	size_t i;

	for (i = 0; i < o->n_load; i++) {
		const struct elf_segment *s = &o->load[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz &&
		    length <= s->filesz - (vaddr - s->vaddr))
			return s->offset + (vaddr - s->vaddr);
	}
	return 0;
}

/* The checks of open_verify, in its order: the first that fails decides. */
static int check_ident(struct parse *p, const Elf64_Ehdr *h)
{
	const unsigned char *id = h->e_ident;
	size_t i;

	if (memcmp(id, ELFMAG, SELFMAG))
		return fault(p, ELF_NO_MAGIC, NULL);
	p->o->class = id[EI_CLASS];
	p->o->byte_order = id[EI_DATA];
	p->o->osabi = id[EI_OSABI];
	if (id[EI_CLASS] != ELFCLASS64)
		return fault(p, ELF_OTHER_CLASS, NULL);
	if (id[EI_DATA] != ELFDATA2LSB)
		return fault(p, ELF_BYTE_ORDER, NULL);
	if (id[EI_VERSION] != EV_CURRENT)
		return fault(p, ELF_IDENT_VERSION, NULL);
	if (id[EI_OSABI] != ELFOSABI_SYSV && id[EI_OSABI] != ELFOSABI_GNU)
		return fault(p, ELF_OSABI, NULL);
	/* LIBC_ABI_MAX is 4 on x86-64 and AArch64 since 2.31; SYSV knows only 0. */
	if (id[EI_ABIVERSION] > (id[EI_OSABI] == ELFOSABI_GNU ? 3 : 0))
		return fault(p, ELF_ABI_VERSION, NULL);
	for (i = EI_PAD; i < EI_NIDENT; i++)
		if (id[i])
			return fault(p, ELF_PADDING, NULL);
	return 0;
}

static int read_header(struct parse *p, Elf64_Ehdr *h)
{
	struct elf_object *o = p->o;

	o->size = p->r->size;
	memset(h, 0, sizeof(*h));
	if (!reader_at(p->r, 0, h, sizeof(*h))) {
		/* A 32-bit header is shorter than ours, and the loader wants all of
		 * its own class before it looks at the first byte. */
		return fault(p, ELF_SHORT, NULL);
	}
	if (check_ident(p, h) < 0)
		return -1;
	o->type = le16toh(h->e_type);
	o->machine = le16toh(h->e_machine);
	o->entry = le64toh(h->e_entry);
	if (le32toh(h->e_version) != EV_CURRENT)
		return fault(p, ELF_VERSION, NULL);
	/* The machine comes here in the loader's order.  A foreign file is
	 * skipped whatever else is wrong with it, so callers compare
	 * o->machine before they look at a fault from here on. */
	if (o->type != ET_DYN && o->type != ET_EXEC)
		return fault(p, ELF_TYPE, NULL);
	if (le16toh(h->e_phentsize) != sizeof(Elf64_Phdr))
		return fault(p, ELF_PHENTSIZE, NULL);
	return 0;
}

static void read_interp(struct parse *p, uint64_t offset, uint64_t size)
{
	char text[4096];
	long n;

	if (p->o->interp)
		return; /* the kernel takes the first */
	n = reader_string(p->r, offset, text, size < sizeof(text) ? size : sizeof(text));
	/* The kernel insists on a final NUL and at most PATH_MAX bytes. */
	if (n > 0)
		p->o->interp = names_add_n(p->names, text, (size_t)n);
	else
		p->o->bad_interp = true;
}

static int read_segments(struct parse *p, const Elf64_Ehdr *h, Elf64_Phdr *dynamic)
{
	struct elf_object *o = p->o;
	size_t n = le16toh(h->e_phnum), i;
	uint64_t at = le64toh(h->e_phoff);
	Elf64_Phdr *ph = xmalloc((n + 1) * sizeof(*ph));
	int result = 0;

	if (!reader_at(p->r, at, ph, n * sizeof(*ph))) {
		free(ph);
		return fault(p, ELF_PHDRS_OUTSIDE, NULL);
	}
	o->load = arena_alloc(p->arena, n * sizeof(*o->load));
	o->exec_stack = o->machine == EM_X86_64; /* DEFAULT_STACK_PERMS */
	for (i = 0; i < n; i++) {
		uint64_t offset = le64toh(ph[i].p_offset), vaddr = le64toh(ph[i].p_vaddr);
		uint64_t filesz = le64toh(ph[i].p_filesz), align = le64toh(ph[i].p_align), end;
		struct elf_segment *s;

		switch (le32toh(ph[i].p_type)) {
		case PT_LOAD:
			/* 2.35 and later compare modulo the page size, earlier ones
			 * modulo p_align; no linker makes files on which they differ. */
			if (((vaddr - offset) & 4095) || (align & 4095))
				result = result ? result : fault(p, ELF_LOAD_ALIGN, NULL);
			if (__builtin_add_overflow(offset, filesz, &end))
				result = result ? result : fault(p, ELF_DAMAGED, "PT_LOAD");
			s = &o->load[o->n_load++];
			*s = (struct elf_segment){offset, vaddr, filesz, le64toh(ph[i].p_memsz),
						  le32toh(ph[i].p_flags)};
			break;
		case PT_DYNAMIC:
			if (filesz) { /* zero in a file of separate debug information */
				*dynamic = ph[i];
				o->has_dynamic = true;
			}
			break;
		case PT_INTERP:
			read_interp(p, offset, filesz);
			break;
		case PT_NOTE:
			if (o->n_note < sizeof(o->note_offset) / sizeof(o->note_offset[0])) {
				o->note_offset[o->n_note] = offset;
				o->note_size[o->n_note++] = filesz < NOTES_MOST ? filesz : NOTES_MOST;
			}
			break;
		case PT_TLS:
			o->has_tls = ph[i].p_memsz != 0;
			break;
		case PT_GNU_STACK:
			o->exec_stack = le32toh(ph[i].p_flags) & PF_X;
			break;
		case PT_GNU_EH_FRAME:
			o->eh_frame_hdr = vaddr;
			break;
		}
	}
	free(ph);
	if (!result && !o->n_load)
		result = fault(p, ELF_NO_LOAD, NULL);
	return result;
}

/* A string of the dynamic string table; NULL after a fault. */
static const char *dynamic_string(struct parse *p, uint64_t offset, const char *what)
{
	uint64_t at;
	long n;

	if (__builtin_add_overflow(p->o->strtab, offset, &at) || !p->o->strtab ||
	    (n = reader_string(p->r, at, p->text, sizeof(p->text))) < 0 ||
	    (p->strings += (size_t)n) > STRINGS_MOST) {
		fault(p, ELF_DAMAGED, what);
		return NULL;
	}
	return names_add_n(p->names, p->text, (size_t)n);
}

/* One walk over DT_VERNEED; the links are offsets from the entry itself, so a
 * file can make them go round in circles: the count is what ends the walk. */
static int read_version_needs(struct parse *p, uint64_t vaddr, uint64_t count)
{
	VEC(struct elf_version_need) out = {0};
	uint64_t at = elf_offset_of(p->o, vaddr, sizeof(Elf64_Verneed));
	uint64_t i, left = VERSIONS_MOST;
	int result = 0;

	for (i = 0; !result && (count ? i < count : true); i++) {
		Elf64_Verneed vn;
		Elf64_Vernaux va;
		uint64_t aux;
		unsigned k;
		const char *file;

		if (!at || !left-- || !reader_at(p->r, at, &vn, sizeof(vn))) {
			result = fault(p, ELF_DAMAGED, "DT_VERNEED");
			break;
		}
		file = dynamic_string(p, le32toh(vn.vn_file), "DT_VERNEED");
		if (!file) {
			result = -1;
			break;
		}
		aux = at + le32toh(vn.vn_aux);
		for (k = 0; k < le16toh(vn.vn_cnt); k++) {
			struct elf_version_need need;

			if (!left-- || !reader_at(p->r, aux, &va, sizeof(va))) {
				result = fault(p, ELF_DAMAGED, "DT_VERNEED");
				break;
			}
			need.file = file;
			need.version = dynamic_string(p, le32toh(va.vna_name), "DT_VERNEED");
			need.index = le16toh(va.vna_other) & 0x7fff;
			need.hidden = le16toh(va.vna_other) & 0x8000;
			need.weak = le16toh(va.vna_flags) & VER_FLG_WEAK;
			if (!need.version) {
				result = -1;
				break;
			}
			vec_push(&out, need);
			if (!va.vna_next)
				break;
			aux += le32toh(va.vna_next);
		}
		if (!vn.vn_next)
			break;
		at += le32toh(vn.vn_next);
	}
	p->o->n_version_need = out.n;
	p->o->version_need = arena_alloc(p->arena, out.n * sizeof(*out.at));
	if (out.n)
		memcpy(p->o->version_need, out.at, out.n * sizeof(*out.at));
	vec_free(&out);
	return result;
}

static int read_version_defs(struct parse *p, uint64_t vaddr)
{
	VEC(struct elf_version_def) out = {0};
	uint64_t at = elf_offset_of(p->o, vaddr, sizeof(Elf64_Verdef));
	uint64_t left = VERSIONS_MOST;
	int result = 0;

	for (;;) {
		Elf64_Verdef vd;
		Elf64_Verdaux va;
		struct elf_version_def def;

		if (!at || !left-- || !reader_at(p->r, at, &vd, sizeof(vd)) ||
		    !reader_at(p->r, at + le32toh(vd.vd_aux), &va, sizeof(va))) {
			result = fault(p, ELF_DAMAGED, "DT_VERDEF");
			break;
		}
		def.version = dynamic_string(p, le32toh(va.vda_name), "DT_VERDEF");
		def.index = le16toh(vd.vd_ndx) & 0x7fff;
		def.base = le16toh(vd.vd_flags) & VER_FLG_BASE;
		if (!def.version) {
			result = -1;
			break;
		}
		vec_push(&out, def);
		if (!vd.vd_next)
			break;
		at += le32toh(vd.vd_next);
	}
	p->o->n_version_def = out.n;
	p->o->version_def = arena_alloc(p->arena, out.n * sizeof(*out.at));
	if (out.n)
		memcpy(p->o->version_def, out.at, out.n * sizeof(*out.at));
	vec_free(&out);
	return result;
}

/* The values of the tags that stand for one thing each. */
struct tags {
	uint64_t strtab, strsz, symtab, hash, gnu_hash, versym;
	uint64_t verneed, verneednum, verdef;
	uint64_t jmprel, pltrelsz, rela, relasz;
	uint64_t soname, rpath, runpath, audit, depaudit;
	bool has_soname, has_rpath, has_runpath, has_audit, has_depaudit;
	size_t n_dependency;
};

static void collect_tags(struct elf_object *o, const Elf64_Dyn *d, size_t n, struct tags *t)
{
	size_t i;

	for (i = 0; i < n && le64toh((uint64_t)d[i].d_tag) != DT_NULL; i++) {
		uint64_t v = le64toh(d[i].d_un.d_val);

		switch ((int64_t)le64toh((uint64_t)d[i].d_tag)) {
		case DT_NEEDED: case DT_FILTER: case DT_AUXILIARY:
			t->n_dependency++;
			break;
		case DT_STRTAB: t->strtab = v; break;
		case DT_STRSZ: t->strsz = v; break;
		case DT_SYMTAB: t->symtab = v; break;
		case DT_HASH: t->hash = v; break;
		case DT_GNU_HASH: t->gnu_hash = v; break;
		case DT_VERSYM: t->versym = v; break;
		case DT_VERNEED: t->verneed = v; break;
		case DT_VERNEEDNUM: t->verneednum = v; break;
		case DT_VERDEF: t->verdef = v; break;
		case DT_JMPREL: t->jmprel = v; break;
		case DT_PLTRELSZ: t->pltrelsz = v; break;
		case DT_RELA: t->rela = v; break;
		case DT_RELASZ: t->relasz = v; break;
		case DT_SONAME: t->soname = v; t->has_soname = true; break;
		case DT_RPATH: t->rpath = v; t->has_rpath = true; break;
		case DT_RUNPATH: t->runpath = v; t->has_runpath = true; break;
		case DT_AUDIT: t->audit = v; t->has_audit = true; break;
		case DT_DEPAUDIT: t->depaudit = v; t->has_depaudit = true; break;
		case DT_FLAGS: o->flags = v; break;
		case DT_FLAGS_1: o->flags_1 = v; break;
		case DT_SYMBOLIC: o->symbolic = true; break;
		case DT_BIND_NOW: o->bind_now = true; break;
		}
	}
	o->symbolic |= !!(o->flags & DF_SYMBOLIC);
	o->bind_now |= (o->flags & DF_BIND_NOW) || (o->flags_1 & DF_1_NOW);
}

static int read_strings(struct parse *p, const Elf64_Dyn *d, size_t n, const struct tags *t)
{
	struct elf_object *o = p->o;
	size_t i;

	o->dependency = arena_alloc(p->arena, t->n_dependency * sizeof(*o->dependency));
	for (i = 0; i < n && le64toh((uint64_t)d[i].d_tag) != DT_NULL; i++) {
		int64_t tag = (int64_t)le64toh((uint64_t)d[i].d_tag);
		struct elf_dependency *dep;

		if (tag != DT_NEEDED && tag != DT_FILTER && tag != DT_AUXILIARY)
			continue;
		dep = &o->dependency[o->n_dependency];
		dep->kind = tag == DT_NEEDED ? ELF_NEEDED : tag == DT_FILTER ? ELF_FILTER : ELF_AUXILIARY;
		dep->name = dynamic_string(p, le64toh(d[i].d_un.d_val), "DT_NEEDED");
		if (!dep->name)
			return -1;
		o->n_dependency++;
	}
	if (t->has_soname && !(o->soname = dynamic_string(p, t->soname, "DT_SONAME")))
		return -1;
	if (t->has_rpath && !(o->rpath = dynamic_string(p, t->rpath, "DT_RPATH")))
		return -1;
	if (t->has_runpath && !(o->runpath = dynamic_string(p, t->runpath, "DT_RUNPATH")))
		return -1;
	if (t->has_audit && !(o->audit = dynamic_string(p, t->audit, "DT_AUDIT")))
		return -1;
	if (t->has_depaudit && !(o->depaudit = dynamic_string(p, t->depaudit, "DT_DEPAUDIT")))
		return -1;
	return 0;
}

static void place_tables(struct elf_object *o, const struct tags *t)
{
	o->strtab_vaddr = t->strtab;
	o->strtab = elf_offset_of(o, t->strtab, 1);
	o->strtab_size = t->strsz;
	o->symtab = elf_offset_of(o, t->symtab, sizeof(Elf64_Sym));
	o->hash = elf_offset_of(o, t->hash, 8);
	o->gnu_hash = elf_offset_of(o, t->gnu_hash, 16);
	o->versym = elf_offset_of(o, t->versym, 2);
	o->jmprel = elf_offset_of(o, t->jmprel, t->pltrelsz);
	o->jmprel_size = o->jmprel ? t->pltrelsz : 0;
	o->rela = elf_offset_of(o, t->rela, t->relasz);
	o->rela_size = o->rela ? t->relasz : 0;
}

static int read_dynamic(struct parse *p, const Elf64_Phdr *ph)
{
	struct elf_object *o = p->o;
	uint64_t size = le64toh(ph->p_filesz);
	uint64_t at = elf_offset_of(o, le64toh(ph->p_vaddr), size);
	struct tags t = {0};
	Elf64_Dyn *d;
	size_t n;
	int result;

	if (!at)
		return fault(p, ELF_DAMAGED, "PT_DYNAMIC");
	if (size > DYNAMIC_MOST)
		return fault(p, ELF_DAMAGED, "PT_DYNAMIC (absurd size)");
	n = size / sizeof(*d);
	d = xmalloc(n * sizeof(*d));
	if (!reader_at(p->r, at, d, n * sizeof(*d))) {
		free(d);
		return fault(p, ELF_TRUNCATED, "PT_DYNAMIC");
	}
	collect_tags(o, d, n, &t);
	place_tables(o, &t);
	result = read_strings(p, d, n, &t);
	free(d);
	if (!result && t.verneed)
		result = read_version_needs(p, t.verneed, t.verneednum);
	if (!result && t.verdef) {
		o->has_version_def = true;
		result = read_version_defs(p, t.verdef);
	}
	return result;
}

/* GNU_PROPERTY_X86_ISA_1_NEEDED decides whether ld.so takes the file at all. */
static void read_isa_property(struct parse *p)
{
	struct elf_object *o = p->o;
	size_t i;

	for (i = 0; i < o->n_note; i++) {
		uint64_t at = o->note_offset[i], end = at + o->note_size[i];
		Elf64_Nhdr nh;
		unsigned char name[4];
		uint64_t desc, descend;

		while (end - at >= sizeof(nh) && end > at && reader_at(p->r, at, &nh, sizeof(nh))) {
			uint64_t namesz = le32toh(nh.n_namesz), descsz = le32toh(nh.n_descsz);

			desc = at + sizeof(nh) + ((namesz + 3) & ~3ull);
			descend = desc + descsz;
			if (descend > end)
				break;
			if (le32toh(nh.n_type) == NT_GNU_PROPERTY_TYPE_0 && namesz == 4 &&
			    reader_at(p->r, at + sizeof(nh), name, 4) && !memcmp(name, "GNU", 4)) {
				while (descend - desc >= 8) {
					uint32_t pr[3] = {0};

					if (!reader_at(p->r, desc, pr, descend - desc >= 12 ? 12 : 8))
						break;
					if (le32toh(pr[0]) == 0xc0008002 && le32toh(pr[1]) == 4)
						o->isa_needed |= le32toh(pr[2]);
					desc += 8 + (((uint64_t)le32toh(pr[1]) + 7) & ~7ull);
					if (desc > descend)
						break;
				}
			}
			at = (descend + (o->note_size[i] ? 3 : 0)) & ~3ull;
		}
	}
}

/* Does everything the loader touches before main lie within the file? */
static void check_truncation(struct parse *p)
{
	struct elf_object *o = p->o;
	size_t i;

	for (i = 0; i < o->n_load; i++) {
		/* ld.so writes to the last page of a data segment's file part when
		 * memsz > filesz: that page must exist. */
		if (o->load[i].filesz && o->load[i].memsz > o->load[i].filesz &&
		    (o->load[i].offset + o->load[i].filesz + 4095) / 4096 > (o->size + 4095) / 4096) {
			fault(p, ELF_TRUNCATED, "PT_LOAD");
			return;
		}
	}
}

const struct elf_object *elf_object_read(struct reader *reader, struct names *names,
					 struct arena *arena)
{
	struct parse *p = xmalloc(sizeof(*p));
	struct elf_object *o = arena_new(arena, struct elf_object);
	Elf64_Phdr dynamic = {0};
	Elf64_Ehdr h;

	p->o = o;
	p->r = reader;
	p->names = names;
	p->arena = arena;
	p->strings = 0;
	if (read_header(p, &h) == 0 && read_segments(p, &h, &dynamic) == 0) {
		if (!o->has_dynamic)
			fault(p, ELF_NO_DYNAMIC, NULL);
		else if (read_dynamic(p, &dynamic) == 0)
			check_truncation(p);
		if (o->machine == EM_X86_64)
			read_isa_property(p);
	}
	free(p);
	return o;
}

const struct elf_object *elf_object_unreadable(enum elf_fault why, struct arena *arena)
{
	struct elf_object *o = arena_new(arena, struct elf_object);

	o->fault = why;
	return o;
}

static const struct {
	const char *code, *text;
} faults[] = {
	[ELF_FINE] = {"ELF_FINE", "fine"},
	[ELF_DIRECTORY] = {"ELF_DIRECTORY", "cannot read file data: Is a directory"},
	[ELF_NOT_REGULAR] = {"ELF_NOT_REGULAR", "not a regular file: opening it may block for ever"},
	[ELF_UNREADABLE] = {"ELF_UNREADABLE", "cannot read file data"},
	[ELF_SHORT] = {"ELF_SHORT", "file too short"},
	[ELF_NO_MAGIC] = {"ELF_NO_MAGIC", "invalid ELF header"},
	[ELF_OTHER_CLASS] = {"ELF_OTHER_CLASS", "wrong ELF class"},
	[ELF_BYTE_ORDER] = {"ELF_BYTE_ORDER", "ELF file data encoding not little-endian"},
	[ELF_IDENT_VERSION] = {"ELF_IDENT_VERSION", "ELF file version ident does not match current one"},
	[ELF_OSABI] = {"ELF_OSABI", "ELF file OS ABI invalid"},
	[ELF_ABI_VERSION] = {"ELF_ABI_VERSION", "ELF file ABI version invalid"},
	[ELF_PADDING] = {"ELF_PADDING", "nonzero padding in e_ident"},
	[ELF_VERSION] = {"ELF_VERSION", "ELF file version does not match current one"},
	[ELF_OTHER_MACHINE] = {"ELF_OTHER_MACHINE", "another machine"},
	[ELF_TYPE] = {"ELF_TYPE", "only ET_DYN and ET_EXEC can be loaded"},
	[ELF_PHENTSIZE] = {"ELF_PHENTSIZE", "ELF file's phentsize not the expected size"},
	[ELF_PHDRS_OUTSIDE] = {"ELF_PHDRS_OUTSIDE", "cannot read file data: program headers lie outside the file"},
	[ELF_LOAD_ALIGN] = {"ELF_LOAD_ALIGN", "ELF load command address/offset not properly aligned"},
	[ELF_NO_LOAD] = {"ELF_NO_LOAD", "object file has no loadable segments"},
	[ELF_NO_DYNAMIC] = {"ELF_NO_DYNAMIC", "object file has no dynamic section"},
	[ELF_TRUNCATED] = {"ELF_TRUNCATED", "truncated: the process dies by SIGBUS"},
	[ELF_DAMAGED] = {"ELF_DAMAGED", "damaged: a table or string lies outside the file"},
};

const char *elf_fault_text(enum elf_fault f)
{
	return faults[f].text;
}

const char *elf_fault_code(enum elf_fault f)
{
	return faults[f].code;
}

const char *elf_machine_name(uint16_t machine)
{
	switch (machine) {
	case EM_X86_64: return "x86-64";
	case EM_AARCH64: return "AArch64";
	case EM_386: return "i386";
	case EM_ARM: return "ARM";
	case EM_PPC64: return "ppc64";
	case EM_S390: return "s390";
	case EM_RISCV: return "RISC-V";
	default: return "another machine";
	}
}
