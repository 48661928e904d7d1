/* The facts are those of data/targets; nothing is decided from a version's
 * distance to another. */
#include "verdict/effects.h"

const char *phase_name(enum phase p)
{
	static const char *const names[] = {"load", "init", "init", "first-collective", "later", "exit"};

	return names[p];
}

const char *outcome_name(enum outcome o)
{
	static const char *const names[] = {"none", "error", "crash", "hang", "undefined", "unknown"};

	return names[o];
}

static bool between(const char *version, const char *from, const char *to)
{
	return data_version_compare(version, from) >= 0 && data_version_compare(version, to) <= 0;
}

static const struct target_era *era_of(const struct target *t, const char *version)
{
	unsigned i;

	for (i = 0; version && i < t->eras_count; i++)
		if (between(version, t->eras[i].from, t->eras[i].to))
			return &t->eras[i];
	return NULL;
}

static const struct target_layout *layout_of(const struct target *t, const char *machine, const char *version)
{
	unsigned i;

	for (i = 0; version && i < t->layouts_count; i++)
		if (!strcmp(t->layouts[i].version, version) && !strcmp(t->layouts[i].machine, machine))
			return &t->layouts[i];
	return NULL;
}

static struct first_trouble trouble(enum phase phase, enum outcome outcome, const char *effect)
{
	return (struct first_trouble){phase, outcome, effect};
}

/* An id carries the address of a root thread in the copy that minted it; the
 * ranks send that thread a message of their own era. */
struct first_trouble id_between_versions(const struct target *t, const char *from, const char *to)
{
	const struct target_era *minted = era_of(t, from), *used = era_of(t, to);

	if (!minted || !used)
		return trouble(PHASE_BOOTSTRAP, OUTCOME_UNKNOWN, "an id of one copy is used in another, and the era of one "
			       "of these versions is not known");
	if (minted == used)
		return trouble(PHASE_BOOTSTRAP, OUTCOME_NONE, "an id of the same era: works");
	if (used->message > minted->message)
		return trouble(PHASE_BOOTSTRAP, OUTCOME_HANG, "init hangs: the ranks' message is longer than the root of the "
			       "id's copy accepts, which ends the root without an answer");
	return trouble(PHASE_BOOTSTRAP, OUTCOME_UNDEFINED, "init hangs or crashes: the root of the id's copy takes the ranks' "
		       "shorter message for its own kind and reads counts that are none");
}

static bool same_layout(const struct target_layout *a, const struct target_layout *b)
{
	return a->size == b->size && a->end == b->end;
}

/* A's check on a communicator of B. */
static struct first_trouble check_comm(const struct target *t, const char *machine, const char *owner,
				       const char *answers, enum phase phase)
{
	const struct target_layout *theirs = layout_of(t, machine, owner), *ours = layout_of(t, machine, answers);

	if (owner && answers && !strcmp(owner, answers) && !theirs)
		return trouble(phase, OUTCOME_NONE, "the same version: its check passes");
	if (!theirs || !ours)
		return trouble(phase, OUTCOME_UNKNOWN, "the layout of a communicator of one of these versions is not known");
	if (same_layout(theirs, ours))
		return trouble(phase, OUTCOME_NONE, "the same layout: the check passes");
	if (ours->end)
		return trouble(phase, OUTCOME_ERROR, "ncclInvalidArgument (4): corrupted comm object detected");
	return trouble(phase, OUTCOME_UNDEFINED, "a copy without a check reads fields at its own offsets in the other's "
		       "communicator: luck, an error or a crash");
}

struct first_trouble comm_between_versions(const struct target *t, const char *machine, const char *from,
					   const char *to)
{
	struct first_trouble f = check_comm(t, machine, from, to, PHASE_FIRST_COLLECTIVE);

	/* Unlike a query, a collective follows pointers out of it. */
	if (f.outcome == OUTCOME_UNDEFINED)
		return trouble(PHASE_FIRST_COLLECTIVE, OUTCOME_CRASH,
			       "crash: a copy without a check follows pointers in the other's communicator");
	return f;
}

static enum phase phase_of(const char *word)
{
	return !strcmp(word, "init") ? PHASE_INIT : !strcmp(word, "first-collective") ? PHASE_FIRST_COLLECTIVE
	     : !strcmp(word, "exit") ? PHASE_EXIT : !strcmp(word, "load") ? PHASE_LOAD : PHASE_LATER;
}

/* The effect of one function that FROM reaches unasked and TO answers. */
static struct first_trouble effect_of(const struct target *t, const char *machine, const struct target_reached *k,
				      const char *from, const char *to)
{
	enum phase phase = phase_of(k->phase);

	if (!strcmp(k->effect, "checks-comm"))
		return check_comm(t, machine, from, to, phase);
	if (!strcmp(k->effect, "uses-comm"))
		return trouble(phase, OUTCOME_CRASH, "crash: the copy that answers works on the other's communicator with "
			       "state that its own initialisation never filled in");
	/* Both must have tables of their own to destroy. */
	if (!strcmp(k->effect, "shares-data") && to && between(to, k->from, k->to))
		return trouble(phase, OUTCOME_CRASH, "abort at exit: both copies destroy the same tables");
	return trouble(phase, OUTCOME_NONE, "no consequence by itself");
}

/* Is anything known of this version?  Without facts, that no row says a function
 * is reached means nothing. */
static bool is_covered(const struct target *t, const char *version)
{
	unsigned i;

	for (i = 0; version && i < t->layouts_count; i++)
		if (!strcmp(t->layouts[i].version, version))
			return true;
	return false;
}

struct first_trouble crossing_effect(const struct target *t, const char *machine, const char *symbol,
				     const char *from, const char *to)
{
	const struct target_symbol *y;
	unsigned i;
	int k;

	for (i = 0; from && i < t->reached_count; i++)
		if (!strcmp(t->reached[i].symbol, symbol) && between(from, t->reached[i].from, t->reached[i].to))
			return effect_of(t, machine, &t->reached[i], from, to);
	for (i = 0; !is_covered(t, from) && i < t->reached_count; i++)
		if (!strcmp(t->reached[i].symbol, symbol))
			return trouble(phase_of(t->reached[i].phase), OUTCOME_UNKNOWN,
				       "whether this version calls it by itself is not known");
	k = target_symbol_index(t, symbol);
	y = k < 0 ? NULL : &t->symbols[k];
	if (!y || !y->does)
		return trouble(PHASE_LATER, OUTCOME_NONE, "no consequence by itself");
	if (!strcmp(y->does, "mints-id"))
		return trouble(PHASE_LATER, id_between_versions(t, to, from).outcome,
			       "an id that a copy mints for itself comes from the other");
	if (!strcmp(y->does, "allocates"))
		return trouble(PHASE_LATER, OUTCOME_UNDEFINED, "memory of one copy is used in the other");
	if (y->unchecked)
		return trouble(PHASE_LATER, OUTCOME_UNDEFINED, "reads the other's communicator without a check");
	return check_comm(t, machine, from, to, PHASE_LATER);
}

/* The earliest phase in which something happens; within one, the worst. */
bool trouble_comes_first(struct first_trouble a, struct first_trouble b)
{
	static const int weight[] = {[OUTCOME_NONE] = 0, [OUTCOME_UNKNOWN] = 1, [OUTCOME_UNDEFINED] = 2,
				     [OUTCOME_ERROR] = 3, [OUTCOME_HANG] = 4, [OUTCOME_CRASH] = 5};

	if (a.outcome == OUTCOME_NONE || b.outcome == OUTCOME_NONE)
		return b.outcome == OUTCOME_NONE && a.outcome != OUTCOME_NONE;
	if (a.phase != b.phase)
		return a.phase < b.phase;
	return weight[a.outcome] > weight[b.outcome];
}

static bool exports(const struct target *t, const char *version, const char *symbol)
{
	int k = target_symbol_index(t, symbol);

	return k >= 0 && (!t->symbols[k].since || data_version_compare(version, t->symbols[k].since) >= 0) &&
	       (!t->symbols[k].until || data_version_compare(version, t->symbols[k].until) <= 0);
}

struct first_trouble crossing_of_versions(const struct target *t, const char *machine, const char *from,
					  const char *to)
{
	struct first_trouble first = trouble(PHASE_EXIT, OUTCOME_NONE, "nothing that is noticed"), next;
	unsigned i;

	for (i = 0; i < t->reached_count; i++) {
		const struct target_reached *k = &t->reached[i];

		if (!between(from, k->from, k->to) || !exports(t, to, k->symbol))
			continue;
		next = effect_of(t, machine, k, from, to);
		if (trouble_comes_first(next, first))
			first = next;
	}
	return first;
}
