/* What the engine calls of its statically linked shim. Results are ncclResult_t as int. */
#ifndef DEMO_SHIM_H
#define DEMO_SHIM_H

int shim_version(int *version);

/* An address inside the library that the shim is linked to. */
const void *shim_library(void);

/* The decode role's context: an id and a communicator, both from the linked library. */
int shim_context_create(void **context, int ranks, int rank);

#endif
