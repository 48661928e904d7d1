/* Does the answer hang on the order of opens whose order is not known? */
#ifndef NCCLWHICH_VERDICT_ORDER_H
#define NCCLWHICH_VERDICT_ORDER_H

#include "verdict/run.h"

/* Simulates the plan once more with the discovered opens in the opposite order,
 * and adds the finding order-dependent if the verdict is another one then.
 * Returns -1 after an error. */
int order_check(struct run *r, const struct plan *plan, const struct cpu *cpu, struct error *e);

#endif
