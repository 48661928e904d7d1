/* Bounded reading of a file that may be hostile, huge or shrinking.
 *
 * Never mmap: a file that shrinks under a mapping kills us with SIGBUS.  Small
 * reads are served from two windows (a table and the strings it names lie apart), so that walking a header and its tables
 * costs two or three system calls.  Every offset and length is checked against
 * the size seen when the file was opened; a read that comes back short is a
 * failure like any other.  A reader does not own its descriptor. */
#ifndef NCCLWHICH_BASE_READER_H
#define NCCLWHICH_BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { READER_WINDOW = 8 * 1024 };

struct reader_window {
	uint64_t at; /* file offset of data[0] */
	size_t n;    /* bytes valid in it */
	unsigned char data[READER_WINDOW];
};

struct reader {
	int fd;
	uint64_t size; /* bytes in the file */
	unsigned last; /* the window used last; the other is the next to go */
	struct reader_window window[2];
};

void reader_open(struct reader *r, int fd, uint64_t size);

/* Exactly N bytes at OFFSET, or false. */
bool reader_at(struct reader *r, uint64_t offset, void *to, size_t n);

/* A NUL-terminated string of fewer than LIMIT bytes that starts at OFFSET.
 * Returns its length and copies it, with the NUL, into TO (of LIMIT bytes); -1
 * if there is no NUL within LIMIT bytes or before the end of the file. */
long reader_string(struct reader *r, uint64_t offset, char *to, size_t limit);

/* The first byte from OFFSET on that is not in a hole of the file, which reads
 * as zeros and may be larger than any disk; the file's size if none is left. */
uint64_t reader_after_hole(const struct reader *r, uint64_t offset);

#endif
