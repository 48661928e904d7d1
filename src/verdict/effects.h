/* What a crossing between two versions does, derived from the facts. */
#ifndef NCCLWHICH_VERDICT_EFFECTS_H
#define NCCLWHICH_VERDICT_EFFECTS_H

#include "linkage/surface.h"

/* An id is used before anything else of init happens; reports call both "init". */
enum phase { PHASE_LOAD, PHASE_BOOTSTRAP, PHASE_INIT, PHASE_FIRST_COLLECTIVE, PHASE_LATER, PHASE_EXIT };
enum outcome { OUTCOME_NONE, OUTCOME_ERROR, OUTCOME_CRASH, OUTCOME_HANG, OUTCOME_UNDEFINED, OUTCOME_UNKNOWN };

/* What happens, and when.  The effect is a constant text. */
struct first_trouble {
	enum phase phase;
	enum outcome outcome;
	const char *effect;
};

/* Versions may be NULL: unknown.  MACHINE is elf_machine_name(). */

/* FROM calls its own SYMBOL and TO answers. */
struct first_trouble crossing_effect(const struct target *t, const char *machine, const char *symbol,
				     const char *from, const char *to);

/* All that FROM calls unasked and TO exports: the first trouble of the two. */
struct first_trouble crossing_of_versions(const struct target *t, const char *machine, const char *from,
					  const char *to);

/* An id minted in FROM makes a communicator in TO; a communicator of FROM is
 * used in TO. */
struct first_trouble id_between_versions(const struct target *t, const char *from, const char *to);
struct first_trouble comm_between_versions(const struct target *t, const char *machine, const char *from,
					   const char *to);

/* Is A noticed before B? */
bool trouble_comes_first(struct first_trouble a, struct first_trouble b);

const char *phase_name(enum phase p);
const char *outcome_name(enum outcome o);

#endif
