/* A Python package as a shim, a directory or a wheel: every file in it that could be loaded. */
#ifndef NCCLWHICH_LINKAGE_PACKAGE_H
#define NCCLWHICH_LINKAGE_PACKAGE_H

#include "loader/store.h"

struct package_files {
	VEC(const char *) at; /* in the root, interned: a folder's __init__.py first, then by name */
	bool cut;             /* there are more than are listed */
};

/* The .py and .so files below the directory PATH (absolute, interned), or in the
 * wheel of that name, which is installed in the root; if LIBRARIES, those too whose
 * names go on with a version, lib*.so.*.  Links to directories are not followed.  The
 * vector is the caller's. */
void package_list(struct store *store, const char *path, bool libraries, struct package_files *out);

/* Is PATH (absolute, interned) a wheel, by its name? */
bool package_is_wheel(const char *path);

#endif
