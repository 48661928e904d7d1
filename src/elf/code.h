/* What machine code opens: the calls of dlopen and its like, and their names.
 *
 * Every call and tail call of dlopen, dlmopen, dlsym and dlvsym in an x86-64 or
 * AArch64 object is found, through the PLT, through a GOT slot or through a
 * register, and its name argument is traced back: constants, selections between
 * constants, tables of names, names put together on the stack from immediates,
 * by printf-like formats, strcpy and strcat, values of variables that getenv
 * returns, and parameters of functions that the same object calls.  Section
 * headers and .symtab are not asked.
 *
 * A name stands in the answer only if some path of the code hands it over.  What
 * cannot be traced is said: an entry that is `computed` and has no name.  So a
 * call may have several entries, names and a computed one beside them.  Names
 * are interned in the pool of the caller, everything else lives in its arena.
 *
 * Out of reach, and therefore computed: what another function of the object
 * returns or stores, strings of C++ and Rust, and addresses of dlopen that are
 * handed on.  secure_getenv is taken for getenv. */
#ifndef NCCLWHICH_ELF_CODE_H
#define NCCLWHICH_ELF_CODE_H

#include "elf/symbols.h"

/* What a call of dlsym looks in. */
enum elf_handle { HANDLE_UNKNOWN, HANDLE_DEFAULT, HANDLE_NEXT, HANDLE_OPENED };

/* When a walk along a table of names ends. */
enum elf_walk { WALK_UNREAD, WALK_UNTIL_OPEN, WALK_ALL };

struct elf_open {
	const char *function; /* "dlopen", "dlmopen", "dlsym", "dlvsym" */
	const char *name;     /* NULL: a form, computed, or else a null pointer, which dlopen takes for the program */
	const char *form;     /* a name that has values of the environment in it, as {env:NAME}; else NULL */
	bool computed;        /* not all that is passed here is known */
	bool row;             /* an entry of a table that the call goes along */
	unsigned order;       /* in which it was found: of rows, that of the table */
	bool taken;           /* no call: the function's address is stored or handed on here; also computed */
	long flags;           /* RTLD_ bits as passed, -1 = cannot be read, or a function without flags */
	enum elf_handle handle;
	uint64_t opened_at;   /* HANDLE_OPENED: vaddr of the call that returned it */
	uint64_t instead;     /* elf_open_place() of a call with a form that is made, or else this one; 0 = none */
	uint64_t where;       /* vaddr of the call (of the tail call, of the load) */
	uint64_t via;         /* vaddr of the call that hands the name to a wrapper, 0 = none */
	const char *in;       /* "function+0x1f", or "0x4a10" where no dynamic symbol covers it */
	const char *via_in;   /* the same of `via`; NULL = none */
	const char *opened_in; /* … and of `opened_at` */
	uint64_t fallback_of; /* elf_open_place() of a call: this one is made only after that returned NULL; 0 = not shown */
	bool unclear;         /* … and how it stands to the others cannot be read */
	enum elf_walk walk;   /* of a row: when the walk along the table ends */
	bool tail;            /* a jump: glibc takes who called the function for the caller (return address) */
	bool asked_here;      /* tail: somebody in this object calls the function */
	const char *asked_as; /* tail: the function's exported name, by which other objects call it; NULL = none */
	const char *through;  /* a function of another object, which opens what it is given; NULL = `function` itself */
};

struct elf_opens {
	struct elf_open *at; /* by address; those of one call by `order` */
	size_t n;
	const char *note; /* which bound was met or what could not be read, so that calls may be missing; or NULL */
};

static inline bool elf_open_is_lookup(const struct elf_open *o)
{
	return !strcmp(o->function, "dlsym") || !strcmp(o->function, "dlvsym");
}

static inline bool elf_open_is_file(const struct elf_open *o)
{
	return !strcmp(o->function, "dlopen") || !strcmp(o->function, "dlmopen");
}

/* The call that names what is opened: that of the wrapper, where there is one. */
static inline uint64_t elf_open_place(const struct elf_open *o)
{
	return o->via ? o->via : o->where;
}

static inline const char *elf_open_in(const struct elf_open *o)
{
	return o->via ? o->via_in : o->in;
}

/* Returns -1, with a note, when the file could not be read; OUT then has what was
 * found before.  Objects of other machines, and those that import none of the
 * four functions, have no entries. */
int elf_code_opens(struct reader *r, const struct elf_object *o, const struct elf_symbols *s, struct names *names,
		   struct arena *arena, struct elf_opens *out);

#endif
