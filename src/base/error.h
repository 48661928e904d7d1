/* What went wrong, said once, by the function that noticed.
 *
 * A fallible function returns a negative value and fills the struct error of
 * its caller exactly once; on success it leaves it alone.  A fault of an
 * analysed file is not an error but data (see elf/object.h); errors are what
 * keeps us from doing the job: usage, a named input that cannot be read, a
 * failed write.  The text is owned by the struct; error_clear() frees it. */
#ifndef NCCLWHICH_BASE_ERROR_H
#define NCCLWHICH_BASE_ERROR_H

struct error {
	char *text; /* NULL while nothing went wrong */
};

/* Returns -1, so that a failing function can end with `return error_set(…)`. */
int error_set(struct error *e, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Puts "prefix: " in front of a text that is already there; returns -1. */
int error_wrap(struct error *e, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void error_clear(struct error *e);

#endif
