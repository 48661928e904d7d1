#include "linkage/cpus.h"

#include <stdio.h>

int plan_cpus(const struct plan *plan, uint16_t machine, struct cpu *out, struct error *e)
{
	const char *list = plan->hwcaps ? plan->hwcaps : plan->root ? "all" : "auto";
	int count = 0;
	size_t n;

	if (!strcmp(list, "all"))
		return (int)cpu_all(machine, true, out, CPUS_MOST);
	if (!strcmp(list, "auto")) {
		out[0] = cpu_here(machine);
		return 1;
	}
	for (;; list += n + 1) {
		char name[32];

		n = strcspn(list, ",");
		snprintf(name, sizeof(name), "%.*s", (int)n, list);
		if (count == CPUS_MOST || !cpu_named(name, machine, &out[count]))
			return error_set(e, "--hwcaps: '%s' is no processor level of this engine's machine: auto, none, "
					 "all or a list of x86-64-v1 to x86-64-v4, haswell", name);
		count++;
		if (!list[n])
			return count;
	}
}
