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

const struct profile_row *profile_row_of(const struct profile *p, const char *version)
{
	unsigned i;

	for (i = 0; i < p->versions_count; i++) {
		const struct profile_row *row = &p->versions[i];

		if (!row->from)
			return row;
		if (version && data_version_compare(version, row->from) >= 0 && data_version_compare(version, row->to) <= 0)
			return row;
	}
	return NULL;
}

static bool is_name(const char *text)
{
	size_t n = strlen(text);

	return !strchr(text, '/') && !(n > 5 && !strcmp(text + n - 5, ".yaml"));
}

/* NAME or NAME=VERSION. */
static int take_engine(struct user_data *u, const char *text, struct error *e)
{
	size_t n = strcspn(text, "="), i;

	for (i = 0; i < u->data.n_profiles; i++)
		if (strlen(u->data.profiles[i]->name) == n && !strncmp(u->data.profiles[i]->name, text, n))
			break;
	if (i == u->data.n_profiles)
		return error_set(e, "--profile %s: there is no profile of this name, and it is no path of a file", text);
	u->data.engine = u->data.profiles[i];
	u->data.engine_version = text[n] ? text + n + 1 : NULL;
	if (profile_row_of(u->data.engine, u->data.engine_version))
		return 0;
	return text[n] ? error_set(e, "--profile %s: the profile has nothing for this version", text)
		       : error_set(e, "--profile %s: its version is wanted, %s=VERSION", text, text);
}

int data_load(struct user_data *u, const char *const *named, size_t n_named, const char *directory, struct error *e)
{
	size_t i, n;

	memset(u, 0, sizeof(*u));
	u->data = data_embedded;
	for (i = 0; i < n_named; i++)
		if (!is_name(named[i]) && add_own(u, named[i], e) < 0)
			return -1;
	if (directory && add_directory(u, directory, e) < 0)
		return -1;
	if (u->n_own) {
		n = u->n_own + data_embedded.n_profiles;
		u->all = xmalloc(n * sizeof(*u->all));
		for (i = 0; i < n; i++)
			u->all[i] = i < u->n_own ? u->own[i] : data_embedded.profiles[i - u->n_own];
		u->data.profiles = u->all;
		u->data.n_profiles = n;
	}
	for (i = 0; i < n_named; i++)
		if (is_name(named[i]) && take_engine(u, named[i], e) < 0)
			return -1;
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
