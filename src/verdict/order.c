#include "verdict/order.h"

/* Opens that were found in objects; a profile's names have an order of their
 * own, so that one consumer counts once. */
static size_t discovered(const struct run *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->paths.n; i++)
		n += r->paths.at[i]->how == HOW_DLOPEN && r->paths.at[i]->evidence != EVIDENCE_DECLARED;
	return n;
}

int order_check(struct run *r, const struct plan *plan, const struct cpu *cpu, struct error *e)
{
	struct plan changed = *plan;
	struct run *again;

	if (discovered(r) < 2)
		return 0;
	changed.reversed = true;
	again = run_new(&changed, r->surfaces, cpu, e);
	if (!again)
		return -1;
	if (again->verdict != r->verdict)
		run_add_finding(r, "order-dependent", SEVERITY_NOTE, NULL,
				arena_printf(&r->arena, "in the opposite order of the opens that were found the verdict is %s: "
					     "declare them in the order in which they happen", verdict_name(again->verdict)));
	run_free(again);
	return 0;
}
