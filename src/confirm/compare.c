/* Stage 1: what the real loader made of it, beside what was predicted. */
#include "confirm/confirm.h"
#include "confirm/replay.h"
#include "loader/scope.h"

#include <stdlib.h>

/* An object as the replay saw it. */
struct seen {
	const char *path;
	unsigned long dev, ino;
	unsigned ns;
	bool self; /* the replay library */
};

struct comparison {
	struct confirm *c;
	struct run *r;
	const struct child *child;
	const char *stage;
	bool again; /* only what differs is of interest */
	VEC(struct seen) start, end;
};

static void add_row(struct comparison *x, const char *kind, const char *what, const char *predicted,
		    const char *observed, bool same, bool minor)
{
	confirm_add(x->c, (struct confirm_row){.stage = x->stage, .kind = kind, .what = what, .predicted = predicted,
					       .observed = observed, .state = same ? ROW_SAME : ROW_DIFFERENT,
					       .minor = minor || x->again});
}

static const char *name_of(const struct object *o)
{
	return !o ? "nothing" : *o->path ? o->path : "the bare program";
}

static const char *seen_name(const struct comparison *x, const struct seen *s)
{
	return !s ? "nothing" : *s->path ? s->path : name_of(x->r->life.sequence.process->exe);
}

/* Namespaces are counted when something is in them. */
static unsigned namespace_of(const struct comparison *x, const struct object *o)
{
	const struct process *p = x->r->life.sequence.process;
	unsigned n = 0;
	int i;

	for (i = 0; i < o->ns; i++)
		n += process_first(p, (size_t)i) != NULL;
	return n;
}

static bool same_object(const struct comparison *x, const struct object *o, const struct seen *s)
{
	const char *path;

	if (!o || !s)
		return !o && !s;
	if (namespace_of(x, o) != s->ns)
		return false;
	/* The program has no name of its own in the link map. */
	path = o->kind == OBJECT_EXECUTABLE ? "" : o->path;
	if (o->file && (o->file->dev != s->dev || o->file->ino != s->ino))
		return false;
	return !strcmp(path, s->path);
}

/* Two spellings of one file are told apart: $ORIGIN comes from them. */
static const char *observed_text(struct comparison *x, const struct object *o, const struct seen *s)
{
	if (!o || !s || same_object(x, o, s))
		return seen_name(x, s);
	if (o->file && o->file->dev == s->dev && o->file->ino == s->ino)
		return confirm_text(x->c, "%s (the same file, spelled differently)", seen_name(x, s));
	if (o->file && !strcmp(o->path, s->path))
		return confirm_text(x->c, "%s, but another file (inode %lu, not %lu)", s->path, s->ino,
				    (unsigned long)o->file->ino);
	return seen_name(x, s);
}

/* ---- the link map */

static void take_objects(struct comparison *x)
{
	const struct record *r = NULL;

	while ((r = child_record(x->child, "object", r))) {
		struct seen s;

		if (r->n < 9)
			continue;
		s = (struct seen){r->field[4], strtoul(r->field[5], NULL, 10), strtoul(r->field[6], NULL, 10),
				  (unsigned)strtoul(r->field[3], NULL, 10), r->field[7][0] == '1'};
		if (!strcmp(r->field[1], "start"))
			vec_push(&x->start, s);
		else
			vec_push(&x->end, s);
	}
}

static bool is_notable(const struct comparison *x, const struct object *o)
{
	return o && run_instance_of(x->r, o) != NULL;
}

static void compare_object(struct comparison *x, const char *when, const struct object *o, const struct seen *s,
			   bool minor)
{
	const char *what = o && o->ns ? confirm_text(x->c, "mapped %s, namespace %d", when, o->ns) : confirm_text(x->c, "mapped %s", when);

	add_row(x, "object", what, name_of(o), observed_text(x, o, s), same_object(x, o, s), minor);
}

static bool comes_later(const struct comparison *x, const struct seen *s, size_t n, size_t from, const struct object *o)
{
	for (; from < n; from++)
		if (same_object(x, o, &s[from]))
			return true;
	return false;
}

/* Objects of one moment, in order.  After a difference the two lists are
 * brought in step again, so that one missing object is one row. */
static void compare_maps(struct comparison *x, const char *when, const struct object *const *o, size_t n,
			 const struct seen *s, size_t m)
{
	size_t i, k = 0;

	for (i = 0; i < n; i++) {
		while (k < m && s[k].self)
			k++;
		while (k < m && !same_object(x, o[i], &s[k]) && comes_later(x, s, m, k, o[i])) {
			if (!s[k].self)
				compare_object(x, when, NULL, &s[k], false);
			k++;
		}
		if (k < m && (same_object(x, o[i], &s[k]) || !(i + 1 < n && same_object(x, o[i + 1], &s[k]))))
			compare_object(x, when, o[i], &s[k++], !is_notable(x, o[i]));
		else
			compare_object(x, when, o[i], NULL, false);
	}
	for (; k < m; k++)
		if (!s[k].self)
			compare_object(x, when, NULL, &s[k], false);
}

/* A failed open may take along what start-up had mapped. */
static bool was_mapped(const struct comparison *x, const struct seen *s)
{
	const struct process *p = x->r->life.sequence.process;
	size_t i;

	for (i = 0; i < p->objects.n; i++)
		if (p->objects.at[i]->event < 0 && same_object(x, p->objects.at[i], s))
			return true;
	return false;
}

/* An open may move what was there before (filters), so the order of start-up
 * is not known afterwards: only what was there. */
static void compare_start(struct comparison *x)
{
	const struct process *p = x->r->life.sequence.process;
	bool *met = arena_alloc(&x->c->arena, x->start.n + 1);
	const struct object *o;
	size_t i;

	for (o = process_first(p, 0); o; o = o->next) {
		if (o->missing || o->event >= 0)
			continue;
		for (i = 0; i < x->start.n && !same_object(x, o, &x->start.at[i]); i++)
			;
		if (i < x->start.n)
			met[i] = true;
		compare_object(x, "at start-up", o, i < x->start.n ? &x->start.at[i] : NULL, true);
	}
	for (i = 0; i < x->start.n; i++)
		if (!met[i] && !x->start.at[i].self && !was_mapped(x, &x->start.at[i]))
			compare_object(x, "at start-up", NULL, &x->start.at[i], false);
}

static void compare_end(struct comparison *x)
{
	const struct process *p = x->r->life.sequence.process;
	VEC(const struct object *) list = {0};
	const struct object *o;
	size_t i;

	for (i = 0; i < p->ns.n; i++)
		for (o = process_first(p, i); o; o = o->next)
			if (!o->missing)
				vec_push(&list, o);
	compare_maps(x, "in the end", list.at, list.n, x->end.at, x->end.n);
	vec_free(&list);
}

/* ---- opens */

static const char *open_text(struct comparison *x, const struct opened *o)
{
	return confirm_text(x->c, "%s opens %s", o->caller ? name_of(o->caller) : o->caller_text, o->name);
}

static const char *predicted_open(const struct opened *o)
{
	return o->lookup->object ? name_of(o->lookup->object) : o->lookup->error ? o->lookup->error
	     : "nothing (not loaded)";
}

static const struct record *numbered(const struct child *child, const char *kind, size_t number)
{
	const struct record *r = NULL;

	while ((r = child_record(child, kind, r)))
		if (r->n > 1 && strtoul(r->field[1], NULL, 10) == number)
			return r;
	return NULL;
}

static const struct seen *seen_at(const struct comparison *x, const char *number)
{
	long n = strtol(number, NULL, 10);

	return n >= 0 && (size_t)n < x->end.n ? &x->end.at[n] : NULL;
}

/* Which object that was at the time: numbers are those of the end only when
 * nothing was inserted since, so names decide. */
static void compare_open(struct comparison *x, const struct opened *o, size_t number)
{
	const struct record *r = numbered(x->child, "opened", number);
	const struct object *object = o->lookup->object;
	const char *how = r && r->n > 8 ? r->field[2] : NULL, *what = open_text(x, o);
	struct seen s;

	if (object && object->missing && object->assumed) {
		confirm_add(x->c, (struct confirm_row){.stage = x->stage, .kind = "open", .what = what,
			    .predicted = "present where it will run", .observed = how ? how : "nothing", .state = ROW_OPEN});
		return;
	}
	if (!how) {
		if (numbered(x->child, "begin", number))
			add_row(x, "open", what, predicted_open(o), child_end_text(x->child, &x->c->arena),
				o->lookup->fatal && x->child->end != CHILD_LATE, false);
		return;
	}
	if (!strcmp(how, "no-return") || !strcmp(how, "no-dlopen") || !strcmp(how, "no-caller")) {
		add_row(x, "open", what, predicted_open(o), !strcmp(how, "no-return") ? "cannot be replayed: the caller has no code"
			: !strcmp(how, "no-dlopen") ? "no dlopen in this process (before glibc 2.34 it is in libdl.so.2)"
			: "the caller is not loaded", false, false);
		return;
	}
	if (!strcmp(how, "null")) {
		add_row(x, "open", what, predicted_open(o), *r->field[4] ? arena_strdup(&x->c->arena, r->field[4])
			: "nothing (not loaded)", !object, false);
		return;
	}
	s = (struct seen){.path = r->field[5], .dev = strtoul(r->field[6], NULL, 10), .ino = strtoul(r->field[7], NULL, 10),
			  .ns = (unsigned)strtoul(r->field[8], NULL, 10)};
	add_row(x, "open", what, predicted_open(o), observed_text(x, object, &s), same_object(x, object, &s), false);
}

static void compare_opens(struct comparison *x)
{
	const struct sequence *s = &x->r->life.sequence;
	size_t i, number = 0;

	for (i = 0; i < s->opened.n; i++) {
		const struct opened *o = &s->opened.at[i];

		if (o->lookup)
			compare_open(x, o, number++);
		else
			confirm_add(x->c, (struct confirm_row){.stage = x->stage, .kind = "open", .what = open_text(x, o),
				    .predicted = "the caller is not loaded", .observed = "not tried", .state = ROW_OPEN});
	}
}

/* ---- requests */

static void put_questions(FILE *f, const struct run *r)
{
	size_t i;

	for (i = 0; i < r->paths.n; i++)
		if (r->paths.at[i]->how == HOW_NEEDED && r->paths.at[i]->instance)
			orders_put(f, "ask", r->paths.at[i]->requester == r->life.sequence.process->exe ? ""
				   : r->paths.at[i]->requester->path, r->paths.at[i]->request, NULL);
}

static void compare_requests(struct comparison *x)
{
	size_t i, number = 0;

	for (i = 0; i < x->r->paths.n; i++) {
		const struct path *path = x->r->paths.at[i];
		const struct record *r;
		const struct seen *s;

		if (path->how != HOW_NEEDED || !path->instance || !(r = numbered(x->child, "asked", number++)))
			continue;
		s = seen_at(x, r->field[2]);
		add_row(x, "request", confirm_text(x->c, "%s needs %s", name_of(path->requester), path->request),
			name_of(path->lookup->object), observed_text(x, path->lookup->object, s),
			same_object(x, path->lookup->object, s), false);
	}
}

/* ---- bindings */

static bool same_class(const struct binding *b, const struct record *r)
{
	return !strcmp(r->field[3], "plt") ? b->class == RELOC_PLT : b->class == RELOC_GOT || b->class == RELOC_DATA;
}

static void compare_binding(struct comparison *x, const struct object *o, const char *symbol, const struct binding *b,
			    const struct record *r)
{
	const struct seen *to = r ? seen_at(x, r->field[5]) : NULL;
	const char *how = b->class == RELOC_PLT ? "calls" : "has the address of";

	add_row(x, "binding", confirm_text(x->c, "%s %s %s", name_of(o), how, symbol), name_of(b->to),
		r ? observed_text(x, b->to, to) : "no such reference", r && same_object(x, b->to, to),
		!run_instance_of(x->r, o) || b->to == o);
}

/* The record of the reference; *TAKEN marks it. */
static const struct record *find_binding(struct comparison *x, const struct object *o, const char *symbol,
					 const struct binding *b, bool *taken)
{
	const struct record *r = NULL;

	while ((r = child_record(x->child, "binding", r)))
		if (r->n > 5 && !strcmp(r->field[2], symbol) && same_class(b, r) && same_object(x, o, seen_at(x, r->field[1]))) {
			taken[r - x->child->records.at] = true;
			return r;
		}
	return NULL;
}

static void compare_bindings(struct comparison *x)
{
	struct process *p = x->r->life.sequence.process;
	const struct target *target = x->r->surfaces->target;
	bool *taken = xmalloc(x->child->records.n + 1);
	const struct record *r = NULL;
	const struct object *o;
	size_t ns, i;

	memset(taken, 0, x->child->records.n + 1);
	for (ns = 0; ns < p->ns.n; ns++)
		for (o = process_first(p, ns); o; o = o->next) {
			const struct symbol_table *t = o->bindings.n ? store_symbols(p->store, o->file, o->elf) : NULL;

			for (i = 0; i < o->bindings.n; i++) {
				const struct binding *b = &o->bindings.at[i];

				if ((b->class == RELOC_PLT || b->class == RELOC_GOT || b->class == RELOC_DATA) &&
				    target_symbol_index(target, t->name[b->symbol]) >= 0)
					compare_binding(x, o, t->name[b->symbol], b,
							find_binding(x, o, t->name[b->symbol], b, taken));
			}
		}
	while ((r = child_record(x->child, "binding", r)))
		if (r->n > 5 && !taken[r - x->child->records.at])
			add_row(x, "binding", confirm_text(x->c, "%s refers to %s", seen_name(x, seen_at(x, r->field[1])),
							   r->field[2]),
				"no such reference", seen_name(x, seen_at(x, r->field[5])), false, false);
	free(taken);
}

/* ---- the whole */

static char *replay_orders(const struct run *r, const char *program)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	orders_put(f, "mode", "1", NULL);
	orders_put(f, "program", program, NULL);
	orders_put_symbols(f, r->surfaces->target);
	orders_put_opens(f, r);
	put_questions(f, r);
	fclose(f);
	return text;
}

/* The first line of what the loader wrote. */
static const char *complaint(struct comparison *x)
{
	const char *said = x->child->said;
	size_t n = strcspn(said, "\n");

	return n ? confirm_text(x->c, "%s: %.*s", child_end_text(x->child, &x->c->arena), (int)n, said)
		 : child_end_text(x->child, &x->c->arena);
}

static bool is_missing_assumed(const struct run *r)
{
	const struct object *o;

	for (o = process_first(r->life.sequence.process, 0); o; o = o->next)
		if (o->missing && o->assumed && o->event < 0)
			return true;
	return false;
}

static int compare(struct comparison *x, struct error *e)
{
	const struct process *p = x->r->life.sequence.process;
	const struct record *trouble = child_record(x->child, "trouble", NULL);
	bool reached = child_record(x->child, "mapped", NULL) != NULL;

	if (trouble && trouble->n > 1)
		return error_set(e, "the replay of %s: %s", name_of(p->exe), trouble->field[1]);
	if (x->child->end == CHILD_AT_ENTRY || x->child->end == CHILD_UNABLE)
		return error_set(e, "%s: %s", name_of(p->exe), child_end_text(x->child, &x->c->arena));
	if (!reached && p->started && is_missing_assumed(x->r))
		return error_set(e, "%s needs a library that is assumed to be where it will run, but is not here: %s",
				 name_of(p->exe), complaint(x));
	add_row(x, "start", "start-up", p->started ? "succeeds" : p->start_error, reached ? "succeeds" : complaint(x),
		p->started == reached, false);
	if (!reached || !p->started)
		return 0;
	process_bind_calls(x->r->life.sequence.process);
	take_objects(x);
	compare_start(x);
	compare_opens(x);
	if (!child_record(x->child, "done", NULL)) {
		if (!x->r->life.sequence.died)
			add_row(x, "end", "the replay", "ends", child_end_text(x->child, &x->c->arena), false, false);
		return 0;
	}
	compare_end(x);
	compare_requests(x);
	compare_bindings(x);
	return 0;
}

int confirm_replay(struct confirm *c, struct run *r, const char *stage, bool again, struct error *e)
{
	struct child_environment env = {.at = {0}};
	struct child_setup setup = {.place = &c->place, .cwd = r->life.sequence.setup.cwd, .seconds = c->setup->replay_seconds,
				    .untraced = c->setup->untraced};
	struct child child;
	struct comparison x = {.c = c, .r = r, .child = &child, .stage = stage, .again = again};
	char *orders = NULL;
	int result = -1;

	if (confirm_program(c, r, &setup.exe, e) < 0 || confirm_prove(c, r, e) < 0)
		return -1;
	orders = replay_orders(r, setup.exe);
	confirm_environment(c, &r->life.sequence.setup, &env);
	confirm_environment_add(c, &env, REPLAY_VARIABLE "=97,98");
	setup.orders = orders;
	setup.env = env.at.at;
	if (child_start(&child, &setup, e) == 0) {
		child_wait(&child);
		result = compare(&x, e);
		vec_free(&x.start);
		vec_free(&x.end);
		child_free(&child);
	}
	free(orders);
	vec_free(&env.at);
	return result;
}
