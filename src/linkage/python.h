/* What a Python file opens: the names in its calls of ctypes and cffi.
 *
 * The file is read as text, not run: string literals are literals, os.environ
 * and os.getenv are looked up in the simulated environment, everything else is
 * computed.  Comments and strings are told apart from code; nothing more of
 * the language is understood. */
#ifndef NCCLWHICH_LINKAGE_PYTHON_H
#define NCCLWHICH_LINKAGE_PYTHON_H

#include "linkage/discover.h"

struct python_open {
	const char *name; /* NULL: computed */
	unsigned flags;   /* enum open_flags */
	unsigned line;
};

struct python_file {
	const char *path; /* in the root */
	VEC(struct python_open) opens;
	bool *held;       /* by symbol of the target: stands in a string */
	size_t n_held;
	bool held_key;    /* one of them mints an id or makes a communicator */
	const struct profile *profile;
};

/* Is this a file to be read here: NAME.py, or a #! line with python in it? */
bool python_is_file(struct store *store, const char *path);

/* Reads PATH (absolute, interned).  Returns -1 after an error.  The vector is
 * freed by the caller, everything else lives in the surfaces. */
int python_read(struct surfaces *s, const struct plan *plan, const char *path, struct python_file *out,
		struct error *e);

/* Opens what the file opens above LINE, from *NEXT on, which goes up with it; on behalf
 * of CALLER (ctypes' own module where it is loaded).  What its profile says comes first. */
void python_open(struct discovery *d, const struct python_file *f, struct object *caller, size_t *next, unsigned line);

/* Does it look the API up under a name that it hides? */
bool python_hides_loader(const struct python_file *f, const struct target *t);

#endif
