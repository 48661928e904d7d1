/* A pool of names in which equal strings are one pointer.
 *
 * The loader compares names all day; interned, a comparison is a pointer
 * comparison and a hash table needs no hashing of text.  Names live as long as
 * the pool. */
#ifndef NCCLWHICH_BASE_NAMES_H
#define NCCLWHICH_BASE_NAMES_H

#include "base/memory.h"

#include <stdint.h>

struct names {
	struct arena arena;
	struct names_slot *slot;
	size_t n, room; /* room is zero or a power of two */
};

const char *names_add(struct names *pool, const char *s) __attribute__((returns_nonnull));
const char *names_add_n(struct names *pool, const char *s, size_t n)
	__attribute__((returns_nonnull));
void names_free(struct names *pool);

/* A table from interned names to pointers; values are not owned. */
struct name_map {
	struct name_map_slot *slot;
	size_t n, room;
};

void *name_map_get(const struct name_map *m, const char *name);
void name_map_put(struct name_map *m, const char *name, void *value);
void name_map_free(struct name_map *m);

/* What stands behind the last slash of PATH, all of it where there is none. */
const char *path_base(const char *path);

#endif
