/* A search for texts in what a file maps into memory.
 *
 * Every byte of the loadable segments is looked at once, however the segments
 * overlap, except the dynamic string table (names of symbols are no evidence of
 * a lookup) and device code: a fatbin block (magic 0xBA55ED50 and its size) is
 * stepped over without being read, which is what makes a library of 350 MB a
 * matter of milliseconds. */
#ifndef NCCLWHICH_ELF_SCAN_H
#define NCCLWHICH_ELF_SCAN_H

#include "elf/object.h"

enum { SCAN_CONTEXT = 4096 }; /* bytes a hit may look at to either side, where there are that many */

struct scan_hit {
	unsigned needle;         /* index */
	const unsigned char *at; /* where it begins */
	size_t before, after;    /* bytes readable before and from AT on */
	uint64_t offset;         /* in the file */
};

typedef void scan_function(void *context, const struct scan_hit *hit);

/* Returns -1 if a part of the file could not be read. */
int elf_scan(struct reader *r, const struct elf_object *o, const char *const *needle, unsigned n,
	     scan_function *found, void *context);

/* The first block of device code that begins in the first N of HAVE bytes of
 * DATA, or N; *LENGTH is its whole size, header included.  DATA is at OFFSET of
 * the file, and LEFT bytes of its segment begin there. */
size_t scan_find_fatbin(const unsigned char *data, size_t n, size_t have, uint64_t offset, uint64_t left,
			uint64_t *length);

#endif
