/* What is to be looked at: an engine, its shims, what it opens, and the
 * context it runs in.  Filled from the command line; strings are the caller's. */
#ifndef NCCLWHICH_LINKAGE_PLAN_H
#define NCCLWHICH_LINKAGE_PLAN_H

#include "loader/process.h"

#include <stdbool.h>

/* Something that happens after start-up, in the order given. */
struct event {
	const char *caller; /* an object's name, NULL = the main program */
	const char *name;
	unsigned flags;     /* enum open_flags */
	bool shim;          /* a SHIM of the command line */
};

struct import_list;

struct plan {
	const char *engine;
	VEC(struct event) events;
	const char *python;      /* --python: the engine is this interpreter */
	VEC(const char *) modules; /* … and this is what it imports, before all events */
	const struct import_list *imports; /* the files that these are; NULL until they are found */

	const char *root;     /* NULL = the running system */
	const char *exe;      /* --exe: the program that loads a shared-object engine */
	const char *interp;
	VEC(const char *) env; /* NAME=VALUE, the last one of a name counts */
	const char *library_path, *preload, *audit; /* out of it, or from their own options */
	bool bind_now;
	const char *tunables; /* GLIBC_TUNABLES: processor features may be masked */
	const char *cwd;
	enum { SECURE_AUTO, SECURE_YES, SECURE_NO } secure;
	const char *cache;    /* NULL = the loader's own, "" = none */
	const char *hwcaps;   /* NULL = default: this CPU, or all with a root */
	VEC(const char *) profiles; /* files, or names of profiles that are to be taken as seen: NAME[=VERSION] */
	const char *data_dir;       /* more profiles: DIR/profiles/NAME.yaml, DIR/targets/NAME.yaml */
	VEC(const char *) assume; /* present at run time although not on disk */
	/* For simulating what is not known, or not yet so. */
	bool reversed;        /* discovered opens happen in the opposite order */
	bool deepbind;        /* the tracked library is opened with RTLD_DEEPBIND */
	const char *runpath;  /* the program has this DT_RUNPATH */

	bool bindings;        /* tree: every reference too */
	bool sha256;
};

/* The value of a variable of the process, NULL if it is not set. */
const char *plan_getenv(const struct plan *plan, const char *name);

#endif
