#include "verdict/order.h"

/* Who opens something that was not declared.  The names that one consumer or one
 * file tries have an order of their own, and count once. */
static size_t discovered(const struct run *r)
{
	const struct opened *before = NULL;
	size_t i, n = 0;

	for (i = 0; i < r->life.sequence.opened.n; i++) {
		const struct opened *o = &r->life.sequence.opened.at[i];

		if (o->evidence == EVIDENCE_DECLARED)
			continue;
		n += !before || before->caller != o->caller || before->source != o->source || before->evidence != o->evidence;
		before = o;
	}
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
