/* tree: the predicted link map; tree --each: one for each of many files. */
#include "cmd/commands.h"
#include "linkage/cpus.h"
#include "report/json.h"
#include "report/text.h"

#include <errno.h>
#include <stdlib.h>

static char *render(enum format format, void *what, bool color, size_t *size)
{
	struct sequence *s = what;
	char *text;

	if (format == FORMAT_JSON) {
		json_t *root = json_object(), *run = json_object(), *runs = json_array();

		json_object_set_new(root, "schema", json_string("ncclwhich-report/1"));
		json_object_set_new(root, "command", json_string("tree"));
		json_object_set_new(run, "context", json_context(s));
		json_object_set_new(run, "start", json_start(s->process));
		json_object_set_new(run, "objects", json_objects(s->process));
		json_object_set_new(run, "events", json_events(s));
		if (s->setup.bindings)
			json_object_set_new(run, "bindings", json_all_bindings(s->process));
		json_array_append_new(runs, run);
		json_object_set_new(root, "runs", runs);
		text = json_text(root, false);
		*size = strlen(text);
	} else {
		struct text t;

		text_open(&t, color);
		text_tree(&t, s);
		text = text_take(&t);
		*size = t.size;
	}
	return text;
}

static void declared_events(struct sequence *s, const struct plan *plan)
{
	size_t i;

	for (i = 0; s->process->started && i < plan->events.n; i++) {
		struct event event = plan->events.at[i];

		if (event.shim && !strchr(event.name, '/'))
			event.name = plan_path(plan, s->process->store, event.name);
		sequence_declared(s, &event);
	}
}

static int tree_one(struct options *o, struct error *e)
{
	struct store *store = store_new(o->plan.root, e);
	struct sequence s = {0};
	struct cpu cpu[CPUS_MOST];
	uint16_t machine;
	int status = -1;

	if (!store)
		return -1;
	if (plan_machine(&o->plan, store, &machine, e) < 0 || plan_cpus(&o->plan, machine, cpu, e) < 0 ||
	    sequence_start(&s, &o->plan, store, &cpu[0], false, true, e) < 0)
		goto out;
	declared_events(&s, &o->plan);
	if (commands_output(o, render, &s, e) < 0)
		goto out;
	status = s.process->started && s.engine ? 0 : 1;
out:
	sequence_free(&s);
	store_free(store);
	return status;
}

/* --each: files of every kind come by; one that is no dynamic program or
 * library is said to be so and costs nothing but its line. */
struct each {
	struct options *o;
	struct store *store;
	struct cpu cpu;
	bool cpu_known;
	struct text text;
	bool bad;
};

static void each_line(struct each *each, const char *path, struct sequence *s, const char *problem)
{
	bool json = each->o->outputs.at[0].format == FORMAT_JSON;

	if (json) {
		json_t *j = json_object();
		char *line;

		json_put_text(j, "file", path);
		if (problem) {
			json_put_text(j, "problem", problem);
		} else {
			json_object_set_new(j, "start", json_start(s->process));
			json_object_set_new(j, "objects", json_objects(s->process));
			json_object_set_new(j, "events", json_events(s));
		}
		line = json_text(j, true);
		fputs(line, each->text.stream);
		free(line);
	} else if (problem) {
		text_name(&each->text, problem);
		fputc('\n', each->text.stream);
	} else {
		if (s->engine_is_library) {
			text_name(&each->text, path);
			fputs(" in a ", each->text.stream);
		}
		text_tree(&each->text, s);
	}
}

static void each_file(struct each *each, const char *path)
{
	struct plan plan = each->o->plan;
	struct sequence s = {0};
	struct error e = {0};
	uint16_t machine;
	struct cpu cpu[CPUS_MOST];

	plan.engine = path;
	if (plan_machine(&plan, each->store, &machine, &e) == 0 &&
	    (each->cpu_known ? 0 : plan_cpus(&plan, machine, cpu, &e)) >= 0) {
		if (!each->cpu_known)
			each->cpu = cpu[0];
		each->cpu_known = each->cpu.machine == machine;
		if (sequence_start(&s, &plan, each->store, &each->cpu, false, false, &e) == 0) {
			declared_events(&s, &plan);
			each_line(each, path, &s, NULL);
		}
	}
	if (e.text) {
		each_line(each, path, NULL, e.text);
		each->bad = true;
	} else if (!s.process->started) {
		each->bad = true;
	}
	error_clear(&e);
	sequence_free(&s);
}

static int each_from(struct each *each, const char *list, struct error *e)
{
	FILE *f = strcmp(list, "-") ? fopen(list, "re") : stdin;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	if (!f)
		return error_set(e, "%s: cannot read the list of files: %s", list, strerror(errno));
	while ((n = getline(&line, &room, f)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (*line)
			each_file(each, line);
	}
	free(line);
	if (f != stdin)
		fclose(f);
	return 0;
}

static int tree_each(struct options *o, struct error *e)
{
	struct each each = {.o = o, .store = store_new(o->plan.root, e)};
	char *text;
	int status = -1;
	size_t i;

	if (!each.store)
		return -1;
	text_open(&each.text, o->color);
	for (i = 0; i < o->files.n; i++)
		each_file(&each, o->files.at[i]);
	if (!o->files_from || each_from(&each, o->files_from, e) == 0)
		status = each.bad ? 1 : 0;
	text = text_take(&each.text);
	if (status >= 0 && !o->quiet && output_write(o->outputs.at[0].path, text, each.text.size, e) < 0)
		status = -1;
	free(text);
	store_free(each.store);
	return status;
}

int cmd_tree(struct options *o, struct error *e)
{
	if (o->each || o->files_from)
		return o->files.n || o->files_from ? tree_each(o, e)
						   : error_set(e, "tree --each: no files");
	return o->plan.engine ? tree_one(o, e) : error_set(e, "tree: no ENGINE; see 'ncclwhich tree --help'");
}
