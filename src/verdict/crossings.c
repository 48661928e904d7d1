#include "verdict/crossings.h"

#include "loader/scope.h"
#include "verdict/effects.h"

#include <stdlib.h>

const char *crossing_kind_name(enum crossing_kind k)
{
	static const char *const names[] = {"self-call", "data", "id", "comm", "memory"};

	return names[k];
}

static const char *version_of(const struct instance *in)
{
	return in->surface->version;
}

static const char *machine_of(const struct run *r)
{
	return elf_machine_name(r->life.sequence.process->facts->machine);
}

static struct crossing *add_crossing(struct run *r, enum crossing_kind kind, const char *symbol,
				     const struct instance *from, const struct instance *to,
				     struct first_trouble what)
{
	struct crossing *c = arena_new(&r->arena, struct crossing);

	c->kind = kind;
	c->symbol = symbol;
	c->from = from;
	c->to = to;
	c->phase = what.phase;
	c->outcome = what.outcome;
	c->effect = what.effect;
	vec_push(&r->crossings, c);
	return c;
}

/* ---- what each reference to the API is bound to ---- */

static void take_self_reference(struct run *r, const struct instance *in, const struct symbol_table *t,
				const struct binding *b, const struct instance *to)
{
	bool data = ELF64_ST_TYPE(t->symbols.symbol[b->symbol].st_info) == STT_OBJECT;
	const char *symbol = t->name[b->symbol];

	if (!to || to == in)
		return;
	add_crossing(r, data ? CROSS_DATA : CROSS_SELF_CALL, symbol, in, to,
		     crossing_effect(r->surfaces->target, machine_of(r), symbol, version_of(in), version_of(to)))
		->at_call = b->at_call;
}

static void take_binding(struct run *r, const struct object *o, const struct instance *in,
			 const struct symbol_table *t, const struct binding *b)
{
	const struct instance *to = b->to ? run_instance_of(r, b->to) : NULL;
	struct api_binding *api;

	if (in && t->symbols.symbol[b->symbol].st_shndx != SHN_UNDEF) {
		take_self_reference(r, in, t, b, to);
		return;
	}
	api = arena_new(&r->arena, struct api_binding);
	*api = (struct api_binding){o, t->name[b->symbol], b->to, to, b->at_call, NULL};
	vec_push(&r->bindings, api);
}

static bool by_name_first(const struct crossing *a, const struct crossing *b)
{
	if (a->from != b->from)
		return a->from->id < b->from->id;
	return strcmp(a->symbol, b->symbol) < 0;
}

static void sort_crossings(struct run *r)
{
	size_t i, k;

	for (i = 1; i < r->crossings.n; i++) /* a few dozen, nearly sorted */
		for (k = i; k && by_name_first(r->crossings.at[k], r->crossings.at[k - 1]); k--) {
			struct crossing *swap = r->crossings.at[k];

			r->crossings.at[k] = r->crossings.at[k - 1];
			r->crossings.at[k - 1] = swap;
		}
}

/* A function may be called through its PLT entry and its address taken as
 * well: one crossing. */
static void drop_doubles(struct run *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->crossings.n; i++)
		if (!n || r->crossings.at[n - 1]->from != r->crossings.at[i]->from ||
		    r->crossings.at[n - 1]->to != r->crossings.at[i]->to ||
		    strcmp(r->crossings.at[n - 1]->symbol, r->crossings.at[i]->symbol))
			r->crossings.at[n++] = r->crossings.at[i];
	r->crossings.n = n;
}

/* Functions that O looks up in a scope, with the scopes as they are at the end.  One
 * that is not found there is looked for elsewhere, or done without. */
static void take_lookups(struct run *r, struct object *o)
{
	struct process *p = r->life.sequence.process;
	const struct target *t = r->surfaces->target;
	const struct surface *f = surface_of(r->surfaces, o->file, o->elf);
	struct api_binding *api;
	unsigned k;

	for (k = 0; f->scoped && k < t->symbols_count; k++) {
		struct definition d = f->by_default[k] ? scope_default(p, o, t->symbols[k].name)
				      : f->by_next[k] ? scope_next(p, o, t->symbols[k].name) : (struct definition){0};

		if (!d.object)
			continue;
		api = arena_new(&r->arena, struct api_binding);
		*api = (struct api_binding){o, t->symbols[k].name, d.object, run_instance_of(r, d.object), true,
					    f->by_default[k] ? "default" : "next"};
		vec_push(&r->bindings, api);
	}
}

/* A function that its requester gets from a scope is not taken from what it opens. */
static void divide_lookups(struct run *r)
{
	const struct target *t = r->surfaces->target;
	size_t i, b;

	for (i = 0; i < r->paths.n; i++) {
		struct path *path = r->paths.at[i];

		for (b = 0; b < r->bindings.n && path->how == HOW_DLOPEN; b++) {
			if (!r->bindings.at[b]->looked_up || r->bindings.at[b]->object != path->consumer)
				continue;
			if (!path->elsewhere)
				path->elsewhere = arena_alloc(&r->arena, t->symbols_count * sizeof(bool));
			path->elsewhere[target_symbol_index(t, r->bindings.at[b]->symbol)] = true;
		}
	}
}

static void collect_bindings(struct run *r)
{
	struct process *p = r->life.sequence.process;
	const struct target *target = r->surfaces->target;
	const size_t prefix = strlen(target->prefix);
	struct object *o;
	size_t ns, i;

	process_bind_calls(p);
	for (ns = 0; ns < p->ns.n; ns++)
		for (o = p->ns.at[ns].first; o; o = o->next) {
			const struct symbol_table *t = o->bindings.n ? store_symbols(p->store, o->file, o->elf) : NULL;
			const struct instance *in = run_instance_of(r, o);

			for (i = 0; i < o->bindings.n; i++) {
				const char *name = t->name[o->bindings.at[i].symbol];

				if (!strncmp(name, target->prefix, prefix) && target_symbol_index(target, name) >= 0)
					take_binding(r, o, in, t, &o->bindings.at[i]);
			}
			if (o->file && o->elf && o->how != HOW_INTERP)
				take_lookups(r, o);
		}
	divide_lookups(r);
	sort_crossings(r);
	drop_doubles(r);
}

/* ---- who does what with which copy ---- */

/* What one requester does with one copy; an opener whose functions are not to
 * be seen is taken to use it for everything. */
struct use {
	const struct object *requester;
	const struct instance *instance;
	unsigned does;
};

struct uses {
	VEC(struct use) at;
};

static void add_use(struct uses *u, const struct object *requester, const struct instance *in, unsigned does)
{
	size_t i;

	for (i = 0; i < u->at.n; i++)
		if (u->at.at[i].requester == requester && u->at.at[i].instance == in) {
			u->at.at[i].does |= does;
			return;
		}
	vec_push(&u->at, ((struct use){requester, in, does}));
}

static void collect_uses(struct run *r, struct uses *u)
{
	const struct target *t = r->surfaces->target;
	size_t i;

	for (i = 0; i < r->bindings.n; i++)
		if (r->bindings.at[i]->instance)
			add_use(u, r->bindings.at[i]->object, r->bindings.at[i]->instance,
				symbol_does(t, r->bindings.at[i]->symbol));
	for (i = 0; i < r->paths.n; i++) {
		const struct path *path = r->paths.at[i];

		if (path->how == HOW_DLOPEN && path->instance)
			add_use(u, path->consumer, path->instance,
				path->surface->n_held || (path->profile && path->profile->does_count) ? path_does(path, t)
				: DOES_MINT | DOES_MAKE | DOES_USE);
	}
}

static bool anybody(const struct uses *u, unsigned does, const struct instance *in, const struct object *requester)
{
	size_t i;

	for (i = 0; i < u->at.n; i++)
		if ((u->at.at[i].does & does) && u->at.at[i].instance == in &&
		    (!requester || u->at.at[i].requester == requester))
			return true;
	return false;
}

/* The copy that DOES happens in, when it does not happen in IN: where an id or
 * a communicator that is used in IN must come from. */
static const struct instance *source_of(const struct uses *u, unsigned does, const struct instance *in)
{
	const struct instance *source = NULL;
	size_t i;

	if (anybody(u, does, in, NULL))
		return NULL;
	for (i = 0; i < u->at.n; i++)
		if ((u->at.at[i].does & does) && u->at.at[i].instance != in)
			source = u->at.at[i].instance;
	return source;
}

static void cross_handles(struct run *r, const struct uses *u)
{
	const struct target *t = r->surfaces->target;
	size_t i;

	for (i = 0; i < r->instances.n; i++) {
		const struct instance *in = r->instances.at[i], *from;

		if (anybody(u, DOES_MAKE, in, NULL) && (from = source_of(u, DOES_MINT, in)))
			add_crossing(r, CROSS_ID, "ncclUniqueId", from, in,
				     id_between_versions(t, version_of(from), version_of(in)));
		if (anybody(u, DOES_USE, in, NULL) && (from = source_of(u, DOES_MAKE, in)))
			add_crossing(r, CROSS_COMM, "ncclComm_t", from, in,
				     comm_between_versions(t, machine_of(r), version_of(from), version_of(in)));
	}
}

/* ---- what follows ---- */

/* Does a communicator come to life in this copy?  Only then do its unasked
 * calls of init and of the first collective happen. */
static bool is_alive(const struct uses *u, const struct instance *in)
{
	return anybody(u, DOES_MAKE, in, NULL);
}

static void find_outcome(struct run *r, const struct uses *u)
{
	struct first_trouble first = {PHASE_EXIT, OUTCOME_NONE, NULL};
	size_t i;

	for (i = 0; i < r->crossings.n; i++) {
		const struct crossing *c = r->crossings.at[i];
		struct first_trouble next = {c->phase, c->outcome, c->effect};
		bool happens = c->kind == CROSS_DATA || c->phase == PHASE_EXIT || c->phase == PHASE_LOAD ||
			       c->kind == CROSS_ID || c->kind == CROSS_COMM || is_alive(u, c->from);

		/* What is reached only by calls that nobody is seen to make is
		 * listed, but is not what goes wrong first. */
		if (happens && c->phase != PHASE_LATER && trouble_comes_first(next, first))
			first = next;
	}
	r->outcome = arena_new(&r->arena, struct first_trouble);
	*r->outcome = first;
}

static const char *list_symbols(struct run *r, enum crossing_kind kind)
{
	char *text = xstrdup(""), *more;
	const char *kept;
	size_t i;

	for (i = 0; i < r->crossings.n; i++) {
		if (r->crossings.at[i]->kind != kind)
			continue;
		more = xprintf("%s%s%s", text, *text ? ", " : "", r->crossings.at[i]->symbol);
		free(text);
		text = more;
	}
	kept = arena_strdup(&r->arena, text);
	free(text);
	return kept;
}

static size_t count(const struct run *r, enum crossing_kind kind)
{
	size_t i, n = 0;

	for (i = 0; i < r->crossings.n; i++)
		n += r->crossings.at[i]->kind == kind;
	return n;
}

static const char *consequence(struct run *r)
{
	const struct first_trouble *o = r->outcome;

	if (o->outcome == OUTCOME_NONE)
		return "; as the paths are used, nothing is expected to go wrong";
	return arena_printf(&r->arena, "; first trouble at %s: %s",
			    o->phase == PHASE_FIRST_COLLECTIVE ? "the first collective" : phase_name(o->phase), o->effect);
}

static void report_crossings(struct run *r)
{
	static const struct {
		enum crossing_kind kind;
		const char *one;
	} handle[] = {{CROSS_ID, "a unique id"}, {CROSS_COMM, "a communicator"}, {CROSS_MEMORY, "memory"}};
	char *text, *more;
	size_t i, k, n = count(r, CROSS_SELF_CALL), m = count(r, CROSS_DATA);

	if (!r->crossings.n)
		return;
	text = xstrdup("");
	if (n) {
		free(text);
		text = xprintf("copy %u (%s) calls %zu of its own functions in another copy: %s",
			       r->crossings.at[0]->from->id, version_of(r->crossings.at[0]->from)
			       ? version_of(r->crossings.at[0]->from) : "version unknown", n,
			       list_symbols(r, CROSS_SELF_CALL));
	}
	if (m) {
		more = xprintf("%s%s%zu of its data are another copy's: %s", text, *text ? "; " : "", m,
			       list_symbols(r, CROSS_DATA));
		free(text);
		text = more;
	}
	for (i = 0; i < sizeof(handle) / sizeof(handle[0]); i++)
		for (k = 0; k < r->crossings.n; k++) {
			const struct crossing *c = r->crossings.at[k];

			if (c->kind != handle[i].kind)
				continue;
			more = xprintf("%s%s%s of copy %u is used in copy %u", text, *text ? "; " : "", handle[i].one,
				       c->from->id, c->to->id);
			free(text);
			text = more;
		}
	if (VERDICT_CROSSED < r->verdict)
		r->verdict = VERDICT_CROSSED;
	run_add_finding(r, "split-crossed", r->outcome->outcome == OUTCOME_NONE ? SEVERITY_WARNING : SEVERITY_ERROR,
			r->crossings.at[0]->from->object, arena_printf(&r->arena, "%s%s", text, consequence(r)));
	free(text);
}

void find_crossings(struct run *r)
{
	struct uses uses = {0};

	collect_bindings(r);
	collect_uses(r, &uses);
	cross_handles(r, &uses);
	find_outcome(r, &uses);
	report_crossings(r);
	vec_free(&uses.at);
}
