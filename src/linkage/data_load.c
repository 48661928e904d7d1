/* The embedded data together with a user's own files. */
#include "linkage/data.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

static int add_own(struct user_data *u, const char *path, struct error *e)
{
	struct profile *p = data_read_profile(path, e);

	if (!p)
		return -1;
	u->own = xrealloc(u->own, (u->n_own + 1) * sizeof(*u->own));
	u->own[u->n_own++] = p;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every .yaml of DIRECTORY/profiles, in the order of their names. */
static int add_directory(struct user_data *u, const char *directory, struct error *e)
{
	char *path = xprintf("%s/profiles", directory), **name = NULL;
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t n = 0, i, length;
	int result = 0;

	if (!dir) {
		result = error_set(e, "%s: %s", path, strerror(errno));
		free(path);
		return result;
	}
	while ((entry = readdir(dir)))
		if ((length = strlen(entry->d_name)) > 5 && !strcmp(entry->d_name + length - 5, ".yaml")) {
			name = xrealloc(name, (n + 1) * sizeof(*name));
			name[n++] = xprintf("%s/%s", path, entry->d_name);
		}
	closedir(dir);
	if (n)
		qsort(name, n, sizeof(*name), by_text);
	for (i = 0; i < n; i++) {
		if (!result)
			result = add_own(u, name[i], e);
		free(name[i]);
	}
	free(name);
	free(path);
	return result;
}

int data_load(struct user_data *u, const char *const *files, size_t n_files, const char *directory, struct error *e)
{
	size_t i, n;

	memset(u, 0, sizeof(*u));
	u->data = data_embedded;
	for (i = 0; i < n_files; i++)
		if (add_own(u, files[i], e) < 0)
			return -1;
	if (directory && add_directory(u, directory, e) < 0)
		return -1;
	if (!u->n_own)
		return 0;
	n = u->n_own + data_embedded.n_profiles;
	u->all = xmalloc(n * sizeof(*u->all));
	for (i = 0; i < n; i++)
		u->all[i] = i < u->n_own ? u->own[i] : data_embedded.profiles[i - u->n_own];
	u->data.profiles = u->all;
	u->data.n_profiles = n;
	return 0;
}

void data_free(struct user_data *u)
{
	size_t i;

	for (i = 0; i < u->n_own; i++)
		data_free_profile(u->own[i]);
	free(u->own);
	free(u->all);
	memset(u, 0, sizeof(*u));
}
