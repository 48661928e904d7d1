#include "verdict/run.h"

#include "linkage/discover.h"
#include "verdict/crossings.h"
#include "verdict/judge.h"

#include <stdlib.h>

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {"crossed", "absent", "wrong", "split", "unsure", "none", "one"};

	return names[v];
}

const char *severity_name(enum severity s)
{
	static const char *const names[] = {"error", "warning", "note"};

	return names[s];
}

bool path_uses(const struct path *p, unsigned k)
{
	if (p->how != HOW_DLOPEN)
		return p->surface->imported[k];
	return p->surface->held[k] && !p->surface->defined[k] && !(p->elsewhere && p->elsewhere[k]);
}

static unsigned does_by_word(const char *word)
{
	return !word ? 0 : !strcmp(word, "mints-id") ? DOES_MINT : !strcmp(word, "makes-comm") ? DOES_MAKE
		: !strcmp(word, "allocates") ? DOES_ALLOCATE : DOES_USE;
}

unsigned symbol_does(const struct target *t, const char *symbol)
{
	int k = target_symbol_index(t, symbol);

	return k < 0 ? 0 : does_by_word(t->symbols[k].does);
}

unsigned path_does(const struct path *p, const struct target *t)
{
	unsigned does = 0, k;

	for (k = 0; k < t->symbols_count; k++)
		if (path_uses(p, k))
			does |= does_by_word(t->symbols[k].does);
	for (k = 0; p->profile && k < p->profile->does_count; k++)
		does |= does_by_word(p->profile->does[k]);
	return does;
}

static const struct surface *surface(struct run *r, const struct object *o)
{
	return surface_of(r->surfaces, o->file, o->elf);
}

struct instance *run_instance_of(const struct run *r, const struct object *o)
{
	size_t i;

	for (i = 0; i < r->instances.n; i++)
		if (r->instances.at[i]->object == o)
			return r->instances.at[i];
	return NULL;
}

static void collect_instances(struct run *r)
{
	const struct process *p = r->life.sequence.process;
	const struct object *o;
	size_t i;

	for (i = 0; i < p->ns.n; i++)
		for (o = process_first(p, i); o; o = o->next) {
			struct instance *in;

			if (!o->elf || !o->file || o->how == HOW_INTERP || !surface(r, o)->tracked)
				continue;
			in = arena_new(&r->arena, struct instance);
			in->id = (unsigned)r->instances.n + 1;
			in->object = o;
			in->surface = surface(r, o);
			vec_push(&r->instances, in);
		}
}

static struct path *add_path(struct run *r, const struct object *requester, const struct lookup *l,
			     enum evidence evidence)
{
	struct path *path = arena_new(&r->arena, struct path);

	path->requester = requester;
	path->request = l->request;
	path->evidence = evidence;
	path->how = l->how;
	path->lookup = l;
	path->consumer = requester;
	path->surface = surface(r, requester);
	path->instance = l->object ? run_instance_of(r, l->object) : NULL;
	vec_push(&r->paths, path);
	return path;
}

static bool concerns_target(struct run *r, const struct lookup *l)
{
	return target_matches(r->surfaces->target, l->request) || (l->object && run_instance_of(r, l->object));
}

/* Names that one consumer tries in turn are one path: the first that opened,
 * or, if none did, the first. */
static void add_opens(struct run *r)
{
	struct sequence *s = &r->life.sequence;
	size_t i, k;

	for (i = 0; i < s->opened.n; i = k) {
		const struct opened *first = &s->opened.at[i], *last;
		struct path *path;

		for (k = i + 1; k < s->opened.n && first->source && s->opened.at[k].source == first->source &&
				s->opened.at[k].caller == first->caller; k++)
			;
		last = &s->opened.at[k - 1];
		if (!first->lookup || (!concerns_target(r, first->lookup) && !concerns_target(r, last->lookup)))
			continue;
		path = add_path(r, first->caller, last->lookup->object ? last->lookup : first->lookup, first->evidence);
		path->source = first->source;
		path->goes_on = first->evidence == EVIDENCE_LITERAL;
		path->profile = first->profile;
		if (first->consumer) {
			path->consumer = first->consumer;
			path->surface = surface(r, first->consumer);
		}
		path->eager = first->eager;
		for (; i < k; i++)
			if (s->opened.at[i].lookup != path->lookup)
				vec_push(&path->tried, s->opened.at[i].lookup);
	}
}

static void collect_paths(struct run *r)
{
	const struct process *p = r->life.sequence.process;
	size_t i;

	for (i = 0; i < p->lookups.n; i++) {
		const struct lookup *l = p->lookups.at[i];

		if (l->how != HOW_DLOPEN && concerns_target(r, l))
			add_path(r, l->requester, l, EVIDENCE_NEEDED);
	}
	add_opens(r);
}

struct run *run_new(const struct plan *plan, struct surfaces *surfaces, const struct cpu *cpu, struct error *e)
{
	struct run *r = xmalloc(sizeof(*r));

	memset(r, 0, sizeof(*r));
	r->surfaces = surfaces;
	if (life_simulate(&r->life, surfaces, plan, cpu, e) < 0) {
		run_free(r);
		return NULL;
	}
	collect_instances(r);
	collect_paths(r);
	r->verdict = VERDICT_ONE;
	find_crossings(r);
	judge_run(r, plan);
	return r;
}

void run_free(struct run *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->paths.n; i++)
		vec_free(&r->paths.at[i]->tried);
	for (i = 0; i < r->findings.n; i++)
		vec_free(&r->findings.at[i]->fixes);
	vec_free(&r->paths);
	vec_free(&r->instances);
	vec_free(&r->findings);
	vec_free(&r->bindings);
	vec_free(&r->crossings);
	life_free(&r->life);
	arena_free(&r->arena);
	free(r);
}

struct finding *run_add_finding(struct run *r, const char *rule, enum severity severity,
				const struct object *object, const char *message)
{
	struct finding *f = arena_new(&r->arena, struct finding);

	f->rule = rule;
	f->severity = severity;
	f->object = object;
	f->message = message;
	vec_push(&r->findings, f);
	return f;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool run_same(const struct run *a, const struct run *b)
{
	const struct object *x = process_first(a->life.sequence.process, 0), *y = process_first(b->life.sequence.process, 0);
	size_t i;

	for (; x && y; x = x->next, y = y->next)
		if (x->path != y->path || x->file != y->file)
			return false;
	if (x || y || a->verdict != b->verdict || a->paths.n != b->paths.n || a->findings.n != b->findings.n)
		return false;
	for (i = 0; i < a->findings.n; i++)
		if (!same_text(a->findings.at[i]->message, b->findings.at[i]->message))
			return false;
	return true;
}
