/* A Python package as a shim: every file in it that could be loaded. */
#ifndef NCCLWHICH_LINKAGE_PACKAGE_H
#define NCCLWHICH_LINKAGE_PACKAGE_H

#include "loader/store.h"

struct package_files {
	VEC(const char *) at; /* in the root, interned: a folder's __init__.py first, then by name */
	bool cut;             /* there are more than are listed */
};

/* The .py and .so files below the directory PATH (absolute, interned).  Links to
 * directories are not followed.  The vector is the caller's. */
void package_list(struct store *store, const char *path, struct package_files *out);

#endif
