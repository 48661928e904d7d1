/* What an object opens without being told: from its profile, its own notes,
 * its machine code, the names it holds.
 *
 * The best evidence there is decides: a known consumer's list is taken as it
 * is; a declared note comes before what the code shows, and a name that merely
 * stands in the file counts only where the code does not show what is opened. */
#ifndef NCCLWHICH_LINKAGE_DISCOVER_H
#define NCCLWHICH_LINKAGE_DISCOVER_H

#include "linkage/sequence.h"
#include "linkage/surface.h"

struct discovery {
	struct sequence *sequence;
	struct surfaces *surfaces;
	const struct plan *plan;
};

/* Opens what O opens. */
void discover(struct discovery *d, struct object *o);

/* Opens what the objects from index FIRST of the process on open, in the order
 * of mapping, and whatever these map; the engine is left out. */
void discover_from(struct discovery *d, size_t first);

/* Opens the names of a profile for O.  F has what is known of its build, or is
 * NULL; FILE is the object or script that the profile is about. */
void discover_by_profile(struct discovery *d, struct object *o, const struct profile *p, const struct surface *f,
			 const char *file);

#endif
