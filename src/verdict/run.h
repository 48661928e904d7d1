/* One simulated life of the engine and what follows from it: the paths to the
 * tracked library, the copies they reach, what is wrong, the verdict.
 *
 * A run owns its simulated life and everything in it; run_free() ends it.  The
 * surfaces and the store outlive it. */
#ifndef NCCLWHICH_VERDICT_RUN_H
#define NCCLWHICH_VERDICT_RUN_H

#include "linkage/life.h"

/* Worst first; the order is the order of precedence. */
enum verdict {
	VERDICT_CROSSED, VERDICT_ABSENT, VERDICT_WRONG, VERDICT_SPLIT, VERDICT_UNSURE, VERDICT_NONE, VERDICT_ONE
};

enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE };

/* One mapped copy of the tracked library. */
struct instance {
	unsigned id;
	const struct object *object;
	const struct surface *surface;
	const char *sha256; /* on request */
};

/* A way to the library: who asks, for what, and where it ends.  Names that a
 * consumer tried before the one that opened are the path's `tried`. */
struct path {
	const struct object *requester;
	const char *request;
	enum evidence evidence;
	const char *source; /* profile and version, NULL otherwise */
	const struct object *consumer; /* who uses it: the requester, or for whom that asks */
	const struct profile *profile; /* of the consumer, if one knew of it; else NULL */
	enum how how;
	const struct lookup *lookup;
	struct instance *instance; /* NULL: none reached */
	const struct surface *surface; /* of the consumer */
	bool eager;                /* looks up every function at once */
	bool *elsewhere;           /* by symbol: got from a scope instead; NULL = none */
	bool goes_on;              /* its opener survives a failure */
	VEC(const struct lookup *) tried;
};

struct fix {
	const char *command;
	enum verdict after;  /* of the same run with the fix in place */
	const char *version; /* of the copy that is left, if it is one */
	size_t crossings;    /* that are left */
};

struct finding {
	const char *rule;
	enum severity severity;
	const char *message;
	const struct object *object; /* or NULL */
	VEC(struct fix) fixes;
};

struct run {
	struct life life;
	struct surfaces *surfaces;
	struct arena arena;
	VEC(struct path *) paths;
	VEC(struct instance *) instances;
	VEC(struct api_binding *) bindings; /* every reference to the API but self-calls that stay */
	VEC(struct crossing *) crossings;
	struct first_trouble *outcome; /* what goes wrong first, if the paths are used as their symbols say */
	VEC(struct finding *) findings;
	enum verdict verdict;
};

/* NULL after an error. */
struct run *run_new(const struct plan *plan, struct surfaces *surfaces, const struct cpu *cpu, struct error *e);
void run_free(struct run *r);

/* The copy that O is, or NULL. */
struct instance *run_instance_of(const struct run *r, const struct object *o);

struct finding *run_add_finding(struct run *r, const char *rule, enum severity severity,
				const struct object *object, const char *message);

/* Do two runs say the same in every decision that a report shows? */
bool run_same(const struct run *a, const struct run *b);

const char *verdict_name(enum verdict v);
const char *severity_name(enum severity s);

/* What a path does with the library: bits of DOES_*. */
enum { DOES_MINT = 1, DOES_MAKE = 2, DOES_USE = 4, DOES_ALLOCATE = 8 };
unsigned symbol_does(const struct target *t, const char *symbol);
unsigned path_does(const struct path *p, const struct target *t);

/* Is symbol K of the target used by the path? */
bool path_uses(const struct path *p, unsigned k);

#endif
