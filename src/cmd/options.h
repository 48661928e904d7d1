/* The command line shared by all subcommands. */
#ifndef NCCLWHICH_CMD_OPTIONS_H
#define NCCLWHICH_CMD_OPTIONS_H

#include "base/error.h"
#include "linkage/plan.h"

enum format { FORMAT_TEXT, FORMAT_JSON };
enum severity_threshold { FAIL_ON_ERROR, FAIL_ON_WARNING, FAIL_ON_NOTE, FAIL_ON_NEVER };

/* One pair of -f and -o. */
struct output {
	enum format format;
	const char *path; /* NULL = standard output */
};

/* confirm only. */
struct confirm_options {
	int pid;            /* 0 = none */
	int ranks;          /* 0 = default */
	double timeout;     /* seconds, 0 = default */
	bool no_gpu, dangerous, untraced, matrix, run, gate;
	char **command;     /* --run: after "--", ends in NULL */
};

struct options {
	struct plan plan;
	VEC(struct output) outputs;
	VEC(const char *) files;    /* tree --each */
	const char *files_from;
	bool clean_env; /* the caller's variables do not count */
	bool each, quiet, strict, allow_unsure, help, color;
	enum severity_threshold fail_on;
	const char *what;           /* explain: after "--" */
	struct confirm_options confirm;
	VEC(char *) owned;
};

/* Fills OPTIONS from the arguments behind the subcommand's name.  The options
 * a subcommand does not have are refused.  Returns -1 after an error. */
int options_parse(struct options *o, const char *command, int argc, char **argv, struct error *e);
void options_free(struct options *o);

#endif
