/* What would make it one copy: changes that have been simulated before they
 * are proposed. */
#ifndef NCCLWHICH_VERDICT_FIX_H
#define NCCLWHICH_VERDICT_FIX_H

#include "verdict/run.h"

/* Adds to the first finding of R about copies or absence the changes after
 * which the verdict is better, cheapest first.  Returns -1 after an error. */
int fix_propose(struct run *r, const struct plan *plan, const struct cpu *cpu, struct error *e);

#endif
