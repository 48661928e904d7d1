/* ncclwhich: which libnccl does each path of an engine reach? */
#include "base/progress.h"
#include "cmd/commands.h"
#include "report/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1"
#endif

static const struct command {
	const char *name;
	int (*run)(struct options *o, struct error *e);
	const char *arguments, *purpose;
} commands[] = {
	{"check", cmd_check, "ENGINE [SHIM...]", "the gate: which copy each path reaches, and is it one"},
	{"tree", cmd_tree, "ENGINE [SHIM...] | --each FILE...", "the predicted link map, in load order"},
	{"explain", cmd_explain, "ENGINE [SHIM...] -- WHAT", "every candidate of a request, or every scope of a symbol"},
	{"opens", cmd_opens, "OBJECT...", "what each object shows of what it opens"},
	{"confirm", cmd_confirm, "ENGINE [SHIM...] | --matrix FILE...", "the prediction in the real loader, and on the devices"},
	{"rules", cmd_rules, "[ID]", "the rules, or what one of them means"},
};

static const char context_help[] =
	"context:\n"
	"  --root DIR            everything is inside DIR; paths are paths in it\n"
	"  --library-path P      LD_LIBRARY_PATH\n"
	"  --env NAME=VALUE      one variable of the process; --env-file FILE; --clean-env\n"
	"  --preload P  --audit P  --cwd DIR  --exe FILE  --interp FILE\n"
	"  --secure auto|yes|no  set-id process\n"
	"  --cache auto|none|FILE   the ld.so.cache to use\n"
	"  --hwcaps auto|none|all|LIST   processor levels: x86-64-v1 to x86-64-v4, haswell\n"
	"  --profile FILE        a consumer's way to the library (doc/data.md); --data-dir DIR: DIR/profiles\n"
	"  --profile NAME[=VERSION]  the engine is this consumer, whatever it shows\n"
	"  --python EXE|VENV --import MODULE[,...]\n"
	"                        the engine is this Python, after these imports\n"
	"  --assume NAME         present at run time although not on disk\n"
	"events, in order:\n"
	"  SHIM                  opened by its path, now and local\n"
	"  --dlopen '[OBJECT:]NAME[,FLAG...]'\n"
	"                        lazy now local global deepbind noload nodelete newlm\n"
	"output:\n"
	"  -f text|json  -o FILE  -q  --color auto|always|never  --sha256\n"
	"  --fail-on error|warning|note|never  --strict  --allow-unsure\n";

static void help(FILE *to)
{
	size_t i;

	fputs("usage: ncclwhich [COMMAND] [OPTION...] ENGINE [SHIM...]\n\n"
	      "Predicts, without running anything, which libnccl each path of an engine reaches.\n\n", to);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "  %-8s %-36s %s\n", commands[i].name, commands[i].arguments, commands[i].purpose);
	fputs("\nWithout a command: check.  'ncclwhich COMMAND --help' lists the options.\n"
	      "Exit status: 0 fine, 1 findings, 2 could not do the job, 3 unsure or none,\n"
	      "4 confirm: reality contradicts the prediction, 77 confirm: no device.\n", to);
}

static void command_help(const struct command *c)
{
	printf("usage: ncclwhich %s [OPTION...] %s\n\n%s.\n\n%s", c->name, c->arguments, c->purpose,
	       strcmp(c->name, "rules") ? context_help : "  -o FILE\n");
	if (!strcmp(c->name, "tree"))
		puts("tree:\n  --each FILE...        one map a file; --files-from FILE: a list, one path a line\n"
		     "  --bindings            with -f json: what every reference is bound to");
	if (!strcmp(c->name, "confirm"))
		puts("confirm: starts the engine's process, up to where its code would begin\n"
		     "  --no-gpu              the loader only\n"
		     "  --ranks N             threads with a device each, default 1\n"
		     "  --timeout S           seconds a process may take: 20 in the loader, 30 on devices, 12 in a matrix\n"
		     "  --dangerous           ids across eras, too: they can hang or eat memory\n"
		     "  --untraced            where ptrace is forbidden: no breakpoint at the engine's entry point\n"
		     "  --matrix FILE...      every ordered pair of these copies\n"
		     "  --pid N               the maps of a process that runs\n"
		     "  --run -- COMMAND...   watch a command of your own; --gate: its status does not count, the comparison's does");
	if (!strcmp(c->name, "explain"))
		puts("WHAT: a request (libnccl.so), an object (/usr/lib/libnccl.so.2), a symbol or a rule id");
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

int commands_output(const struct options *o, render_function *render, void *what, struct error *e)
{
	size_t i, size;

	for (i = 0; i < o->outputs.n; i++) {
		const struct output *out = &o->outputs.at[i];
		char *text;
		int result;

		if (o->quiet && !out->path)
			continue;
		text = render(out->format, what, o->color && !out->path, &size);
		result = output_write(out->path, text, size, e);
		free(text);
		if (result < 0)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct command *c = argc > 1 ? find_command(argv[1]) : NULL;
	struct options options;
	struct error e = {0};
	int status;

	if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
		printf("ncclwhich %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help(argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	if (c) {
		argc--;
		argv++;
	} else {
		c = &commands[0];
	}
	if (options_parse(&options, c->name, argc, argv, &e) < 0)
		status = -1;
	else if (options.help) {
		command_help(c);
		status = 0;
	} else {
		if (isatty(STDERR_FILENO) && !options.quiet && strcmp(getenv("TERM") ? getenv("TERM") : "dumb", "dumb"))
			progress_enable();
		status = c->run(&options, &e);
		progress_end();
	}
	if (status < 0) {
		struct text t;
		char *text;

		text_open(&t, false);
		fputs("ncclwhich: ", t.stream);
		text_name(&t, e.text ? e.text : "failed");
		fputc('\n', t.stream);
		text = text_take(&t);
		fputs(text, stderr);
		free(text);
		status = 2;
	}
	options_free(&options);
	error_clear(&e);
	return status;
}
