/* A whole process as far as it opens things: start-up, what was found in the
 * objects, the import line, the events of the command line, the engine's own.
 *
 * Ends with life_free(); the surfaces and the store outlive it. */
#ifndef NCCLWHICH_LINKAGE_LIFE_H
#define NCCLWHICH_LINKAGE_LIFE_H

#include "linkage/sequence.h"
#include "linkage/surface.h"

struct life {
	struct sequence sequence;
	VEC(const char *) hiding_scripts; /* look the API up under a name that they compute */
	VEC(const char *) cut_packages;   /* have more files than are looked at */
};

/* LIFE is zeroed by the caller.  Returns -1 after an error; a process that does
 * not start, or that an open ends, is no error. */
int life_simulate(struct life *l, struct surfaces *surfaces, const struct plan *plan, const struct cpu *cpu,
		  struct error *e);
void life_free(struct life *l);

#endif
