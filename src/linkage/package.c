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

static void list_folder(struct store *store, const char *path, struct package_files *out, unsigned depth)
{
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
				list_folder(store, child, out, depth + 1);
			else if (ends_in(listing.name.at[i], ".py") || ends_in(listing.name.at[i], ".so"))
				vec_push(&out->at, child);
		}
	}
	vec_free(&listing.name);
}

void package_list(struct store *store, const char *path, struct package_files *out)
{
	memset(out, 0, sizeof(*out));
	list_folder(store, path, out, 0);
}
