/* How far long work has come: one line on standard error, for people.
 *
 * Nothing is shown until progress_enable() was called, which main does where
 * standard error is a terminal, nor in the first second of the work; and nothing
 * is left of it at the end. */
#ifndef NCCLWHICH_BASE_PROGRESS_H
#define NCCLWHICH_BASE_PROGRESS_H

#include <stddef.h>

void progress_enable(void);

/* DONE of TOTAL things of WHAT; cheap enough for every one of them. */
void progress_show(const char *what, size_t done, size_t total);

/* Takes the line away. */
void progress_end(void);

#endif
