#include "linkage/wheels.h"

#include "linkage/imports.h"
#include "linkage/package.h"
#include "linkage/script.h"
#include "linkage/sequence.h"

#include <stdlib.h>

static const char *beside(struct store *store, const char *wheel)
{
	char *text = xprintf("%.*s/site-packages", (int)(strrchr(wheel, '/') - wheel), wheel);
	const char *site = names_add(&store->names, text);

	free(text);
	return site;
}

/* The Python that the plan is about, NULL if it is about none. */
static const char *python_of(const struct plan *plan, struct store *store)
{
	struct error e = {0};
	const char *engine, *executable;

	if (plan->python || !plan->engine)
		return plan->python;
	engine = plan_path(plan, store, plan->engine);
	executable = script_executable(plan, store, engine, &e);
	error_clear(&e);
	return executable && executable != engine && !strncmp(path_base(executable), "python", 6) ? executable : NULL;
}

static int install(const struct plan *plan, struct store *store, const char *path, const char **site, struct error *e)
{
	const char *python = *site ? NULL : python_of(plan, store);

	if (python && !(*site = imports_site(plan, store, python, e)))
		return -1;
	return root_install(store->root, path, *site ? *site : beside(store, path), e);
}

int wheels_install(const struct plan *plan, struct store *store, struct error *e)
{
	const char *site = NULL, *path;
	size_t i;

	if (plan->engine && package_is_wheel(path = plan_path(plan, store, plan->engine)) &&
	    install(plan, store, path, &site, e) < 0)
		return -1;
	for (i = 0; i < plan->events.n; i++)
		if (plan->events.at[i].shim && package_is_wheel(path = plan_path(plan, store, plan->events.at[i].name)) &&
		    install(plan, store, path, &site, e) < 0)
			return -1;
	return 0;
}

const char *wheels_first(const struct plan *plan)
{
	size_t i;

	for (i = 0; i < plan->events.n; i++)
		if (plan->events.at[i].shim && package_is_wheel(plan->events.at[i].name))
			return plan->events.at[i].name;
	return NULL;
}
