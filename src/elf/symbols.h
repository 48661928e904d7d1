/* The dynamic symbol table, as far as the loader can see it.
 *
 * Section headers are not asked.  How many symbols there are follows from the
 * hash tables and, where these are empty, from the relocations.  The tables
 * belong to the caller: elf_symbols_free(). */
#ifndef NCCLWHICH_ELF_SYMBOLS_H
#define NCCLWHICH_ELF_SYMBOLS_H

#include "elf/object.h"

struct elf_symbols {
	Elf64_Sym *symbol;
	uint16_t *version; /* of each symbol; NULL = the file has no DT_VERSYM */
	size_t n;          /* symbol 0 is the null symbol */
	char *strings;     /* ends in a NUL of ours */
	size_t strings_size;
};

/* Returns -1 when a table lies outside the file, or is larger than any
 * library's; OUT is then empty. */
int elf_symbols_read(struct reader *r, const struct elf_object *o, struct elf_symbols *out);
void elf_symbols_free(struct elf_symbols *s);

/* A relocation that names a symbol. */
enum reloc_class {
	RELOC_PLT,  /* JUMP_SLOT: may wait for the first call */
	RELOC_GOT,  /* GLOB_DAT: bound while loading */
	RELOC_DATA, /* other words: the same but for a rule about protected objects */
	RELOC_TLS,  /* looked up as a call is, but while loading */
	RELOC_COPY
};

struct elf_relocation {
	uint32_t symbol;
	enum reloc_class class;
};

struct elf_relocations {
	struct elf_relocation *at;
	size_t n;
};

/* DT_RELA and DT_JMPREL, those with a symbol, each (symbol, class) once.
 * Returns -1 when a table lies outside the file, or is larger than any
 * library's; OUT is then empty. */
int elf_relocations_read(struct reader *r, const struct elf_object *o, struct elf_relocations *out);
void elf_relocations_free(struct elf_relocations *s);

/* Never NULL; "" for an offset outside the strings. */
const char *elf_symbol_name(const struct elf_symbols *s, size_t i);

static inline bool elf_symbol_defined(const struct elf_symbols *s, size_t i)
{
	return s->symbol[i].st_shndx != SHN_UNDEF;
}

#endif
