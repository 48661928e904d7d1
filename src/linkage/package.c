#include "linkage/package.h"

#include <stdlib.h>

enum { FILES_MOST = 20000, DEPTH_MOST = 32 };

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

static const char *child_of(struct store *store, const char *path, const char *name)
{
	char *text = xprintf("%s/%s", path[1] ? path : "", name);
	const char *child = names_add(&store->names, text);

	free(text);
	return child;
}

struct listing {
	struct store *store;
	bool libraries;
	struct package_files *out;
};

static bool is_loadable(const struct listing *l, const char *name)
{
	return ends_in(name, ".py") || ends_in(name, ".so") || (l->libraries && !strncmp(name, "lib", 3) && strstr(name, ".so."));
}

static void list_folder(struct listing *l, const char *path, unsigned depth)
{
	struct store *store = l->store;
	struct package_files *out = l->out;
	struct root_listing listing = {0};
	struct root_file *file;
	size_t i;

	if (root_list(store->root, path, &listing) == 0 && depth < DEPTH_MOST) {
		for (i = 0; i < listing.name.n; i++)
			if (!strcmp(listing.name.at[i], "__init__.py"))
				vec_push(&out->at, child_of(store, path, "__init__.py"));
		for (i = 0; i < listing.name.n; i++) {
			const char *child = child_of(store, path, listing.name.at[i]);

			if (out->at.n >= FILES_MOST || depth + 1 == DEPTH_MOST) {
				out->cut = true;
				break;
			}
			if (root_link_target(store->root, child) || root_lookup(store->root, child, &file) ||
			    !strcmp(listing.name.at[i], "__init__.py"))
				continue;
			if (S_ISDIR(file->mode))
				list_folder(l, child, depth + 1);
			else if (is_loadable(l, listing.name.at[i]))
				vec_push(&out->at, child);
		}
	}
	vec_free(&listing.name);
}

bool package_is_wheel(const char *path)
{
	return ends_in(path, ".whl");
}

/* Component by component, as list_folder goes. */
static int by_folder(const void *x, const void *y)
{
	const char *a = *(const char *const *)x, *b = *(const char *const *)y;
	size_t n, m;
	bool first_a, first_b;

	for (;; a += n + 1, b += m + 1) {
		n = strcspn(a, "/");
		m = strcspn(b, "/");
		if (n != m || strncmp(a, b, n))
			break;
		if (!a[n] || !b[m])
			return 0;
	}
	first_a = !strcmp(a, "__init__.py");
	first_b = !strcmp(b, "__init__.py");
	if (first_a || first_b)
		return first_b - first_a;
	n = n < m ? n : m;
	return strncmp(a, b, n) ? strncmp(a, b, n) : strcspn(a, "/") < strcspn(b, "/") ? -1 : 1;
}

static void list_wheel(struct listing *l, const char *path)
{
	struct package_files *out = l->out;
	struct root_listing all = {0};
	size_t i;

	root_list_installed(l->store->root, path, &all);
	if (all.name.n)
		qsort(all.name.at, all.name.n, sizeof(*all.name.at), by_folder);
	for (i = 0; i < all.name.n; i++) {
		if (!is_loadable(l, path_base(all.name.at[i])) || (i && all.name.at[i] == all.name.at[i - 1]))
			continue;
		out->cut = out->at.n >= FILES_MOST;
		if (out->cut)
			break;
		vec_push(&out->at, all.name.at[i]);
	}
	vec_free(&all.name);
}

void package_list(struct store *store, const char *path, bool libraries, struct package_files *out)
{
	struct listing l = {.store = store, .libraries = libraries, .out = out};

	memset(out, 0, sizeof(*out));
	if (package_is_wheel(path))
		list_wheel(&l, path);
	else
		list_folder(&l, path, 0);
}
