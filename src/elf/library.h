/* What a library file says of its own identity: build id and version code. */
#ifndef NCCLWHICH_ELF_LIBRARY_H
#define NCCLWHICH_ELF_LIBRARY_H

#include "elf/symbols.h"

/* NT_GNU_BUILD_ID in hexadecimal, or NULL. */
const char *elf_build_id(struct reader *r, const struct elf_object *o, struct arena *arena);

/* The constant that FUNCTION stores through its first argument, as
 * ncclGetVersion does; 0 if there is none.  Decodes the first instructions:
 * movl $imm,(%reg) on x86-64, movz and movk into a stored register on AArch64. */
unsigned elf_stored_constant(struct reader *r, const struct elf_object *o, const struct elf_symbols *s,
			     const char *function);

#endif
