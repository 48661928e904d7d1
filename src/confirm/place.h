/* Where the real loader is put to work: a temporary directory for what the
 * processes need, and, with a root, a view of it that has this directory, too.
 *
 * Nothing is written into the root: in a mount namespace of its own each
 * process gets a new root directory whose entries are those of the given one,
 * bound, so that device and inode numbers stay. */
#ifndef NCCLWHICH_CONFIRM_PLACE_H
#define NCCLWHICH_CONFIRM_PLACE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct place {
	char *dir;             /* the temporary directory */
	char *library;         /* the replay library as a process sees it */
	char *program;         /* the bare program as a process sees it, once made */
	const char *root;      /* NULL = the running system */
	bool user_namespace;   /* we are not root: be root there */
};

/* Returns -1 after an error. */
int place_open(struct place *p, const char *root, struct error *e);
void place_close(struct place *p);

/* Writes a program whose only need is libc and whose interpreter is INTERP. */
int place_bare_program(struct place *p, const char *interp, uint16_t machine, struct error *e);

/* In a process that is about to exec: moves it there.  NULL, or what failed
 * (errno says why). */
const char *place_enter(const struct place *p, const char *cwd);

/* How a process sees our directory. */
const char *place_inside(const struct place *p);

/* The path of one of our own libraries, to be freed; NULL after an error. */
char *place_library(const char *name, struct error *e);

#endif
