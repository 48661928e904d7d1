#include "linkage/life.h"

#include "linkage/imports.h"
#include "linkage/package.h"
#include "linkage/python.h"

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

/* A script among the shims, or the engine itself. */
static int read_script(struct life *l, struct discovery *d, const char *path, struct error *e)
{
	struct python_file f;

	if (python_read(d->surfaces, d->plan, path, &f, e) < 0)
		return -1;
	if (!python_open_all(d, &f, script_caller(l)))
		vec_push(&l->hiding_scripts, f.path);
	vec_free(&f.opens);
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

/* A package: its extension modules are opened, its Python files read. */
static int read_package(struct life *l, struct discovery *d, const char *path, struct error *e)
{
	struct package_files files;
	int result = 0;
	size_t i;

	package_list(d->surfaces->store, path, &files);
	if (!files.at.n)
		result = error_set(e, "%s: a directory without Python files or extension modules", path);
	for (i = 0; i < files.at.n && !result && !l->sequence.died; i++)
		if (python_is_file(d->surfaces->store, files.at.at[i]))
			result = read_script(l, d, files.at.at[i], e);
		else
			sequence_open(&l->sequence, import_caller(l), files.at.at[i], OPEN_NOW, EVIDENCE_SCRIPT, path);
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

	if (event.shim && root_is_directory(d->surfaces->store->root, path)) {
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

/* What the import line loads: extension modules are opened as Python does
 * (sys.getdlopenflags() is RTLD_NOW), scripts open what they open. */
static int run_imports(struct life *l, struct discovery *d, struct error *e)
{
	const struct import_list *list = d->plan->imports;
	struct sequence *s = &l->sequence;
	size_t i;

	for (i = 0; list && i < list->at.n && !s->died; i++) {
		const struct import_file *f = &list->at.at[i];
		size_t before = s->process->objects.n;

		if (f->extension)
			sequence_open(s, import_caller(l), f->path, OPEN_NOW, EVIDENCE_SCRIPT,
				      !f->by ? NULL : f->line ? arena_printf(&d->surfaces->arena, "%s:%u", f->by, f->line)
					       : arena_printf(&d->surfaces->arena, "%s", f->by));
		else if (read_script(l, d, f->path, e) < 0)
			return -1;
		discover_from(d, before);
	}
	return 0;
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
