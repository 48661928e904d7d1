/* A prediction is tried in the real loader, and on real devices.
 *
 * What is found out is a list of rows: what was predicted, what was observed,
 * and whether the two are the same.  This folder executes: the engine's own
 * process is started, up to where its code would begin, never beyond.
 *
 * Everything is owned by the struct confirm; confirm_close() ends it.  The
 * simulation that the rows speak of must outlive it. */
#ifndef NCCLWHICH_CONFIRM_CONFIRM_H
#define NCCLWHICH_CONFIRM_CONFIRM_H

#include "confirm/child.h"
#include "confirm/place.h"
#include "verdict/effects.h"
#include "verdict/run.h"

#include <stdio.h>

enum row_state {
	ROW_SAME,
	ROW_DIFFERENT, /* reality contradicts the prediction */
	ROW_OPEN       /* not compared: skipped, or nothing definite was predicted */
};

struct confirm_row {
	const char *stage;     /* "replay", "devices", …: rows of a stage stand together */
	const char *kind;      /* "start", "object", "open", "request", "binding", "case", "cell", … */
	const char *what;
	const char *predicted, *observed;
	const char *note;      /* anything else that was seen, NULL = nothing */
	enum row_state state;
	bool minor;            /* of interest only when it differs */
};

struct confirm_setup {
	const struct plan *plan;
	double replay_seconds, device_seconds;
	int ranks;
	bool dangerous;
	bool untraced; /* ptrace is not allowed here: only the proof keeps the engine from running */
};

struct confirm {
	const struct confirm_setup *setup;
	struct place place;
	struct arena arena;
	VEC(struct confirm_row) rows;
	VEC(const char *) environment; /* what was set for the devices */
	const char *device;            /* NULL: not found (yet) */
	const char *no_device;         /* why not */
	const char *tables;            /* of a matrix, for people */
	bool unseen;                   /* no process of the command runs the engine */
	bool proved;                   /* the replay library is mapped into this engine */
};

/* Nothing on disk yet. */
void confirm_init(struct confirm *c, const struct confirm_setup *setup);
/* What a replay needs.  Returns -1 after an error: no replay library, no
 * temporary directory. */
int confirm_open(struct confirm *c, struct error *e);
void confirm_close(struct confirm *c);

/* Stage 1: the start-up and the opens of R in the real loader.  AGAIN: all that
 * is as predicted is minor.  Returns -1 when it cannot be done. */
int confirm_replay(struct confirm *c, struct run *r, const char *stage, bool again, struct error *e);

/* Stage 2: NCCL on each path of R.  Without a device there are no rows and
 * no_device says why. */
int confirm_devices(struct confirm *c, struct run *r, struct error *e);

/* Every ordered pair of FILES, in a bare program. */
int confirm_matrix(struct confirm *c, struct surfaces *surfaces, const char *const *files, size_t n, struct error *e);

/* The maps of a running process against R. */
int confirm_maps(struct confirm *c, struct run *r, int pid, struct error *e);

/* Runs COMMAND, a NULL-terminated list, under the audit library; *STATUS is its
 * exit status as a shell has it.  Then every process of it that runs the
 * executable of R is compared with R. */
int confirm_watch(struct confirm *c, struct run *r, char **command, int *status, struct error *e);

size_t confirm_different(const struct confirm *c);

/* Is the file at PATH a copy of the tracked library? */
bool confirm_is_copy(struct run *r, const char *path);

/* ---- for the parts of this folder */

void confirm_add(struct confirm *c, struct confirm_row row);
/* In the arena. */
char *confirm_text(struct confirm *c, const char *format, ...) __attribute__((format(printf, 2, 3), returns_nonnull));

struct child_environment {
	VEC(const char *) at; /* ends in NULL; the strings are the arena's or the caller's */
};
/* What the engine would have, and the replay library. */
void confirm_environment(struct confirm *c, const struct process_setup *setup, struct child_environment *env);
void confirm_environment_for_nccl(struct confirm *c, struct child_environment *env);
/* One more, NAME=VALUE, instead of another of that name. */
void confirm_environment_add(struct confirm *c, struct child_environment *env, const char *text);

/* A line of orders; the fields end in NULL. */
void orders_put(FILE *f, ...) __attribute__((sentinel));
/* All opens of R that have a caller. */
void orders_put_opens(FILE *f, const struct run *r);
void orders_put_symbols(FILE *f, const struct target *t);

/* The executable of R as a process sees it; -1 after an error. */
int confirm_program(struct confirm *c, const struct run *r, const char **path, struct error *e);
/* Shows, without running anything, that the replay library is mapped. */
int confirm_prove(struct confirm *c, const struct run *r, struct error *e);

/* One case on the devices: whose functions mint, make and use, as numbers of
 * the paths in the orders. */
struct nccl_case {
	int mint, make, use;
	const char *orders, *program; /* all but mode, case and ranks; the executable */
	const char *cwd;
	const char *const *env;
	int ranks;
};

/* What became of it. */
struct case_seen {
	enum phase phase;     /* where it ended, if it ended badly */
	enum outcome outcome;
	int code;             /* of an error */
	const char *text;     /* "init 0, count 4, all-reduce 4" */
	const char *note;     /* which copy, what was called last */
	const char *no_device, *trouble; /* NULL = neither */
};

int case_start(struct confirm *c, const struct nccl_case *k, struct child *child, struct error *e);
/* Of a child that has ended. */
void case_read(struct confirm *c, const struct child *child, struct case_seen *seen);
/* Do they say the same?  ROW_OPEN where nothing definite was predicted. */
enum row_state case_compare(struct first_trouble predicted, const struct case_seen *seen);
const char *case_predicted(struct confirm *c, struct first_trouble predicted);

#endif
