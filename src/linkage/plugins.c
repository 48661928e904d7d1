#include "linkage/plugins.h"

#include "linkage/flags.h"

#include <stdlib.h>

enum { CONF_MOST = 1 << 20 };

static const char *conf_path(const struct plan *plan, struct store *store, const struct target_conf *conf,
			     const char *version)
{
	const char *path = conf->file, *home;
	char *text;

	if (conf->variable)
		return conf->from && data_version_compare(version, conf->from) < 0 ? NULL : plan_getenv(plan, conf->variable);
	if (strncmp(path, "~/", 2))
		return path;
	home = plan_getenv(plan, "HOME");
	if (!home)
		return NULL;
	text = xprintf("%s%s", home, path + 1);
	path = names_add(&store->names, text);
	free(text);
	return path;
}

/* NAME=VALUE lines; a '#' starts a comment line.  Returns the value, interned. */
static const char *value_in(struct store *store, const char *path, const char *name)
{
	struct root_file *file;
	const unsigned char *data;
	const char *line, *next;
	size_t size, n = strlen(name), length;

	if (path[0] != '/' || root_lookup(store->root, names_add(&store->names, path), &file) || !S_ISREG(file->mode) ||
	    !(data = store_slurp(store, file, CONF_MOST, &size)))
		return NULL;
	for (line = (const char *)data; *line; line = next) {
		length = strcspn(line, "\n");
		next = line + length + (line[length] == '\n');
		if (length > n && !strncmp(line, name, n) && line[n] == '=')
			return names_add_n(&store->names, line + n + 1, length - n - 1);
	}
	return NULL;
}

/* The environment counts first; then the user's file or the one that a variable
 * names, then the system's. */
static const char *setting(const struct plan *plan, struct store *store, const struct target *t, const char *version,
			   const char *name)
{
	const char *value = plan_getenv(plan, name), *path;
	bool chosen = false;
	unsigned i;

	for (i = 0; !value && i < t->conf_count; i++) {
		const struct target_conf *conf = &t->conf[i];

		if (chosen && !conf->variable && !strncmp(conf->file, "~/", 2))
			continue; /* replaced by the file that the variable names */
		path = conf_path(plan, store, conf, version);
		chosen |= conf->variable && path;
		if (path)
			value = value_in(store, path, name);
	}
	return value;
}

static bool reads_like_a_file(const char *value, size_t n)
{
	return memchr(value, '/', n) || (n > 6 && !strncmp(value, "lib", 3) && !strncmp(value + n - 3, ".so", 3));
}

static void add_name(struct store *store, const struct target_opens *o, const char *form, const char *value, size_t n,
		     struct plugin_opens *out)
{
	const char *hole = strstr(form, "{}");
	char *text;

	if (!hole) {
		vec_push(&out->at, ((struct plugin_open){o->what, names_add(&store->names, form), flags_of_words(o->flags, o->flags_count)}));
		return;
	}
	if (o->bare && strlen(form) > 2 && reads_like_a_file(value, n))
		return;
	text = xprintf("%.*s%.*s%s", (int)(hole - form), form, (int)n, value, hole + 2);
	vec_push(&out->at, ((struct plugin_open){o->what, names_add(&store->names, text), flags_of_words(o->flags, o->flags_count)}));
	free(text);
}

static void open_plugin(const struct plan *plan, struct store *store, const struct target *t, const char *version,
			const struct target_opens *o, struct plugin_opens *out)
{
	const char *value = setting(plan, store, t, version, o->variable);
	unsigned i;
	size_t n;

	if (!value || !*value) {
		for (i = 0; i < o->unset_count; i++)
			add_name(store, o, o->unset[i], "", 0, out);
		return;
	}
	if (o->none_from && data_version_compare(version, o->none_from) >= 0 && !strcasecmp(value, "none"))
		return;
	for (;; value += n + 1) {
		n = o->list ? strcspn(value, ",") : strlen(value);
		for (i = 0; n && i < o->set_count; i++)
			add_name(store, o, o->set[i], value, n, out);
		if (!value[n])
			return;
	}
}

void plugins_of(const struct plan *plan, struct store *store, const struct target *t, const char *version,
		struct plugin_opens *out)
{
	unsigned i;

	for (i = 0; version && i < t->opens_count; i++)
		if (data_version_compare(version, t->opens[i].from) >= 0 && data_version_compare(version, t->opens[i].to) <= 0)
			open_plugin(plan, store, t, version, &t->opens[i], out);
}
