/* .note.dlopen: the opens that an object declares of itself (UAPI ELF dlopen
 * metadata).  Recognised by the note's owner and type, whatever its section is
 * called. */
#ifndef NCCLWHICH_ELF_NOTE_H
#define NCCLWHICH_ELF_NOTE_H

#include "elf/object.h"

/* One feature: its names are alternatives, tried in order. */
struct dlopen_note {
	const char **name;
	size_t n;
	const char *feature, *priority; /* NULL = not said; priority then is "required" */
};

struct dlopen_notes {
	struct dlopen_note *at;
	size_t n;
	const char *damage; /* what is wrong with a note that could not be read; NULL = nothing */
};

/* Everything lives in ARENA and NAMES. */
void elf_dlopen_notes(struct reader *r, const struct elf_object *o, struct names *names, struct arena *arena,
		      struct dlopen_notes *out);

#endif
