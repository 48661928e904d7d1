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
	const char *until; /* last that does; NULL = it has not gone */
	const char *does;  /* "mints-id", "makes-comm", "uses-comm", "allocates"; NULL = none of these */
	bool unchecked;    /* takes a communicator without looking whose it is */
};

/* Versions between which an id may go. */
struct target_era {
	const char *name, *from, *to;
	unsigned message; /* bytes that a rank sends to the root */
};

/* The communicator of a version on a machine. */
struct target_layout {
	const char *version, *machine; /* "x86-64", "AArch64" */
	unsigned size, end;            /* bytes; offset of the last magic word, 0 = not looked at */
};

/* A function of its own that a copy reaches without being asked. */
struct target_reached {
	const char *symbol, *phase, *effect;
	const char *from, *to; /* versions of the copy that calls */
};

/* A plugin that a copy opens by a name that it composes. */
struct target_opens {
	const char *what, *variable, *from, *to; /* versions of the copy */
	const char **set, **unset;               /* names where the variable is set ({} its value), and is not */
	unsigned set_count, unset_count;
	const char **flags;
	unsigned flags_count;
	bool list, bare;       /* several values between commas; what reads like a file goes into no name */
	const char *none_from; /* from this version on "none" opens nothing */
};

/* Where a setting may stand besides the environment, in order. */
struct target_conf {
	const char *variable, *file; /* a variable that names the file, or the file; ~/ is HOME */
	const char *from;
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
	struct target_era *eras;
	unsigned eras_count;
	struct target_layout *layouts;
	unsigned layouts_count;
	struct target_reached *reached;
	unsigned reached_count;
	struct target_opens *opens;
	unsigned opens_count;
	struct target_conf *conf;
	unsigned conf_count;
};

/* The candidates that a consumer tries, in order, in a range of its versions. */
struct profile_row {
	const char *from, *to;  /* NULL: all versions */
	bool eager;             /* looks up every function at once and gives up if one is missing */
	const char *override;   /* a variable: if it is set, its value is the only name */
	const char **names;     /* {M}, {m}: CUDA major and minor; {env:NAME}: a variable; and more */
	unsigned names_count;
};

/* Another loader in the same consumer, which is used whatever became of the first. */
struct profile_also {
	const char **names, **flags;
	unsigned names_count, flags_count;
};

/* What a consumer is known by: all that is given must hold. */
struct profile {
	const char *name, *target, *about;
	const char **objects; /* globs of the file's name or SONAME: one of them */
	unsigned objects_count;
	const char **strings; /* texts in its read-only data: each of them */
	unsigned strings_count;
	const char **imports; /* functions that it needs from elsewhere: each of them */
	unsigned imports_count;
	const char *version_before, *version_after; /* the version stands between these texts */
	bool named_only; /* nothing shows it: taken only where the user names it */
	bool default_first; /* looks each function up in its global scope before the handle */
	bool optional; /* opens only what is there, and goes on without */
	const char *when;    /* "start", "import", "first-use"; NULL = not known */
	const char *caller;  /* a glob: on behalf of which object it opens; NULL = itself */
	const char **does;   /* with the library, besides what its symbols say: words of target_symbol.does */
	unsigned does_count;
	const char *unless;  /* a variable: where it is set, and not to 0, nothing is opened */
	const char *failure; /* what it says when nothing opens */
	struct profile_also *also;
	unsigned also_count;
	const char **flags;
	unsigned flags_count;
	struct profile_row *versions;
	unsigned versions_count;
};

struct data {
	const struct target *const *targets;
	size_t n_targets;
	const struct profile *const *profiles; /* the first that fits is taken */
	size_t n_profiles;
	const struct profile *engine; /* what the engine is said to be, whatever it shows; or NULL */
	const char *engine_version;
};

/* The row of a profile for a version, NULL if none covers it. */
const struct profile_row *profile_row_of(const struct profile *p, const char *version);

/* The embedded data with a user's own before it; ends with data_free().  What is
 * named is a FILE, or NAME[=VERSION], a profile that the engine is taken for. */
struct user_data {
	struct data data;
	struct profile **own;
	size_t n_own;
	const struct profile **all;
};
int data_load(struct user_data *u, const char *const *named, size_t n_named, const char *directory,
	      struct error *e);
void data_free(struct user_data *u);

extern const struct data data_embedded;
extern const char data_rules[]; /* the text of doc/rules.md */

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
