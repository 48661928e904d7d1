/* Which processors a prediction is made for. */
#ifndef NCCLWHICH_LINKAGE_CPUS_H
#define NCCLWHICH_LINKAGE_CPUS_H

#include "linkage/plan.h"

enum { CPUS_MOST = 8 };

/* Fills OUT with the processors of --hwcaps: this one by default, every level
 * with a root; a list of level names in between.  Returns how many, -1 after
 * an error.  The first has all the subdirectories that any of them has. */
int plan_cpus(const struct plan *plan, uint16_t machine, struct cpu *out, struct error *e);

#endif
