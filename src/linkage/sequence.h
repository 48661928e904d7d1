/* The life of one process, from start-up through its opens, in order.
 *
 * Events declared on the command line happen in their order; opens that were
 * discovered in an object happen straight after the event that mapped it, the
 * engine's own after everything declared. */
#ifndef NCCLWHICH_LINKAGE_SEQUENCE_H
#define NCCLWHICH_LINKAGE_SEQUENCE_H

#include "linkage/plan.h"

struct profile;

/* How we know of an open. */
enum evidence {
	EVIDENCE_NEEDED, EVIDENCE_DECLARED, EVIDENCE_NOTE, EVIDENCE_CODE, EVIDENCE_LITERAL, EVIDENCE_PROFILE,
	EVIDENCE_SCRIPT
};

/* An open that was simulated. */
struct opened {
	struct object *caller;
	const char *name;
	unsigned flags;
	enum evidence evidence;
	const char *source;    /* the profile's name, the note's feature, the place in the code; NULL otherwise */
	const struct profile *profile; /* that knew of it; NULL otherwise */
	struct object *consumer; /* of the profile: who uses what is opened; NULL = the caller */
	bool eager;            /* by the profile: every function is looked up at once */
	struct lookup *lookup; /* NULL: the caller was not loaded, nothing was asked */
	bool shim;
	const char *caller_text; /* as declared */
};

struct sequence {
	struct process_setup setup;
	struct process *process;
	struct cpu cpu;
	VEC(struct opened) opened;
	bool engine_is_library;
	struct object *engine; /* the object the engine is; NULL if it could not be loaded */
	const char *died;      /* an open ended the process: why; NULL = it lives */
};

/* What the plan's engine is opened as: fills SETUP and *LIBRARY, the path to
 * open in a bare process when the engine is a shared object, else NULL. */
int plan_setup(const struct plan *plan, struct store *store, const struct cpu *cpu,
	       struct process_setup *setup, const char **library, struct error *e);

/* A path of the command line as the plan's root has it: absolute, interned. */
const char *plan_path(const struct plan *plan, struct store *store, const char *path);

/* An object that the command line names, as a path of the plan's root; NULL
 * after an error: it is not there, damaged, or for a machine not simulated. */
const struct elf_object *plan_object(const struct plan *plan, struct store *store, const char *path,
				     struct root_file **file, struct error *e);

/* The canonical path of the file that starts as the engine; NULL if it is not there. */
const char *plan_engine_file(const struct plan *plan, struct store *store);

/* The machine the engine is for; -1 after an error. */
int plan_machine(const struct plan *plan, struct store *store, uint16_t *machine, struct error *e);

/* Start-up, and the open of an engine that is a library.  Returns -1 after an error; a process that
 * would not start is no error. */
int sequence_start(struct sequence *s, const struct plan *plan, struct store *store,
		   const struct cpu *cpu, bool record, bool symbols, struct error *e);
/* One event of the command line. */
void sequence_declared(struct sequence *s, const struct event *event);

/* One more open by CALLER; NULL once the process has died. */
struct opened *sequence_open(struct sequence *s, struct object *caller, const char *name,
			     unsigned flags, enum evidence evidence, const char *source);
void sequence_free(struct sequence *s);

const char *evidence_name(enum evidence e);

#endif
