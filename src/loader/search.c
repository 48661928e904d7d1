/* Directory search: glibc elf/dl-load.c, _dl_map_object, open_path,
 * fillin_rpath and open_verify. */
#include "loader/internal.h"

#include <errno.h>
#include <stdlib.h>

enum { UNKNOWN, NONEXISTING, EXISTING }; /* enum r_dir_status */

/* A directory with all its capability subdirectories.  One per string and
 * process, however many lists it is in. */
struct search_dir {
	const char *name; /* with its final '/'; "" = the working directory */
	const struct search_list *last; /* the list it was added to last */
	unsigned char status[32];
};

struct search_list {
	struct search_dir **dir;
	size_t n;
	bool removed; /* none of its directories exists: never looked at again */
};

const char *absolute(struct process *p, const char *path)
{
	char *text;
	const char *result;

	if (path[0] == '/')
		return path;
	p->cwd_matters = true;
	text = xprintf("%s/%s", p->setup->cwd[1] ? p->setup->cwd : "", path);
	result = names_add(&p->store->names, text);
	free(text);
	return result;
}

struct token_values tokens_of(const struct process *p, const struct object *o)
{
	return (struct token_values){
		.origin = o->origin,
		.lib = p->facts->lib,
		.platform = p->setup->cpu->platform,
		.version = p->facts->version,
		.secure = p->setup->secure,
		.for_executable = o->kind == OBJECT_EXECUTABLE,
		.system_dir = p->facts->system_dir,
		.n_system_dir = p->facts->n_system_dir,
	};
}

static struct search_dir *directory(struct process *p, const char *name)
{
	struct search_dir *d = name_map_get(&p->dirs, name);

	if (d)
		return d;
	d = arena_new(&p->arena, struct search_dir);
	d->name = name;
	/* A relative directory is taken to exist, for ever. */
	memset(d->status, name[0] == '/' ? UNKNOWN : EXISTING, sizeof(d->status));
	name_map_put(&p->dirs, name, d);
	return d;
}

static void list_add(struct search_list *list, struct search_dir *dir)
{
	if (dir->last == list) /* lists are made one after the other */
		return;
	dir->last = list;
	list->dir[list->n++] = dir;
}

/* fillin_rpath: an element that is empty is the working directory, one that
 * becomes empty by expansion is dropped (2.27 and later). */
static struct search_list *list_parse(struct process *p, const char *text, const char *separators,
				      const struct object *owner)
{
	struct search_list *list = arena_new(&p->arena, struct search_list);
	struct token_values v = tokens_of(p, owner);
	size_t elements = 1, n;
	const char *at;

	for (at = text; *at; at++)
		elements += strchr(separators, *at) != NULL;
	list->dir = arena_alloc(&p->arena, elements * sizeof(*list->dir));
	if (strstr(text, "PLATFORM"))
		p->cpu_matters |= tokens_any(text, v.version);
	for (at = text;; at += n + 1) {
		const char *dir;
		char *with_slash;

		n = strcspn(at, separators);
		dir = names_add_n(&p->store->names, at, n);
		if (n) {
			size_t length;

			dir = tokens_expand(dir, &v, &p->store->names);
			if (dir && *dir) {
				for (length = strlen(dir); length > 1 && dir[length - 1] == '/'; length--)
					;
				with_slash = xprintf("%.*s%s", (int)length, dir, dir[length - 1] == '/' ? "" : "/");
				list_add(list, directory(p, names_add(&p->store->names, with_slash)));
				free(with_slash);
			} else if (dir && v.version < 227) {
				list_add(list, directory(p, dir));
			}
		} else {
			list_add(list, directory(p, dir));
		}
		if (!at[n])
			break;
	}
	return list;
}

void search_init(struct process *p)
{
	const char *path = p->setup->library_path;
	size_t i;

	p->system = arena_new(&p->arena, struct search_list);
	p->system->dir = arena_alloc(&p->arena, p->facts->n_system_dir * sizeof(*p->system->dir));
	for (i = 0; i < p->facts->n_system_dir; i++)
		list_add(p->system, directory(p, p->facts->system_dir[i]));
	/* A set-id process ignores the variable since 2.26; before, it kept the
	 * elements that were default directories, which changes nothing. */
	if (path && *path && !p->setup->secure)
		p->env = list_parse(p, path, ":;", p->exe);
}

static void note(struct process *p, struct lookup *l, struct candidate c)
{
	if (p->setup->record && l)
		vec_push(&l->candidate, c);
}

/* A link that leads nowhere is no file to the loader; the reader of a report
 * will want to know that it is there. */
static void note_miss(struct process *p, struct lookup *l, struct candidate c)
{
	const char *target;

	if (!p->setup->record)
		return;
	target = c.error == ENOENT ? root_link_target(p->store->root, absolute(p, c.path)) : NULL;
	if (target)
		c.note = arena_printf(&p->arena, "dangling link to %s", target);
	note(p, l, c);
}

enum verdict { MISS, HIT, HARD };

/* A fault that is seen before the machine is compared: these end the load
 * whatever machine the file is for. */
static bool before_machine(enum elf_fault f)
{
	return f == ELF_DIRECTORY || f == ELF_NOT_REGULAR || f == ELF_UNREADABLE || f == ELF_SHORT ||
	       f == ELF_NO_MAGIC || (f >= ELF_BYTE_ORDER && f <= ELF_VERSION);
}

/* open_verify: is the file at PATH one to take, to pass over, or to die of?
 * Wrong class and wrong machine are passed over; a short file, a text or a
 * directory ends the whole load. */
static enum verdict probe(struct process *p, struct lookup *l, const char *path, struct found *out)
{
	struct candidate c = {.path = path, .stage = out->stage, .list_of = out->list_of};
	const struct elf_object *elf;
	int open_error;

	c.error = -root_lookup(p->store->root, absolute(p, path), &out->file);
	if (!c.error) {
		elf = store_object(p->store, out->file, &open_error);
		c.error = open_error;
	}
	if (c.error) {
		out->error = c.error;
		note_miss(p, l, c);
		return MISS;
	}
	c.fault = elf->fault;
	if (elf->fault == ELF_OTHER_CLASS) {
		out->other_class = true;
		out->error = ENOENT;
		note(p, l, c);
		return MISS;
	}
	if (!before_machine(elf->fault) && elf->machine != p->facts->machine) {
		c.fault = ELF_OTHER_MACHINE;
		c.note = elf_machine_name(elf->machine);
		out->error = ENOENT;
		note(p, l, c);
		return MISS;
	}
	if (elf->fault && elf->fault < ELF_LOAD_ALIGN) {
		note(p, l, c);
		if (elf->fault == ELF_NOT_REGULAR)
			fail_fatally(p, path, elf_fault_text(elf->fault));
		else
			fail(p, path, elf_fault_text(elf->fault));
		return HARD;
	}
	note(p, l, c); /* map_object says whether it was taken */
	out->path = path;
	out->elf = elf;
	return HIT;
}

static const char *compose(struct process *p, const char *dir, const char *suffix, const char *name)
{
	char buffer[1024], *text = buffer;
	size_t a = strlen(dir), b = strlen(suffix), c = strlen(name);
	const char *result;

	if (a + b + c > sizeof(buffer))
		text = xmalloc(a + b + c);
	memcpy(text, dir, a);
	memcpy(text + a, suffix, b);
	memcpy(text + a + b, name, c);
	result = names_add_n(&p->store->names, text, a + b + c);
	if (text != buffer)
		free(text);
	return result;
}

static bool directory_exists(struct process *p, const char *dir, const char *suffix)
{
	const char *path = compose(p, dir, suffix, "");
	size_t n = strlen(path);

	if (n > 1)
		path = names_add_n(&p->store->names, path, n - 1);
	return root_is_directory(p->store->root, path);
}

/* A set-id process takes a preload only if the file has the set-user-ID bit. */
static bool refused_for_suid(struct process *p, struct lookup *l, unsigned mode, struct found *out)
{
	if (!(mode & MAP_SECURE) || (out->file->mode & S_ISUID))
		return false;
	note(p, l, (struct candidate){.path = out->path, .stage = out->stage, .error = ENOENT,
				      .note = "no set-user-ID bit: not for a set-id process"});
	out->path = NULL;
	out->error = ENOENT;
	return true;
}

/* One directory, its capability subdirectories first. */
static enum verdict try_directory(struct process *p, struct lookup *l, struct search_dir *dir,
				  const char *name, unsigned mode, struct found *out, bool *here)
{
	size_t i;

	for (i = 0; i < p->hwcaps.n_suffix; i++) {
		const char *suffix = p->hwcaps.suffix[i];
		enum verdict v;

		if (dir->status[i] == UNKNOWN && *suffix && !directory_exists(p, dir->name, suffix))
			dir->status[i] = NONEXISTING; /* as if it had been probed in vain */
		if (dir->status[i] == NONEXISTING)
			continue;
		v = probe(p, l, compose(p, dir->name, suffix, name), out);
		p->cpu_matters |= *suffix && (dir->name[0] == '/' || v != MISS);
		if (v == HARD)
			return HARD;
		if (dir->status[i] == UNKNOWN) {
			if (v == HIT || directory_exists(p, dir->name, suffix)) {
				dir->status[i] = EXISTING;
			} else {
				dir->status[i] = NONEXISTING;
				continue;
			}
		}
		*here = true;
		if (v == HIT && !refused_for_suid(p, l, mode, out))
			return HIT;
	}
	return MISS;
}

/* open_path.  A directory that is there but fails with anything but "no such
 * file" or "permission denied" (or, since 2.39, "not a directory") ends its
 * whole list, not the search. */
static enum verdict try_list(struct process *p, struct lookup *l, struct search_list *list,
			     const char *name, unsigned mode, struct found *out)
{
	bool any = false;
	size_t i;

	if (!list || list->removed)
		return MISS;
	for (i = 0; i < list->n; i++) {
		bool here = false;
		enum verdict v = try_directory(p, l, list->dir[i], name, mode, out, &here);

		if (v != MISS)
			return v;
		if (here && out->error != ENOENT && out->error != EACCES &&
		    !(out->error == ENOTDIR && p->facts->version >= 239))
			return MISS;
		any |= here;
	}
	if (!any && list != p->env && list != p->system)
		list->removed = true;
	return MISS;
}

static struct search_list *rpath_of(struct process *p, struct object *o)
{
	/* DT_RUNPATH erases DT_RPATH when the object is loaded. */
	if (!o->rpath && o->elf && o->elf->rpath && *o->elf->rpath && !o->elf->runpath)
		o->rpath = list_parse(p, o->elf->rpath, ":", o);
	return o->rpath && !o->rpath->removed ? o->rpath : NULL;
}

static struct search_list *runpath_of(struct process *p, struct object *o)
{
	if (!o->runpath && o->elf && o->elf->runpath && *o->elf->runpath)
		o->runpath = list_parse(p, o->elf->runpath, ":", o);
	return o->runpath && !o->runpath->removed ? o->runpath : NULL;
}

/* DT_RPATH of the requester, of what loaded it, and so on up, then of the
 * program.  Not at all if the requester has DT_RUNPATH; an ancestor that has
 * one contributes nothing but does not stop the walk. */
static enum verdict try_rpaths(struct process *p, struct lookup *l, struct object *loader,
			       const char *name, unsigned mode, struct found *out)
{
	struct object *o;
	bool did_exe = false;
	enum verdict v;

	if (loader && loader->elf && loader->elf->runpath)
		return MISS;
	out->stage = BY_RPATH;
	for (o = loader; o; o = o->loader) {
		struct search_list *list = rpath_of(p, o);

		if (!list)
			continue;
		out->list_of = o;
		v = try_list(p, l, list, name, mode, out);
		if (v != MISS)
			return v;
		did_exe |= o == p->exe;
	}
	if (did_exe || !p->exe)
		return MISS;
	out->list_of = p->exe;
	return try_list(p, l, rpath_of(p, p->exe), name, mode, out);
}

/* The cache knows one path for a name.  If that file is missing there is no
 * second try: the search goes on to the default directories. */
static enum verdict try_cache(struct process *p, struct lookup *l, struct object *loader,
			      const char *name, unsigned mode, int ns, struct found *out)
{
	const char *cache_path = p->setup->cache ? p->setup->cache : p->facts->cache_path;
	const struct object *strict = loader ? loader : p->ns.at[ns].first;
	struct store_cache *cache;
	struct ld_cache_hit hit;
	enum verdict v;
	size_t i;

	if ((mode & MAP_SECURE) || !*cache_path)
		return MISS;
	cache = store_cache(p->store, names_add(&p->store->names, cache_path));
	if (!cache->cache)
		return MISS;
	hit = store_cache_lookup(p->store, cache, name, p->facts, &p->hwcaps);
	p->cpu_matters |= hit.capable;
	if (!hit.path)
		return MISS;
	out->stage = BY_CACHE;
	/* DF_1_NODEFLIB refuses whatever lies under a default directory; it is a
	 * comparison of prefixes. */
	if (strict && strict->elf && (strict->elf->flags_1 & DF_1_NODEFLIB))
		for (i = 0; i < p->facts->n_system_dir; i++)
			if (!strncmp(hit.path, p->facts->system_dir[i], strlen(p->facts->system_dir[i]))) {
				note(p, l, (struct candidate){.path = hit.path,
							      .stage = BY_CACHE,
							      .note = "refused by DF_1_NODEFLIB of the requester"});
				return MISS;
			}
	v = probe(p, l, hit.path, out);
	if (v == HIT && refused_for_suid(p, l, mode, out))
		return MISS;
	return v;
}

void search(struct process *p, struct object *loader, const char *name, unsigned mode, int ns,
	    struct lookup *l, struct found *out)
{
	struct object *strict = loader ? loader : p->ns.at[ns].first;

	memset(out, 0, sizeof(*out));
	out->error = ENOENT;
	if (strchr(name, '/')) {
		struct token_values v;
		const char *path = name;

		if (loader) {
			v = tokens_of(p, loader);
			path = tokens_expand(name, &v, &p->store->names);
		}
		out->stage = BY_PATH;
		if (path)
			probe(p, l, path, out);
		return;
	}
	if (try_rpaths(p, l, loader, name, mode, out) != MISS)
		return;
	out->list_of = NULL;
	out->stage = BY_ENV;
	if (try_list(p, l, p->env, name, mode, out) != MISS)
		return;
	if (loader) {
		out->stage = BY_RUNPATH;
		out->list_of = loader;
		if (try_list(p, l, runpath_of(p, loader), name, mode, out) != MISS)
			return;
		out->list_of = NULL;
	}
	if (try_cache(p, l, loader, name, mode, ns, out) != MISS)
		return;
	out->stage = BY_DEFAULT;
	if (!strict || !strict->elf || !(strict->elf->flags_1 & DF_1_NODEFLIB))
		if (try_list(p, l, p->system, name, mode, out) != MISS)
			return;
	out->stage = BY_NOTHING;
}
