/* What goes from one copy to another, and what that does.
 *
 * Bindings say which copy answers each call.  A crossing is a call, a piece of
 * data or a handle that belongs to one copy and is worked on by another.  The
 * effect is derived: from what the two files export and call (read from them),
 * and from what is known of their versions (data/targets).  A version that the
 * facts do not cover gives "unknown", never a guess. */
#ifndef NCCLWHICH_VERDICT_CROSSINGS_H
#define NCCLWHICH_VERDICT_CROSSINGS_H

#include "verdict/effects.h"
#include "verdict/run.h"

enum crossing_kind { CROSS_SELF_CALL, CROSS_DATA, CROSS_ID, CROSS_COMM, CROSS_MEMORY };

struct crossing {
	enum crossing_kind kind;
	const char *symbol;          /* the function or datum; for a handle, what takes it */
	const struct instance *from; /* whose call or handle it is */
	const struct instance *to;   /* who answers or works on it */
	enum phase phase;
	enum outcome outcome;
	const char *effect;
	bool at_call;                /* a lazy call: other opens before it could change the answer */
};

/* A reference to the tracked API. */
struct api_binding {
	const struct object *object;
	const char *symbol;
	const struct object *to; /* NULL: to nothing */
	const struct instance *instance;
	bool at_call;
	const char *looked_up; /* "default", "next": by dlsym with RTLD_DEFAULT, RTLD_NEXT; NULL: a reference */
};

/* Fills R's bindings, crossings and outcome, and adds the findings
 * split-crossed and symbol-missing. */
void find_crossings(struct run *r);

const char *crossing_kind_name(enum crossing_kind k);

#endif
