/* What functions of the C library do with the texts that they are given, by their
 * prototypes; the _chk forms are those that _FORTIFY_SOURCE makes of them (LSB,
 * "Interface Definitions for libc"). */
#include "elf/code_internal.h"

#include <stdlib.h>

/* Sorted by name. */
static const struct library_function library[] = {
	{.name = "_Znam", .does = DOES_ALLOCATE},
	{.name = "_Znwm", .does = DOES_ALLOCATE},
	{.name = "__asprintf_chk", .does = DOES_FORMAT, .to = 0, .from = 2, .more = 3, .pointer = true},
	{.name = "__errno_location", .does = DOES_READ},
	{.name = "__fprintf_chk", .does = DOES_READ},
	{.name = "__memcpy_chk", .does = DOES_COPY, .to = 0, .from = 1, .size = 2, .returns = true},
	{.name = "__printf_chk", .does = DOES_READ},
	{.name = "__secure_getenv", .does = DOES_GETENV},
	{.name = "__snprintf_chk", .does = DOES_FORMAT, .to = 0, .from = 4, .size = 1, .more = 5},
	{.name = "__sprintf_chk", .does = DOES_FORMAT, .to = 0, .from = 3, .more = 4},
	{.name = "__stpcpy_chk", .does = DOES_COPY, .to = 0, .from = 1},
	{.name = "__strcat_chk", .does = DOES_APPEND, .to = 0, .from = 1, .returns = true},
	{.name = "__strcpy_chk", .does = DOES_COPY, .to = 0, .from = 1, .returns = true},
	{.name = "__strdup", .does = DOES_DUPLICATE},
	{.name = "__strncat_chk", .does = DOES_APPEND, .to = 0, .from = 1, .size = 2, .returns = true},
	{.name = "__strncpy_chk", .does = DOES_COPY, .to = 0, .from = 1, .size = 2, .returns = true},
	{.name = "access", .does = DOES_READ},
	{.name = "asprintf", .does = DOES_FORMAT, .to = 0, .from = 1, .more = 2, .pointer = true},
	{.name = "calloc", .does = DOES_ALLOCATE},
	{.name = "dlclose", .does = DOES_READ},
	{.name = "dlerror", .does = DOES_READ},
	{.name = "dlmopen", .does = DOES_READ},
	{.name = "dlopen", .does = DOES_READ},
	{.name = "dlsym", .does = DOES_READ},
	{.name = "dlvsym", .does = DOES_READ},
	{.name = "fprintf", .does = DOES_READ},
	{.name = "fputs", .does = DOES_READ},
	{.name = "free", .does = DOES_READ},
	{.name = "fwrite", .does = DOES_READ},
	{.name = "getenv", .does = DOES_GETENV},
	{.name = "malloc", .does = DOES_ALLOCATE},
	{.name = "memcpy", .does = DOES_COPY, .to = 0, .from = 1, .size = 2, .returns = true},
	{.name = "memmove", .does = DOES_COPY, .to = 0, .from = 1, .size = 2, .returns = true},
	{.name = "perror", .does = DOES_READ},
	{.name = "printf", .does = DOES_READ},
	{.name = "puts", .does = DOES_READ},
	{.name = "secure_getenv", .does = DOES_GETENV},
	{.name = "snprintf", .does = DOES_FORMAT, .to = 0, .from = 2, .size = 1, .more = 3},
	{.name = "sprintf", .does = DOES_FORMAT, .to = 0, .from = 1, .more = 2},
	{.name = "stpcpy", .does = DOES_COPY, .to = 0, .from = 1},
	{.name = "strcasecmp", .does = DOES_READ},
	{.name = "strcat", .does = DOES_APPEND, .to = 0, .from = 1, .returns = true},
	{.name = "strchr", .does = DOES_READ},
	{.name = "strcmp", .does = DOES_READ},
	{.name = "strcpy", .does = DOES_COPY, .to = 0, .from = 1, .returns = true},
	{.name = "strdup", .does = DOES_DUPLICATE},
	{.name = "strlen", .does = DOES_READ},
	{.name = "strncat", .does = DOES_APPEND, .to = 0, .from = 1, .size = 2, .returns = true},
	{.name = "strncmp", .does = DOES_READ},
	{.name = "strncpy", .does = DOES_COPY, .to = 0, .from = 1, .size = 2, .returns = true},
	{.name = "strrchr", .does = DOES_READ},
	{.name = "strstr", .does = DOES_READ},
	{.name = "syslog", .does = DOES_READ},
};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct library_function *)entry)->name);
}

const struct library_function *code_library(const char *name)
{
	return bsearch(name, library, sizeof(library) / sizeof(library[0]), sizeof(library[0]), by_name);
}

/* SysV psABI 3.2.3; AAPCS64 6.8.2. */
struct operand code_argument(const struct code *c, unsigned k)
{
	static const uint8_t x86[] = {7, 6, 2, 1, 8, 9};
	const unsigned n = c->arm ? 8 : sizeof(x86);

	if (k >= n)
		return code_mem(c->sp, 8 * (int64_t)(k - n), 8);
	return code_reg(c->arm ? (uint8_t)k : x86[k], 8);
}
