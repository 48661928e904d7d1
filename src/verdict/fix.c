#include "verdict/fix.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIXES_MOST = 4 };

static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/+=:@,", *s))
			return false;
	return true;
}

/* A word for a POSIX shell. */
static const char *quoted(struct run *r, const char *s)
{
	char *out, *to;
	const char *word;

	if (*s && is_plain(s))
		return s;
	to = out = xmalloc(strlen(s) * 4 + 3);
	*to++ = '\'';
	for (; *s; s++)
		if (*s == '\'')
			to += sprintf(to, "'\\''");
		else
			*to++ = *s;
	strcpy(to, "'");
	word = arena_strdup(&r->arena, out);
	free(out);
	return word;
}

static struct finding *finding_to_mend(struct run *r)
{
	static const char *const rules[] = {"split", "split-crossed", "absent", "start-fails"};
	size_t i, k;

	for (k = 0; k < sizeof(rules) / sizeof(rules[0]); k++)
		for (i = 0; i < r->findings.n; i++)
			if (!strcmp(r->findings.at[i]->rule, rules[k]))
				return r->findings.at[i];
	return NULL;
}

static const char *directory_of(struct run *r, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash > path ? arena_strndup(&r->arena, path, (size_t)(slash - path)) : "/";
}

static const char *last_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int newest(const struct run *r)
{
	int highest = 0, code;
	size_t i;

	for (i = 0; i < r->instances.n; i++)
		if ((code = data_version_code(r->instances.at[i]->surface->version)) > highest)
			highest = code;
	return highest;
}

/* Simulates R's plan again with what is supposed now, and keeps COMMAND if that
 * is better: one copy which is no older than what was there, or copies that keep
 * to themselves where they did not.  Returns -1 after an error. */
static int try(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu,
	       const char *command, struct error *e)
{
	struct run *again = run_new(plan, r->surfaces, cpu, e);
	struct fix fix = {.command = command};

	if (!again)
		return -1;
	fix.after = again->verdict;
	fix.crossings = again->crossings.n;
	if (again->instances.n == 1)
		fix.version = again->instances.at[0]->surface->version;
	if (((fix.after == VERDICT_ONE && newest(again) >= newest(r)) ||
	     (fix.after == VERDICT_SPLIT && r->verdict == VERDICT_CROSSED)) && f->fixes.n < FIXES_MOST)
		vec_push(&f->fixes, fix);
	run_free(again);
	return 0;
}

/* A name that is asked for is missing beside a copy that other paths reach:
 * link it there. */
static int try_link(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu,
		    const struct path *path, const struct object *copy, struct error *e)
{
	struct root *root = r->surfaces->store->root;
	const char *directory = directory_of(r, copy->path), *link, *target = last_of(copy->path), *canonical;
	struct root_file *there;
	int result;

	if (strchr(path->request, '/') || copy->path[0] != '/')
		return 0;
	link = names_add(&r->surfaces->store->names, arena_printf(&r->arena, "%s/%s", directory, path->request));
	if (!root_lookup(root, link, &there) ||
	    root_lookup(root, names_add(&r->surfaces->store->names, directory), &there))
		return 0;
	canonical = arena_printf(&r->arena, "%s/%s", there->real[1] ? there->real : "", path->request);
	result = root_link_target(root, link) != NULL; /* dangling: it has to be replaced */
	root_suppose_link(root, canonical, target);
	result = try(r, f, plan, cpu, arena_printf(&r->arena, "ln -s%s %s %s", result ? "fn" : "", quoted(r, target),
						   quoted(r, link)), e);
	root_suppose_nothing(root);
	return result;
}

static int try_links(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu, struct error *e)
{
	size_t i, k;

	for (k = 0; k < r->instances.n; k++)
		for (i = 0; i < r->paths.n; i++)
			if (r->paths.at[i]->instance != r->instances.at[k] && !r->instances.at[k]->surface->buried &&
			    try_link(r, f, plan, cpu, r->paths.at[i], r->instances.at[k]->object, e) < 0)
				return -1;
	return 0;
}

static bool is_system_directory(const struct run *r, const char *directory)
{
	const struct ld_facts *facts = r->life.sequence.process->facts;
	size_t i, n = strlen(directory);

	for (i = 0; i < facts->n_system_dir; i++)
		if (!strncmp(facts->system_dir[i], directory, n) && !strcmp(facts->system_dir[i] + n, "/"))
			return true;
	return false;
}

/* A directory that has every name, put first; not a default directory, which
 * would bring everything else that is in it. */
static int try_library_paths(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu,
			     struct error *e)
{
	size_t i;

	for (i = 0; i < r->instances.n; i++) {
		struct plan changed = *plan;
		const char *directory = directory_of(r, r->instances.at[i]->object->path);

		if (is_system_directory(r, directory))
			continue;
		changed.library_path = plan->library_path && *plan->library_path
			? arena_printf(&r->arena, "%s:%s", directory, plan->library_path) : directory;
		if (try(r, f, &changed, cpu, arena_printf(&r->arena, "export LD_LIBRARY_PATH=%s",
							  quoted(r, changed.library_path)), e) < 0)
			return -1;
	}
	return 0;
}

/* The same directory as DT_RUNPATH of the program: what belongs into a package,
 * where a variable does not. */
static int try_runpaths(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu,
			struct error *e)
{
	const struct object *exe = r->life.sequence.process->exe;
	size_t i;

	if (!exe->file || exe->elf->rpath || (plan->library_path && *plan->library_path))
		return 0;
	for (i = 0; i < r->instances.n; i++) {
		struct plan changed = *plan;
		const char *directory = directory_of(r, r->instances.at[i]->object->path);

		if (is_system_directory(r, directory))
			continue;
		changed.runpath = exe->elf->runpath ? arena_printf(&r->arena, "%s:%s", directory, exe->elf->runpath)
						    : directory;
		if (try(r, f, &changed, cpu, arena_printf(&r->arena, "patchelf --set-rpath %s %s",
							  quoted(r, changed.runpath), quoted(r, exe->path)), e) < 0)
			return -1;
	}
	return 0;
}

/* A preload serves every later request of its SONAME, and no other name. */
static int try_preloads(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu,
			struct error *e)
{
	size_t i;

	if (r->life.sequence.setup.secure)
		return 0;
	for (i = 0; i < r->instances.n; i++) {
		struct plan changed = *plan;
		const char *path = r->instances.at[i]->object->path;

		if (r->instances.at[i]->surface->buried)
			continue;
		changed.preload = plan->preload && *plan->preload ? arena_printf(&r->arena, "%s:%s", path, plan->preload)
								  : path;
		if (try(r, f, &changed, cpu, arena_printf(&r->arena, "export LD_PRELOAD=%s", quoted(r, changed.preload)),
			e) < 0)
			return -1;
	}
	return 0;
}

/* For who owns the code that opens the library. */
static int try_deepbind(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu,
			struct error *e)
{
	struct plan changed = *plan;
	size_t i;

	for (i = 0; i < r->paths.n; i++)
		if (r->paths.at[i]->how == HOW_DLOPEN)
			break;
	if (r->verdict != VERDICT_CROSSED || i == r->paths.n)
		return 0;
	changed.deepbind = true;
	return try(r, f, &changed, cpu, "in the code that opens it: dlopen with RTLD_DEEPBIND", e);
}

int fix_propose(struct run *r, const struct plan *plan, const struct cpu *cpu, struct error *e)
{
	static int (*const tries[])(struct run *, struct finding *, const struct plan *, const struct cpu *,
				    struct error *) = {
		try_links, try_library_paths, try_runpaths, try_preloads, try_deepbind,
	};
	struct finding *f = finding_to_mend(r);
	size_t i;

	for (i = 0; f && i < sizeof(tries) / sizeof(tries[0]); i++)
		if (tries[i](r, f, plan, cpu, e) < 0)
			return -1;
	return 0;
}
