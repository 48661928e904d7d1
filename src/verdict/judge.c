#include "verdict/judge.h"

#include "linkage/discover.h"
#include "linkage/imports.h"
#include "verdict/crossings.h"

#include <stdlib.h>

static const char *describe(const struct object *o)
{
	return *o->path ? o->path : "the bare program";
}

static void consider(struct run *r, enum verdict v)
{
	if (v < r->verdict)
		r->verdict = v;
}

/* A process that does not start, or that an open ends, reaches nothing. */
static void judge_life(struct run *r)
{
	const struct process *p = r->life.sequence.process;

	if (!p->started) {
		consider(r, VERDICT_ABSENT);
		run_add_finding(r, "start-fails", SEVERITY_ERROR, NULL,
				arena_printf(&r->arena, "the program does not start: %s: %s",
					     p->start_object ? p->start_object : "", p->start_error));
	}
	if (r->life.sequence.died) {
		consider(r, VERDICT_ABSENT);
		run_add_finding(r, "process-dies", SEVERITY_ERROR, NULL,
				arena_printf(&r->arena, "an open ends the process: %s", r->life.sequence.died));
	}
}

static const char *verb(const struct path *path)
{
	return path->how == HOW_DLOPEN ? "opens" : path->how == HOW_PRELOAD ? "preloads" : "needs";
}

static void judge_absence(struct run *r, const struct path *path)
{
	const char *why = path->lookup->error ? path->lookup->error : "cannot open shared object file";
	enum severity severity = path->goes_on || path->how == HOW_PRELOAD || path->how == HOW_AUXILIARY
				 ? SEVERITY_WARNING : SEVERITY_ERROR;

	if (path->lookup->object && path->lookup->object->assumed)
		return;
	consider(r, VERDICT_ABSENT);
	run_add_finding(r, "absent", severity, path->requester,
			arena_printf(&r->arena, "%s %s %s and gets no copy: %s%s%s%s", describe(path->requester), verb(path),
				     path->request, why,
				     path->tried.n ? "; none of the other names it tries opens either" : "",
				     path->profile && path->profile->failure ? "; it then says: " : "",
				     path->profile && path->profile->failure ? path->profile->failure : ""));
}

static const char *version_of(const struct instance *in)
{
	return in->surface->version ? in->surface->version : "unknown version";
}

static void judge_copies(struct run *r)
{
	const struct target *t = r->surfaces->target;
	char *text, *more;
	size_t i;

	for (i = 0; i < r->instances.n; i++)
		if (r->instances.at[i]->surface->disagreement)
			run_add_finding(r, "version-disagrees", SEVERITY_WARNING, r->instances.at[i]->object,
					arena_printf(&r->arena, "%s: %s", r->instances.at[i]->object->path,
						     r->instances.at[i]->surface->disagreement));
	if (r->instances.n < 2 || r->verdict == VERDICT_CROSSED)
		return;
	consider(r, VERDICT_SPLIT);
	text = xprintf("%zu copies of %s in one process", r->instances.n, t->name);
	for (i = 0; i < r->instances.n; i++) {
		more = xprintf("%s%s %s (%s%s)", text, i ? "," : ":", version_of(r->instances.at[i]),
			       r->instances.at[i]->object->path,
			       r->instances.at[i]->surface->buried ? ", linked into it" : "");
		free(text);
		text = more;
	}
	run_add_finding(r, "split", SEVERITY_WARNING, r->instances.at[1]->object, arena_strdup(&r->arena, text));
	free(text);
}

static bool opens_by_itself(const struct run *r, const struct object *o)
{
	size_t i;

	for (i = 0; i < r->paths.n; i++)
		if (r->paths.at[i]->consumer == o && r->paths.at[i]->how == HOW_DLOPEN)
			return true;
	return false;
}

static bool opens_by_variable(const struct surface *f)
{
	size_t i;

	for (i = 0; i < f->code.n; i++)
		if (f->code.at[i].form)
			return true;
	return false;
}

/* A profile that covers the version says what is opened, be it nothing: a
 * variable that is not set, or a consumer that is handed its library.  So does
 * code in which no name is computed, but one is a variable's. */
static bool is_settled(const struct surface *f)
{
	if (f->profile)
		return profile_row_of(f->profile, f->profile_version);
	return !surface_computes(f) && opens_by_variable(f);
}

/* An object that looks the API up by name opens the library under a name; if
 * no path of it was seen, the name is hidden, and any answer would be a guess. */
static void judge_hidden(struct run *r, const struct object *o)
{
	const struct surface *f = surface_of(r->surfaces, o->file, o->elf);

	if (!surface_hides_loader(f) || opens_by_itself(r, o) || is_settled(f))
		return;
	consider(r, VERDICT_UNSURE);
	if (f->profile)
		run_add_finding(r, "profile-version-unknown", SEVERITY_NOTE, o,
				arena_printf(&r->arena, "%s holds %s %s, whose names for %s are not known; declare them: "
					     "--dlopen '%s:NAME,FLAGS'", describe(o), f->profile->name,
					     f->profile_version ? f->profile_version : "", r->surfaces->target->name,
					     o->path));
	else
		run_add_finding(r, "hidden-loader", SEVERITY_NOTE, o,
				arena_printf(&r->arena, "%s looks up functions of %s at run time, under a name that it "
					     "does not show; declare it: --dlopen '%s:NAME,FLAGS'", describe(o),
					     r->surfaces->target->name, o->path));
}

static void judge_visibility(struct run *r, const struct plan *plan)
{
	const struct process *p = r->life.sequence.process;
	const struct object *o;
	size_t i;

	for (i = 0; i < p->ns.n; i++)
		for (o = process_first(p, i); o; o = o->next)
			if (p->started && o->file && o->elf && o->how != HOW_INTERP)
				judge_hidden(r, o);
	for (i = 0; i < r->life.hiding_scripts.n; i++) {
		consider(r, VERDICT_UNSURE);
		run_add_finding(r, "hidden-loader", SEVERITY_NOTE, NULL,
				arena_printf(&r->arena, "%s looks up functions of %s at run time, under a name that it computes; "
					     "declare it: --dlopen 'NAME,FLAGS'", r->life.hiding_scripts.at[i],
					     r->surfaces->target->name));
	}
	if ((plan->audit && *plan->audit && !r->life.sequence.setup.secure) || p->exe->elf->audit || p->exe->elf->depaudit) {
		consider(r, VERDICT_UNSURE);
		run_add_finding(r, "audit-present", SEVERITY_NOTE, NULL,
				arena_printf(&r->arena, "an auditor (%s) may rename whatever is asked for; what it does is "
					     "not simulated", plan->audit && *plan->audit ? plan->audit
					     : p->exe->elf->audit ? p->exe->elf->audit : p->exe->elf->depaudit));
	}
	for (i = 0; i < p->warnings.n; i++)
		run_add_finding(r, "preload-ignored", SEVERITY_WARNING, NULL, p->warnings.at[i]);
}

static void judge_declarations(struct run *r)
{
	size_t i;

	for (i = 0; i < r->life.sequence.opened.n; i++) {
		const struct opened *opened = &r->life.sequence.opened.at[i];

		if (!opened->caller) {
			consider(r, VERDICT_UNSURE);
			run_add_finding(r, "caller-not-loaded", SEVERITY_NOTE, NULL,
					arena_printf(&r->arena, "--dlopen %s:%s: no such object is loaded by then",
						     opened->caller_text, opened->name));
		} else if (opened->shim && opened->lookup->error) {
			consider(r, VERDICT_ABSENT);
			run_add_finding(r, "shim-refused", SEVERITY_ERROR, NULL,
					arena_printf(&r->arena, "%s cannot be opened: %s", opened->name,
						     opened->lookup->error));
		}
	}
}

/* A lazily bound call to a function that nobody has: found out when it is made. */
static void judge_unbound(struct run *r)
{
	size_t i;

	for (i = 0; i < r->bindings.n; i++) {
		const struct api_binding *b = r->bindings.at[i];

		if (b->to || !b->at_call)
			continue;
		consider(r, VERDICT_WRONG);
		run_add_finding(r, "symbol-missing", SEVERITY_ERROR, b->object,
				arena_printf(&r->arena, "%s calls %s, which no loaded copy has: the process ends at that call",
					     describe(b->object), b->symbol));
	}
}

static bool has_symbol(const struct run *r, const struct instance *in, const char *symbol)
{
	int k = target_symbol_index(r->surfaces->target, symbol);

	return k >= 0 && in->surface->defined[k];
}

/* A call that would have no answer if it were not for a copy that its object
 * did not ask for. */
static void judge_borrowed(struct run *r)
{
	size_t i, k;

	for (i = 0; i < r->paths.n; i++) {
		const struct path *path = r->paths.at[i];

		if (path->how == HOW_DLOPEN || !path->instance)
			continue;
		for (k = 0; k < r->bindings.n; k++) {
			const struct api_binding *b = r->bindings.at[k];

			if (b->object == path->requester && b->instance && b->instance != path->instance &&
			    !has_symbol(r, path->instance, b->symbol))
				run_add_finding(r, "symbol-borrowed", SEVERITY_WARNING, b->object,
						arena_printf(&r->arena, "%s needs %s of %s, which %s lacks: it works only "
							     "because %s is loaded too", describe(b->object), b->symbol,
							     path->request, path->instance->object->path, b->to->path));
		}
	}
}

/* Functions looked up by name that the copy does not have.  A consumer that
 * looks up all at once gives up; for others a name may be no more than text. */
static void judge_looked_up(struct run *r, const struct path *path)
{
	const struct target *t = r->surfaces->target;
	char *text = xstrdup(""), *more;
	unsigned k;

	for (k = 0; k < t->symbols_count; k++) {
		if (!path_uses(path, k) || path->instance->surface->defined[k])
			continue;
		more = xprintf("%s%s%s", text, *text ? ", " : "", t->symbols[k].name);
		free(text);
		text = more;
	}
	if (*text) {
		if (path->eager)
			consider(r, VERDICT_WRONG);
		run_add_finding(r, "symbol-missing", path->eager ? SEVERITY_ERROR : SEVERITY_NOTE, path->consumer,
				arena_printf(&r->arena, "%s looks up %s in %s, which lacks %s: %s", describe(path->consumer),
					     text, path->instance->object->path, strchr(text, ',') ? "them" : "it",
					     path->eager ? "it looks up everything at its first use, and gives up"
							 : "a call of it would fail"));
	}
	free(text);
}

/* An import line that does not get to its end lays out less than was asked. */
static void judge_imports(struct run *r, const struct plan *plan)
{
	const struct import_list *list = plan->imports;
	size_t i;

	for (i = 0; list && i < list->missing.n; i++) {
		const struct import_missing *m = &list->missing.at[i];

		if (m->fatal)
			run_add_finding(r, "import-fails", SEVERITY_WARNING, NULL,
					arena_printf(&r->arena, "no module named %s, which %s:%u imports: as far as can be "
						     "seen, the import ends there", m->module, m->by ? m->by : "the request",
						     m->line));
	}
	for (i = 0; i < r->life.sequence.opened.n; i++) {
		const struct opened *opened = &r->life.sequence.opened.at[i];

		if (opened->evidence == EVIDENCE_SCRIPT && opened->lookup && opened->lookup->error &&
		    !target_matches(r->surfaces->target, opened->name))
			run_add_finding(r, "import-fails", SEVERITY_WARNING, NULL,
					arena_printf(&r->arena, "%s cannot be opened: %s", opened->name,
						     opened->lookup->error));
	}
	for (i = 0; i < r->life.cut_packages.n; i++)
		run_add_finding(r, "import-fails", SEVERITY_NOTE, NULL,
				arena_printf(&r->arena, "%s has more files than are looked at", r->life.cut_packages.at[i]));
	if (list && list->note)
		run_add_finding(r, "import-fails", SEVERITY_NOTE, NULL, list->note);
}

static void judge_symbols(struct run *r)
{
	size_t i;

	judge_unbound(r);
	judge_borrowed(r);
	for (i = 0; i < r->paths.n; i++)
		if (r->paths.at[i]->how == HOW_DLOPEN && r->paths.at[i]->instance &&
		    !r->paths.at[i]->instance->surface->buried)
			judge_looked_up(r, r->paths.at[i]);
}

void judge_run(struct run *r, const struct plan *plan)
{
	size_t i;

	judge_life(r);
	judge_copies(r);
	for (i = 0; i < r->paths.n; i++)
		if (!r->paths.at[i]->instance)
			judge_absence(r, r->paths.at[i]);
	judge_symbols(r);
	judge_declarations(r);
	judge_imports(r, plan);
	judge_visibility(r, plan);
	if (!r->instances.n)
		consider(r, VERDICT_NONE);
}
