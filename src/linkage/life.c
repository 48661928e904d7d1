#include "linkage/life.h"

#include "base/progress.h"
#include "linkage/imports.h"
#include "linkage/package.h"
#include "linkage/python.h"

#include <limits.h>
#include <stdlib.h>

/* ctypes opens on behalf of its extension module; before that is loaded, and
 * where it is built in, of the program. */
static struct object *script_caller(struct life *l)
{
	struct process *p = l->sequence.process;
	struct object *o;

	for (o = p->ns.at[0].first; o; o = o->next)
		if (strstr(o->path, "/_ctypes."))
			return o;
	return p->exe;
}

/* A Python file that runs. */
struct running {
	struct python_file f;
	size_t next; /* of its opens */
};

static int begin_script(struct life *l, struct discovery *d, const char *path, struct running *out, struct error *e)
{
	memset(out, 0, sizeof(*out));
	if (python_read(d->surfaces, d->plan, path, &out->f, e) < 0)
		return -1;
	if (python_hides_loader(&out->f, d->surfaces->target))
		vec_push(&l->hiding_scripts, out->f.path);
	return 0;
}

static void go_on(struct life *l, struct discovery *d, struct running *s, unsigned line)
{
	python_open(d, &s->f, script_caller(l), &s->next, line);
}

static void end_script(struct life *l, struct discovery *d, struct running *s)
{
	go_on(l, d, s, UINT_MAX);
	vec_free(&s->f.opens);
}

/* A script among the shims, or the engine itself. */
static int read_script(struct life *l, struct discovery *d, const char *path, struct error *e)
{
	struct running s;

	if (begin_script(l, d, path, &s, e) < 0)
		return -1;
	end_script(l, d, &s);
	return 0;
}

/* The object that opens extension modules: libpython, or the program that has
 * it built in.  Its DT_RPATH is asked for what they need. */
static struct object *import_caller(struct life *l)
{
	struct process *p = l->sequence.process;
	struct object *o;

	for (o = p->ns.at[0].first; o; o = o->next)
		if (!strncmp(path_base(o->path), "libpython3", 10))
			return o;
	return p->exe;
}

/* A package, or all that are in a wheel: its extension modules are opened, its Python
 * files read.  The order is a guess. */
static int read_package(struct life *l, struct discovery *d, const char *path, struct error *e)
{
	struct package_files files;
	int result = 0;
	size_t i;

	package_list(d->surfaces->store, path, false, &files);
	if (!files.at.n && !package_is_wheel(path)) /* a wheel may hold what others need */
		result = error_set(e, "%s: a directory without Python files or extension modules", path);
	for (i = 0; i < files.at.n && !result && !l->sequence.died; i++) {
		const char *file = files.at.at[d->plan->reversed ? files.at.n - 1 - i : i];

		progress_show(path_base(path), i, files.at.n);
		if (python_is_file(d->surfaces->store, file))
			result = read_script(l, d, file, e);
		else
			sequence_open(&l->sequence, import_caller(l), file, OPEN_NOW, EVIDENCE_SCRIPT, path);
	}
	progress_end();
	if (files.cut)
		vec_push(&l->cut_packages, path);
	vec_free(&files.at);
	return result;
}

static int happen(struct life *l, struct discovery *d, struct event event, struct error *e)
{
	struct sequence *s = &l->sequence;
	const char *path = plan_path(d->plan, d->surfaces->store, event.name);
	size_t before = s->process->objects.n;

	if (event.shim && (package_is_wheel(path) || root_is_directory(d->surfaces->store->root, path))) {
		if (read_package(l, d, path, e) < 0)
			return -1;
	} else if (event.shim && python_is_file(d->surfaces->store, path)) {
		if (read_script(l, d, path, e) < 0)
			return -1;
	} else {
		if (event.shim && !strchr(event.name, '/'))
			event.name = path; /* a shim is a file, not a name to search for */
		if (d->plan->deepbind && target_matches(d->surfaces->target, event.name))
			event.flags |= OPEN_DEEPBIND;
		sequence_declared(s, &event);
	}
	discover_from(d, before);
	return 0;
}

struct imports {
	struct life *life;
	struct discovery *d;
	VEC(struct running) running; /* the innermost last */
};

/* The file BY goes on to LINE, where it imports something: those that it has
 * imported before are at their end.  NULL: nobody's import. */
static void come_to(struct imports *m, const char *by, unsigned line)
{
	size_t depth = 0, i;

	for (i = 0; by && i < m->running.n; i++)
		if (m->running.at[i].f.path == by)
			depth = i + 1;
	if (by && !depth) /* an extension imports it */
		return;
	while (m->running.n > depth)
		end_script(m->life, m->d, &m->running.at[--m->running.n]);
	if (depth)
		go_on(m->life, m->d, &m->running.at[depth - 1], line);
}

static int import_file(struct imports *m, const struct import_file *f, struct error *e)
{
	struct discovery *d = m->d;
	struct running s;

	if (f->extension) {
		sequence_open(d->sequence, import_caller(m->life), f->path, OPEN_NOW, EVIDENCE_SCRIPT,
			      !f->by ? NULL : f->line ? arena_printf(&d->surfaces->arena, "%s:%u", f->by, f->line)
				       : arena_printf(&d->surfaces->arena, "%s", f->by));
		return 0;
	}
	if (begin_script(m->life, d, f->path, &s, e) < 0)
		return -1;
	go_on(m->life, d, &s, 0);
	vec_push(&m->running, s);
	return 0;
}

/* What the import line loads: extension modules are opened as Python does
 * (sys.getdlopenflags() is RTLD_NOW), scripts open what they open, each at its line. */
static int run_imports(struct life *l, struct discovery *d, struct error *e)
{
	const struct import_list *list = d->plan->imports;
	struct imports m = {.life = l, .d = d};
	size_t i, before = d->sequence->process->objects.n;
	int result = 0;

	for (i = 0; list && i < list->at.n && !d->sequence->died && !result; i++) {
		come_to(&m, list->at.at[i].by, list->at.at[i].line);
		result = import_file(&m, &list->at.at[i], e);
		discover_from(d, before);
		before = d->sequence->process->objects.n;
	}
	come_to(&m, NULL, 0);
	discover_from(d, before);
	vec_free(&m.running);
	return result;
}

int life_simulate(struct life *l, struct surfaces *surfaces, const struct plan *plan, const struct cpu *cpu,
		  struct error *e)
{
	struct sequence *s = &l->sequence;
	struct discovery d = {.sequence = s, .surfaces = surfaces, .plan = plan};
	const char *engine = plan_path(plan, surfaces->store, plan->engine);
	size_t i;

	if (sequence_start(s, plan, surfaces->store, cpu, true, true, e) < 0)
		return -1;
	if (!s->process->started)
		return 0;
	discover_from(&d, 0);
	if (run_imports(l, &d, e) < 0)
		return -1;
	for (i = 0; i < plan->events.n && !s->died; i++)
		if (happen(l, &d, plan->events.at[i], e) < 0)
			return -1;
	if (s->engine && !s->died)
		discover(&d, s->engine);
	if (!s->died && python_is_file(surfaces->store, engine))
		return read_script(l, &d, engine, e);
	return 0;
}

void life_free(struct life *l)
{
	sequence_free(&l->sequence);
	vec_free(&l->hiding_scripts);
	vec_free(&l->cut_packages);
}
