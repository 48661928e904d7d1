#include "elf/symbols.h"

#include <endian.h>
#include <stdlib.h>

/* More than any library has: a sparse file may hold tables that no memory does. */
enum { SYMBOLS_MOST = 4 << 20, STRINGS_MOST = 256 << 20, RELOCATIONS_MOST = 16 << 20 };

/* DT_GNU_HASH has it in the end of its highest chain, as far as symbols are
 * hashed at all; DT_HASH says it. */
static uint64_t count_by_gnu_hash(struct reader *r, const struct elf_object *o)
{
	uint32_t head[4], chunk[1024], highest = 0, hash;
	uint64_t buckets, chains, i, k;

	if (!o->gnu_hash || !reader_at(r, o->gnu_hash, head, sizeof(head)) || le32toh(head[0]) > SYMBOLS_MOST)
		return 0;
	buckets = o->gnu_hash + 16 + (uint64_t)le32toh(head[2]) * 8;
	chains = buckets + (uint64_t)le32toh(head[0]) * 4;
	for (i = 0; i < le32toh(head[0]); i += k) {
		uint64_t left = le32toh(head[0]) - i, n = left < 1024 ? left : 1024;

		if (!reader_at(r, buckets + i * 4, chunk, n * 4))
			return 0;
		for (k = 0; k < n; k++)
			if (le32toh(chunk[k]) > highest)
				highest = le32toh(chunk[k]);
	}
	if (highest < le32toh(head[1]))
		return 0; /* nothing is hashed: the undefined ones are not counted */
	do
		if (highest > SYMBOLS_MOST ||
		    !reader_at(r, chains + (uint64_t)(highest - le32toh(head[1])) * 4, &hash, sizeof(hash)))
			return 0;
	while (highest++, !(le32toh(hash) & 1));
	return highest;
}

static uint64_t count_by_hash(struct reader *r, const struct elf_object *o)
{
	uint32_t head[2];

	return o->hash && reader_at(r, o->hash, head, sizeof(head)) ? le32toh(head[1]) : 0;
}

/* One more than the highest symbol that a relocation names. */
static uint64_t count_by_relocations(struct reader *r, uint64_t at, uint64_t size)
{
	Elf64_Rela chunk[512];
	uint64_t i, n, k, left = size / sizeof(Elf64_Rela), highest = 0;

	if (left > RELOCATIONS_MOST)
		return 0;
	for (i = 0; left; left -= n, i += n) {
		n = left < 512 ? left : 512;
		if (!reader_at(r, at + i * sizeof(Elf64_Rela), chunk, n * sizeof(Elf64_Rela)))
			return 0;
		for (k = 0; k < n; k++)
			if (ELF64_R_SYM(le64toh(chunk[k].r_info)) + 1 > highest)
				highest = ELF64_R_SYM(le64toh(chunk[k].r_info)) + 1;
	}
	return highest;
}

static uint64_t count_symbols(struct reader *r, const struct elf_object *o)
{
	uint64_t n = count_by_gnu_hash(r, o), k; /* ld.so asks this table first, too */

	if (!n)
		n = count_by_hash(r, o);
	if (!n) {
		n = count_by_relocations(r, o->jmprel, o->jmprel_size);
		k = count_by_relocations(r, o->rela, o->rela_size);
		n = k > n ? k : n;
	}
	return n;
}

static void *read_table(struct reader *r, uint64_t at, uint64_t n, size_t extra)
{
	char *table;

	if (at > r->size || n > r->size - at)
		return NULL;
	table = xmalloc(n + extra);
	if (!reader_at(r, at, table, n)) {
		free(table);
		return NULL;
	}
	memset(table + n, 0, extra);
	return table;
}

/* Names may overlap, but not all of them with all the rest of a long table: the
 * sum of their lengths is what whoever keeps them needs. */
static bool names_are_sane(const struct elf_symbols *s)
{
	const uint64_t most = 16 * (uint64_t)s->strings_size + (64 << 20);
	uint64_t sum = 0;
	size_t i;

	if (s->n < most / (s->strings_size + 1))
		return true;
	for (i = 0; i < s->n && sum <= most; i++)
		sum += strlen(elf_symbol_name(s, i)) + 1;
	return sum <= most;
}

static void to_host(struct elf_symbols *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		Elf64_Sym *y = &s->symbol[i];

		y->st_name = le32toh(y->st_name);
		y->st_shndx = le16toh(y->st_shndx);
		y->st_value = le64toh(y->st_value);
		y->st_size = le64toh(y->st_size);
		if (s->version)
			s->version[i] = le16toh(s->version[i]);
	}
}

int elf_symbols_read(struct reader *r, const struct elf_object *o, struct elf_symbols *out)
{
	uint64_t n;

	memset(out, 0, sizeof(*out));
	if (!o->symtab || !o->strtab)
		return 0;
	n = count_symbols(r, o);
	if (!n)
		return 0;
	if (n > SYMBOLS_MOST || o->strtab_size > STRINGS_MOST)
		return -1;
	out->symbol = read_table(r, o->symtab, n * sizeof(Elf64_Sym), 0);
	out->strings = read_table(r, o->strtab, o->strtab_size, 1);
	if (o->versym)
		out->version = read_table(r, o->versym, n * sizeof(uint16_t), 0);
	if (!out->symbol || !out->strings || (o->versym && !out->version)) {
		elf_symbols_free(out);
		return -1;
	}
	out->n = n;
	out->strings_size = o->strtab_size;
	to_host(out);
	if (!names_are_sane(out)) {
		elf_symbols_free(out);
		return -1;
	}
	return 0;
}

void elf_symbols_free(struct elf_symbols *s)
{
	free(s->symbol);
	free(s->version);
	free(s->strings);
	memset(s, 0, sizeof(*s));
}

const char *elf_symbol_name(const struct elf_symbols *s, size_t i)
{
	return s->symbol[i].st_name < s->strings_size ? s->strings + s->symbol[i].st_name : "";
}

/* sysdeps/.../dl-machine.h, elf_machine_type_class. */
static enum reloc_class class_of(uint16_t machine, uint32_t type)
{
	if (machine == EM_AARCH64)
		return type == R_AARCH64_JUMP_SLOT ? RELOC_PLT : type == R_AARCH64_COPY ? RELOC_COPY
		     : type >= R_AARCH64_TLS_DTPMOD && type <= R_AARCH64_TLSDESC ? RELOC_TLS
		     : type == R_AARCH64_GLOB_DAT ? RELOC_GOT : RELOC_DATA;
	return type == R_X86_64_JUMP_SLOT ? RELOC_PLT : type == R_X86_64_COPY ? RELOC_COPY
	     : type == R_X86_64_DTPMOD64 || type == R_X86_64_DTPOFF64 || type == R_X86_64_TPOFF64 ||
	       type == R_X86_64_TLSDESC ? RELOC_TLS
	     : type == R_X86_64_GLOB_DAT ? RELOC_GOT : RELOC_DATA;
}

static int by_symbol(const void *a, const void *b)
{
	const struct elf_relocation *x = a, *y = b;

	if (x->symbol != y->symbol)
		return x->symbol < y->symbol ? -1 : 1;
	return (int)x->class - (int)y->class;
}

static int collect_relocations(struct reader *r, uint16_t machine, uint64_t at, uint64_t size,
			       struct elf_relocations *out, size_t *room)
{
	Elf64_Rela chunk[512];
	uint64_t left = size / sizeof(Elf64_Rela), n, k;

	if (left > RELOCATIONS_MOST)
		return -1;
	for (; left; left -= n, at += n * sizeof(Elf64_Rela)) {
		n = left < 512 ? left : 512;
		if (!reader_at(r, at, chunk, n * sizeof(Elf64_Rela)))
			return -1;
		for (k = 0; k < n; k++) {
			uint64_t info = le64toh(chunk[k].r_info);

			if (!ELF64_R_SYM(info))
				continue;
			if (out->n == *room)
				out->at = vec_grow(out->at, room, out->n, sizeof(*out->at));
			out->at[out->n++] = (struct elf_relocation){
				(uint32_t)ELF64_R_SYM(info), class_of(machine, (uint32_t)ELF64_R_TYPE(info))};
		}
	}
	return 0;
}

int elf_relocations_read(struct reader *r, const struct elf_object *o, struct elf_relocations *out)
{
	size_t room = 0, i, n = 0;

	memset(out, 0, sizeof(*out));
	if (collect_relocations(r, o->machine, o->rela, o->rela_size, out, &room) < 0 ||
	    collect_relocations(r, o->machine, o->jmprel, o->jmprel_size, out, &room) < 0) {
		elf_relocations_free(out);
		return -1;
	}
	if (out->n)
		qsort(out->at, out->n, sizeof(*out->at), by_symbol);
	for (i = 0; i < out->n; i++)
		if (!n || by_symbol(&out->at[n - 1], &out->at[i]))
			out->at[n++] = out->at[i];
	out->n = n;
	return 0;
}

void elf_relocations_free(struct elf_relocations *s)
{
	free(s->at);
	memset(s, 0, sizeof(*s));
}
