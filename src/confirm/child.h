/* One process of the engine, started only to be taken over.
 *
 * The engine must never run by accident.  The process is traced from its exec
 * on, with a breakpoint at its entry point: where the replay library was
 * ignored (a missing file, another class, a loader that is not glibc's), the
 * process is stopped there and killed.  It leads a process group of its own,
 * dies with us, and is killed at its deadline.  Several may run at a time.
 *
 * What it writes to its standard outputs is kept apart from the records. */
#ifndef NCCLWHICH_CONFIRM_CHILD_H
#define NCCLWHICH_CONFIRM_CHILD_H

#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>
#include <sys/types.h>

struct place;

struct child_setup {
	const struct place *place;
	const char *exe;          /* as the process sees it */
	const char *const *env;   /* ends in NULL */
	const char *cwd;
	const char *orders;       /* for the replay library; NULL = none */
	double seconds;           /* to live */
	bool untraced;            /* no breakpoint: where ptrace is not allowed */
};

enum child_end {
	CHILD_RUNNING,
	CHILD_EXITED,    /* `status` is the exit status */
	CHILD_SIGNALLED, /* `status` is the signal */
	CHILD_LATE,      /* killed at the deadline */
	CHILD_AT_ENTRY,  /* killed when the engine was about to run */
	CHILD_UNABLE     /* not started: see `said` */
};

/* A line from the replay library, cut into fields. */
struct record {
	char *field[10];
	unsigned n;
};

/* Cuts the field at *AT off its line, in place; *AT is then the next one, or NULL. */
char *record_cut(char **at);

/* What a line of LD_DEBUG=bindings says, cut in place; false for other lines.
 * The program stands there by its argv[0]; a dlsym on a handle as a binding of
 * the handle's object to what it found (glibc's dl-lookup.c and dl-sym.c). */
bool binding_cut(char *line, char **from, char **to, char **symbol);

struct child {
	pid_t pid;
	int records_fd, output_fd;
	double deadline, began, ended; /* seconds of the monotonic clock */
	unsigned long entry;
	bool untraced;
	enum child_end end;
	int status;
	char *text;                    /* the records, being cut up */
	size_t size;
	VEC(struct record) records;
	char *said;                    /* its standard outputs, the first 64 KB */
};

/* Returns -1 after an error; a child that cannot be started is no error. */
int child_start(struct child *c, const struct child_setup *setup, struct error *e);
/* Looks after it; true once it has ended. */
bool child_step(struct child *c);
void child_wait(struct child *c);
/* Waits until something may have happened to one of them, or a moment. */
void children_poll(struct child *const *c, size_t n);
void child_free(struct child *c);

/* The next record of this kind after AFTER (NULL = the first), or NULL. */
const struct record *child_record(const struct child *c, const char *kind, const struct record *after);

/* "exit status 3", "signal 11 (Segmentation fault)", … in ARENA. */
const char *child_end_text(const struct child *c, struct arena *arena);

#endif
