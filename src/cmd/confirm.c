/* confirm: the prediction in the real loader, and on the devices. */
#include "cmd/commands.h"
#include "cmd/simulate.h"
#include "confirm/confirm.h"
#include "linkage/wheels.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct confirmation {
	const struct options *o;
	const struct check_report *report; /* NULL: a matrix */
	struct confirm confirm;
	int status; /* of the command that was watched */
};

/* ---- text */

static void put_value(struct text *t, const char *label, const char *value)
{
	fprintf(t->stream, "      %-10s ", label);
	text_name(t, value);
	fputc('\n', t->stream);
}

/* One line where both say the same in the same words. */
static void put_row(struct text *t, const struct confirm_row *row)
{
	static const char *const states[] = {"same", "DIFFERENT", "not compared"};

	if (row->state != ROW_DIFFERENT && row->minor)
		return;
	fprintf(t->stream, "  %s%s: ", row->state == ROW_DIFFERENT ? text_red(t) : "", states[row->state]);
	text_name(t, row->what);
	fputs(text_plain(t), t->stream);
	if (row->state == ROW_SAME && !strcmp(row->predicted, row->observed)) {
		fputs(" -> ", t->stream);
		text_name(t, row->observed);
		fputc('\n', t->stream);
	} else {
		fputc('\n', t->stream);
		put_value(t, "predicted", row->predicted);
		put_value(t, "observed", row->observed);
	}
	if (row->note)
		put_value(t, "", row->note);
}

/* "8 objects, 1 open, 60 bindings as predicted". */
static void put_counts(struct text *t, const struct confirm *c, const char *stage)
{
	static const char *const kinds[] = {"object", "open", "request", "binding", "case", "cell", "mapping"};
	size_t k, i, n = 0;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		size_t same = 0, all = 0;

		for (i = 0; i < c->rows.n; i++)
			if (!strcmp(c->rows.at[i].stage, stage) && !strcmp(c->rows.at[i].kind, kinds[k])) {
				all += c->rows.at[i].state != ROW_OPEN;
				same += c->rows.at[i].state == ROW_SAME;
			}
		if (all)
			fprintf(t->stream, "%s%zu of %zu %s%s", n++ ? ", " : "  ", same, all, kinds[k], all == 1 ? "" : "s");
	}
	fputs(n ? " as predicted\n" : "  nothing was compared\n", t->stream);
}

static void put_rows(struct text *t, const struct confirm *c)
{
	const char *stage = NULL;
	size_t i;

	for (i = 0; i < c->rows.n; i++) {
		if (!stage || strcmp(stage, c->rows.at[i].stage)) {
			stage = c->rows.at[i].stage;
			fprintf(t->stream, "\n%s%s%s\n", text_bold(t), stage, text_plain(t));
			put_counts(t, c, stage);
		}
		put_row(t, &c->rows.at[i]);
	}
}

static void put_devices(struct text *t, const struct confirm *c)
{
	size_t i;

	if (c->device) {
		fputs("\ndevices: ", t->stream);
		text_name(t, c->device);
		fputs("\n  set for them:", t->stream);
		for (i = 0; i < c->environment.n; i++)
			fprintf(t->stream, " %s", c->environment.at[i]);
		fputc('\n', t->stream);
	}
	if (c->no_device) {
		fputs("\nno device: ", t->stream);
		text_name(t, c->no_device);
		fputs("; NCCL was not called\n", t->stream);
	}
}

static bool nothing_compared(const struct confirm *c)
{
	size_t i;

	for (i = 0; i < c->rows.n; i++)
		if (c->rows.at[i].state != ROW_OPEN)
			return false;
	return true;
}

static void put_conclusion(struct text *t, const struct confirmation *x)
{
	size_t different = confirm_different(&x->confirm);

	if (x->report)
		fprintf(t->stream, "\nverdict: %s\n", verdict_name(x->report->verdict));
	else
		fputc('\n', t->stream);
	if (x->confirm.unseen)
		fputs("no process of the command was seen that runs this engine (name the ENGINE before '--')\n", t->stream);
	else if (nothing_compared(&x->confirm))
		fputs("nothing was compared\n", t->stream);
	else if (different)
		fprintf(t->stream, "%sreality contradicts the prediction: %zu difference%s%s\n", text_red(t), different,
			different == 1 ? "" : "s", text_plain(t));
	else
		fprintf(t->stream, "%sconfirmed%s%s\n", text_green(t), text_plain(t),
			x->confirm.no_device ? ", as far as it goes without a device" : "");
}

/* ---- JSON */

static json_t *json_row(const struct confirm_row *row)
{
	static const char *const states[] = {"same", "different", "not-compared"};
	json_t *j = json_object();

	json_object_set_new(j, "stage", json_string(row->stage));
	json_object_set_new(j, "kind", json_string(row->kind));
	json_put_text(j, "what", row->what);
	json_put_text(j, "predicted", row->predicted);
	json_put_text(j, "observed", row->observed);
	if (row->note)
		json_put_text(j, "note", row->note);
	json_object_set_new(j, "state", json_string(states[row->state]));
	return j;
}

static json_t *json_confirm(const struct confirm *c)
{
	json_t *j = json_object(), *rows = json_array(), *environment = json_array();
	size_t i;

	json_object_set_new(j, "different", json_integer((json_int_t)confirm_different(c)));
	json_put_text(j, "device", c->device);
	json_put_text(j, "no_device", c->no_device);
	for (i = 0; i < c->environment.n; i++)
		json_array_append_new(environment, json_string(c->environment.at[i]));
	json_object_set_new(j, "environment", environment);
	for (i = 0; i < c->rows.n; i++)
		json_array_append_new(rows, json_row(&c->rows.at[i]));
	json_object_set_new(j, "rows", rows);
	return j;
}

static char *render(enum format format, void *what, bool color, size_t *size)
{
	const struct confirmation *x = what;
	struct text t;
	char *text;

	if (format == FORMAT_JSON) {
		json_t *root = x->report ? check_json(x->report) : json_object();

		if (!x->report)
			json_object_set_new(root, "schema", json_string("ncclwhich-report/1"));
		json_object_set_new(root, "command", json_string("confirm"));
		json_object_set_new(root, "confirm", json_confirm(&x->confirm));
		text = json_text(root, false);
		*size = strlen(text);
		return text;
	}
	text_open(&t, color);
	if (x->report)
		check_text(&t, x->report);
	if (x->confirm.tables)
		fputs(x->confirm.tables, t.stream);
	put_rows(&t, &x->confirm);
	put_devices(&t, &x->confirm);
	put_conclusion(&t, x);
	text = text_take(&t);
	*size = t.size;
	return text;
}

/* ---- status */

/* Precedence: 2, 4, 1, 3, 77, 0. */
static int status_of(const struct confirmation *x)
{
	int status = x->report ? simulation_status(x->o, x->report) : 0;

	if (x->confirm.unseen)
		return 2;
	if (confirm_different(&x->confirm))
		return 4;
	return status ? status : x->confirm.no_device ? 77 : 0;
}

/* ---- the ways to confirm */

static int confirm_matrix_of(struct confirmation *x, struct options *o, struct error *e)
{
	struct store *store = store_new(NULL, e);
	struct surfaces surfaces;
	int result = -1;

	if (!store)
		return -1;
	surfaces_init(&surfaces, store, &data_embedded, data_embedded.targets[0]);
	if (o->plan.root)
		error_set(e, "confirm --matrix: the files are those of this system, not of a root");
	else
		result = confirm_matrix(&x->confirm, &surfaces, o->files.at, o->files.n, e);
	surfaces_free(&surfaces);
	store_free(store);
	return result;
}

/* The same life with LD_BIND_NOW=1: every call is bound while loading, which
 * may be bound differently, and may fail. */
static int confirm_bound_now(struct confirmation *x, const struct options *o, struct error *e)
{
	struct simulation s;
	struct options now = *o;
	int result = -1;

	now.plan.bind_now = true;
	if (simulation_start(&s, &now, false, e) == 0)
		result = confirm_replay(&x->confirm, s.runs[0], "replay with LD_BIND_NOW=1", true, e);
	simulation_end(&s);
	return result;
}

static int confirm_engine(struct confirmation *x, struct options *o, const struct simulation *s, struct error *e)
{
	struct run *r = s->runs[0];

	if (wheels_first(&o->plan))
		return error_set(e, "confirm: %s: a wheel is not there to be run; install it, and name its package instead",
				 wheels_first(&o->plan));
	if (o->confirm.pid)
		return confirm_maps(&x->confirm, r, o->confirm.pid, e);
	if (o->confirm.run)
		return confirm_watch(&x->confirm, r, o->confirm.command, &x->status, e);
	if (confirm_replay(&x->confirm, r, "replay", false, e) < 0)
		return -1;
	if (!o->plan.bind_now && r->life.sequence.process->started && confirm_bound_now(x, o, e) < 0)
		return -1;
	return o->confirm.no_gpu ? 0 : confirm_devices(&x->confirm, r, e);
}

/* ---- a process that runs ---- */

/* What /proc says of it, in OWNED; NULL after an error. */
static const char *proc_link(struct options *o, const char *what, struct error *e)
{
	char *path = xprintf("/proc/%d/%s", o->confirm.pid, what), target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	char *copy = NULL;

	if (n < 0) {
		error_set(e, "%s: %s", path, strerror(errno));
	} else {
		target[n] = '\0';
		copy = xstrdup(target);
		vec_push(&o->owned, copy);
	}
	free(path);
	return copy;
}

static int proc_environment(struct options *o, struct error *e)
{
	char *path = xprintf("/proc/%d/environ", o->confirm.pid), *text = NULL;
	FILE *f = fopen(path, "re");
	size_t room = 0;
	int result = f ? 0 : error_set(e, "%s: %s", path, strerror(errno));

	o->plan.env.n = 0;
	while (f && getdelim(&text, &room, '\0', f) > 0) {
		char *copy = xstrdup(text);

		vec_push(&o->owned, copy);
		vec_push(&o->plan.env, copy);
	}
	if (f)
		fclose(f);
	free(text);
	free(path);
	return result;
}

/* The plan of the process: its executable, environment, root and working
 * directory, as they are now. */
static int plan_of_process(struct options *o, struct error *e)
{
	char *root = xprintf("/proc/%d/root", o->confirm.pid);
	const char *bind_now;
	struct stat ours, theirs;

	vec_push(&o->owned, root);
	if (o->plan.engine) {
		struct event shim = {.name = o->plan.engine, .flags = OPEN_NOW, .shim = true};

		vec_push(&o->plan.events, shim); /* after --pid every file is a shim */
	}
	o->plan.engine = proc_link(o, "exe", e);
	o->plan.cwd = o->plan.engine ? proc_link(o, "cwd", e) : NULL;
	if (!o->plan.cwd || proc_environment(o, e) < 0)
		return -1;
	if (stat("/", &ours) < 0 || stat(root, &theirs) < 0)
		return error_set(e, "%s: %s", root, strerror(errno));
	if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
		o->plan.root = root;
	bind_now = plan_getenv(&o->plan, "LD_BIND_NOW");
	o->plan.library_path = plan_getenv(&o->plan, "LD_LIBRARY_PATH");
	o->plan.preload = plan_getenv(&o->plan, "LD_PRELOAD");
	o->plan.audit = plan_getenv(&o->plan, "LD_AUDIT");
	o->plan.tunables = plan_getenv(&o->plan, "GLIBC_TUNABLES");
	o->plan.bind_now = bind_now && *bind_now;
	return 0;
}

/* ---- a command ---- */

/* As execvp() would find it; NULL after an error. */
static const char *find_command_file(struct options *o, const char *name, struct error *e)
{
	const char *list = plan_getenv(&o->plan, "PATH");
	size_t n;

	if (strchr(name, '/'))
		return name;
	for (list = list ? list : "/bin:/usr/bin";; list += n + 1) {
		char *path;

		n = strcspn(list, ":");
		path = xprintf("%.*s/%s", n ? (int)n : 1, n ? list : ".", name);
		vec_push(&o->owned, path);
		if (access(path, X_OK) == 0)
			return path;
		if (!list[n])
			break;
	}
	error_set(e, "%s: command not found", name);
	return NULL;
}

static int check_usage(const struct options *o, struct error *e)
{
	if (o->confirm.matrix)
		return o->files.n ? 0 : error_set(e, "confirm --matrix: no files");
	if (o->confirm.run && (!o->confirm.command || o->plan.root))
		return error_set(e, o->plan.root ? "confirm --run: a command runs on this system, not in a root"
						 : "confirm --run: no command after '--'");
	if (!o->plan.engine && !o->confirm.pid && !o->confirm.run)
		return error_set(e, "confirm: no ENGINE; see 'ncclwhich confirm --help'");
	if (o->plan.hwcaps && strcmp(o->plan.hwcaps, "auto"))
		return error_set(e, "confirm: the processor is this machine's; --hwcaps cannot be confirmed");
	return 0;
}

static int run_engine(struct confirmation *x, struct options *o, struct error *e)
{
	struct simulation s;
	int status = -1;

	if (o->confirm.pid && plan_of_process(o, e) < 0)
		return -1;
	if (o->confirm.run && !o->plan.engine && !(o->plan.engine = find_command_file(o, o->confirm.command[0], e)))
		return -1;
	o->plan.hwcaps = "auto"; /* also with a root: the real loader sees this processor */
	if (simulation_start(&s, o, false, e) == 0) {
		x->report = &s.report;
		if (confirm_engine(x, o, &s, e) == 0 && commands_output(o, render, x, e) == 0)
			status = o->confirm.run && !o->confirm.gate ? x->status : status_of(x);
	}
	simulation_end(&s);
	return status;
}

int cmd_confirm(struct options *o, struct error *e)
{
	const struct confirm_setup setup = {
		.plan = &o->plan,
		.replay_seconds = o->confirm.timeout > 0 ? o->confirm.timeout : 20,
		.device_seconds = o->confirm.timeout > 0 ? o->confirm.timeout : o->confirm.matrix ? 12 : 30,
		.ranks = o->confirm.ranks > 0 ? o->confirm.ranks : 1, .dangerous = o->confirm.dangerous,
		.untraced = o->confirm.untraced};
	struct confirmation x = {.o = o};
	int status = -1;

	confirm_init(&x.confirm, &setup);
	if (check_usage(o, e) < 0 || (!o->confirm.pid && !o->confirm.run && confirm_open(&x.confirm, e) < 0)) {
		confirm_close(&x.confirm);
		return -1;
	}
	if (!o->confirm.matrix)
		status = run_engine(&x, o, e);
	else if (confirm_matrix_of(&x, o, e) == 0 && commands_output(o, render, &x, e) == 0)
		status = status_of(&x);
	confirm_close(&x.confirm);
	return status;
}
