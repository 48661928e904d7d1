/* Breadth-first over what an object needs: glibc elf/dl-deps.c,
 * _dl_map_object_deps; and what must hold before relocation: elf/dl-version.c
 * and sysdeps/x86/dl-cet.c / dl-prop.h. */
#include "loader/internal.h"

#include <stdlib.h>

/* The list under construction.  A filtee is put *before* its filter by turning
 * the filter's own node into the filtee's and giving the filter a new one,
 * exactly as glibc does, because the walk is still standing on that node. */
struct node {
	struct object *o;
	struct node *next;
	bool done;
};

struct walk {
	struct process *p;
	struct node *tail;
	unsigned mode;
	unsigned swaps; /* filtees put before their filters so far */
};

/* Two filters of each other change places for ever; in ld.so each change takes
 * some stack, and that ends it.  No real tree has so many filters. */
enum { SWAPS_MOST = 1000 };

/* DT_NEEDED strings are expanded before anything is compared.  A token without
 * a value makes a need of its own vanish, oddly but so in 2.17 to 2.43. */
static const char *expand_need(struct walk *w, struct object *o, const char *name, bool *skip)
{
	struct token_values v = tokens_of(w->p, o);
	const char *expanded;

	*skip = false;
	if (!strchr(name, '$') || !tokens_any(name, v.version))
		return name;
	if (w->p->setup->secure)
		return fail(w->p, name, "DST not allowed in SUID/SGID programs");
	if (strstr(name, "PLATFORM"))
		w->p->cpu_matters = true;
	expanded = tokens_expand(name, &v, &w->p->store->names);
	*skip = !expanded || !*expanded;
	return expanded;
}

static enum object_kind kind_of_need(const struct object *o)
{
	return o->kind == OBJECT_EXECUTABLE ? OBJECT_STARTUP : o->kind;
}

static void append(struct walk *w, struct object *o)
{
	struct node *n = arena_new(&w->p->arena, struct node);

	n->o = o;
	w->tail->next = n;
	w->tail = n;
	o->reserved = true;
}

static void insert_filtee(struct walk *w, struct node **at, struct object *filtee)
{
	struct node *here = *at, *filter = arena_new(&w->p->arena, struct node), *late;

	*filter = *here;
	here->done = false;
	here->o = filtee;
	if (filtee->reserved) {
		for (late = filter; late->next; late = late->next)
			if (late->next->o == filtee)
				break;
		if (!late->next) { /* it comes earlier anyway: undo */
			*here = *filter;
			return;
		}
		here->next = filter;
		if (w->tail == late->next)
			w->tail = late;
		late->next = late->next->next;
	} else {
		here->next = filter;
		filtee->reserved = true;
	}
	object_move_before(w->p, filtee, filter->o);
	if (w->tail == here)
		w->tail = filter;
	*at = filter;
}

static bool map_need(struct walk *w, struct node **at, const struct elf_dependency *d)
{
	struct object *o = (*at)->o, *got;
	struct process *p = w->p;
	struct lookup *l;
	const char *name;
	bool skip;

	name = expand_need(w, o, d->name, &skip);
	if (skip && d->kind != ELF_AUXILIARY)
		return true;
	if (!name || skip)
		return d->kind == ELF_AUXILIARY && !p->failure->text;
	l = lookup_new(p, o, name,
		       d->kind == ELF_NEEDED ? HOW_NEEDED : d->kind == ELF_FILTER ? HOW_FILTER : HOW_AUXILIARY);
	got = map_object(p, o, name, kind_of_need(o),
			 d->kind == ELF_NEEDED ? w->mode : w->mode & ~(unsigned)MAP_FAKE, o->ns, l);
	if (!got) {
		l->error = p->failure->text;
		l->fatal = p->failure->fatal;
		if (d->kind == ELF_AUXILIARY && !p->failure->fatal) {
			*p->failure = (struct failure){0}; /* it need not be there */
			return true;
		}
		return false;
	}
	if (p->setup->symbols && !o->dependencies_known)
		vec_push(&o->needed, got);
	if (d->kind != ELF_NEEDED && w->swaps++ == SWAPS_MOST)
		return fail_fatally(p, o->path, "filters of each other: the loader runs out of stack"), false;
	if (d->kind != ELF_NEEDED)
		insert_filtee(w, at, got);
	else if (!got->reserved)
		append(w, got);
	return true;
}

/* Empties the marks and keeps the list; a missing object of trace mode is not
 * in it. */
static void finish(struct process *p, struct object *o, struct node *head)
{
	struct node *n;
	size_t count = 0;

	for (n = head; n; n = n->next)
		count++;
	o->searchlist.at = arena_alloc(&p->arena, count * sizeof(*o->searchlist.at));
	for (n = head; n; n = n->next) {
		n->o->reserved = false;
		if (!n->o->missing)
			o->searchlist.at[o->searchlist.n++] = n->o;
	}
	o->has_searchlist = true;
}

bool map_dependencies(struct process *p, struct object *o, struct object **preload,
		      size_t n_preload, unsigned mode)
{
	struct node *head = arena_new(&p->arena, struct node), *n;
	struct walk w = {.p = p, .tail = head, .mode = mode};
	bool good = true;
	size_t i;

	head->o = o;
	o->reserved = true;
	for (i = 0; i < n_preload; i++)
		append(&w, preload[i]);
	for (n = head; n && good;) {
		struct node *at = n;
		const struct elf_object *elf = n->o->elf;

		n->done = true;
		for (i = 0; elf && i < elf->n_dependency && good; i++)
			good = map_need(&w, &at, &elf->dependency[i]);
		at->o->dependencies_known = true;
		/* A filtee may now stand on this very node: then it is next. */
		if (n->done)
			do
				n = n->next;
			while (n && n->done);
	}
	if (good) {
		finish(p, o, head);
		if (p->facts->version < 232 && head->o != o)
			return fail_fatally(p, o->path, "a filtee stands before it: the loader's assertion fails"), false;
	} else {
		for (n = head; n; n = n->next)
			n->o->reserved = false;
	}
	return good;
}

/* find_needed: among everything in sight, then in the object's own list (of
 * which a filtee in front of the program may be a part). */
static struct object *find_needed(struct process *p, const struct object *of, const char *name)
{
	struct object *o;
	size_t i;

	for (o = p->ns.at[of->ns].first; o; o = o->next)
		if (object_has_name(o, name))
			return o;
	for (i = 0; i < of->searchlist.n; i++)
		if (object_has_name(of->searchlist.at[i], name))
			return of->searchlist.at[i];
	return NULL;
}

static bool defines(const struct elf_object *elf, const char *version)
{
	size_t i;

	for (i = 0; i < elf->n_version_def; i++)
		if (elf->version_def[i].version == version)
			return true;
	return false;
}

/* A file without any version definition satisfies every need. */
static bool check_object_versions(struct process *p, struct object *o, unsigned mode)
{
	size_t i;

	for (i = 0; i < o->elf->n_version_need; i++) {
		const struct elf_version_need *need = &o->elf->version_need[i];
		struct object *from = find_needed(p, o, need->file);

		if (!from) /* glibc has an assertion here, and dies of it */
			return fail_fatally(p, o->path, arena_printf(&p->arena,
				"needs versions of %s, which is not loaded (DT_VERNEED and DT_NEEDED disagree): "
				"the loader's assertion fails", need->file)), false;
		if (from->missing || !from->elf || !from->elf->has_version_def || need->weak)
			continue;
		if (!defines(from->elf, need->version)) {
			const char *text = arena_printf(&p->arena, "version `%s' not found (required by %s)",
							need->version, o->path);

			if (!(mode & MAP_FAKE))
				return fail(p, from->path, text), false;
			if (p->started) {
				p->started = false;
				p->start_error = text;
				p->start_object = from->path;
			}
		}
	}
	return true;
}

bool check_versions(struct process *p, const struct object_list *list, unsigned mode)
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		struct object *o = list->at[i];

		if (o->versions_checked || !o->elf)
			continue;
		o->versions_checked = true;
		if (!check_object_versions(p, o, mode))
			return false;
	}
	return true;
}

/* Since 2.33: a file that says it needs a better processor is refused, after
 * everything has been mapped. */
bool check_isa(struct process *p, const struct object_list *list)
{
	size_t i;

	if (p->facts->version < 233)
		return true;
	for (i = 0; i < list->n; i++) {
		const struct object *o = list->at[i];

		if (!o->elf || !o->elf->isa_needed)
			continue;
		p->cpu_matters |= o->elf->isa_needed > 1;
		if (o->elf->isa_needed & ~p->hwcaps.isa)
			return fail(p, o->path, "CPU ISA level is lower than required"), false;
	}
	return true;
}
