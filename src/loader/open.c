/* dlopen and dlmopen: glibc elf/dl-open.c. */
#include "loader/internal.h"

#include <stdlib.h>

/* _dl_close_worker after an error: what this call mapped goes; names that it
 * taught to older objects stay. */
static void unwind(struct process *p, size_t first)
{
	size_t i, n = 0;

	for (i = 0; i < p->unique.n; i++)
		if (p->unique.at[i].object->id < first)
			p->unique.at[n++] = p->unique.at[i];
	p->unique.n = n;
	while (p->objects.n > first) {
		struct object *o = p->objects.at[p->objects.n - 1];

		object_unlink(p, o);
		object_dispose(o);
		p->objects.n--;
	}
}

static void promote(struct process *p, const struct object *opened)
{
	size_t i;

	if (opened->ns)
		return;
	for (i = 0; i < opened->searchlist.n; i++)
		if (!opened->searchlist.at[i]->global) {
			opened->searchlist.at[i]->global = true;
			vec_push(&p->global, opened->searchlist.at[i]);
		}
}

static bool flags_valid(struct process *p, unsigned flags, const char *name)
{
	if (!(flags & (OPEN_LAZY | OPEN_NOW)))
		return fail(p, name, "invalid mode for dlopen()"), false;
	if ((flags & OPEN_NEWLM) && (flags & OPEN_GLOBAL))
		return fail(p, name, "invalid mode"), false;
	return true;
}

/* Objects opened before that this open has in its list see it from now on. */
static void update_scopes(struct object *opened)
{
	size_t i, k;

	for (i = 0; i < opened->searchlist.n; i++) {
		struct object *o = opened->searchlist.at[i];

		if (!o->initialised || o->kind != OBJECT_DLOPENED || o->root == opened)
			continue;
		for (k = 0; k < o->extra.n && o->extra.at[k] != opened; k++)
			;
		if (k == o->extra.n)
			vec_push(&o->extra, opened);
	}
}

/* The new objects, from BEFORE on, take over what the open says of them. */
static void mark_new(struct process *p, size_t before, unsigned flags)
{
	for (; before < p->objects.n; before++) {
		p->objects.at[before]->deepbind = flags & OPEN_DEEPBIND;
		p->objects.at[before]->opened_now = flags & OPEN_NOW;
	}
}

/* Everything that may still fail once the files are mapped. */
static bool complete(struct process *p, struct object *o, size_t before, unsigned flags)
{
	if (!map_dependencies(p, o, NULL, 0, MAP_DLOPEN))
		return false;
	mark_new(p, before, flags);
	return check_versions(p, &o->searchlist, 0) && check_isa(p, &o->searchlist) && relocate_list(p, &o->searchlist);
}

static struct object *open_worker(struct process *p, struct object *caller, const char *name,
				  unsigned flags, int ns, struct lookup *l)
{
	unsigned mode = MAP_DLOPEN | (flags & OPEN_NOLOAD ? MAP_NOLOAD : 0);
	struct object *o;
	size_t before = p->objects.n;

	if (!flags_valid(p, flags, name))
		return NULL;
	o = map_object(p, caller, name, OBJECT_DLOPENED, mode | MAP_CALLMAP, ns, l);
	if (!o || o->missing)
		return o;
	if (!o->has_searchlist) {
		if (!complete(p, o, before, flags)) {
			o->has_searchlist = false;
			o->searchlist.n = 0;
			if (!p->failure->fatal && !namespace_is_whole(p, ns))
				return fail_fatally(p, name, "a filtee has moved in front of the program: "
						    "the loader's assertion fails (_dl_close_worker)");
			unwind(p, before);
			return NULL;
		}
		update_scopes(o);
		for (; before < p->objects.n; before++)
			p->objects.at[before]->initialised = true;
	}
	if (flags & OPEN_GLOBAL)
		promote(p, o);
	return o;
}

/* The loader's sentence: which file or name, and what about it. */
static const char *failure_text(struct process *p, const char *request)
{
	if (!p->failure->object || p->failure->object == request)
		return p->failure->text;
	return arena_printf(&p->arena, "%s: %s", p->failure->object, p->failure->text);
}

struct lookup *process_open(struct process *p, struct object *caller, const char *name, unsigned flags)
{
	int ns = caller->ns;
	struct lookup *l;

	p->event++;
	l = lookup_new(p, caller, names_add(&p->store->names, name), HOW_DLOPEN);
	*p->failure = (struct failure){0};
	if (flags & OPEN_NEWLM) {
		ns = (int)p->ns.n;
		vec_push(&p->ns, (struct namespace){0});
	}
	if (!*l->request) { /* dlopen("") is the program, like dlopen(NULL) */
		l->object = p->exe;
		l->found_by = BY_LOADED;
		l->match = MATCH_NAME;
		return l;
	}
	l->object = open_worker(p, caller, l->request, flags, ns, l);
	if (!l->object && p->failure->text) {
		l->error = failure_text(p, l->request);
		l->fatal = p->failure->fatal;
	}
	*p->failure = (struct failure){0};
	return l;
}

bool object_is_named(const struct object *o, const char *name)
{
	return o->path == name || object_has_name(o, name) || (o->elf && o->elf->soname == name) ||
	       (o->file && o->file->real == name);
}

struct object *process_find(struct process *p, const char *path)
{
	const char *name = names_add(&p->store->names, path);
	struct object *o;

	for (o = p->ns.at[0].first; o; o = o->next)
		if (object_is_named(o, name))
			return o;
	return NULL;
}

const struct object *process_first(const struct process *p, size_t ns)
{
	const struct object *o = p->ns.at[ns].first;

	while (o && o->prev)
		o = o->prev;
	return o;
}
