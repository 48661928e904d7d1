#include "confirm/confirm.h"

#include "confirm/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void confirm_init(struct confirm *c, const struct confirm_setup *setup)
{
	memset(c, 0, sizeof(*c));
	c->setup = setup;
}

int confirm_open(struct confirm *c, struct error *e)
{
	return place_open(&c->place, c->setup->plan->root, e);
}

void confirm_close(struct confirm *c)
{
	place_close(&c->place);
	vec_free(&c->rows);
	vec_free(&c->environment);
	arena_free(&c->arena);
}

static const char *keep(struct confirm *c, const char *text)
{
	return text ? arena_strdup(&c->arena, text) : NULL;
}

/* What it quotes may end with the child that said it. */
void confirm_add(struct confirm *c, struct confirm_row row)
{
	row.what = keep(c, row.what);
	row.predicted = keep(c, row.predicted);
	row.observed = keep(c, row.observed);
	row.note = keep(c, row.note);
	vec_push(&c->rows, row);
}

char *confirm_text(struct confirm *c, const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	text = arena_vprintf(&c->arena, format, ap);
	va_end(ap);
	return text;
}

size_t confirm_different(const struct confirm *c)
{
	size_t i, n = 0;

	for (i = 0; i < c->rows.n; i++)
		n += c->rows.at[i].state == ROW_DIFFERENT;
	return n;
}

/* ---- environment */

static void environment_remove(struct child_environment *env, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < env->at.n; i++)
		if (!env->at.at[i] || strncmp(env->at.at[i], name, strlen(name)))
			env->at.at[n++] = env->at.at[i];
	env->at.n = n;
}

void confirm_environment_add(struct confirm *c, struct child_environment *env, const char *text)
{
	const char *equals = strchr(text, '=');

	environment_remove(env, confirm_text(c, "%.*s", (int)(equals ? equals - text + 1 : 0), text));
	if (env->at.n)
		env->at.n--;
	vec_push(&env->at, text);
	vec_push(&env->at, NULL);
}

void confirm_environment(struct confirm *c, const struct process_setup *setup, struct child_environment *env)
{
	const struct plan *plan = c->setup->plan;
	size_t i;

	/* The loader's own variables come from the simulation, and only from there. */
	for (i = 0; i < plan->env.n; i++)
		if (strncmp(plan->env.at[i], "LD_", 3) && strncmp(plan->env.at[i], "NCCLWHICH_", 10) && strchr(plan->env.at[i], '='))
			confirm_environment_add(c, env, plan->env.at[i]);
	if (setup->library_path)
		confirm_environment_add(c, env, confirm_text(c, "LD_LIBRARY_PATH=%s", setup->library_path));
	if (setup->bind_now)
		confirm_environment_add(c, env, "LD_BIND_NOW=1");
	/* Ours comes last and defines nothing: the order of the others stays. */
	confirm_environment_add(c, env, confirm_text(c, "LD_PRELOAD=%s%s%s", setup->preload ? setup->preload : "",
						     setup->preload && *setup->preload ? ":" : "", c->place.library));
}

/* Loopback only, no plugins, nothing that reaches beyond this process. */
static const char *const nccl_settings[] = {
	"NCCL_DEBUG=WARN", "NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME=lo", "NCCL_NVLS_ENABLE=0", "NCCL_RAS_ENABLE=0",
	"NCCL_NET_PLUGIN=none", "NCCL_TUNER_PLUGIN=none", "NCCL_PROFILER_PLUGIN=none", "NCCL_MAX_NCHANNELS=1",
};

void confirm_environment_for_nccl(struct confirm *c, struct child_environment *env)
{
	static const char *const unwanted[] = {"NCCL_COMM_ID=", "NCCL_CONF_FILE=", "NCCL_COMM_BLOCKING=",
					       "NCCL_DEBUG_FILE=", "NCCL_NET="};
	size_t i;

	for (i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
		environment_remove(env, unwanted[i]);
	for (i = 0; i < sizeof(nccl_settings) / sizeof(nccl_settings[0]); i++) {
		confirm_environment_add(c, env, nccl_settings[i]);
		if (c->environment.n < sizeof(nccl_settings) / sizeof(nccl_settings[0]))
			vec_push(&c->environment, nccl_settings[i]);
	}
}

/* ---- orders */

static void put_field(FILE *f, const char *s)
{
	for (; *s; s++)
		if (*s == '\\' || *s == '\t' || *s == '\n')
			fprintf(f, "\\%c", *s == '\\' ? '\\' : *s == '\t' ? 't' : 'n');
		else
			fputc(*s, f);
}

void orders_put(FILE *f, ...)
{
	const char *field;
	va_list ap;
	int n = 0;

	va_start(ap, f);
	while ((field = va_arg(ap, const char *))) {
		if (n++)
			fputc('\t', f);
		put_field(f, field);
	}
	va_end(ap);
	fputc('\n', f);
}

/* As <dlfcn.h> has them, on both machines. */
static unsigned real_flags(unsigned flags)
{
	return (flags & OPEN_LAZY ? 1u : 0) | (flags & OPEN_NOW ? 2u : 0) | (flags & OPEN_NOLOAD ? 4u : 0) |
	       (flags & OPEN_DEEPBIND ? 8u : 0) | (flags & OPEN_GLOBAL ? 0x100u : 0) |
	       (flags & OPEN_NODELETE ? 0x1000u : 0) | (flags & OPEN_NEWLM ? (unsigned)REPLAY_NEWLM : 0);
}

void orders_put_opens(FILE *f, const struct run *r)
{
	char number[16];
	size_t i;

	for (i = 0; i < r->life.sequence.opened.n; i++) {
		const struct opened *o = &r->life.sequence.opened.at[i];

		if (!o->lookup)
			continue;
		snprintf(number, sizeof(number), "%u", real_flags(o->flags));
		orders_put(f, "open", number, o->caller == r->life.sequence.process->exe ? "" : o->caller->path, o->name, NULL);
	}
}

void orders_put_symbols(FILE *f, const struct target *t)
{
	unsigned k;

	for (k = 0; k < t->symbols_count; k++)
		orders_put(f, "symbol", t->symbols[k].name, NULL);
}

/* ---- the engine's process */

static int refuse(const struct confirm *c, const struct run *r, struct error *e)
{
	const struct plan *plan = c->setup->plan;
	const struct process *p = r->life.sequence.process;

	if (r->life.sequence.setup.secure)
		return error_set(e, "%s: a set-id program ignores the replay library and would run: it cannot be confirmed",
				 p->exe->path);
	/* The bare program has libc.so.6, which has dlopen since 2.34. */
	if (!p->exe->file && p->facts->version < 234)
		return error_set(e, "glibc %d.%d: a library without a program is replayed under 2.34 or later; name the program",
				 p->facts->version / 100, p->facts->version % 100);
	if (plan->interp)
		return error_set(e, "--interp: the kernel starts %s under the interpreter that it names itself", p->exe->path);
	if (plan->cache)
		return error_set(e, "--cache: the loader here reads its own cache");
	if (plan->audit && *plan->audit)
		return error_set(e, "--audit: the code of an audit library is not run here");
#if defined(__x86_64__)
	if (p->facts->machine != EM_X86_64)
#else
	if (p->facts->machine != EM_AARCH64)
#endif
		return error_set(e, "%s: is for %s, and this machine is not", p->exe->path, elf_machine_name(p->facts->machine));
	return 0;
}

int confirm_program(struct confirm *c, const struct run *r, const char **path, struct error *e)
{
	const struct process *p = r->life.sequence.process;

	if (refuse(c, r, e) < 0)
		return -1;
	if (p->exe->file) {
		*path = p->exe->path;
		return 0;
	}
	if (place_bare_program(&c->place, p->interp->path, p->facts->machine, e) < 0)
		return -1;
	*path = c->place.program;
	return 0;
}

/* ld.so lists what it maps instead of running anything. */
int confirm_prove(struct confirm *c, const struct run *r, struct error *e)
{
	struct child_environment env = {.at = {0}};
	struct child_setup setup = {.place = &c->place, .cwd = r->life.sequence.setup.cwd, .seconds = c->setup->replay_seconds,
				    .untraced = c->setup->untraced};
	struct child child;
	int result = -1;

	if (c->proved)
		return 0;
	if (confirm_program(c, r, &setup.exe, e) < 0)
		return -1;
	confirm_environment(c, &r->life.sequence.setup, &env);
	confirm_environment_add(c, &env, "LD_TRACE_LOADED_OBJECTS=1");
	setup.env = env.at.at;
	if (child_start(&child, &setup, e) < 0)
		goto out;
	child_wait(&child);
	if (child.end == CHILD_UNABLE)
		error_set(e, "%s: %s", setup.exe, child.said);
	else if (strstr(child.said, c->place.library))
		result = 0;
	else if (!r->life.sequence.process->started && child.end != CHILD_AT_ENTRY && !(child.end == CHILD_EXITED && !child.status))
		result = 0; /* it fails or hangs before that, as predicted */
	else
		error_set(e, "%s: its loader does not map %s, so that it cannot be stopped in time (%s)%s%s", setup.exe,
			  c->place.library, child_end_text(&child, &c->arena), *child.said ? ": " : "", child.said);
	c->proved = result == 0;
	child_free(&child);
out:
	vec_free(&env.at);
	return result;
}
