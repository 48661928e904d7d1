/* opens: dlopen evidence of each object. */
#include "cmd/commands.h"
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
	if (add_object(&report, &o->plan, store, &surfaces, o->plan.engine, e) < 0)
		goto out;
	for (i = 0; i < o->plan.events.n; i++)
		if (add_object(&report, &o->plan, store, &surfaces, o->plan.events.at[i].name, e) < 0)
			goto out;
	status = commands_output(o, render, &report, e);
out:
	for (i = 0; i < report.at.n; i++) {
		vec_free(&report.at.at[i].plugins.at);
		vec_free(&report.at.at[i].script.opens);
	}
	vec_free(&report.at);
	surfaces_free(&surfaces);
	data_free(&data);
	store_free(store);
	return status;
}
