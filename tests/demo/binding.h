/* A Rust crate's run-time binding of NCCL, in miniature (see binding.c). */
#ifndef DEMO_BINDING_H
#define DEMO_BINDING_H

#include <stddef.h>

/* Opens the first candidate that opens, once; ends the program when none does. */
void *binding_library(void);

/* The symbol at this offset and length of the packed names; ends the program when it is missing. */
void *binding_symbol(size_t offset, size_t length);

/* Offsets and lengths in the run of names that binding.c holds. */
#define BINDING_ALL_REDUCE     0, 13
#define BINDING_COMM_INIT_RANK 26, 16
#define BINDING_GET_VERSION    42, 14
#define BINDING_GET_UNIQUE_ID  56, 15

#endif
