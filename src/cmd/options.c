#include "cmd/options.h"

#include "linkage/flags.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

enum {
	OPT_ROOT = 256, OPT_LIBRARY_PATH, OPT_ENV, OPT_ENV_FILE, OPT_CLEAN_ENV, OPT_PRELOAD, OPT_AUDIT,
	OPT_CWD, OPT_EXE, OPT_INTERP, OPT_SECURE, OPT_CACHE, OPT_HWCAPS, OPT_ASSUME, OPT_DLOPEN,
	OPT_COLOR, OPT_SHA256, OPT_FAIL_ON, OPT_STRICT, OPT_ALLOW_UNSURE, OPT_EACH, OPT_FILES_FROM, OPT_BINDINGS,
	OPT_PID, OPT_RANKS, OPT_TIMEOUT, OPT_NO_GPU, OPT_DANGEROUS, OPT_MATRIX, OPT_RUN, OPT_GATE, OPT_UNTRACED,
	OPT_PROFILE, OPT_DATA_DIR, OPT_PYTHON, OPT_IMPORT,
};

static const struct option long_options[] = {
	{"root", required_argument, NULL, OPT_ROOT},
	{"library-path", required_argument, NULL, OPT_LIBRARY_PATH},
	{"env", required_argument, NULL, OPT_ENV},
	{"env-file", required_argument, NULL, OPT_ENV_FILE},
	{"clean-env", no_argument, NULL, OPT_CLEAN_ENV},
	{"preload", required_argument, NULL, OPT_PRELOAD},
	{"audit", required_argument, NULL, OPT_AUDIT},
	{"cwd", required_argument, NULL, OPT_CWD},
	{"exe", required_argument, NULL, OPT_EXE},
	{"interp", required_argument, NULL, OPT_INTERP},
	{"secure", required_argument, NULL, OPT_SECURE},
	{"cache", required_argument, NULL, OPT_CACHE},
	{"hwcaps", required_argument, NULL, OPT_HWCAPS},
	{"assume", required_argument, NULL, OPT_ASSUME},
	{"dlopen", required_argument, NULL, OPT_DLOPEN},
	{"format", required_argument, NULL, 'f'},
	{"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{"color", required_argument, NULL, OPT_COLOR},
	{"sha256", no_argument, NULL, OPT_SHA256},
	{"fail-on", required_argument, NULL, OPT_FAIL_ON},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"allow-unsure", no_argument, NULL, OPT_ALLOW_UNSURE},
	{"each", no_argument, NULL, OPT_EACH},
	{"profile", required_argument, NULL, OPT_PROFILE},
	{"data-dir", required_argument, NULL, OPT_DATA_DIR},
	{"python", required_argument, NULL, OPT_PYTHON},
	{"import", required_argument, NULL, OPT_IMPORT},
	{"bindings", no_argument, NULL, OPT_BINDINGS},
	{"files-from", required_argument, NULL, OPT_FILES_FROM},
	{"pid", required_argument, NULL, OPT_PID},
	{"ranks", required_argument, NULL, OPT_RANKS},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"no-gpu", no_argument, NULL, OPT_NO_GPU},
	{"dangerous", no_argument, NULL, OPT_DANGEROUS},
	{"untraced", no_argument, NULL, OPT_UNTRACED},
	{"matrix", no_argument, NULL, OPT_MATRIX},
	{"run", no_argument, NULL, OPT_RUN},
	{"gate", no_argument, NULL, OPT_GATE},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* The caller's environment comes first, so that what the command line says of
 * a variable counts. */
static void env_inherit(struct plan *plan)
{
	VEC(const char *) all = {0};
	char **v;
	size_t i;

	for (v = environ; *v; v++)
		vec_push(&all, *v);
	for (i = 0; i < plan->env.n; i++)
		vec_push(&all, plan->env.at[i]);
	vec_free(&plan->env);
	plan->env.at = all.at;
	plan->env.n = all.n;
	plan->env.room = all.room;
}

/* The variables that the loader itself reads; an option of their own wins. */
static void env_to_plan(struct plan *plan)
{
	const char *bind_now = plan_getenv(plan, "LD_BIND_NOW");

	if (!plan->library_path)
		plan->library_path = plan_getenv(plan, "LD_LIBRARY_PATH");
	if (!plan->preload)
		plan->preload = plan_getenv(plan, "LD_PRELOAD");
	if (!plan->audit)
		plan->audit = plan_getenv(plan, "LD_AUDIT");
	plan->tunables = plan_getenv(plan, "GLIBC_TUNABLES");
	plan->bind_now = bind_now && *bind_now;
}

static int env_file(struct options *o, const char *path, struct error *e)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	if (!f)
		return error_set(e, "%s: cannot read the environment file: %s", path, strerror(errno));
	while ((n = getline(&line, &room, f)) >= 0) {
		char *copy;

		while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = '\0';
		if (!n || line[0] == '#')
			continue;
		copy = xstrdup(line);
		vec_push(&o->owned, copy);
		vec_push(&o->plan.env, copy);
	}
	free(line);
	fclose(f);
	return 0;
}

static int parse_flags(const char *text, unsigned *flags, struct error *e)
{
	size_t n;

	*flags = OPEN_NOW;
	for (;; text += n + 1) {
		n = strcspn(text, ",");
		if (!flags_take_word(flags, text, n))
			return error_set(e, "--dlopen: unknown flag '%.*s': lazy, now, local, global, deepbind, "
					 "noload, nodelete or newlm", (int)n, text);
		if (!text[n])
			return 0;
	}
}

/* [OBJECT:]NAME[,FLAG...] */
static int parse_dlopen(struct options *o, const char *text, struct error *e)
{
	struct event event = {.flags = OPEN_NOW};
	char *copy = xstrdup(text), *comma = strchr(copy, ','), *colon;

	vec_push(&o->owned, copy);
	if (comma) {
		*comma = '\0';
		if (parse_flags(comma + 1, &event.flags, e) < 0)
			return -1;
	}
	event.name = copy;
	colon = strchr(copy, ':');
	if (colon) {
		*colon = '\0';
		event.caller = copy;
		event.name = colon + 1;
	}
	vec_push(&o->plan.events, event);
	return 0;
}

static int pick(const char *option, const char *value, const char *const *names, struct error *e)
{
	char *list = xstrdup(names[0]), *more;
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(names[i], value)) {
			free(list);
			return i;
		}
	for (i = 1; names[i]; i++) {
		more = xprintf("%s, %s", list, names[i]);
		free(list);
		list = more;
	}
	error_set(e, "%s: '%s' is none of %s", option, value, list);
	free(list);
	return -1;
}

static int set_format(struct options *o, const char *value, struct error *e)
{
	static const char *const names[] = {"text", "json", NULL};
	int format = pick("-f", value, names, e);
	struct output out = {0};

	if (format < 0)
		return -1;
	out.format = (enum format)format;
	vec_push(&o->outputs, out);
	return 0;
}

static void set_output(struct options *o, const char *path)
{
	if (!o->outputs.n || o->outputs.at[o->outputs.n - 1].path)
		vec_push(&o->outputs, ((struct output){FORMAT_TEXT, NULL}));
	o->outputs.at[o->outputs.n - 1].path = strcmp(path, "-") ? path : NULL;
}

static int set_color(struct options *o, const char *value, struct error *e)
{
	static const char *const names[] = {"auto", "always", "never", NULL};
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	int when = pick("--color", value, names, e);

	if (when < 0)
		return -1;
	o->color = when == 1 || (when == 0 && isatty(STDOUT_FILENO) && !(no && *no) &&
				 !(term && !strcmp(term, "dumb")));
	return 0;
}

static void set_cache(struct plan *plan, const char *value)
{
	if (!strcmp(value, "none"))
		plan->cache = "";
	else if (strcmp(value, "auto") && strcmp(value, "image"))
		plan->cache = value;
}

static void add_file(struct options *o, const char *path)
{
	if (o->each || o->confirm.matrix) {
		vec_push(&o->files, path);
	} else if (!o->plan.engine) {
		o->plan.engine = path;
	} else {
		struct event shim = {.name = path, .flags = OPEN_NOW, .shim = true};

		vec_push(&o->plan.events, shim);
	}
}

/* A number of at least 1. */
static int set_number(const char *option, const char *value, double most, double *to, struct error *e)
{
	char *end;

	*to = strtod(value, &end);
	if (end == value || *end || !(*to >= 1 && *to <= most))
		return error_set(e, "%s: '%s' is no number from 1 to %.0f", option, value, most);
	return 0;
}

/* The options of confirm; 1 = none of them. */
static int apply_confirm(struct options *o, int c, struct error *e)
{
	double number;
	int result = 0;

	switch (c) {
	case OPT_PID:
		result = set_number("--pid", optarg, 1 << 30, &number, e);
		o->confirm.pid = (int)number;
		return result;
	case OPT_RANKS:
		result = set_number("--ranks", optarg, 8, &number, e);
		o->confirm.ranks = (int)number;
		return result;
	case OPT_TIMEOUT: return set_number("--timeout", optarg, 3600, &o->confirm.timeout, e);
	case OPT_NO_GPU: o->confirm.no_gpu = true; return 0;
	case OPT_DANGEROUS: o->confirm.dangerous = true; return 0;
	case OPT_UNTRACED: o->confirm.untraced = true; return 0;
	case OPT_RUN: o->confirm.run = true; return 0;
	case OPT_GATE: o->confirm.gate = true; return 0;
	case OPT_MATRIX:
		o->confirm.matrix = true;
		if (o->plan.engine)
			vec_push(&o->files, o->plan.engine);
		o->plan.engine = NULL;
		return 0;
	default: return 1;
	}
}

/* MODULE[,MODULE...] */
static void add_modules(struct options *o, const char *text)
{
	char *copy = xstrdup(text), *at = copy;

	vec_push(&o->owned, copy);
	do
		vec_push(&o->plan.modules, strsep(&at, ","));
	while (at);
}

/* With --python the interpreter is the engine: what was taken for one is the
 * first shim. */
static int options_python(struct options *o, struct error *e)
{
	struct event shim = {.name = o->plan.engine, .flags = OPEN_NOW, .shim = true};

	if (!o->plan.python)
		return o->plan.modules.n ? error_set(e, "--import: which Python? --python says it") : 0;
	if (!o->plan.engine)
		return 0;
	vec_push(&o->plan.events, shim);
	memmove(o->plan.events.at + 1, o->plan.events.at, (o->plan.events.n - 1) * sizeof(shim));
	o->plan.events.at[0] = shim;
	o->plan.engine = NULL;
	return 0;
}

/* One option; 0, or -1 after an error. */
static int apply(struct options *o, int c, struct error *e)
{
	static const char *const secure[] = {"auto", "yes", "no", NULL};
	static const char *const fail_on[] = {"error", "warning", "note", "never", NULL};
	int k;

	switch (c) {
	case 1: add_file(o, optarg); return 0;
	case OPT_ROOT: o->plan.root = optarg; return 0;
	case OPT_LIBRARY_PATH: o->plan.library_path = optarg; return 0;
	case OPT_ENV:
		if (!strchr(optarg, '='))
			return error_set(e, "--env %s: NAME=VALUE is wanted", optarg);
		vec_push(&o->plan.env, optarg);
		return 0;
	case OPT_ENV_FILE: return env_file(o, optarg, e);
	case OPT_CLEAN_ENV: o->clean_env = true; return 0;
	case OPT_PRELOAD: o->plan.preload = optarg; return 0;
	case OPT_AUDIT: o->plan.audit = optarg; return 0;
	case OPT_CWD: o->plan.cwd = optarg; return 0;
	case OPT_EXE: o->plan.exe = optarg; return 0;
	case OPT_INTERP: o->plan.interp = optarg; return 0;
	case OPT_SECURE:
		k = pick("--secure", optarg, secure, e);
		o->plan.secure = k > 0 ? (unsigned)k : 0;
		return k < 0 ? -1 : 0;
	case OPT_CACHE: set_cache(&o->plan, optarg); return 0;
	case OPT_HWCAPS: o->plan.hwcaps = optarg; return 0;
	case OPT_ASSUME: vec_push(&o->plan.assume, optarg); return 0;
	case OPT_DLOPEN: return parse_dlopen(o, optarg, e);
	case 'f': return set_format(o, optarg, e);
	case 'o': set_output(o, optarg); return 0;
	case 'q': o->quiet = true; return 0;
	case OPT_COLOR: return set_color(o, optarg, e);
	case OPT_SHA256: o->plan.sha256 = true; return 0;
	case OPT_FAIL_ON:
		k = pick("--fail-on", optarg, fail_on, e);
		o->fail_on = k > 0 ? (unsigned)k : 0;
		return k < 0 ? -1 : 0;
	case OPT_STRICT: o->strict = true; return 0;
	case OPT_ALLOW_UNSURE: o->allow_unsure = true; return 0;
	case OPT_EACH:
		o->each = true;
		if (o->plan.engine)
			vec_push(&o->files, o->plan.engine);
		o->plan.engine = NULL;
		return 0;
	case OPT_PROFILE: vec_push(&o->plan.profiles, optarg); return 0;
	case OPT_DATA_DIR: o->plan.data_dir = optarg; return 0;
	case OPT_PYTHON: o->plan.python = optarg; return 0;
	case OPT_IMPORT: add_modules(o, optarg); return 0;
	case OPT_BINDINGS: o->plan.bindings = true; return 0;
	case OPT_FILES_FROM: o->files_from = optarg; return 0;
	case 'h': o->help = true; return 0;
	default: return apply_confirm(o, c, e);
	}
}

int options_parse(struct options *o, const char *command, int argc, char **argv, struct error *e)
{
	int c;

	memset(o, 0, sizeof(*o));
	o->fail_on = FAIL_ON_WARNING;
	set_color(o, "auto", e);
	/* The driver's libraries come from the host, not from the image. */
	vec_push(&o->plan.assume, "libcuda.so.1");
	vec_push(&o->plan.assume, "libnvidia-ml.so.1");
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, "-:f:o:qh", long_options, NULL)) != -1) {
		if (c == '?' || c == ':')
			return error_set(e, c == ':' ? "%s: %s needs a value; see 'ncclwhich %s --help'"
						     : "%s: unknown option %s; see 'ncclwhich %s --help'",
					 command, argv[optind - 1], command);
		if (apply(o, c, e) < 0)
			return -1;
	}
	if (optind < argc && o->confirm.run) {
		o->confirm.command = argv + optind;
	} else if (optind < argc) {
		if (strcmp(command, "explain"))
			for (; optind < argc; optind++)
				add_file(o, argv[optind]);
		else if (optind + 1 < argc)
			return error_set(e, "explain: one thing at a time may follow '--'");
		else
			o->what = argv[optind];
	}
	if (options_python(o, e) < 0)
		return -1;
	if (!o->plan.root && !o->clean_env)
		env_inherit(&o->plan);
	env_to_plan(&o->plan);
	if (!o->outputs.n)
		vec_push(&o->outputs, ((struct output){FORMAT_TEXT, NULL}));
	return 0;
}

void options_free(struct options *o)
{
	size_t i;

	for (i = 0; i < o->owned.n; i++)
		free(o->owned.at[i]);
	vec_free(&o->owned);
	vec_free(&o->outputs);
	vec_free(&o->files);
	vec_free(&o->plan.events);
	vec_free(&o->plan.assume);
	vec_free(&o->plan.env);
	vec_free(&o->plan.profiles);
	vec_free(&o->plan.modules);
}
