/* What a dynamic loader says about itself.
 *
 * Default directories, $LIB, the cache's path and the glibc version are
 * compiled into ld.so as plain strings; they are read from the very file that
 * PT_INTERP names, because a table of distributions is a guess.  Where a fact
 * cannot be found the table is used and `…_from` says "table". */
#ifndef NCCLWHICH_LOADER_FACTS_H
#define NCCLWHICH_LOADER_FACTS_H

#include "base/memory.h"
#include "base/names.h"

#include <stdbool.h>
#include <stdint.h>

enum libc_kind { LIBC_GLIBC, LIBC_MUSL, LIBC_OTHER };

struct ld_facts {
	enum libc_kind libc;
	uint16_t machine;

	int version;              /* 236 = 2.36 */
	const char *version_from; /* "ld.so", "libc.so.6", "file name", "table" */

	const char **system_dir;  /* each with its final '/', in search order */
	size_t n_system_dir;
	const char *dirs_from;    /* "ld.so" or "table" */

	const char *lib;          /* what $LIB stands for */
	const char *lib_from;
	const char *cache_path;   /* usually /etc/ld.so.cache */
	const char *cache_from;
	const char *preload_path; /* /etc/ld.so.preload */

	bool glibc_hwcaps;        /* searches glibc-hwcaps/NAME/ (2.33 and backports) */
	bool legacy_hwcaps;       /* searches tls/, platform and hwcap directories (to 2.36) */
};

/* DATA is the whole interpreter file; REAL its canonical path, LIBC the head of
 * libc.so.6 beside it or NULL.  Results live in ARENA and NAMES. */
struct ld_facts *ld_facts_read(const unsigned char *data, size_t size, const char *real,
			       uint16_t machine, struct names *names, struct arena *arena)
	__attribute__((returns_nonnull));

/* The version in the banner of a libc.so.6, or 0. */
int libc_banner_version(const unsigned char *data, size_t size);

#endif
