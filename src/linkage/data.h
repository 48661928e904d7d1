/* Facts that are data and not code: the tracked libraries (data/targets) and
 * the consumers whose ways of opening them are known (data/profiles).
 *
 * The files of the source tree are checked and compiled into the program by
 * data/embed; a user's own are read at run time by the same reader.  The
 * structures mirror the YAML: see doc/data.md for what each key means. */
#ifndef NCCLWHICH_LINKAGE_DATA_H
#define NCCLWHICH_LINKAGE_DATA_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* A function of the tracked API. */
struct target_symbol {
	const char *name;
	const char *since; /* first version that exports it, "2.18.1"; NULL = all that count */
	const char *does;  /* "mints-id", "makes-comm", "uses-comm", "allocates"; NULL = none of these */
};

struct target {
	const char *name, *soname;
	const char **names; /* globs of the names that are asked for */
	unsigned names_count;
	const char *prefix; /* what all its symbols begin with */
	const char *banner; /* the text before the version in the file */
	const char *version_symbol; /* the function that stores the version code */
	struct target_symbol *symbols;
	unsigned symbols_count;
};

/* The candidates that a consumer tries, in order, in a range of its versions. */
struct profile_row {
	const char *from, *to;
	const char **names; /* {M} and {m}: major and minor of the CUDA it was built for */
	unsigned names_count;
};

struct profile {
	const char *name, *target, *about;
	const char *version_before, *version_after; /* the version stands between these texts */
	const char **flags;
	unsigned flags_count;
	struct profile_row *versions;
	unsigned versions_count;
};

struct data {
	const struct target *const *targets;
	size_t n_targets;
	const struct profile *const *profiles;
	size_t n_profiles;
};

extern const struct data data_embedded;

/* Reads one file; NULL after an error.  The result lives until data_free_*. */
struct target *data_read_target(const char *path, struct error *e);
struct profile *data_read_profile(const char *path, struct error *e);
void data_free_target(struct target *t);
void data_free_profile(struct profile *p);

/* "2.18.1" as 21801; 0 if it is no version. */
int data_version_code(const char *text);

/* Orders versions of three numbers: <0, 0, >0. */
int data_version_compare(const char *a, const char *b);

#endif
