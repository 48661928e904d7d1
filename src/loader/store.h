/* Everything read out of one root, shared by all simulations of it.
 *
 * A file is parsed once however many processes load it.  All memory belongs to
 * the store, which must outlive the processes made from it. */
#ifndef NCCLWHICH_LOADER_STORE_H
#define NCCLWHICH_LOADER_STORE_H

#include "elf/object.h"
#include "loader/cache.h"
#include "loader/facts.h"
#include "root/root.h"

struct store {
	struct root *root;
	struct names names;
	struct arena arena;
	const char *cwd;        /* where relative paths of the command line start */
	struct name_map facts;  /* canonical path of ld.so -> struct ld_facts */
	struct name_map caches; /* path -> struct store_cache */
	VEC(struct store_cache *) cache_list;
	struct name_map symbols; /* canonical path -> struct symbol_table */
	VEC(struct symbol_table *) symbol_tables;
	VEC(unsigned char *) slurped;
};

struct store_cache {
	struct ld_cache *cache; /* NULL: none, or unusable */
	const char *why;        /* then: what is wrong, NULL = no such file */
	struct name_map memo;   /* name -> struct ld_cache_hit, for one processor and loader */
	const struct ld_facts *memo_facts;
	uint64_t memo_legacy, memo_platform;
	uint32_t memo_isa;
	size_t memo_subdirs;
};

/* DIR NULL = the running system.  NULL after an error. */
struct store *store_new(const char *dir, struct error *e);
void store_free(struct store *s);

/* What FILE says, as the loader would see it; never NULL.  *OPEN_ERROR is set
 * to the errno when it could not be opened for lack of permission. */
const struct elf_object *store_object(struct store *s, struct root_file *file, int *open_error);

/* A reader for FILE; returns the descriptor to close, or a negative errno. */
int store_reader(struct store *s, const struct root_file *file, struct reader *r);

/* The facts of the loader FILE; NULL after an error. */
const struct ld_facts *store_facts(struct store *s, struct root_file *file, struct error *e);

struct store_cache *store_cache(struct store *s, const char *path);

/* ld_cache_lookup, remembered; the path is interned. */
struct ld_cache_hit store_cache_lookup(struct store *s, struct store_cache *c, const char *name,
				       const struct ld_facts *facts, const struct hwcaps *hw);

/* The whole of FILE and a NUL, up to LIMIT bytes; NULL if it cannot be read or
 * is larger. */
const unsigned char *store_slurp(struct store *s, const struct root_file *file, size_t limit, size_t *size);

#endif
