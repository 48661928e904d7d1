/* Stage 2: each path's own functions on the devices. */
#include "confirm/confirm.h"
#include "confirm/replay.h"
#include "loader/scope.h"
#include "verdict/crossings.h"

#include <signal.h>
#include <stdlib.h>

/* ---- one case */

int case_start(struct confirm *c, const struct nccl_case *k, struct child *child, struct error *e)
{
	struct child_setup setup = {.place = &c->place, .exe = k->program, .env = k->env, .cwd = k->cwd,
				    .seconds = c->setup->device_seconds,
				    .untraced = c->setup->untraced};
	char *orders = xprintf("mode\t2\n%scase\t%d\t%d\t%d\nranks\t%d\n", k->orders, k->mint, k->make, k->use, k->ranks);
	int result;

	setup.orders = orders;
	result = child_start(child, &setup, e);
	free(orders);
	return result;
}

static bool is_init(const char *step)
{
	return !strcmp(step, "id") || !strcmp(step, "init");
}

/* The result codes of a step, over the ranks: "0", or "0,4". */
static const char *codes_of(struct confirm *c, const struct child *child, const char *step, int *worst)
{
	const struct record *r = NULL;
	const char *text = NULL;
	bool mixed = false;
	int code, first = 0;

	*worst = 0;
	while ((r = child_record(child, "result", r))) {
		if (r->n < 4 || strcmp(r->field[2], step))
			continue;
		code = atoi(r->field[3]);
		if (!text)
			first = code;
		mixed |= text && code != first;
		text = text ? confirm_text(c, "%s,%d", text, code) : confirm_text(c, "%d", code);
		if (code)
			*worst = code;
	}
	return text && !mixed ? confirm_text(c, "%d", first) : text;
}

static const char *sum_of(const struct child *child, const char *step)
{
	const struct record *r = NULL;
	const char *sum = NULL;

	while ((r = child_record(child, "sum", r)))
		if (r->n > 3 && !strcmp(r->field[2], step) && (!sum || strcmp(r->field[3], "right")))
			sum = r->field[3];
	return sum;
}

/* The step that was begun last and has not ended on every rank that began it. */
static const char *open_step(const struct child *child)
{
	const struct record *r = NULL, *k;
	const char *step = NULL;

	while ((r = child_record(child, "step", r))) {
		bool ended = false;

		for (k = r; (k = child_record(child, "result", k));)
			ended |= k->n > 2 && !strcmp(k->field[1], r->field[1]) && !strcmp(k->field[2], r->field[2]);
		if (!ended)
			step = r->field[2];
	}
	return step;
}

static void read_steps(struct confirm *c, const struct child *child, struct case_seen *seen)
{
	static const char *const steps[] = {"id", "device", "init", "count", "all-reduce float32", "all-reduce bfloat16"};
	const struct record *r = NULL;
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int worst;
		const char *codes = codes_of(c, child, steps[i], &worst), *sum = sum_of(child, steps[i]);

		if (!codes)
			continue;
		seen->text = confirm_text(c, "%s%s%s %s%s%s", seen->text, *seen->text ? ", " : "", steps[i], codes,
					  sum ? ", sum " : "", sum ? sum : "");
		if (seen->outcome == OUTCOME_NONE && (worst || (sum && strcmp(sum, "right")))) {
			seen->outcome = OUTCOME_ERROR;
			seen->phase = is_init(steps[i]) ? PHASE_INIT : PHASE_FIRST_COLLECTIVE;
			seen->code = worst;
		}
	}
	while ((r = child_record(child, "comm", r)))
		if (r->n > 2 && !strcmp(r->field[2], "null") && seen->outcome == OUTCOME_NONE) {
			seen->outcome = OUTCOME_ERROR;
			seen->phase = PHASE_INIT;
			seen->text = confirm_text(c, "%s, but the communicator is null", seen->text);
		}
}

static void read_end(struct confirm *c, const struct child *child, struct case_seen *seen)
{
	const struct record *decide = child_record(child, "decide", NULL);
	const char *step = open_step(child);

	if (decide && strcmp(decide->field[1], "go")) {
		seen->outcome = OUTCOME_ERROR;
		seen->phase = PHASE_LOAD;
		seen->text = confirm_text(c, "%s", decide->field[1]);
	}
	if (child->end == CHILD_EXITED && child->status == 0 && child_record(child, "finish", NULL))
		return;
	/* A step that is begun and not ended is where it happened. */
	seen->outcome = child->end == CHILD_LATE ? OUTCOME_HANG : OUTCOME_CRASH;
	seen->phase = !step ? PHASE_LOAD : is_init(step) ? PHASE_INIT : PHASE_FIRST_COLLECTIVE;
	seen->text = confirm_text(c, "%s%s%s: %s", seen->text, *seen->text ? ", " : "", step ? step : "before the first call",
				  child_end_text(child, &c->arena));
}

/* Which copy answered, as it says itself, and what it complained of. */
static const char *read_note(struct confirm *c, const struct child *child)
{
	const struct record *r = child_record(child, "rank", NULL);
	const char *warn = strstr(child->said, "NCCL WARN");
	const char *note = "";

	if (r && r->n > 7)
		note = confirm_text(c, "communicator made by %s (version code %s%s%s)", r->field[4], r->field[6],
				    *r->field[5] ? ", build id " : "", r->field[5]);
	if (warn) {
		const char *line = warn;

		while (line > child->said && line[-1] != '\n')
			line--;
		note = confirm_text(c, "%s%s%.*s", note, *note ? "; it says: " : "", (int)strcspn(line, "\n"), line);
	}
	return *note ? note : NULL;
}

void case_read(struct confirm *c, const struct child *child, struct case_seen *seen)
{
	const struct record *r;

	*seen = (struct case_seen){.phase = PHASE_EXIT, .outcome = OUTCOME_NONE, .text = ""};
	if ((r = child_record(child, "no-device", NULL)))
		seen->no_device = confirm_text(c, "%s", r->n > 1 ? r->field[1] : "");
	if ((r = child_record(child, "device", NULL)) && r->n > 2 && !c->device)
		c->device = confirm_text(c, "%s device%s, through %s", r->field[1], !strcmp(r->field[1], "1") ? "" : "s", r->field[2]);
	if ((r = child_record(child, "trouble", NULL)))
		seen->trouble = confirm_text(c, "%s", r->n > 1 ? r->field[1] : "");
	else if (child->end == CHILD_AT_ENTRY || child->end == CHILD_UNABLE)
		seen->trouble = child_end_text(child, &c->arena);
	if (seen->no_device || seen->trouble)
		return;
	read_steps(c, child, seen);
	read_end(c, child, seen);
	seen->note = read_note(c, child);
}

enum row_state case_compare(struct first_trouble predicted, const struct case_seen *seen)
{
	if (predicted.outcome == OUTCOME_UNKNOWN || predicted.outcome == OUTCOME_UNDEFINED)
		return ROW_OPEN;
	if (predicted.outcome != seen->outcome)
		return ROW_DIFFERENT;
	if (predicted.phase == PHASE_BOOTSTRAP) /* from outside, a part of init */
		predicted.phase = PHASE_INIT;
	return predicted.outcome == OUTCOME_NONE || predicted.phase == seen->phase ? ROW_SAME : ROW_DIFFERENT;
}

const char *case_predicted(struct confirm *c, struct first_trouble predicted)
{
	if (predicted.outcome == OUTCOME_NONE)
		return "every call 0, sums right";
	return confirm_text(c, "%s in %s%s%s", outcome_name(predicted.outcome),
			    predicted.phase == PHASE_FIRST_COLLECTIVE ? "the first collective" : phase_name(predicted.phase),
			    predicted.effect && *predicted.effect ? ": " : "", predicted.effect ? predicted.effect : "");
}

/* ---- what is predicted for a case of a run */

/* The copy that answers a path's call of NAME. */
static const struct instance *answers(struct run *r, const struct path *path, const char *name)
{
	struct process *p = r->life.sequence.process;
	struct object *requester = (struct object *)path->requester;
	struct definition d = {0};
	size_t i;

	if (path->how == HOW_DLOPEN) {
		d = scope_dlsym(p, path->lookup->object, name);
	} else {
		for (i = 0; i < r->bindings.n; i++)
			if (r->bindings.at[i]->object == requester && !strcmp(r->bindings.at[i]->symbol, name))
				return r->bindings.at[i]->instance;
		d = scope_dlsym(p, p->exe, name);
		if (!d.object && requester->root)
			d = scope_dlsym(p, requester->root, name);
	}
	return d.object ? run_instance_of(r, d.object) : NULL;
}

static void take_trouble(struct first_trouble *first, struct first_trouble next)
{
	/* The case ends without exit(), and calls nothing else. */
	if (next.phase != PHASE_LATER && next.phase != PHASE_EXIT && trouble_comes_first(next, *first))
		*first = next;
}

static void self_calls(const struct run *r, const struct instance *in, struct first_trouble *first)
{
	size_t i;

	for (i = 0; i < r->crossings.n; i++) {
		const struct crossing *k = r->crossings.at[i];

		if (k->from == in && (k->kind == CROSS_SELF_CALL || k->kind == CROSS_DATA))
			take_trouble(first, (struct first_trouble){k->phase, k->outcome, k->effect});
	}
}

static struct first_trouble predict(struct run *r, const struct path *mint, const struct path *make, const struct path *use)
{
	const struct instance *from = answers(r, mint, "ncclGetUniqueId"), *in = answers(r, make, "ncclCommInitRank");
	const struct instance *at = answers(r, use, "ncclAllReduce");
	const struct target *t = r->surfaces->target;
	struct first_trouble first = {PHASE_EXIT, OUTCOME_NONE, ""};

	if (!from || !in || !at)
		return (struct first_trouble){PHASE_LOAD, OUTCOME_ERROR, "a function is missing"};
	if (from != in)
		take_trouble(&first, id_between_versions(t, from->surface->version, in->surface->version));
	self_calls(r, in, &first);
	if (at != in) {
		take_trouble(&first, comm_between_versions(t, elf_machine_name(r->life.sequence.process->facts->machine),
							   in->surface->version, at->surface->version));
		self_calls(r, at, &first);
	}
	return first;
}

static bool across_eras(struct run *r, const struct path *mint, const struct path *make)
{
	const struct instance *from = answers(r, mint, "ncclGetUniqueId"), *in = answers(r, make, "ncclCommInitRank");

	return from && in && from != in &&
	       id_between_versions(r->surfaces->target, from->surface->version, in->surface->version).outcome != OUTCOME_NONE;
}

/* ---- which calls really crossed */

/* LD_DEBUG=bindings says each lazy binding when it happens: those of one copy
 * to another, in order. */
static const char *crossed_calls(struct confirm *c, const struct run *r, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL, *from, *to, *symbol;
	const char *list = "";
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		if (!binding_cut(line, &from, &to, &symbol))
			continue;
		if (strcmp(from, to) && target_symbol_index(r->surfaces->target, symbol) >= 0) {
			const struct object *o = process_find(r->life.sequence.process, from);

			if (o && run_instance_of(r, o))
				list = confirm_text(c, "%s%s%s", list, *list ? ", " : "", symbol);
		}
	}
	free(line);
	if (f)
		fclose(f);
	remove(path);
	return list;
}

/* ---- the cases of a run */

struct stage2 {
	struct confirm *c;
	struct run *r;
	struct nccl_case k;
	struct child_environment env;
	char *orders;
	const struct path **path; /* those that are in the orders, by number */
	size_t n;
};

static const char *path_text(struct confirm *c, const struct path *p)
{
	return confirm_text(c, "%s (%s)", *p->requester->path ? p->requester->path : "the bare program", p->request);
}

static int run_case(struct stage2 *s, size_t mint, size_t make, size_t use, const char *what, struct error *e)
{
	struct first_trouble predicted = predict(s->r, s->path[mint], s->path[make], s->path[use]);
	struct confirm_row row = {.stage = "devices", .kind = "case", .what = what};
	struct child child;
	struct case_seen seen;
	const char *calls;
	char *log;

	row.predicted = case_predicted(s->c, predicted);
	if (across_eras(s->r, s->path[mint], s->path[make]) && !s->c->setup->dangerous) {
		row.observed = "not tried: an id across eras can hang or eat memory (--dangerous tries it)";
		row.state = ROW_OPEN;
		confirm_add(s->c, row);
		return 0;
	}
	s->k.mint = (int)mint;
	s->k.make = (int)make;
	s->k.use = (int)use;
	if (case_start(s->c, &s->k, &child, e) < 0)
		return -1;
	child_wait(&child);
	case_read(s->c, &child, &seen);
	log = xprintf("%s/bindings.%d", s->c->place.dir, (int)child.pid);
	calls = crossed_calls(s->c, s->r, log);
	free(log);
	child_free(&child);
	if (seen.no_device) {
		s->c->no_device = seen.no_device;
		return 0;
	}
	if (seen.trouble)
		return error_set(e, "on the devices: %s", seen.trouble);
	row.observed = seen.text;
	row.note = *calls ? confirm_text(s->c, "%s%scalls that crossed, in order: %s", seen.note ? seen.note : "",
					 seen.note ? "; " : "", calls) : seen.note;
	row.state = case_compare(predicted, &seen);
	confirm_add(s->c, row);
	return 0;
}

/* One pair of paths for each handle that is predicted to cross. */
static int run_crossings(struct stage2 *s, struct error *e)
{
	size_t i, a, b;

	for (i = 0; i < s->r->crossings.n && !s->c->no_device; i++) {
		const struct crossing *k = s->r->crossings.at[i];
		bool done = false;

		if (k->kind != CROSS_ID && k->kind != CROSS_COMM)
			continue;
		for (a = 0; a < s->n && !done; a++)
			for (b = 0; b < s->n && !done; b++) {
				const char *what;

				if (answers(s->r, s->path[a], "ncclCommInitRank") != k->from ||
				    answers(s->r, s->path[b], "ncclCommInitRank") != k->to)
					continue;
				done = true;
				what = confirm_text(s->c, "%s of %s in %s", k->kind == CROSS_ID ? "an id" : "a communicator",
						    path_text(s->c, s->path[a]), path_text(s->c, s->path[b]));
				if (run_case(s, a, k->kind == CROSS_ID ? b : a, b, what, e) < 0)
					return -1;
			}
	}
	return 0;
}

/* The number of an open among those in the orders. */
static size_t event_number(const struct run *r, const struct lookup *l)
{
	size_t i, n = 0;

	for (i = 0; i < r->life.sequence.opened.n; i++) {
		if (r->life.sequence.opened.at[i].lookup == l)
			return n;
		n += r->life.sequence.opened.at[i].lookup != NULL;
	}
	return n;
}

static void put_paths(struct stage2 *s, FILE *f)
{
	const struct run *r = s->r;
	char number[24];
	size_t i;

	s->path = arena_alloc(&s->c->arena, (r->paths.n + 1) * sizeof(*s->path));
	for (i = 0; i < r->paths.n; i++) {
		const struct path *p = r->paths.at[i];

		if (!p->instance || p->how == HOW_PRELOAD)
			continue;
		s->path[s->n++] = p;
		snprintf(number, sizeof(number), "%zu", event_number(r, p->lookup));
		if (p->how == HOW_DLOPEN)
			orders_put(f, "path", "opened", number, NULL);
		else
			orders_put(f, "path", "needed", p->requester == r->life.sequence.process->exe ? "" : p->requester->path, NULL);
	}
}

static void prepare(struct stage2 *s)
{
	size_t size = 0;
	FILE *f = open_memstream(&s->orders, &size);

	orders_put(f, "program", s->k.program, NULL);
	orders_put_symbols(f, s->r->surfaces->target);
	orders_put_opens(f, s->r);
	put_paths(s, f);
	fclose(f);
	confirm_environment(s->c, &s->r->life.sequence.setup, &s->env);
	confirm_environment_for_nccl(s->c, &s->env);
	confirm_environment_add(s->c, &s->env, REPLAY_VARIABLE "=97,98");
	confirm_environment_add(s->c, &s->env, "LD_DEBUG=bindings");
	confirm_environment_add(s->c, &s->env, confirm_text(s->c, "LD_DEBUG_OUTPUT=%s/bindings", place_inside(&s->c->place)));
	s->k.orders = s->orders;
	s->k.cwd = s->r->life.sequence.setup.cwd;
	s->k.env = s->env.at.at;
	s->k.ranks = s->c->setup->ranks;
}

int confirm_devices(struct confirm *c, struct run *r, struct error *e)
{
	struct stage2 s = {.c = c, .r = r};
	int result = -1;
	size_t i;

	if (!r->life.sequence.process->started || r->life.sequence.died)
		return 0;
	if (confirm_program(c, r, &s.k.program, e) < 0 || confirm_prove(c, r, e) < 0)
		return -1;
	prepare(&s);
	for (i = 0; i < s.n && !c->no_device; i++)
		if (run_case(&s, i, i, i, path_text(c, s.path[i]), e) < 0)
			goto out;
	result = run_crossings(&s, e);
out:
	free(s.orders);
	vec_free(&s.env.at);
	return result;
}
