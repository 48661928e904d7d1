#include "verdict/fix.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIXES_MOST = 3 };

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

/* The verdict with what is supposed now; -1 after an error. */
static int try(struct run *r, const struct plan *plan, const struct cpu *cpu, struct error *e)
{
	struct run *again = run_new(plan, r->surfaces, cpu, e);
	int verdict;

	if (!again)
		return -1;
	verdict = (int)again->verdict;
	run_free(again);
	return verdict;
}

static void keep(struct run *r, struct finding *f, const char *command, int verdict)
{
	struct fix fix = {command, (enum verdict)verdict};

	/* Only what ends at one copy is a fix; better is not good. */
	if (fix.after == VERDICT_ONE && f->fixes.n < FIXES_MOST)
		vec_push(&f->fixes, fix);
	(void)r;
}

/* A name that is asked for is missing beside a copy that other paths reach:
 * link it there. */
static int try_link(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu,
		    const struct path *path, const struct object *copy, struct error *e)
{
	struct root *root = r->surfaces->store->root;
	const char *directory = directory_of(r, copy->path), *link, *target = last_of(copy->path), *canonical;
	struct root_file *there;
	int verdict;

	if (strchr(path->request, '/') || copy->path[0] != '/')
		return 0;
	link = names_add(&r->surfaces->store->names, arena_printf(&r->arena, "%s/%s", directory, path->request));
	if (!root_lookup(root, link, &there) ||
	    root_lookup(root, names_add(&r->surfaces->store->names, directory), &there))
		return 0;
	canonical = arena_printf(&r->arena, "%s/%s", there->real[1] ? there->real : "", path->request);
	root_suppose_link(root, canonical, target);
	verdict = try(r, plan, cpu, e);
	root_suppose_nothing(root);
	if (verdict < 0)
		return -1;
	keep(r, f, arena_printf(&r->arena, "ln -s %s %s", quoted(r, target), quoted(r, link)), verdict);
	return 0;
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

/* A directory that has every name, put first. */
static int try_library_paths(struct run *r, struct finding *f, const struct plan *plan, const struct cpu *cpu,
			     struct error *e)
{
	size_t i;

	for (i = 0; i < r->instances.n; i++) {
		struct plan changed = *plan;
		const char *directory = directory_of(r, r->instances.at[i]->object->path);
		int verdict;

		changed.library_path = plan->library_path && *plan->library_path
			? arena_printf(&r->arena, "%s:%s", directory, plan->library_path) : directory;
		verdict = try(r, &changed, cpu, e);
		if (verdict < 0)
			return -1;
		keep(r, f, arena_printf(&r->arena, "export LD_LIBRARY_PATH=%s", quoted(r, changed.library_path)), verdict);
	}
	return 0;
}

int fix_propose(struct run *r, const struct plan *plan, const struct cpu *cpu, struct error *e)
{
	struct finding *f = finding_to_mend(r);

	if (!f)
		return 0;
	return try_links(r, f, plan, cpu, e) < 0 || try_library_paths(r, f, plan, cpu, e) < 0 ? -1 : 0;
}
