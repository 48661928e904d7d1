/* Wheels among the shims: they are laid over the root as if they were installed. */
#ifndef NCCLWHICH_LINKAGE_WHEELS_H
#define NCCLWHICH_LINKAGE_WHEELS_H

#include "linkage/plan.h"

/* Installs the wheels among the shims, and the engine where it is one (an OBJECT of
 * `opens`).  Where: in the packages of the plan's Python, or of that which runs its engine; else
 * in site-packages beside the wheel, which need not be there.  -1 after an error. */
int wheels_install(const struct plan *plan, struct store *store, struct error *e);

/* The first wheel among the shims, NULL if there is none. */
const char *wheels_first(const struct plan *plan);

#endif
