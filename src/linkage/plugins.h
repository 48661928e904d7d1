/* What a copy of a tracked library opens itself: plugins whose names it composes
 * from its environment and its configuration files. */
#ifndef NCCLWHICH_LINKAGE_PLUGINS_H
#define NCCLWHICH_LINKAGE_PLUGINS_H

#include "linkage/data.h"
#include "linkage/plan.h"

struct plugin_open {
	const char *what; /* "net plugin" */
	const char *name;
	unsigned flags;
};

struct plugin_opens {
	VEC(struct plugin_open) at;
};

/* The names that a copy of VERSION tries, in order.  Configuration files are
 * read from the store's root; names are interned.  The vector is the caller's. */
void plugins_of(const struct plan *plan, struct store *store, const struct target *t, const char *version,
		struct plugin_opens *out);

#endif
