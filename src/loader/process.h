/* A process as its dynamic loader sees it: the link map as ordered state.
 *
 * process_start() does what ld.so does before main, process_open() what dlopen
 * does, for glibc from 2.17 on (musl's rules are another set).  Nothing is
 * executed: only names, files and the order of events matter.
 *
 * The loader is a state machine, and so is this: a name is compared with what
 * is loaded before anything is searched, and a file found is compared by
 * identity afterwards.  A decision once made is never revised.
 *
 * Everything is owned by the process; free it with process_free(). */
#ifndef NCCLWHICH_LOADER_PROCESS_H
#define NCCLWHICH_LOADER_PROCESS_H

#include "loader/store.h"

/* How an object came to be wanted. */
enum how { HOW_EXEC, HOW_INTERP, HOW_VDSO, HOW_PRELOAD, HOW_NEEDED, HOW_DLOPEN, HOW_FILTER, HOW_AUXILIARY };

/* Where a request was settled; also the stage of a candidate. */
enum stage { BY_LOADED, BY_PATH, BY_RPATH, BY_ENV, BY_RUNPATH, BY_CACHE, BY_DEFAULT, BY_NOTHING };

/* For a request that was settled by what is loaded: by which comparison. */
enum match { MATCH_NONE, MATCH_NAME, MATCH_SONAME, MATCH_FILE };

enum object_kind { OBJECT_EXECUTABLE, OBJECT_STARTUP, OBJECT_DLOPENED };

/* Flags of an open.  RTLD_LOCAL is the absence of OPEN_GLOBAL. */
enum open_flags {
	OPEN_LAZY = 1, OPEN_NOW = 2, OPEN_GLOBAL = 4, OPEN_NOLOAD = 8, OPEN_DEEPBIND = 16,
	OPEN_NODELETE = 32, OPEN_NEWLM = 64
};

struct object;

/* A file that was considered for a request, and what became of it. */
struct candidate {
	const char *path;
	enum stage stage;
	const struct object *list_of; /* whose RPATH or RUNPATH, NULL otherwise */
	int error;                    /* errno, or 0 */
	enum elf_fault fault;         /* or what is wrong with the file */
	const char *note;             /* anything else, in words */
	bool taken;
};

/* One request and how it was settled. */
struct lookup {
	const struct object *requester;
	const char *request;
	enum how how;
	struct object *object; /* NULL: nothing loaded */
	enum stage found_by;
	enum match match;
	const struct object *list_of;
	const char *error;     /* the loader's words, NULL = none (a NOLOAD that found nothing) */
	bool fatal;            /* the process ends here whatever its code does */
	int event;             /* -1 = start-up, else the index of the open */
	VEC(struct candidate) candidate;
};

struct object_list {
	struct object **at;
	size_t n;
};

/* A reference and what it is bound to. */
struct binding {
	uint32_t symbol;      /* in the symbol table of the object that refers */
	int class;            /* enum reloc_class */
	bool at_call;         /* a lazily bound call: bound as the scopes are when it happens */
	struct object *to;    /* NULL: to nothing */
	uint32_t definition;  /* symbol of TO */
};

struct object {
	unsigned id; /* in the order of mapping */
	enum object_kind kind;
	enum how how;
	const char *path; /* realname: as composed for open(), never made canonical */
	VEC(const char *) names;
	bool soname_known;
	struct root_file *file; /* NULL: the vDSO, a missing object, a bare program */
	bool no_identity;       /* never matched by file: the program and ld.so */
	const struct elf_object *elf;
	const char *origin;     /* what $ORIGIN stands for in its strings */
	struct object *loader;  /* whose need mapped it; NULL for a dlopened object */
	const struct object *requester;
	const char *request;
	enum stage found_by;
	const struct object *list_of; /* whose RPATH or RUNPATH found it */
	int ns, event;
	struct object *next, *prev; /* the link map of its namespace */
	struct object_list searchlist; /* of the program and of whatever was opened itself */
	bool assumed; /* missing here, but present where the process will run */
	bool has_searchlist, global, deepbind, missing, versions_checked, reserved;
	struct object *root; /* the end of its loader chain */
	struct search_list *rpath, *runpath; /* expanded at the first use */
	VEC(struct object *) extra;    /* later opens whose lists were added to its scopes */
	bool dependencies_known;
	VEC(struct object *) needed;   /* what its own tags led to, in their order */
	VEC(struct binding) bindings;  /* if setup->bindings, once relocated */
	bool opened_now, relocated, initialised, visited;
};

struct namespace {
	struct object *first;
	struct object *last;  /* a hint where the end is; NULL = walk from the first */
	size_t n_loaded;      /* as ld.so counts, reachable from the first or not */
};

struct process_setup {
	struct store *store;
	const char *exe;          /* absolute path in the root, or NULL: a bare program … */
	const char *interp;       /* … under this loader; else overrides PT_INTERP */
	uint16_t machine;         /* of a bare program */
	const char *exe_runpath;  /* instead of the program's own, NULL = as it is */
	const char *library_path, *preload, *audit; /* NULL = unset */
	bool bind_now;            /* LD_BIND_NOW */
	const char *cwd;          /* absolute */
	bool secure;
	const char *cache;        /* path of the cache instead of the loader's own; "" = none */
	const struct cpu *cpu;
	const char *const *assume; /* names, globs: there at run time although not on disk */
	size_t n_assume;
	bool symbols;             /* relocate too: an undefined symbol makes an open fail */
	bool bindings;            /* keep what every reference is bound to */
	bool record;              /* keep every lookup with its candidates */
};

/* A symbol of STB_GNU_UNIQUE that has been bound. */
struct unique_symbol {
	const char *name;
	struct object *object;
	uint32_t symbol;
};

struct process {
	struct store *store;
	struct arena arena;
	const struct process_setup *setup;
	const struct ld_facts *facts;
	struct hwcaps hwcaps;
	struct object *exe, *interp, *vdso;
	VEC(struct namespace) ns;
	VEC(struct object *) objects;  /* every one ever mapped, by id; unloaded ones too */
	VEC(struct lookup *) lookups;  /* if setup->record */
	struct search_list *env, *system;
	struct name_map dirs;
	struct name_map answered;      /* every name that some object answers to or did */
	VEC(struct unique_symbol) unique;
	VEC(struct object *) global;   /* the global scope of the base namespace */
	bool exec_stack;               /* somebody who came in time asked for it */
	bool started;                  /* false: start-up would fail */
	const char *start_error;       /* then: in the loader's words */
	const char *start_object;      /* and which file it is about */
	bool cpu_matters;              /* some decision looked at the processor */
	bool cwd_matters;              /* or at the working directory */
	VEC(const char *) warnings;    /* preloads that are ignored, and the like */
	int event;                     /* index of the open in progress, -1 at start-up */
	struct failure *failure;
};

/* NULL after an error: no such executable, not an executable for ld.so, an
 * unusable interpreter.  A start-up that would *fail* is a process with
 * started false, mapped as far as it came. */
struct process *process_start(const struct process_setup *setup, struct error *e);
void process_free(struct process *p);

/* dlopen(NAME, FLAGS) by CALLER.  The lookup returned lives as long as the
 * process, also without setup->record. */
struct lookup *process_open(struct process *p, struct object *caller, const char *name, unsigned flags);

/* Does NAME (interned) name the object: its path, its canonical path, its SONAME
 * or a name it was asked for by? */
bool object_is_named(const struct object *o, const char *name);

/* The first object of the base namespace's link map that PATH names. */
struct object *process_find(struct process *p, const char *path);

/* The first object of a namespace's link map.  A filtee of the program stands
 * before it, where the loader's own comparisons do not see it. */
const struct object *process_first(const struct process *p, size_t ns);

const char *how_name(enum how how);
const char *stage_name(enum stage stage);

#endif
