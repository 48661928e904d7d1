/* What one object shows of its dealings with a tracked library: which of its
 * functions it imports, defines or looks up by name, which names it could
 * open, and which known consumer it is.
 *
 * Read once a file and kept with the surfaces; everything lives in their
 * arena.  Symbols are counted by their index in target->symbols. */
#ifndef NCCLWHICH_LINKAGE_SURFACE_H
#define NCCLWHICH_LINKAGE_SURFACE_H

#include "elf/code.h"
#include "elf/note.h"
#include "linkage/data.h"
#include "loader/store.h"

/* A whole string of a tracked name. */
struct literal {
	const char *name;
	bool whole; /* false: something printable stands before it; then it is only a note */
};

struct surface {
	bool imports_dlopen, imports_dlsym;
	bool *imported, *defined, *held; /* by symbol: undefined here; exported; held as a string */
	bool *by_default, *by_next; /* by symbol: looked up with RTLD_DEFAULT, RTLD_NEXT */
	bool scoped; /* some are */
	size_t n_imported, n_defined, n_held;
	size_t n_unlinked; /* held, but neither imported nor defined: to be looked up */
	bool unlinked_key; /* one of these mints an id or makes a communicator */
	VEC(struct literal) literal;
	struct dlopen_notes notes;     /* what the object declares itself */
	struct elf_opens code;         /* what its machine code shows, if that was asked for */
	bool code_read;
	const struct profile *profile; /* of a consumer that was recognised */
	const char *profile_version;   /* "0.19.10"; NULL if the profile has none */
	int cuda_major, cuda_minor;    /* -1 = not visible */
	bool tracked;        /* the file is a copy of the library, or has one in it */
	bool buried;         /* … and is something else besides */
	bool stub;           /* exports the API but is no copy: it opens one */
	const char *version; /* of that copy; NULL = not found out */
	const char *version_from; /* "banner", "code", "symbols" */
	const char *disagreement; /* banner and code say different things; NULL = they agree */
	const char *build_id;
	const char *note;    /* a table that could not be read */
};

struct surfaces {
	struct store *store;
	const struct target *target;
	const struct data *data;
	const char *engine; /* canonical path of the engine's file, for which data->engine counts; or NULL */
	struct arena arena;
	struct name_map by_file;
	VEC(struct surface *) all;
};

void surfaces_init(struct surfaces *s, struct store *store, const struct data *data,
		   const struct target *target);
void surfaces_free(struct surfaces *s);

/* Never NULL; an object that is no readable file shows nothing. */
const struct surface *surface_of(struct surfaces *s, const struct root_file *file,
				 const struct elf_object *elf);

/* The same with its machine code read, which is not done for every object: it
 * takes longer than all the rest. */
const struct surface *surface_with_code(struct surfaces *s, const struct root_file *file,
					const struct elf_object *elf);

/* Is a name of what it opens computed, as far as its code was read? */
bool surface_computes(const struct surface *s);

/* Is the K-th function of the library one that the object names, and neither imports
 * nor defines? */
bool surface_names_unlinked(const struct surface *s, unsigned k);

/* Does the object look up the API under a name that it does not show? */
bool surface_hides_loader(const struct surface *s);

/* Is NAME one that the target is asked for by?  A path is judged by its last
 * component. */
bool target_matches(const struct target *t, const char *name);

/* Does it mint an id or make a communicator?  One such name says who looks it up. */
bool symbol_is_key(const struct target_symbol *y);

/* Index in t->symbols, or -1. */
int target_symbol_index(const struct target *t, const char *name);

#endif
