/* The bare program: what a library is opened in when no program was named. */
#ifndef NCCLWHICH_CONFIRM_HOST_H
#define NCCLWHICH_CONFIRM_HOST_H

#include "base/error.h"

#include <stdint.h>

/* Writes an executable to PATH that needs libc.so.6 and nothing else, has
 * INTERP as its interpreter, and does nothing but exit with status 97. */
int host_write(const char *path, const char *interp, uint16_t machine, struct error *e);

#endif
