#include "elf/library.h"

#include <endian.h>
#include <stdlib.h>

const char *elf_build_id(struct reader *r, const struct elf_object *o, struct arena *arena)
{
	size_t i, k;

	for (i = 0; i < o->n_note; i++) {
		uint64_t at = o->note_offset[i], end = at + o->note_size[i];
		unsigned char id[64], name[4];
		Elf64_Nhdr nh;

		while (at < end && end - at >= sizeof(nh) && reader_at(r, at, &nh, sizeof(nh))) {
			uint64_t namesz = le32toh(nh.n_namesz), descsz = le32toh(nh.n_descsz);
			uint64_t desc = at + sizeof(nh) + ((namesz + 3) & ~3ull);

			if (le32toh(nh.n_type) == NT_GNU_BUILD_ID && namesz == 4 && descsz && descsz <= sizeof(id) &&
			    reader_at(r, at + sizeof(nh), name, 4) && !memcmp(name, "GNU", 4) &&
			    reader_at(r, desc, id, descsz)) {
				char *text = arena_alloc(arena, descsz * 2 + 1);

				for (k = 0; k < descsz; k++) {
					text[2 * k] = "0123456789abcdef"[id[k] >> 4];
					text[2 * k + 1] = "0123456789abcdef"[id[k] & 15];
				}
				return text;
			}
			if (desc + descsz < at)
				break;
			at = (desc + descsz + 3) & ~3ull;
		}
	}
	return NULL;
}

static unsigned decode_x86_64(const unsigned char *code, size_t n)
{
	size_t i;

	/* c7 /0 with a register as address: movl $imm32,(%reg); not %rsp, not %rbp
	 * (those encode something else) */
	for (i = 0; i + 6 <= n && code[i] != 0xc3; i++) {
		uint32_t value;

		if (code[i] != 0xc7 || code[i + 1] > 7 || code[i + 1] == 4 || code[i + 1] == 5)
			continue;
		memcpy(&value, code + i + 2, sizeof(value));
		value = le32toh(value);
		if (value >= 1000 && value < 1000000)
			return value;
	}
	return 0;
}

static unsigned decode_aarch64(const unsigned char *code, size_t n)
{
	uint32_t reg[32] = {0}, word;
	size_t i;

	for (i = 0; i + 4 <= n; i += 4) {
		memcpy(&word, code + i, sizeof(word));
		word = le32toh(word);
		if ((word & 0xffe00000) == 0x52800000)      /* movz wD, #imm16 */
			reg[word & 31] = word >> 5 & 0xffff;
		else if ((word & 0xffe00000) == 0x72a00000) /* movk wD, #imm16, lsl 16 */
			reg[word & 31] = (reg[word & 31] & 0xffff) | (word >> 5 & 0xffff) << 16;
		else if ((word & 0xffc00000) == 0xb9000000 && reg[word & 31] >= 1000) /* str wT, [xN, #…] */
			return reg[word & 31];
	}
	return 0;
}

unsigned elf_stored_constant(struct reader *r, const struct elf_object *o, const struct elf_symbols *s,
			     const char *function)
{
	unsigned char code[256];
	uint64_t at = 0;
	size_t i, n = sizeof(code);

	for (i = 1; i < s->n && !at; i++)
		if (elf_symbol_defined(s, i) && !strcmp(elf_symbol_name(s, i), function)) {
			at = elf_offset_of(o, s->symbol[i].st_value, 1);
			if (s->symbol[i].st_size && s->symbol[i].st_size < n)
				n = s->symbol[i].st_size;
		}
	while (at && n >= 6 && !reader_at(r, at, code, n)) /* the shortest store has six bytes */
		n /= 2;
	if (!at || n < 6)
		return 0;
	return o->machine == EM_AARCH64 ? decode_aarch64(code, n) : decode_x86_64(code, n);
}
