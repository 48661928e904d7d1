/* A script as an engine: the kernel starts its interpreter instead. */
#ifndef NCCLWHICH_LINKAGE_SCRIPT_H
#define NCCLWHICH_LINKAGE_SCRIPT_H

#include "linkage/plan.h"

/* The executable that starts when PATH (absolute, interned) is executed: PATH
 * itself unless it is a script, then the interpreter of its #! line; "env NAME"
 * is looked for on the PATH of the plan.  NULL after an error. */
const char *script_executable(const struct plan *plan, struct store *store, const char *path, struct error *e);

#endif
