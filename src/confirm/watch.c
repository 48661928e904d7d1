/* A command of the user's own, watched by the audit library. */
#include "confirm/audit.h"
#include "confirm/confirm.h"
#include "loader/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct watch {
	struct confirm *c;
	struct run *r;
	VEC(struct record) records;
	VEC(const char *) pids; /* of the processes that run the engine */
	const char *bindings;   /* LD_DEBUG_OUTPUT where the loader has to say them, or NULL */
};

/* An auditor is not told what is bound while an object is loaded before glibc
 * 2.35 (_dl_relocate_object calls no la_symbind); LD_DEBUG=bindings tells all
 * calls, and then the auditor's records of them are not read. */
#define GLIBC_AUDITS_ALL_BINDINGS 235

/* ---- the command */

static int run_command(struct watch *w, char **command, const char *library, const char *file, int *status,
		       struct error *e)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
	const char *audit = w->c->setup->plan->audit;
	struct child_environment env = {.at = {0}};
	size_t i;
	pid_t pid;
	int wait_status = 0;

	for (i = 0; i < w->c->setup->plan->env.n; i++)
		confirm_environment_add(w->c, &env, w->c->setup->plan->env.at[i]);
	if (w->r->life.sequence.setup.library_path)
		confirm_environment_add(w->c, &env, confirm_text(w->c, "LD_LIBRARY_PATH=%s", w->r->life.sequence.setup.library_path));
	if (w->r->life.sequence.setup.preload)
		confirm_environment_add(w->c, &env, confirm_text(w->c, "LD_PRELOAD=%s", w->r->life.sequence.setup.preload));
	confirm_environment_add(w->c, &env, confirm_text(w->c, "LD_AUDIT=%s%s%s", audit ? audit : "", audit && *audit ? ":" : "",
							 library));
	confirm_environment_add(w->c, &env, confirm_text(w->c, AUDIT_VARIABLE "=%s", file));
	confirm_environment_add(w->c, &env, confirm_text(w->c, AUDIT_PREFIX "=%s", w->r->surfaces->target->prefix));
	if (w->bindings) {
		confirm_environment_add(w->c, &env, "LD_DEBUG=bindings");
		confirm_environment_add(w->c, &env, confirm_text(w->c, "LD_DEBUG_OUTPUT=%s", w->bindings));
	}
	fflush(NULL);
	/* An interrupt from the terminal is the command's to handle. */
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	pid = fork();
	if (pid == 0) {
		sigaction(SIGINT, &interrupt, NULL);
		sigaction(SIGQUIT, &quit, NULL);
		execvpe(command[0], command, (char *const *)env.at.at);
		fprintf(stderr, "ncclwhich: %s: %s\n", command[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	while (pid > 0 && waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	vec_free(&env.at);
	if (pid < 0)
		return error_set(e, "fork: %s", strerror(errno));
	*status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
	return 0;
}

/* ---- records */

static bool is_kind(const struct record *r, const char *kind, unsigned n)
{
	return r->n >= n && !strcmp(r->field[0], kind);
}

static void read_records(struct watch *w, const char *file)
{
	FILE *f = fopen(file, "re");
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		struct record r = {.n = 0};
		char *at = arena_strndup(&w->c->arena, line, strcspn(line, "\n"));

		while (at && r.n < sizeof(r.field) / sizeof(r.field[0]))
			r.field[r.n++] = record_cut(&at);
		if (!w->bindings || !is_kind(&r, "binding", 6) || strcmp(r.field[5], "call"))
			vec_push(&w->records, r);
	}
	free(line);
	if (f)
		fclose(f);
}

static bool same_file(const struct root_file *file, const struct record *r)
{
	return file && file->dev == strtoul(r->field[4], NULL, 10) && file->ino == strtoul(r->field[5], NULL, 10);
}

static void find_processes(struct watch *w)
{
	const struct object *exe = w->r->life.sequence.process->exe;
	size_t i;

	for (i = 0; i < w->records.n; i++) {
		const struct record *r = &w->records.at[i];

		if (is_kind(r, "object", 7) && r->field[6][0] == '1' && same_file(exe->file, r))
			vec_push(&w->pids, r->field[1]);
	}
}

/* ---- comparison */

static void add_row(struct watch *w, const char *kind, const char *what, const char *predicted, const char *observed,
		    enum row_state state)
{
	size_t i;

	/* Ranks do the same: what was seen once is said once. */
	for (i = 0; i < w->c->rows.n; i++)
		if (!strcmp(w->c->rows.at[i].what, what) && !strcmp(w->c->rows.at[i].observed, observed))
			return;
	confirm_add(w->c, (struct confirm_row){.stage = "command", .kind = kind, .what = what, .predicted = predicted,
					       .observed = observed, .state = state});
}

static bool is_of(const struct record *r, const char *pid)
{
	return !strcmp(r->field[1], pid);
}

static void compare_copies(struct watch *w, const char *pid)
{
	const struct run *r = w->r;
	size_t i, k;

	for (i = 0; i < r->instances.n; i++) {
		const struct object *o = r->instances.at[i]->object;
		const struct record *found = NULL;

		for (k = 0; k < w->records.n && !found; k++)
			if (is_kind(&w->records.at[k], "object", 7) && is_of(&w->records.at[k], pid) &&
			    same_file(o->file, &w->records.at[k]))
				found = &w->records.at[k];
		add_row(w, "object", "a copy that is mapped", o->path, found ? *found->field[3] ? found->field[3] : o->path
			: o->event < 0 ? "not mapped" : "not opened in this run",
			found ? ROW_SAME : o->event < 0 ? ROW_DIFFERENT : ROW_OPEN);
	}
}

/* By its name in the link map, else by its file: the same file may have been
 * opened under another spelling. */
static struct object *find_object(const struct watch *w, const char *name)
{
	struct process *p = w->r->life.sequence.process;
	struct root_file *file;
	size_t i;

	if (!*name)
		return p->exe;
	for (i = 0; i < p->objects.n; i++)
		if (!strcmp(p->objects.at[i]->path, name))
			return p->objects.at[i];
	if (name[0] != '/' || root_lookup(p->store->root, names_add(&p->store->names, name), &file))
		return NULL;
	for (i = 0; i < p->objects.n; i++)
		if (p->objects.at[i]->file == file)
			return p->objects.at[i];
	return NULL;
}

static void compare_extra(struct watch *w, const char *pid)
{
	size_t i, k;

	for (i = 0; i < w->records.n; i++) {
		const struct record *r = &w->records.at[i];
		bool known = false;

		if (!is_kind(r, "object", 7) || !is_of(r, pid))
			continue;
		for (k = 0; k < w->r->instances.n; k++)
			known |= same_file(w->r->instances.at[k]->object->file, r);
		if (!known && confirm_is_copy(w->r, r->field[3]))
			add_row(w, "object", "a copy that was not predicted", "nothing", r->field[3], ROW_DIFFERENT);
	}
}

/* What a path of FROM would get for SYMBOL by dlsym; NULL if it has none. */
static const struct object *looked_up(struct watch *w, const struct object *from, const char *symbol,
				      const struct object *to)
{
	const struct object *any = NULL;
	size_t i;

	for (i = 0; i < w->r->paths.n; i++) {
		const struct path *p = w->r->paths.at[i];
		struct definition d;

		if (p->requester != from || p->how != HOW_DLOPEN || !p->lookup->object)
			continue;
		d = scope_dlsym(w->r->life.sequence.process, p->lookup->object, symbol);
		if (d.object && d.object == to)
			return d.object;
		any = d.object ? d.object : any;
	}
	return any;
}

static const struct object *bound_to(struct watch *w, const struct object *from, const char *symbol, bool *known)
{
	const struct symbol_table *t = from->bindings.n ? store_symbols(w->r->life.sequence.process->store, from->file, from->elf) : NULL;
	size_t i;

	*known = false;
	for (i = 0; i < from->bindings.n; i++)
		if (!strcmp(t->name[from->bindings.at[i].symbol], symbol)) {
			*known = true;
			return from->bindings.at[i].to;
		}
	return NULL;
}

static void compare_binding(struct watch *w, const struct record *r)
{
	const struct object *from = find_object(w, r->field[2]), *to = find_object(w, r->field[3]), *predicted = NULL;
	bool dlsym = !strcmp(r->field[5], "dlsym"), known = false;
	const char *observed = *r->field[3] ? r->field[3] : w->r->life.sequence.process->exe->path;
	const char *what = confirm_text(w->c, "%s %s %s", from && *from->path ? from->path : r->field[2],
					dlsym ? "looks up" : "calls", r->field[4]);

	if (from && dlsym)
		known = (predicted = looked_up(w, from, r->field[4], to)) != NULL;
	else if (from)
		predicted = bound_to(w, from, r->field[4], &known);
	add_row(w, "binding", what, known ? predicted ? predicted->path : "nothing" : "nothing of the kind", observed,
		!known ? ROW_OPEN : predicted == to && to ? ROW_SAME : ROW_DIFFERENT);
}

/* ---- bindings as the loader says them */

/* The program stands there by its argv[0], whatever that was. */
static char *binding_name(struct watch *w, const char *name)
{
	const char *exe = w->r->life.sequence.process->exe->path;
	bool program = !find_object(w, name) && !strcmp(path_base(name), path_base(exe));

	return arena_strdup(&w->c->arena, program ? "" : name);
}

static struct record binding_record(struct watch *w, const char *pid, const char *from, const char *to,
				    const char *symbol)
{
	struct arena *a = &w->c->arena;

	return (struct record){.field = {arena_strdup(a, "binding"), arena_strdup(a, pid), binding_name(w, from),
					 binding_name(w, to), arena_strdup(a, symbol), arena_strdup(a, "call")}, .n = 6};
}

static bool same_binding(const struct record *a, const struct record *b)
{
	return !strcmp(a->field[2], b->field[2]) && !strcmp(a->field[3], b->field[3]) && !strcmp(a->field[4], b->field[4]);
}

/* The auditor's records of dlsym that may stand behind the loader's line B: on a
 * handle it names the object found as the one that asks. */
static size_t lookups_like(const struct watch *w, const struct record *b)
{
	size_t i, n = 0;

	for (i = 0; i < w->records.n; i++) {
		const struct record *r = &w->records.at[i];

		n += is_kind(r, "binding", 6) && is_of(r, b->field[1]) && !strcmp(r->field[5], "dlsym") &&
		     !strcmp(r->field[4], b->field[4]) && !strcmp(r->field[3], b->field[3]) &&
		     (!strcmp(b->field[2], b->field[3]) || !strcmp(b->field[2], r->field[2]));
	}
	return n;
}

/* What the loader says of calls, in PID, without what dlsym accounts for. */
static void read_bindings(struct watch *w, const char *pid)
{
	FILE *f = fopen(confirm_text(w->c, "%s.%s", w->bindings, pid), "re");
	char *line = NULL, *from, *to, *symbol;
	VEC(struct record) said = {.at = NULL};
	size_t room = 0, i, k;

	while (f && getline(&line, &room, f) > 0)
		if (binding_cut(line, &from, &to, &symbol) && target_symbol_index(w->r->surfaces->target, symbol) >= 0)
			vec_push(&said, binding_record(w, pid, from, to, symbol));
	for (i = 0; i < said.n; i++) {
		size_t n = 0;

		for (k = 0; k < said.n; k++)
			n += same_binding(&said.at[i], &said.at[k]);
		if (n > lookups_like(w, &said.at[i]))
			vec_push(&w->records, said.at[i]);
	}
	vec_free(&said);
	free(line);
	if (f)
		fclose(f);
}

static void remove_bindings(struct watch *w)
{
	glob_t found;
	size_t i;

	if (glob(confirm_text(w->c, "%s.*", w->bindings), 0, NULL, &found) == 0) {
		for (i = 0; i < found.gl_pathc; i++)
			unlink(found.gl_pathv[i]);
		globfree(&found);
	}
}

static void compare(struct watch *w)
{
	const struct target *t = w->r->surfaces->target;
	size_t i, k;

	process_bind_calls(w->r->life.sequence.process);
	for (i = 0; i < w->pids.n; i++) {
		if (w->bindings)
			read_bindings(w, w->pids.at[i]);
		compare_copies(w, w->pids.at[i]);
		compare_extra(w, w->pids.at[i]);
		for (k = 0; k < w->records.n; k++)
			if (is_kind(&w->records.at[k], "binding", 6) && is_of(&w->records.at[k], w->pids.at[i]) &&
			    target_symbol_index(t, w->records.at[k].field[4]) >= 0)
				compare_binding(w, &w->records.at[k]);
	}
}

int confirm_watch(struct confirm *c, struct run *r, char **command, int *status, struct error *e)
{
	struct watch w = {.c = c, .r = r};
	const char *tmp = getenv("TMPDIR");
	char *library = place_library(AUDIT_LIBRARY, e), *file;
	int fd, result = -1;

	if (!library)
		return -1;
	file = xprintf("%s/ncclwhich-run.XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	fd = mkstemp(file);
	if (r->life.sequence.process->facts->version < GLIBC_AUDITS_ALL_BINDINGS)
		w.bindings = confirm_text(c, "%s.bindings", file);
	if (fd < 0) {
		error_set(e, "%s: %s", file, strerror(errno));
	} else if (strpbrk(library, ":$")) {
		error_set(e, "%s: LD_AUDIT cannot hold this path", library);
	} else if (run_command(&w, command, library, file, status, e) == 0) {
		read_records(&w, file);
		find_processes(&w);
		c->unseen = !w.pids.n;
		compare(&w);
		result = 0;
	}
	if (w.bindings)
		remove_bindings(&w);
	if (fd >= 0) {
		close(fd);
		unlink(file);
	}
	free(file);
	free(library);
	vec_free(&w.records);
	vec_free(&w.pids);
	return result;
}
