/* opens: dlopen evidence of each object. */
#include "base/progress.h"
#include "cmd/commands.h"
#include "linkage/package.h"
#include "linkage/wheels.h"
#include "report/opens.h"

#include <stdlib.h>

static char *render(enum format format, void *what, bool color, size_t *size)
{
	const struct opens_report *report = what;
	struct text t;
	char *text;

	if (format == FORMAT_JSON) {
		text = json_text(opens_json(report), false);
		*size = strlen(text);
		return text;
	}
	text_open(&t, color);
	opens_text(&t, report);
	text = text_take(&t);
	*size = t.size;
	return text;
}

static int add_object(struct opens_report *report, const struct plan *plan, struct store *store,
		      struct surfaces *surfaces, const char *path, struct error *e)
{
	struct opens_entry entry = {.path = path};
	const char *in_root = plan_path(plan, store, path);
	const struct elf_object *elf;
	struct root_file *file;

	if (python_is_file(store, in_root)) {
		entry.is_script = true;
		entry.surface = surface_of(surfaces, NULL, NULL);
		if (python_read(surfaces, plan, in_root, &entry.script, e) < 0)
			return -1;
		vec_push(&report->at, entry);
		return 0;
	}
	elf = plan_object(plan, store, path, &file, e);
	if (!elf)
		return -1;
	entry.file = file;
	entry.surface = surface_with_code(surfaces, file, elf);
	if (entry.surface->tracked)
		plugins_of(plan, store, surfaces->target, entry.surface->version, &entry.plugins);
	vec_push(&report->at, entry);
	return 0;
}

/* Of a package what has something to show. */
static bool shows_something(const struct opens_entry *entry)
{
	return entry->is_script ? entry->script.opens.n || entry->script.profile
				: entry->surface->imports_dlopen || entry->surface->literal.n || entry->surface->notes.n ||
				  entry->surface->tracked;
}

static void free_entry(struct opens_entry *entry)
{
	vec_free(&entry->plugins.at);
	vec_free(&entry->script.opens);
}

static int add_package(struct opens_report *report, const struct plan *plan, struct store *store,
		       struct surfaces *surfaces, const char *path, struct error *e)
{
	struct package_files files;
	int result = 0;
	size_t i;

	package_list(store, path, true, &files);
	for (i = 0; i < files.at.n && !result; i++) {
		/* A file that is met and not named may be anything. */
		struct error met = {0};

		progress_show(path_base(path), i, files.at.n);
		if (add_object(report, plan, store, surfaces, files.at.at[i], &met) < 0)
			error_clear(&met);
		else if (!shows_something(&report->at.at[report->at.n - 1]))
			free_entry(&report->at.at[--report->at.n]);
	}
	if (!files.at.n)
		result = error_set(e, "%s: neither Python files nor extension modules are in it", path);
	progress_end();
	vec_free(&files.at);
	return result;
}

static int add_named(struct opens_report *report, const struct plan *plan, struct store *store, struct surfaces *surfaces,
		     const char *path, struct error *e)
{
	const char *in_root = plan_path(plan, store, path);

	if (package_is_wheel(in_root) || root_is_directory(store->root, in_root))
		return add_package(report, plan, store, surfaces, in_root, e);
	return add_object(report, plan, store, surfaces, path, e);
}

int cmd_opens(struct options *o, struct error *e)
{
	struct opens_report report = {0};
	struct surfaces surfaces = {0};
	struct user_data data = {0};
	struct store *store;
	int status = -1;
	size_t i;

	if (!o->plan.engine)
		return error_set(e, "opens: no OBJECT; see 'ncclwhich opens --help'");
	store = store_new(o->plan.root, e);
	if (!store)
		return -1;
	if (data_load(&data, o->plan.profiles.at, o->plan.profiles.n, o->plan.data_dir, e) < 0)
		goto out;
	surfaces_init(&surfaces, store, &data.data, data.data.targets[0]);
	report.target = data.data.targets[0];
	surfaces.engine = plan_engine_file(&o->plan, store);
	if (wheels_install(&o->plan, store, e) < 0 ||
	    add_named(&report, &o->plan, store, &surfaces, o->plan.engine, e) < 0)
		goto out;
	for (i = 0; i < o->plan.events.n; i++)
		if (add_named(&report, &o->plan, store, &surfaces, o->plan.events.at[i].name, e) < 0)
			goto out;
	status = commands_output(o, render, &report, e);
out:
	for (i = 0; i < report.at.n; i++)
		free_entry(&report.at.at[i]);
	vec_free(&report.at);
	surfaces_free(&surfaces);
	data_free(&data);
	store_free(store);
	return status;
}
