/* What ld.so does before main: glibc elf/rtld.c. */
#include "loader/internal.h"

#include <errno.h>
#include <stdlib.h>

static const char *const how_names[] = {"exec", "interp", "vdso", "preload", "needed", "dlopen", "filter", "auxiliary"};
static const char *const stage_names[] = {"loaded", "path", "rpath", "env", "runpath", "cache", "default", "nothing"};

const char *how_name(enum how how)
{
	return how_names[how];
}

const char *stage_name(enum stage stage)
{
	return stage_names[stage];
}

static const char *default_interp(struct store *s, uint16_t machine)
{
	return names_add(&s->names, machine == EM_AARCH64 ? "/lib/ld-linux-aarch64.so.1"
							  : "/lib64/ld-linux-x86-64.so.2");
}

/* The program whose only need is libc: what a library is opened in when no
 * program was named. */
static const struct elf_object *bare_program(struct process *p, uint16_t machine)
{
	struct elf_object *elf = arena_new(&p->arena, struct elf_object);

	elf->type = ET_DYN;
	elf->machine = machine;
	elf->has_dynamic = true;
	elf->n_dependency = 1;
	elf->dependency = arena_new(&p->arena, struct elf_dependency);
	elf->dependency->name = names_add(&p->store->names, "libc.so.6");
	return elf;
}

/* The program as patchelf would leave it. */
static const struct elf_object *with_runpath(struct process *p, const struct elf_object *elf, const char *runpath)
{
	struct elf_object *changed = arena_new(&p->arena, struct elf_object);

	*changed = *elf;
	changed->runpath = names_add(&p->store->names, runpath);
	return changed;
}

/* The kernel's part: open the executable and the interpreter it names. */
static int load_executable(struct process *p, struct error *e)
{
	const struct process_setup *setup = p->setup;
	const char *path = setup->exe ? names_add(&p->store->names, setup->exe) : NULL;
	const struct elf_object *elf;
	struct root_file *file = NULL;
	int error, open_error;

	if (path) {
		error = root_lookup(p->store->root, path, &file);
		if (error)
			return error_set(e, "%s: %s", path, strerror(-error));
		elf = store_object(p->store, file, &open_error);
		if (open_error)
			return error_set(e, "%s: %s", path, strerror(open_error));
		if (elf->fault)
			return error_set(e, "%s: %s%s%s", path, elf_fault_text(elf->fault),
					 elf->detail ? ": " : "", elf->detail ? elf->detail : "");
		if (elf->bad_interp && !setup->interp)
			return error_set(e, "%s: its PT_INTERP lies outside the file or has no end", path);
		if (!elf->interp && !setup->interp)
			return error_set(e, "%s: no interpreter (PT_INTERP): statically linked, or a shared object",
					 path);
	} else {
		elf = bare_program(p, setup->machine);
		path = names_add(&p->store->names, "");
	}
	if (setup->exe_runpath)
		elf = with_runpath(p, elf, setup->exe_runpath);
	p->exe = object_new(p, path, names_add(&p->store->names, ""), OBJECT_EXECUTABLE, NULL, 0);
	p->exe->elf = elf;
	p->exec_stack = elf->exec_stack;
	if (elf->soname)
		name_map_put(&p->answered, elf->soname, p->exe);
	p->exe->file = file;
	p->exe->no_identity = true;
	p->exe->how = HOW_EXEC;
	p->exe->found_by = BY_PATH;
	/* /proc/self/exe is resolved by the kernel, unlike a library's path. */
	if (file) {
		const char *slash = strrchr(file->real, '/');

		p->exe->origin = slash == file->real ? names_add(&p->store->names, "/")
			: names_add_n(&p->store->names, file->real, (size_t)(slash - file->real));
	}
	return 0;
}

static int load_interpreter(struct process *p, struct error *e)
{
	const struct process_setup *setup = p->setup;
	const struct elf_object *elf = p->exe->elf;
	const char *path = setup->interp ? names_add(&p->store->names, setup->interp)
			   : elf->interp ? elf->interp : default_interp(p->store, elf->machine);
	struct root_file *file;
	int error, open_error;

	error = root_lookup(p->store->root, absolute(p, path), &file);
	if (error)
		return error_set(e, "%s: its dynamic loader %s: %s", *p->exe->path ? p->exe->path : "bare program", path,
				 strerror(-error));
	p->facts = store_facts(p->store, file, e);
	if (!p->facts)
		return error_wrap(e, "%s", p->exe->path);
	if (p->facts->libc != LIBC_GLIBC)
		return error_set(e, "%s: its dynamic loader %s is %s: only glibc's rules are simulated",
				 p->exe->path, path, p->facts->libc == LIBC_MUSL ? "musl's" : "of an unknown kind");
	if (p->facts->machine != elf->machine)
		return error_set(e, "%s: its dynamic loader %s is for %s", p->exe->path, path,
				 elf_machine_name(p->facts->machine));
	p->interp = object_new(p, path, path, OBJECT_STARTUP, NULL, 0);
	p->interp->elf = store_object(p->store, file, &open_error);
	p->interp->file = file;
	p->interp->no_identity = true;
	p->interp->how = HOW_INTERP;
	p->interp->found_by = BY_PATH;
	p->interp->requester = p->exe;
	p->interp->request = path;
	if (p->interp->elf->soname)
		object_add_name(p, p->interp, p->interp->elf->soname);
	return 0;
}

static void add_vdso(struct process *p)
{
	const char *name = names_add(&p->store->names, "linux-vdso.so.1");

	p->vdso = object_new(p, name, name, OBJECT_STARTUP, NULL, 0);
	p->vdso->how = HOW_VDSO;
	object_link(p, p->vdso);
}

/* In a set-id process a preload may not name a path. */
static bool preload_allowed(const struct process *p, const char *name, bool from_file)
{
	return *name && !(p->setup->secure && !from_file && (strchr(name, '/') || strlen(name) > 255));
}

static bool preload_one(struct process *p, const char *name, bool from_file)
{
	struct lookup *l;

	if (!preload_allowed(p, name, from_file))
		return true;
	l = lookup_new(p, p->exe, name, HOW_PRELOAD);
	if (map_object(p, p->exe, name, OBJECT_STARTUP, p->setup->secure ? MAP_SECURE : 0, 0, l))
		return true;
	l->error = p->failure->text;
	if (p->failure->fatal)
		return false;
	/* "cannot be preloaded (…): ignored." */
	vec_push(&p->warnings, arena_printf(&p->arena, "preload %s ignored: %s", name, p->failure->text));
	*p->failure = (struct failure){0};
	return true;
}

static bool preload_list(struct process *p, const char *list, const char *separators, bool from_file)
{
	size_t n;

	for (; *list; list += n + (list[n] != 0)) {
		n = strcspn(list, separators);
		if (n && !preload_one(p, names_add_n(&p->store->names, list, n), from_file))
			return false;
	}
	return true;
}

/* /etc/ld.so.preload: names between blanks and colons, '#' to the end of the line. */
static bool preload_file(struct process *p)
{
	struct root_file *file;
	const unsigned char *data;
	char *text, *c;
	size_t size;
	bool good;

	if (root_lookup(p->store->root, p->facts->preload_path, &file) || !S_ISREG(file->mode) ||
	    !(data = store_slurp(p->store, file, 1 << 20, &size)))
		return true;
	text = arena_strndup(&p->arena, (const char *)data, size);
	for (c = text; (c = strchr(c, '#'));)
		while (*c && *c != '\n')
			*c++ = ' ';
	good = preload_list(p, text, " \t\n:", true);
	return good;
}

/* ld.so leaves the link map and comes back where the search order has it; if
 * nobody needs it, it stays out. */
static void replace_interp(struct process *p)
{
	const struct object_list *list = &p->exe->searchlist;
	struct object *before, *after;
	size_t i;

	object_unlink(p, p->interp);
	for (i = 1; i < list->n; i++)
		if (list->at[i] == p->interp)
			break;
	if (i >= list->n)
		return;
	before = list->at[i - 1];
	after = i + 1 < list->n ? list->at[i + 1] : NULL;
	if (before->next == p->vdso && after != p->vdso)
		before = p->vdso;
	p->interp->prev = before;
	p->interp->next = before->next;
	before->next = p->interp;
	if (p->interp->next)
		p->interp->next->prev = p->interp;
	p->ns.at[0].n_loaded++;
}

static void start_failed(struct process *p, const char *object, const char *text)
{
	if (!p->started)
		return;
	p->started = false;
	p->start_error = text;
	p->start_object = object;
}

/* init_tls counts the modules it can see from the program on. */
static bool tls_out_of_sight(const struct process *p)
{
	const struct object *o;

	for (o = p->exe->prev; o; o = o->prev)
		if (o->elf && o->elf->has_tls)
			return true;
	return false;
}

static void map_everything(struct process *p)
{
	VEC(struct object *) preload = {0};
	struct object *o;
	size_t i;
	bool good;

	good = (!p->setup->preload || preload_list(p, p->setup->preload, " :", false)) && preload_file(p);
	if (good) {
		for (o = p->vdso->next; o; o = o->next)
			vec_push(&preload, o);
		good = map_dependencies(p, p->exe, preload.at, preload.n, MAP_FAKE);
	}
	vec_free(&preload);
	if (!good) {
		start_failed(p, p->failure->object, p->failure->text);
		return;
	}
	replace_interp(p);
	if (tls_out_of_sight(p)) {
		start_failed(p, p->exe->path, "a filtee with thread-local storage stands before the program: "
			     "the loader's assertion fails (init_tls)");
		return;
	}
	for (i = 0; i < p->exe->searchlist.n; i++) {
		o = p->exe->searchlist.at[i];
		o->global = true;
		vec_push(&p->global, o);
	}
	if (!check_versions(p, &p->exe->searchlist, MAP_FAKE) || !check_isa(p, &p->exe->searchlist) ||
	    (p->started && !relocate_list(p, &p->exe->searchlist)))
		start_failed(p, p->failure->object, p->failure->text);
	for (i = 0; i < p->exe->searchlist.n; i++)
		p->exe->searchlist.at[i]->relocated = p->exe->searchlist.at[i]->initialised = true;
}

struct process *process_start(const struct process_setup *setup, struct error *e)
{
	struct process *p = xmalloc(sizeof(*p));

	memset(p, 0, sizeof(*p));
	p->store = setup->store;
	p->setup = setup;
	p->event = -1;
	p->started = true;
	p->failure = arena_new(&p->arena, struct failure);
	vec_push(&p->ns, (struct namespace){0});
	if (load_executable(p, e) < 0 || load_interpreter(p, e) < 0) {
		process_free(p);
		return NULL;
	}
	hwcaps_of(setup->cpu, p->facts, &p->store->names, &p->arena, &p->hwcaps);
	object_link(p, p->exe);
	object_link(p, p->interp);
	add_vdso(p);
	search_init(p);
	map_everything(p);
	return p;
}

void process_free(struct process *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < p->objects.n; i++)
		object_dispose(p->objects.at[i]);
	for (i = 0; i < p->lookups.n; i++)
		vec_free(&p->lookups.at[i]->candidate);
	vec_free(&p->objects);
	vec_free(&p->lookups);
	vec_free(&p->ns);
	vec_free(&p->global);
	vec_free(&p->unique);
	vec_free(&p->warnings);
	name_map_free(&p->dirs);
	name_map_free(&p->answered);
	arena_free(&p->arena);
	free(p);
}
