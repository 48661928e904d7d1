#include "linkage/discover.h"

#include "linkage/flags.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

static const struct surface *surface(const struct discovery *d, const struct object *o)
{
	return surface_of(d->surfaces, o->file, o->elf);
}

/* Whoever declares an open of the library for an object says all of them,
 * whether they have happened yet or not. */
static bool is_declared(const struct discovery *d, const struct object *o)
{
	size_t i;

	for (i = 0; i < d->plan->events.n; i++) {
		const struct event *event = &d->plan->events.at[i];

		if (event->shim || !target_matches(d->surfaces->target, event->name))
			continue;
		if (event->caller ? object_is_named(o, names_add(&d->surfaces->store->names, event->caller))
				  : o == d->sequence->process->exe)
			return true;
	}
	return false;
}

/* The directory of Python packages that a file lies in, or NULL. */
static const char *site_of(const struct discovery *d, const char *file)
{
	static const char *const site[] = {"/site-packages/", "/dist-packages/"};
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(site) / sizeof(site[0]); i++)
		if ((at = strstr(file, site[i])))
			return names_add_n(&d->surfaces->store->names, file, (size_t)(at - file) + strlen(site[i]) - 1);
	return NULL;
}

struct expansion {
	struct discovery *d;
	const struct surface *f; /* NULL: a script */
	const char *file;
	char number[16];
};

/* {env:NAME} and {env:NAME|DEFAULT}: as a shell's ${NAME:-DEFAULT}. */
static const char *variable_value(const struct expansion *x, const char *at, size_t n)
{
	struct names *names = &x->d->surfaces->store->names;
	const char *bar = memchr(at, '|', n);
	const size_t length = bar ? (size_t)(bar - at) : n;
	const char *value = plan_getenv(x->d->plan, names_add_n(names, at, length));

	if (value && *value)
		return value;
	return bar ? names_add_n(names, bar + 1, n - length - 1) : NULL;
}

/* The value of one placeholder of a name; NULL if it has none here. */
static const char *placeholder(struct expansion *x, const char *at, size_t n)
{
	int cuda = !x->f || n != 1 ? -1 : *at == 'M' ? x->f->cuda_major : *at == 'm' ? x->f->cuda_minor : -1;

	if (n > 4 && !strncmp(at, "env:", 4))
		return variable_value(x, at + 4, n - 4);
	if (n == 4 && !strncmp(at, "site", 4))
		return site_of(x->d, x->file);
	if (cuda < 0)
		return NULL;
	snprintf(x->number, sizeof(x->number), "%d", cuda);
	return x->number;
}

/* A path with one component that is a star: where exactly one of the directory's
 * entries leads to a file, that; NULL otherwise. */
static const char *only_match(const struct expansion *x, const char *path)
{
	struct store *store = x->d->surfaces->store;
	const char *star = strstr(path, "/*/"), *match = NULL;
	struct root_listing listing = {0};
	struct root_file *file;
	bool several = false;
	size_t i;

	if (!star || path[0] != '/')
		return path;
	if (root_list(store->root, names_add_n(&store->names, path, (size_t)(star - path)), &listing) == 0)
		for (i = 0; i < listing.name.n; i++) {
			char *text = xprintf("%.*s/%s%s", (int)(star - path), path, listing.name.at[i], star + 2);
			const char *candidate = names_add(&store->names, text);

			free(text);
			if (!root_lookup(store->root, candidate, &file)) {
				several |= match != NULL;
				match = candidate;
			}
		}
	vec_free(&listing.name);
	return several ? NULL : match;
}

/* A name of a profile with its placeholders filled in: {M} and {m} by the CUDA
 * version seen in the object, {env:NAME} by the process's environment, {site} by
 * the directory of Python packages that the file is in, a star by the one entry that
 * fits; NULL if one has no value: then the consumer does not try this name. */
static const char *expand(struct expansion *x, const char *name)
{
	char *out = xstrdup(""), *more;
	const char *result = NULL, *open, *close, *value;

	while ((open = strchr(name, '{')) && (close = strchr(open, '}'))) {
		value = placeholder(x, open + 1, (size_t)(close - open - 1));
		if (!value)
			goto out;
		more = xprintf("%s%.*s%s", out, (int)(open - name), name, value);
		free(out);
		out = more;
		name = close + 1;
	}
	more = xprintf("%s%s", out, name);
	free(out);
	out = more;
	result = only_match(x, names_add(&x->d->surfaces->store->names, out));
out:
	free(out);
	return result;
}

/* True when there is no need for another name: it opened, or the process died. */
static bool open_one(struct discovery *d, struct object *o, const char *name, unsigned flags, enum evidence evidence,
		     const char *source)
{
	struct opened *opened;

	if (d->plan->deepbind)
		flags |= OPEN_DEEPBIND;
	opened = sequence_open(d->sequence, o, name, flags, evidence, source);
	return !opened || opened->lookup->object;
}

/* Opens NAMES until one does. */
static void open_names(struct expansion *x, struct object *o, struct object *consumer, const struct profile *p,
		       const char *const *name, unsigned n, unsigned flags, bool eager, const char *source)
{
	struct discovery *d = x->d;
	struct root_file *there;
	bool done = false;

	for (; n-- && !done; name++) {
		const char *real = expand(x, *name);
		size_t before = d->sequence->opened.n;

		if (!real || (p->optional && real[0] == '/' && root_lookup(d->surfaces->store->root, real, &there)))
			continue;
		done = open_one(d, o, real, flags, EVIDENCE_PROFILE, source);
		if (d->sequence->opened.n > before) {
			d->sequence->opened.at[before].profile = p;
			d->sequence->opened.at[before].consumer = consumer;
			d->sequence->opened.at[before].eager = eager;
		}
	}
}

static bool is_switched_off(const struct discovery *d, const struct profile *p)
{
	const char *value = p->unless ? plan_getenv(d->plan, p->unless) : NULL;

	return value && *value && strcmp(value, "0");
}

/* The object on whose behalf the profile opens: O, or the one that it names; where
 * that is not loaded, because it is built in, the program. */
static struct object *caller_of(struct discovery *d, struct object *o, const struct profile *p)
{
	struct object *c;

	if (!p->caller)
		return o;
	for (c = d->sequence->process->ns.at[0].first; c; c = c->next)
		if (!fnmatch(p->caller, path_base(c->path), 0))
			return c;
	return d->sequence->process->exe;
}

/* The first name that opens is kept.  A name that the user chose by a variable
 * is the only one: if it does not open, nothing else is tried. */
void discover_by_profile(struct discovery *d, struct object *o, const struct profile *p, const struct surface *f,
			 const char *file)
{
	struct expansion x = {.d = d, .f = f, .file = file};
	const char *version = f ? f->profile_version : NULL, *chosen;
	const struct profile_row *row = profile_row_of(p, version);
	unsigned flags = flags_of_words(p->flags, p->flags_count), i;
	struct object *caller;
	const char *source;

	if (!row || is_switched_off(d, p))
		return;
	caller = caller_of(d, o, p);
	source = version ? arena_printf(&d->surfaces->arena, "%s %s", p->name, version) : p->name;
	chosen = row->override ? plan_getenv(d->plan, row->override) : NULL;
	if (chosen && *chosen) {
		chosen = arena_printf(&d->surfaces->arena, "{env:%s}", row->override);
		open_names(&x, caller, o, p, &chosen, 1, flags, row->eager, source);
	} else {
		open_names(&x, caller, o, p, row->names, row->names_count, flags, row->eager, source);
	}
	for (i = 0; i < p->also_count; i++)
		open_names(&x, caller, o, p, p->also[i].names, p->also[i].names_count,
			   flags_of_words(p->also[i].flags, p->also[i].flags_count), row->eager,
			   arena_printf(&d->surfaces->arena, "%s, another loader", source));
}

/* The names of a note are alternatives. */
static bool open_by_notes(struct discovery *d, struct object *o, const struct surface *f)
{
	bool any = false;
	size_t i, k;

	for (i = 0; i < f->notes.n; i++) {
		const struct dlopen_note *note = &f->notes.at[i];

		if (!note->n || !target_matches(d->surfaces->target, note->name[0]))
			continue;
		any = true;
		for (k = 0; k < note->n; k++)
			if (open_one(d, o, note->name[k], OPEN_NOW, EVIDENCE_NOTE, note->feature ? note->feature : "note"))
				break;
	}
	return any;
}

/* What a call asks for here, if it is for the library; NULL: not, or a variable in
 * the name is not set.  What a variable says is not judged by its name where the
 * object uses the library's functions. */
static const char *asked_for(struct discovery *d, const struct object *o, const struct surface *f, const struct elf_open *e)
{
	struct expansion x = {.d = d, .f = f, .file = o->path};
	const char *name = e->form ? expand(&x, e->form) : e->name;

	if (!name || !elf_open_is_file(e))
		return NULL;
	return target_matches(d->surfaces->target, name) || (e->form && surface_hides_loader(f)) ? name : NULL;
}

/* Is another call made instead, because its variable is set? */
static bool is_passed_over(struct discovery *d, const struct object *o, const struct surface *f, const struct elf_open *e)
{
	size_t i;

	for (i = 0; i < f->code.n && e->instead; i++) {
		const struct elf_open *other = &f->code.at[i];

		if (other->form && elf_open_place(other) == e->instead && asked_for(d, o, f, other))
			return true;
	}
	return false;
}

static const char *name_by_code(struct discovery *d, const struct object *o, const struct surface *f,
				const struct elf_open *e)
{
	return is_passed_over(d, o, f, e) ? NULL : asked_for(d, o, f, e);
}

/* The N names that one call may be given.  A table is gone along until one opens.
 * Of others the code chooses one: the one that a variable gives where it is set;
 * how it chooses else is not known, and they are taken for alternatives. */
static bool open_by_call(struct discovery *d, struct object *o, const struct surface *f, const struct elf_open *e, size_t n)
{
	bool chosen = false, opened = false;
	size_t i;

	for (i = 0; i < n && !e[0].row && !chosen; i++)
		chosen = e[i].form && name_by_code(d, o, f, &e[i]);
	for (i = 0; i < n && !opened; i++) {
		const struct elf_open *open = &e[d->plan->reversed && !e[0].row ? n - 1 - i : i];
		const char *name = name_by_code(d, o, f, open);

		if (name && (open->form || !chosen))
			opened = open_one(d, o, name, flags_of_bits(open->flags), EVIDENCE_CODE,
					  elf_open_in(open));
	}
	return opened;
}

/* Calls close to each other are taken for alternatives: what comes second is
 * tried when the first does not open. */
static bool open_by_code(struct discovery *d, struct object *o, const struct surface *f)
{
	enum { NEAR = 4096 };
	const struct elf_open *e = f->code.at;
	VEC(size_t) call = {0}; /* where its entries begin */
	bool any = false, opened = false;
	uint64_t last = 0;
	size_t i, k, n;

	for (i = 0; i < f->code.n; i++)
		if (!i || e[i].where != e[i - 1].where || e[i].via != e[i - 1].via)
			vec_push(&call, i);
	for (i = 0; i < call.n; i++) {
		size_t which = d->plan->reversed ? call.n - 1 - i : i, first = call.at[which];
		uint64_t where = elf_open_place(&e[first]);

		n = (which + 1 < call.n ? call.at[which + 1] : f->code.n) - first;
		for (k = 0; k < n && !name_by_code(d, o, f, &e[first + k]); k++)
			;
		if (k == n)
			continue;
		if (!any || (where > last ? where - last : last - where) > NEAR)
			opened = false;
		any = true;
		last = where;
		opened = opened || open_by_call(d, o, f, &e[first], n);
	}
	vec_free(&call);
	return any;
}

static void open_by_literals(struct discovery *d, struct object *o, const struct surface *f)
{
	size_t i;

	for (i = 0; i < f->literal.n; i++) {
		const struct literal *l = &f->literal.at[d->plan->reversed ? f->literal.n - 1 - i : i];

		if (l->whole)
			open_one(d, o, l->name, OPEN_NOW, EVIDENCE_LITERAL, NULL);
	}
}

void discover(struct discovery *d, struct object *o)
{
	const struct surface *f = surface(d, o);

	if (f->tracked || is_declared(d, o))
		return;
	if (f->profile)
		discover_by_profile(d, o, f->profile, f, o->path);
	else if (!open_by_notes(d, o, f) && f->imports_dlopen && !open_by_code(d, o, f) && surface_computes(f))
		open_by_literals(d, o, f);
}

void discover_from(struct discovery *d, size_t first)
{
	struct process *p = d->sequence->process;
	size_t end, i;

	/* What these map comes in a round of its own. */
	for (; first < p->objects.n && !d->sequence->died; first = end)
		for (end = p->objects.n, i = first; i < end && !d->sequence->died; i++) {
			struct object *o = p->objects.at[d->plan->reversed ? end - 1 - (i - first) : i];

			if (o != d->sequence->engine && o->file && o->how != HOW_INTERP)
				discover(d, o);
		}
}
