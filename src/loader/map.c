/* From a name to an object of the link map: glibc elf/dl-load.c,
 * _dl_map_object and _dl_map_object_from_fd; elf/dl-object.c. */
#include "loader/internal.h"

#include <fnmatch.h>
#include <stdlib.h>

void *fail(struct process *p, const char *object, const char *text)
{
	*p->failure = (struct failure){.text = text, .object = object};
	return NULL;
}

void *fail_fatally(struct process *p, const char *object, const char *text)
{
	*p->failure = (struct failure){.text = text, .object = object, .fatal = true};
	return NULL;
}

struct lookup *lookup_new(struct process *p, const struct object *requester, const char *request,
			  enum how how)
{
	struct lookup *l = arena_new(&p->arena, struct lookup);

	l->requester = requester;
	l->request = request;
	l->how = how;
	l->event = p->event;
	l->found_by = BY_NOTHING;
	if (p->setup->record)
		vec_push(&p->lookups, l);
	return l;
}

/* The directory part of a realname, as text: no link is resolved.  A relative
 * name is put behind the working directory. */
static const char *origin_of(struct process *p, const char *path)
{
	const char *full, *slash;

	if (!*path)
		return NULL;
	full = absolute(p, path);
	slash = strrchr(full, '/');
	return slash == full ? names_add(&p->store->names, "/")
			     : names_add_n(&p->store->names, full, (size_t)(slash - full));
}

struct object *object_new(struct process *p, const char *path, const char *name,
			  enum object_kind kind, struct object *loader, int ns)
{
	struct object *o = arena_new(&p->arena, struct object);

	o->id = (unsigned)p->objects.n;
	o->kind = kind;
	o->path = path;
	o->loader = loader;
	o->root = loader ? loader->root : o;
	o->ns = ns;
	o->event = p->event;
	vec_push(&o->names, name);
	vec_push(&p->objects, o);
	name_map_put(&p->answered, path, o);
	name_map_put(&p->answered, name, o);
	return o;
}

/* What an object has outside the arena. */
void object_dispose(struct object *o)
{
	vec_free(&o->names);
	vec_free(&o->extra);
	vec_free(&o->bindings);
	vec_free(&o->needed);
}

/* _dl_add_to_namespace_list: behind the last object that can be reached from
 * the first. */
void object_link(struct process *p, struct object *o)
{
	struct namespace *ns = &p->ns.at[o->ns];
	struct object *last = ns->first;

	ns->n_loaded++;
	o->next = NULL;
	if (!last) {
		ns->first = o;
		return;
	}
	if (ns->last)
		last = ns->last;
	while (last->next)
		last = last->next;
	last->next = o;
	o->prev = last;
	ns->last = o;
}

void object_unlink(struct process *p, struct object *o)
{
	struct namespace *ns = &p->ns.at[o->ns];

	ns->n_loaded--;
	if (o->prev)
		o->prev->next = o->next;
	if (o->next)
		o->next->prev = o->prev;
	if (ns->first == o)
		ns->first = o->next;
	ns->last = NULL; /* found again by walking */
	o->next = o->prev = NULL;
}

/* The part of _dl_map_object_deps that puts a filtee before its filter.  The
 * namespace's first object is not changed by it: what ends up in front of the
 * program is in nobody's sight any more. */
void object_move_before(struct process *p, struct object *o, struct object *before)
{
	if (o->prev)
		o->prev->next = o->next;
	if (o->next)
		o->next->prev = o->prev;
	o->prev = before->prev;
	before->prev = o;
	if (o->prev)
		o->prev->next = o;
	o->next = before;
	p->ns.at[o->ns].last = NULL;
}

/* Can every object of the namespace be reached from its first?  If not, ld.so
 * fails an assertion as soon as it has to close something. */
bool namespace_is_whole(const struct process *p, int ns)
{
	const struct object *o;
	size_t n = 0;

	for (o = p->ns.at[ns].first; o; o = o->next)
		n++;
	return n == p->ns.at[ns].n_loaded;
}

/* _dl_name_match_p: the realname and every name it was asked for by.  The
 * program's realname is empty, so that dlopen("") finds it. */
bool object_has_name(const struct object *o, const char *name)
{
	size_t i;

	if (o->path == name && o->kind != OBJECT_EXECUTABLE)
		return true;
	for (i = 0; i < o->names.n; i++)
		if (o->names.at[i] == name)
			return true;
	return false;
}

void object_add_name(struct process *p, struct object *o, const char *name)
{
	size_t i;

	name_map_put(&p->answered, name, o);

	for (i = 0; i < o->names.n; i++)
		if (o->names.at[i] == name)
			return;
	vec_push(&o->names, name);
}

/* Whoever answers to the name first, in link map order, is taken: whatever its
 * directory, and without a look at the file system.  No part of a path is
 * compared, only whole strings. */
static struct object *match_loaded(struct process *p, const char *name, int ns, enum match *how)
{
	struct object *o;

	if (!name_map_get(&p->answered, name)) /* the usual case, and no walk */
		return NULL;
	for (o = p->ns.at[ns].first; o; o = o->next) {
		if (object_has_name(o, name)) {
			*how = MATCH_NAME;
			return o;
		}
		if (o->soname_known || !o->elf || o->elf->soname != name)
			continue;
		object_add_name(p, o, name);
		o->soname_known = true;
		*how = MATCH_SONAME;
		return o;
	}
	return NULL;
}

static struct object *match_file(struct process *p, const struct root_file *file, int ns)
{
	struct object *o;

	for (o = p->ns.at[ns].first; o; o = o->next)
		if (o->file == file && !o->no_identity)
			return o;
	return NULL;
}

/* What _dl_map_object_from_fd refuses, in its order.  All of it is an error of
 * the whole load; nothing further is searched. */
static const char *refusal(const struct found *f, unsigned mode)
{
	const struct elf_object *elf = f->elf;

	if (elf->fault == ELF_LOAD_ALIGN || elf->fault == ELF_NO_LOAD)
		return elf_fault_text(elf->fault);
	if (elf->type == ET_EXEC)
		return "cannot dynamically load executable";
	if (elf->fault == ELF_NO_DYNAMIC)
		return elf_fault_text(elf->fault);
	if ((elf->flags_1 & DF_1_NOOPEN) && (mode & MAP_DLOPEN))
		return "shared object cannot be dlopen()ed";
	return NULL;
}

/* Since 2.30, and only for what says so itself. */
static bool is_refused_pie(const struct process *p, const struct found *f)
{
	return (f->elf->flags_1 & DF_1_PIE) && p->facts->version >= 230;
}

/* Since 2.41, unless the stack is executable already; at start-up it is still
 * made so (the tunable glibc.rtld.execstack is taken to be 1, as it is unset). */
static bool is_refused_stack(const struct process *p, const struct found *f, unsigned mode)
{
	return f->elf->exec_stack && !p->exec_stack && (mode & MAP_DLOPEN) && p->facts->version >= 241;
}

static bool is_assumed(const struct process *p, const char *name)
{
	const char *base = path_base(name);
	size_t i;

	for (i = 0; i < p->setup->n_assume; i++)
		if (!fnmatch(p->setup->assume[i], base, 0))
			return true;
	return false;
}

static struct object *missing(struct process *p, struct object *loader, const char *name,
			      enum object_kind kind, unsigned mode, int ns, const struct found *f)
{
	struct object *o;
	bool assumed = is_assumed(p, name);

	if (!(mode & MAP_FAKE) && !assumed)
		return fail(p, name, f->other_class ? "wrong ELF class: ELFCLASS32"
						    : "cannot open shared object file");
	if (p->started && !assumed) {
		p->started = false;
		p->start_error = f->other_class ? "wrong ELF class: ELFCLASS32"
						: "cannot open shared object file";
		p->start_object = name;
	}
	o = object_new(p, name, name, kind, loader, ns);
	o->missing = true;
	o->assumed = assumed;
	object_link(p, o);
	return o;
}

static struct object *map_found(struct process *p, struct object *loader, const char *name,
				enum object_kind kind, unsigned mode, int ns, const struct found *f)
{
	struct object *o;
	const char *why;

	if (f->elf->fault == ELF_TRUNCATED || f->elf->fault == ELF_DAMAGED)
		return fail_fatally(p, f->path, elf_fault_text(f->elf->fault));
	if ((why = refusal(f, mode)))
		return fail(p, f->path, why);
	if (is_refused_pie(p, f))
		return fail(p, f->path, "cannot dynamically load position-independent executable");
	if (is_refused_stack(p, f, mode))
		return fail(p, f->path, "cannot enable executable stack as shared object requires");
	p->exec_stack |= f->elf->exec_stack;
	o = object_new(p, f->path, name, kind, mode & MAP_CALLMAP ? NULL : loader, ns);
	o->file = f->file;
	o->elf = f->elf;
	if (o->elf->soname)
		name_map_put(&p->answered, o->elf->soname, o);
	o->origin = origin_of(p, f->path);
	o->found_by = f->stage;
	object_link(p, o);
	return o;
}

/* A file that was found: loaded already under another name, or to be mapped. */
static struct object *map_file(struct process *p, struct object *loader, const char *name,
			       enum object_kind kind, unsigned mode, int ns, const struct found *f,
			       struct lookup *l)
{
	struct object *o = match_file(p, f->file, ns);

	if (o) {
		object_add_name(p, o, name);
		l->match = MATCH_FILE;
		return o;
	}
	if (ns && object_has_name(p->interp, name)) {
		/* There is one ld.so in a process; another namespace sees a proxy. */
		o = object_new(p, f->path, name, kind, mode & MAP_CALLMAP ? NULL : loader, ns);
		o->elf = p->interp->elf;
		if (o->elf->soname)
			name_map_put(&p->answered, o->elf->soname, o);
		o->file = p->interp->file;
		o->no_identity = true;
		object_link(p, o);
		return o;
	}
	if (mode & MAP_NOLOAD)
		return NULL;
	return map_found(p, loader, name, kind, mode, ns, f);
}

struct object *map_object(struct process *p, struct object *loader, const char *name,
			  enum object_kind kind, unsigned mode, int ns, struct lookup *l)
{
	struct found f;
	struct object *o = match_loaded(p, name, ns, &l->match);

	if (o) {
		l->found_by = BY_LOADED;
		return l->object = o;
	}
	search(p, loader, name, mode, ns, l, &f);
	if (p->failure->text)
		return NULL;
	l->found_by = f.stage;
	l->list_of = f.list_of;
	o = f.path ? map_file(p, loader, name, kind, mode, ns, &f, l)
		   : missing(p, loader, name, kind, mode, ns, &f);
	if (!o)
		return NULL;
	if (l->match == MATCH_NONE) {
		o->how = l->how;
		o->requester = l->requester;
		o->request = l->request;
		o->list_of = f.list_of;
	}
	if (p->setup->record && l->candidate.n && f.path)
		l->candidate.at[l->candidate.n - 1].taken = true;
	return l->object = o;
}
