#include "linkage/imports_internal.h"

#include <stdlib.h>

/* ---- directories ---- */

const char *importer_join(const struct importer *im, const char *dir, const char *name)
{
	char *text = xprintf("%s/%s", dir[1] ? dir : "", name);
	const char *path = names_add(&im->store->names, text);

	free(text);
	return path;
}

bool importer_is_file(const struct importer *im, const char *path)
{
	struct root_file *file;

	return !root_lookup(im->store->root, path, &file) && S_ISREG(file->mode);
}

const struct directory *importer_list(struct importer *im, const char *path)
{
	struct directory *d = name_map_get(&im->listings, path);
	size_t i;

	if (d)
		return d->has.room ? d : NULL;
	d = arena_new(&im->store->arena, struct directory);
	name_map_put(&im->listings, path, d);
	vec_push(&im->directories, d);
	if (root_list(im->store->root, path, &d->listing))
		return NULL;
	name_map_put(&d->has, "", d); /* one that is empty is there all the same */
	for (i = 0; i < d->listing.name.n; i++)
		name_map_put(&d->has, d->listing.name.at[i], d);
	return d;
}

/* ---- one name in one directory ---- */

/* DIR/STEM with the first suffix that a file has: extension modules come before
 * source, source before bytecode (importlib's FileFinder). */
static bool find_file(struct importer *im, const char *dir, const char *stem, struct module *m)
{
	const struct directory *d = importer_list(im, dir);
	size_t i;

	for (i = 0; d && i < im->n_suffix + 2; i++) {
		char *text = xprintf("%s%s", stem, i < im->n_suffix ? im->suffix[i] : i == im->n_suffix ? ".py" : ".pyc");
		const char *name = names_add(&im->store->names, text), *path;

		free(text);
		if (!name_map_get(&d->has, name))
			continue;
		path = importer_join(im, dir, name);
		if (!importer_is_file(im, path))
			continue;
		m->file = path;
		m->kind = i < im->n_suffix ? MODULE_EXTENSION : i == im->n_suffix ? MODULE_SOURCE : MODULE_COMPILED;
		return true;
	}
	return false;
}

/* A package there, a module there; a directory that is neither is noted as a
 * part of a namespace, and the search goes on. */
static bool find_in(struct importer *im, const char *dir, const char *last, struct module *m)
{
	const struct directory *d = importer_list(im, dir);
	const char *below = d && name_map_get(&d->has, last) ? importer_join(im, dir, last) : NULL;

	if (!d)
		return false;
	if (below && !importer_list(im, below))
		below = NULL;
	if (below && find_file(im, below, "__init__", m)) {
		m->package = true;
		m->path.n = 0;
		vec_push(&m->path, below);
		return true;
	}
	if (find_file(im, dir, last, m)) {
		m->path.n = 0;
		return true;
	}
	if (below)
		vec_push(&m->path, below);
	return false;
}

static bool is_below(const char *name, const char *package)
{
	size_t n = strlen(package);

	return !strncmp(name, package, n) && name[n] == '.';
}

void importer_extend_path(struct importer *im, struct module *m, bool along_path)
{
	const char *last = strrchr(m->name, '.');
	size_t i, k;

	m->own_path = true;
	/* Only of packages at the top; those below stand in their parents. */
	for (i = 0; along_path && !last && i < im->path.n; i++) {
		const struct directory *d = importer_list(im, im->path.at[i]);
		const char *part = d && name_map_get(&d->has, m->name) ? importer_join(im, im->path.at[i], m->name) : NULL;

		for (k = 0; part && k < m->path.n; k++)
			if (m->path.at[k] == part)
				part = NULL;
		if (part && importer_list(im, part))
			vec_push(&m->path, part);
	}
	/* What was looked for in vain before may be there now. */
	for (i = 0; i < im->all.n; i++)
		if (im->all.at[i]->kind == MODULE_MISSING && !im->all.at[i]->begun && is_below(im->all.at[i]->name, m->name))
			name_map_put(&im->modules, im->all.at[i]->name, NULL);
}

/* ---- one module ---- */

static void find_along(struct importer *im, const char *const *dir, size_t n, const char *last, struct module *m)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (find_in(im, dir[i], last, m))
			return;
	if (m->path.n) {
		m->kind = MODULE_NAMESPACE;
		m->package = true;
	}
}

struct module *importer_find(struct importer *im, const char *name)
{
	struct module *m = name_map_get(&im->modules, name);
	const char *dot = strrchr(name, '.');
	const struct module *parent;

	if (m)
		return m;
	m = arena_new(&im->store->arena, struct module);
	m->name = name;
	name_map_put(&im->modules, name, m);
	vec_push(&im->all, m);
	if (!dot) {
		if (name_map_get(&im->builtin, name))
			m->kind = MODULE_BUILTIN;
		else
			find_along(im, im->path.at, im->path.n, name, m);
		return m;
	}
	parent = name_map_get(&im->modules, names_add_n(&im->store->names, name, (size_t)(dot - name)));
	if (!parent || parent->kind == MODULE_MISSING)
		return m;
	/* os.path, six.moves, what an extension makes for itself: in sys.modules
	 * before anyone looks for a file. */
	if (!parent->package)
		m->kind = MODULE_MADE;
	else
		find_along(im, parent->path.at, parent->path.n, names_add(&im->store->names, dot + 1), m);
	if (m->kind == MODULE_MISSING && parent->own_path)
		m->kind = MODULE_MADE;
	return m;
}

void importer_free(struct importer *im)
{
	size_t i;

	for (i = 0; i < im->all.n; i++) {
		vec_free(&im->all.at[i]->path);
		vec_free(&im->all.at[i]->all);
	}
	for (i = 0; i < im->directories.n; i++) {
		vec_free(&im->directories.at[i]->listing.name);
		name_map_free(&im->directories.at[i]->has);
	}
	vec_free(&im->all);
	vec_free(&im->directories);
	vec_free(&im->path);
	vec_free(&im->started);
	name_map_free(&im->builtin);
	name_map_free(&im->bound);
	name_map_free(&im->modules);
	name_map_free(&im->listings);
}
