/* A process that already runs: what it has mapped against what was predicted. */
#include "confirm/confirm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

struct mapping {
	const char *path; /* as the kernel has it */
	dev_t dev;
	ino_t ino;
	bool deleted, predicted;
};

struct maps {
	struct confirm *c;
	struct run *r;
	VEC(struct mapping) at;
};

static void add_mapping(struct maps *m, unsigned major_number, unsigned minor_number, unsigned long ino, char *path)
{
	static const char gone[] = " (deleted)";
	struct mapping new = {.dev = makedev(major_number, minor_number), .ino = ino};
	size_t n = strlen(path), i;

	if (n && path[n - 1] == '\n')
		path[--n] = '\0';
	if (path[0] != '/')
		return;
	if (n > sizeof(gone) && !strcmp(path + n - (sizeof(gone) - 1), gone)) {
		new.deleted = true;
		path[n - (sizeof(gone) - 1)] = '\0';
	}
	for (i = 0; i < m->at.n; i++)
		if (m->at.at[i].dev == new.dev && m->at.at[i].ino == new.ino && !strcmp(m->at.at[i].path, path))
			return;
	new.path = arena_strdup(&m->c->arena, path);
	vec_push(&m->at, new);
}

static int read_maps(struct maps *m, int pid, struct error *e)
{
	char *name = xprintf("/proc/%d/maps", pid), *line = NULL;
	FILE *f = fopen(name, "re");
	size_t room = 0;

	if (!f) {
		error_set(e, "%s: %s", name, strerror(errno));
		free(name);
		return -1;
	}
	while (getline(&line, &room, f) > 0) {
		unsigned a, b;
		unsigned long ino;
		int at = 0;

		if (sscanf(line, "%*s %*s %*s %x:%x %lu %n", &a, &b, &ino, &at) == 3 && at && ino)
			add_mapping(m, a, b, ino, line + at);
	}
	free(line);
	free(name);
	fclose(f);
	return 0;
}

/* On some file systems (overlay, btrfs) the device of a mapping is not that of
 * the file; there the path has to do. */
static struct mapping *find_mapping(struct maps *m, const struct object *o)
{
	size_t i;

	for (i = 0; i < m->at.n; i++)
		if (m->at.at[i].dev == o->file->dev && m->at.at[i].ino == o->file->ino)
			return &m->at.at[i];
	for (i = 0; i < m->at.n; i++)
		if (!strcmp(m->at.at[i].path, o->file->real))
			return &m->at.at[i];
	return NULL;
}

static void compare_object(struct maps *m, const struct object *o)
{
	struct mapping *k = find_mapping(m, o);
	struct confirm_row row = {.stage = "process", .kind = "mapping", .predicted = o->file->real,
				  .minor = !run_instance_of(m->r, o)};

	row.what = o->event < 0 ? "mapped at start-up" : "opened";
	if (k)
		k->predicted = true;
	if (k && !k->deleted) {
		row.observed = k->path;
	} else if (k) {
		row.observed = confirm_text(m->c, "%s, which has been replaced since", k->path);
		row.state = ROW_DIFFERENT;
	} else {
		/* It may be opened later. */
		row.observed = o->event < 0 ? "not mapped" : "not mapped, or not yet";
		row.state = o->event < 0 ? ROW_DIFFERENT : ROW_OPEN;
	}
	confirm_add(m->c, row);
}

bool confirm_is_copy(struct run *r, const char *path)
{
	struct store *store = r->surfaces->store;
	const struct elf_object *elf;
	struct root_file *file;
	int open_error;

	if (path[0] == '/' && root_lookup(store->root, names_add(&store->names, path), &file) == 0 && S_ISREG(file->mode)) {
		elf = store_object(store, file, &open_error);
		if (!open_error && !elf->fault)
			return surface_of(r->surfaces, file, elf)->tracked;
	}
	return target_matches(r->surfaces->target, path);
}

int confirm_maps(struct confirm *c, struct run *r, int pid, struct error *e)
{
	const struct process *p = r->life.sequence.process;
	struct maps m = {.c = c, .r = r};
	const struct object *o;
	size_t i;

	if (read_maps(&m, pid, e) < 0)
		return -1;
	for (i = 0; i < p->ns.n; i++)
		for (o = process_first(p, i); o; o = o->next)
			if (o->file && !o->missing)
				compare_object(&m, o);
	for (i = 0; i < m.at.n; i++)
		if (!m.at.at[i].predicted && confirm_is_copy(r, m.at.at[i].path))
			confirm_add(c, (struct confirm_row){.stage = "process", .kind = "mapping", .what = "a copy that was not predicted",
				    .predicted = "nothing", .observed = m.at.at[i].path, .state = ROW_DIFFERENT});
	vec_free(&m.at);
	return 0;
}
