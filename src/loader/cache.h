/* ld.so.cache, as the loader reads it: one lookup gives at most one path.
 *
 * glibc elf/dl-cache.c.  The loader does not check that the file is there, and
 * takes no second entry when it is not. */
#ifndef NCCLWHICH_LOADER_CACHE_H
#define NCCLWHICH_LOADER_CACHE_H

#include "loader/cpu.h"

struct ld_cache;

/* DATA must outlive the cache, and a NUL must stand behind it.  NULL if it is no cache that this loader would
 * use; then `why` says what is wrong with it. */
struct ld_cache *ld_cache_parse(const unsigned char *data, size_t size, struct arena *arena,
				const char **why);

struct ld_cache_hit {
	const char *path;   /* NULL = no entry; points into the cache */
	bool named;         /* chosen through a glibc-hwcaps entry */
	bool capable;       /* an entry depends on the processor, taken or not */
};

struct ld_cache_hit ld_cache_lookup(const struct ld_cache *c, const char *name,
				    const struct ld_facts *facts, const struct hwcaps *hw);

/* "ldconfig (…) release version 2.36", or NULL. */
const char *ld_cache_generator(const struct ld_cache *c);

#endif
