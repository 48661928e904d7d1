/* $ORIGIN, $LIB and $PLATFORM in paths and names (glibc elf/dl-load.c,
 * _dl_dst_count and _dl_dst_substitute). */
#ifndef NCCLWHICH_LOADER_TOKENS_H
#define NCCLWHICH_LOADER_TOKENS_H

#include "base/names.h"

#include <stdbool.h>

struct token_values {
	const char *origin;   /* NULL = unknown: whatever holds $ORIGIN is void */
	const char *lib, *platform;
	int version;          /* of the libc: the grammar changed in 2.28 */
	bool secure;          /* set-id process: $ORIGIN only at the start, and then only … */
	bool for_executable;  /* … for the executable, under a default directory */
	const char **system_dir;
	size_t n_system_dir;
};

/* TEXT with its tokens replaced, interned; NULL when a token has no value or
 * may not be used, which voids the whole string. */
const char *tokens_expand(const char *text, const struct token_values *v, struct names *names);

bool tokens_any(const char *text, int version);

#endif
