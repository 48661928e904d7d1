#include "elf/code_internal.h"

#include <endian.h>
#include <stdlib.h>

enum {
	RELOCATIONS = 4096,           /* read at a time */
	POINTERS_MOST = 32 << 20,
	RELR_MOST = 64 << 20,         /* bytes */
};

void code_note(struct code *c, const char *note)
{
	if (!c->note)
		c->note = note;
}

bool code_read(struct code *c, uint64_t vaddr, void *to, size_t n)
{
	const struct elf_segment *s = code_segment(c, vaddr);

	/* Offset zero is an offset like any other here: code may begin there. */
	return s && n <= s->filesz - (vaddr - s->vaddr) && reader_at(c->r, s->offset + (vaddr - s->vaddr), to, n);
}

const struct elf_segment *code_segment(const struct code *c, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < c->o->n_load; i++)
		if (vaddr >= c->o->load[i].vaddr && vaddr - c->o->load[i].vaddr < c->o->load[i].filesz)
			return &c->o->load[i];
	return NULL;
}

bool code_is_constant(const struct code *c, uint64_t vaddr)
{
	const struct elf_segment *s = code_segment(c, vaddr);

	return s && (!(s->flags & PF_W) || (vaddr >= c->relro.begin && vaddr < c->relro.end));
}

/* What object.h does not keep: PT_GNU_RELRO, and DT_RELR of the dynamic section. */
static int read_headers(struct code *c)
{
	Elf64_Ehdr h;
	Elf64_Phdr ph;
	Elf64_Dyn d;
	uint64_t i, at, k, relr = 0;

	if (!reader_at(c->r, 0, &h, sizeof(h)))
		return -1;
	for (i = 0; i < le16toh(h.e_phnum); i++) {
		if (__builtin_add_overflow(le64toh(h.e_phoff), i * sizeof(ph), &at) ||
		    !reader_at(c->r, at, &ph, sizeof(ph)))
			return -1;
		if (le32toh(ph.p_type) == PT_GNU_RELRO) {
			c->relro.begin = le64toh(ph.p_vaddr);
			if (__builtin_add_overflow(c->relro.begin, le64toh(ph.p_memsz), &c->relro.end))
				c->relro.end = c->relro.begin;
		}
		if (le32toh(ph.p_type) != PT_DYNAMIC)
			continue;
		for (k = 0; k < le64toh(ph.p_filesz) / sizeof(d); k++) {
			if (!code_read(c, le64toh(ph.p_vaddr) + k * sizeof(d), &d, sizeof(d)) || !d.d_tag)
				break;
			if ((int64_t)le64toh((uint64_t)d.d_tag) == 36) /* DT_RELR, newer than many an elf.h */
				relr = le64toh(d.d_un.d_val);
			if ((int64_t)le64toh((uint64_t)d.d_tag) == 35)
				c->relr_size = le64toh(d.d_un.d_val);
		}
	}
	c->relr = relr && c->relr_size <= RELR_MOST ? elf_offset_of(c->o, relr, c->relr_size) : 0;
	return 0;
}

/* Enough of .eh_frame_hdr to search it: the encodings that linkers write.  The
 * count is believed as far as the segment reaches. */
static void read_unwind_header(struct code *c)
{
	const struct elf_segment *s = code_segment(c, c->o->eh_frame_hdr);
	unsigned char head[4];
	uint32_t count;
	uint64_t at = c->o->eh_frame_hdr, room;

	if (!at || !s || !code_read(c, at, head, 4) || head[0] != 1 || head[2] != 0x03 || head[3] != 0x3b)
		return;
	switch (head[1] & 0x0f) {
	case 0x03: case 0x0b: at += 8; break;
	case 0x00: case 0x04: case 0x0c: at += 12; break;
	default: return;
	}
	if (!code_read(c, at, &count, 4))
		return;
	at += 4;
	room = s->filesz - (at - s->vaddr);
	c->unwind = c->o->eh_frame_hdr;
	c->unwind_table = at;
	c->unwind_entries = le32toh(count) <= room / 8 ? le32toh(count) : room / 8;
}

static int by_place(const void *a, const void *b)
{
	const struct code_slot *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int by_pointer_place(const void *a, const void *b)
{
	const struct code_pointer *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

typedef void relocation_function(struct code *c, void *context, const Elf64_Rela *r);

static int each_relocation(struct code *c, uint64_t at, uint64_t size, relocation_function *f, void *context)
{
	Elf64_Rela *chunk = xmalloc(RELOCATIONS * sizeof(*chunk));
	uint64_t left = size / sizeof(*chunk), n, k;
	int result = 0;

	for (; left && !result; left -= n, at += n * sizeof(*chunk)) {
		n = left < RELOCATIONS ? left : RELOCATIONS;
		if (!reader_at(c->r, at, chunk, n * sizeof(*chunk))) {
			result = -1;
			break;
		}
		for (k = 0; k < n; k++) {
			Elf64_Rela r = {le64toh(chunk[k].r_offset), le64toh(chunk[k].r_info),
					(int64_t)le64toh((uint64_t)chunk[k].r_addend)};

			f(c, context, &r);
		}
	}
	free(chunk);
	return result;
}

static bool is_slot_type(const struct code *c, uint32_t type)
{
	return c->arm ? type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT
		      : type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

static bool is_address_type(const struct code *c, uint32_t type)
{
	return type == (c->arm ? R_AARCH64_ABS64 : R_X86_64_64);
}

static void take_slot(struct code *c, void *context, const Elf64_Rela *r)
{
	const bool *wanted = context;
	uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info), type = (uint32_t)ELF64_R_TYPE(r->r_info);
	struct code_slot slot = {r->r_offset, symbol};

	if (!symbol || symbol >= c->s->n)
		return;
	if (is_slot_type(c, type))
		vec_push(&c->slot, slot);
	else if (is_address_type(c, type) && wanted[symbol])
		vec_push(&c->stored, slot);
}

static bool is_sorted(const struct code_slot *s, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (s[i].at < s[i - 1].at)
			return false;
	return true;
}

int code_image_open(struct code *c, const bool *wanted)
{
	const struct elf_object *o = c->o;

	if (o->n_load > SEGMENTS_MOST || read_headers(c) < 0)
		return -1;
	read_unwind_header(c);
	if (each_relocation(c, o->rela, o->rela_size, take_slot, (void *)wanted) < 0 ||
	    each_relocation(c, o->jmprel, o->jmprel_size, take_slot, (void *)wanted) < 0)
		return -1;
	if (!is_sorted(c->slot.at, c->slot.n))
		qsort(c->slot.at, c->slot.n, sizeof(*c->slot.at), by_place);
	return 0;
}

uint32_t code_slot_symbol(const struct code *c, uint64_t vaddr)
{
	size_t low = 0, high = c->slot.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->slot.at[mid].at == vaddr)
			return c->slot.at[mid].symbol;
		if (c->slot.at[mid].at < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return 0;
}

static void take_pointer(struct code *c, void *context, const Elf64_Rela *r)
{
	uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info), type = (uint32_t)ELF64_R_TYPE(r->r_info);
	struct code_pointer p = {r->r_offset, (uint64_t)r->r_addend};

	(void)context;
	if (c->pointer.n >= POINTERS_MOST)
		return;
	if (type == (c->arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE)) {
		vec_push(&c->pointer, p);
	} else if ((is_address_type(c, type) || is_slot_type(c, type)) && symbol && symbol < c->s->n &&
		   elf_symbol_defined(c->s, symbol)) {
		p.value += c->s->symbol[symbol].st_value;
		vec_push(&c->pointer, p);
	}
}

/* A word of a DT_RELR table: an address, or a bitmap of the 63 words after the
 * last one.  The word in place is the pointer. */
static void read_relr(struct code *c)
{
	uint64_t k, bit, entry, next = 0, word;

	for (k = 0; c->relr && k < c->relr_size / 8; k++) {
		if (!reader_at(c->r, c->relr + k * 8, &entry, 8))
			return;
		entry = le64toh(entry);
		if (!(entry & 1)) {
			next = entry + 8;
			if (code_read(c, entry, &word, 8) && c->pointer.n < POINTERS_MOST)
				vec_push(&c->pointer, ((struct code_pointer){entry, le64toh(word)}));
			continue;
		}
		for (bit = 0; bit < 63; bit++)
			if ((entry >> (bit + 1) & 1) && c->pointer.n < POINTERS_MOST &&
			    code_read(c, next + bit * 8, &word, 8))
				vec_push(&c->pointer, ((struct code_pointer){next + bit * 8, le64toh(word)}));
		next += 63 * 8;
	}
}

void code_read_pointers(struct code *c)
{
	size_t i;
	bool sorted = true;

	if (c->pointers_known)
		return;
	c->pointers_known = true;
	if (each_relocation(c, c->o->rela, c->o->rela_size, take_pointer, NULL) < 0)
		code_note(c, "its relocations could not all be read");
	read_relr(c);
	for (i = 1; i < c->pointer.n && sorted; i++)
		sorted = c->pointer.at[i].at >= c->pointer.at[i - 1].at;
	if (!sorted)
		qsort(c->pointer.at, c->pointer.n, sizeof(*c->pointer.at), by_pointer_place);
}

bool code_pointer_at(struct code *c, uint64_t vaddr, uint64_t *value)
{
	size_t low = 0, high;
	uint64_t word;

	code_read_pointers(c);
	for (high = c->pointer.n; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (c->pointer.at[mid].at == vaddr) {
			*value = c->pointer.at[mid].value;
			return true;
		}
		if (c->pointer.at[mid].at < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	/* Only a program at a fixed address has pointers without relocations; in
	 * anything else such a word is a number. */
	if (c->o->type != ET_EXEC || code_slot_symbol(c, vaddr) || !code_read(c, vaddr, &word, 8) || !word)
		return false;
	*value = le64toh(word);
	return true;
}

bool code_constant_at(struct code *c, uint64_t vaddr, unsigned size, uint64_t *value)
{
	uint64_t word = 0;

	if (size > 8 || !code_is_constant(c, vaddr) || code_slot_symbol(c, vaddr) || !code_read(c, vaddr, &word, size))
		return false;
	*value = le64toh(word);
	return true;
}

const char *code_string_at(struct code *c, uint64_t vaddr)
{
	const struct elf_segment *s = code_segment(c, vaddr);
	uint64_t left;
	char text[STRING_MOST];
	long n, i;

	if (!s || ((s->flags & PF_X) && (s->flags & PF_W)))
		return NULL;
	left = s->filesz - (vaddr - s->vaddr);
	n = reader_string(c->r, s->offset + (vaddr - s->vaddr), text, left < sizeof(text) ? left : sizeof(text));
	if (n < 0 || (!n && !code_is_constant(c, vaddr)))
		return NULL;
	for (i = 0; i < n; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return NULL;
	return names_add_n(c->names, text, (size_t)n);
}

/* ---- the unwind table */

static bool read_uleb(struct code *c, uint64_t *at, uint64_t *value)
{
	unsigned char byte;
	unsigned shift;

	*value = 0;
	for (shift = 0; shift < 63; shift += 7) {
		if (!code_read(c, (*at)++, &byte, 1))
			return false;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* How the CIE says that addresses are written: DW_EH_PE_*, or -1. */
static int pointer_encoding(struct code *c, uint64_t cie)
{
	unsigned char head[9], byte, text[8] = "";
	uint64_t at = cie + 9, skip;
	size_t k;

	if (!code_read(c, cie, head, 9) || head[4] | head[5] | head[6] | head[7])
		return -1;
	for (k = 0; k < sizeof(text); k++)
		if (!code_read(c, at++, &text[k], 1) || !text[k])
			break;
	if (k == sizeof(text) || text[0] != 'z')
		return k == 0 ? 0 : -1;
	/* code and data alignment, return register, length of what follows */
	for (k = 0; k < 4; k++)
		if (k == 2 && head[8] == 1)
			at++;
		else if (!read_uleb(c, &at, &skip))
			return -1;
	for (k = 1; text[k]; k++)
		switch (text[k]) {
		case 'R': return code_read(c, at, &byte, 1) ? byte : -1;
		case 'L': at++; break;
		case 'P':
			if (!code_read(c, at, &byte, 1))
				return -1;
			at += (byte & 7) == 3 ? 5 : (byte & 7) == 2 ? 3 : 9;
			break;
		case 'S': case 'B': break;
		default: return -1;
		}
	return 0;
}

/* The length of the function that the FDE is about, or 0. */
static uint64_t described_length(struct code *c, uint64_t fde, uint64_t begin)
{
	uint32_t head[2];
	uint64_t wide[2];
	int32_t narrow[2];
	int encoding;

	if (!code_read(c, fde, head, 8) || le32toh(head[0]) < 12 || le32toh(head[0]) >= 0xfffffff0)
		return 0;
	encoding = pointer_encoding(c, fde + 4 - le32toh(head[1]));
	if (encoding < 0 || ((encoding & 0x70) && (encoding & 0x70) != 0x10))
		return 0;
	switch (encoding & 0x0f) {
	case 0x03: case 0x0b:
		if (!code_read(c, fde + 8, narrow, 8))
			return 0;
		wide[0] = (uint64_t)(int64_t)(int32_t)le32toh((uint32_t)narrow[0]);
		wide[1] = le32toh((uint32_t)narrow[1]);
		break;
	case 0x00: case 0x04: case 0x0c:
		if (!code_read(c, fde + 8, wide, 16))
			return 0;
		wide[0] = le64toh(wide[0]);
		wide[1] = le64toh(wide[1]);
		break;
	default: return 0;
	}
	if (encoding & 0x10)
		wide[0] += fde + 8;
	return wide[0] == begin ? wide[1] : 0;
}

static bool unwind_entry(struct code *c, uint64_t k, uint64_t *begin, uint64_t *fde)
{
	uint32_t pair[2];

	if (k >= c->unwind_entries || !code_read(c, c->unwind_table + k * 8, pair, 8))
		return false;
	*begin = c->unwind + (uint64_t)(int64_t)(int32_t)le32toh(pair[0]);
	*fde = c->unwind + (uint64_t)(int64_t)(int32_t)le32toh(pair[1]);
	return true;
}

/* The table is sorted, or else this finds nothing: what it finds is checked
 * against the entry itself and the segment. */
bool code_function_range(struct code *c, uint64_t vaddr, struct range *out)
{
	const struct elf_segment *s = code_segment(c, vaddr);
	uint64_t low = 0, high = c->unwind_entries, begin, fde, length, next;

	if (!s || !(s->flags & PF_X) || !high)
		return false;
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (!unwind_entry(c, mid, &begin, &fde))
			return false;
		if (begin <= vaddr)
			low = mid;
		else
			high = mid;
	}
	if (!unwind_entry(c, low, &begin, &fde) || begin > vaddr || begin < s->vaddr)
		return false;
	length = described_length(c, fde, begin);
	if (!length)
		return false;
	out->begin = begin;
	if (__builtin_add_overflow(begin, length, &out->end) || out->end > s->vaddr + s->filesz || out->end <= vaddr)
		return false;
	if (unwind_entry(c, low + 1, &next, &fde) && next > begin && next < out->end)
		out->end = next;
	return vaddr < out->end;
}
