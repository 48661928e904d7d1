/* The members of a zip archive, which is what a wheel is: listed when it is
 * opened, read when they are asked for.
 *
 * A member's bytes stand in memory and never on disk; pages of zeros take none,
 * so that a file made to unpack to gigabytes of them costs nothing. */
#ifndef NCCLWHICH_ROOT_ZIP_H
#define NCCLWHICH_ROOT_ZIP_H

#include "base/error.h"
#include "base/names.h"

#include <stdbool.h>
#include <stdint.h>

struct zip;

struct zip_member {
	const char *name; /* as the archive spells it */
	uint64_t size;    /* bytes */
};

/* FD becomes the archive's, also after an error; NAME is what errors call it.
 * NULL after an error. */
struct zip *zip_open(int fd, const char *name, struct error *e);
void zip_close(struct zip *z);

/* Regular files, in the order of the archive; of those with one name the last counts. */
size_t zip_count(const struct zip *z);
const struct zip_member *zip_member(const struct zip *z, size_t k);

/* A descriptor of the member's bytes, at its beginning; or a negative errno.
 * It shares its position with others of the same member. */
int zip_member_open(struct zip *z, size_t k);

#endif
