#include "linkage/sequence.h"

#include "linkage/script.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

const char *evidence_name(enum evidence e)
{
	static const char *const names[] = {"needed", "declared", "note", "code", "literal", "profile", "script"};

	return names[e];
}

/* A path of the command line as the root has it: absolute. */
static const char *path_in_root(const struct plan *plan, struct store *store, const char *path, const char *cwd)
{
	char *text;
	const char *result;

	if (path[0] == '/')
		return names_add(&store->names, path);
	while (path[0] == '.' && path[1] == '/')
		for (path += 2; *path == '/'; path++)
			;
	text = plan->root ? xprintf("/%s", path) : xprintf("%s/%s", cwd[1] ? cwd : "", path);
	result = names_add(&store->names, text);
	free(text);
	return result;
}

static const char *working_directory(const struct plan *plan, struct store *store)
{
	char here[PATH_MAX];

	if (!store->cwd)
		store->cwd = names_add(&store->names, plan->cwd ? plan->cwd
				       : plan->root || !getcwd(here, sizeof(here)) ? "/" : here);
	return store->cwd;
}

/* What a file named on the command line says; NULL after an error. */
static const struct elf_object *named_object(struct store *store, const char *path, struct root_file **file,
					     struct error *e)
{
	const struct elf_object *elf;
	int error = root_lookup(store->root, path, file), open_error;

	if (error) {
		error_set(e, "%s: %s", path, strerror(-error));
		return NULL;
	}
	elf = store_object(store, *file, &open_error);
	if (open_error)
		error_set(e, "%s: %s", path, strerror(open_error));
	else if (elf->fault)
		error_set(e, "%s: %s%s%s", path, elf_fault_text(elf->fault), elf->detail ? ": " : "",
			  elf->detail ? elf->detail : "");
	else if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
		error_set(e, "%s: is for %s; x86-64 and AArch64 are simulated", path,
			  elf_machine_name(elf->machine));
	else
		return elf;
	return NULL;
}

const char *plan_path(const struct plan *plan, struct store *store, const char *path)
{
	return path_in_root(plan, store, path, working_directory(plan, store));
}

const struct elf_object *plan_object(const struct plan *plan, struct store *store, const char *path,
				     struct root_file **file, struct error *e)
{
	return named_object(store, plan_path(plan, store, path), file, e);
}

/* The file that is executed: the program, or a script's interpreter. */
static const char *executed(const struct plan *plan, struct store *store, const char *path, struct error *e)
{
	return script_executable(plan, store, plan_path(plan, store, path), e);
}

const char *plan_engine_file(const struct plan *plan, struct store *store)
{
	struct error e = {0};
	const char *path = executed(plan, store, plan->engine, &e);
	struct root_file *file;

	error_clear(&e);
	return path && !root_lookup(store->root, path, &file) ? file->real : NULL;
}

int plan_machine(const struct plan *plan, struct store *store, uint16_t *machine, struct error *e)
{
	const char *path = executed(plan, store, plan->exe ? plan->exe : plan->engine, e);
	const struct elf_object *elf;
	struct root_file *file;

	elf = path ? named_object(store, path, &file, e) : NULL;
	if (!elf)
		return -1;
	*machine = elf->machine;
	return 0;
}

/* AT_SECURE is set by the kernel for set-id files and for files that carry
 * capabilities; who runs it is not known here, so "auto" means: as another
 * user than the owner. */
static bool is_secure(const struct plan *plan, struct store *store, const struct root_file *file)
{
	if (plan->secure != SECURE_AUTO || !file)
		return plan->secure == SECURE_YES;
	return (file->mode & (S_ISUID | S_ISGID)) || root_has_capabilities(store->root, file);
}

int plan_setup(const struct plan *plan, struct store *store, const struct cpu *cpu,
	       struct process_setup *setup, const char **library, struct error *e)
{
	const char *cwd = working_directory(plan, store);
	const char *engine = executed(plan, store, plan->engine, e);
	const struct elf_object *elf;
	struct root_file *file;

	elf = engine ? named_object(store, engine, &file, e) : NULL;
	if (!elf)
		return -1;
	*library = NULL;
	memset(setup, 0, sizeof(*setup));
	setup->store = store;
	setup->cpu = cpu;
	setup->cwd = cwd;
	setup->machine = elf->machine;
	setup->interp = plan->interp;
	setup->exe_runpath = plan->runpath;
	setup->library_path = plan->library_path;
	setup->preload = plan->preload;
	setup->audit = plan->audit;
	setup->bind_now = plan->bind_now;
	setup->cache = plan->cache;
	setup->assume = plan->assume.at;
	setup->n_assume = plan->assume.n;
	if (plan->exe) {
		*library = engine;
		engine = executed(plan, store, plan->exe, e);
		if (!engine || !named_object(store, engine, &file, e))
			return -1;
		setup->exe = engine;
	} else if (elf->interp || elf->bad_interp || plan->interp) {
		setup->exe = engine;
	} else if (elf->type == ET_EXEC || (elf->flags_1 & DF_1_PIE)) {
		return error_set(e, "%s: statically linked: no dynamic loader runs", engine);
	} else {
		*library = engine;
		file = NULL;
	}
	setup->secure = is_secure(plan, store, file);
	return 0;
}

struct opened *sequence_open(struct sequence *s, struct object *caller, const char *name,
			     unsigned flags, enum evidence evidence, const char *source)
{
	struct opened opened = {.caller = caller, .name = name, .flags = flags, .evidence = evidence,
				.source = source};

	if (s->died)
		return NULL;
	if (caller) {
		opened.lookup = process_open(s->process, caller, name, flags);
		if (opened.lookup->fatal)
			s->died = opened.lookup->error;
	}
	vec_push(&s->opened, opened);
	return &s->opened.at[s->opened.n - 1];
}

void sequence_declared(struct sequence *s, const struct event *event)
{
	struct object *caller = s->process->exe;
	struct opened *opened;

	if (event->caller)
		caller = process_find(s->process, event->caller);
	opened = sequence_open(s, caller, event->name, event->flags, EVIDENCE_DECLARED, NULL);
	if (opened) {
		opened->shim = event->shim;
		opened->caller_text = event->caller;
	}
}

int sequence_start(struct sequence *s, const struct plan *plan, struct store *store,
		   const struct cpu *cpu, bool record, bool symbols, struct error *e)
{
	const char *library;

	memset(s, 0, sizeof(*s));
	s->cpu = *cpu;
	if (plan_setup(plan, store, &s->cpu, &s->setup, &library, e) < 0)
		return -1;
	if (!s->setup.secure)
		cpu_mask(&s->cpu, plan->tunables);
	s->setup.record = record;
	s->setup.symbols = symbols;
	s->setup.bindings = symbols && (record || plan->bindings);
	s->process = process_start(&s->setup, e);
	if (!s->process)
		return -1;
	s->engine = library ? NULL : s->process->exe;
	s->engine_is_library = library != NULL;
	if (!s->process->started)
		return 0;
	if (library) {
		struct opened *opened = sequence_open(s, s->process->exe, library, OPEN_NOW, EVIDENCE_DECLARED, NULL);

		if (opened && opened->lookup) {
			opened->shim = true;
			s->engine = opened->lookup->object;
		}
	}
	return 0;
}

void sequence_free(struct sequence *s)
{
	process_free(s->process);
	vec_free(&s->opened);
	memset(s, 0, sizeof(*s));
}

const char *plan_getenv(const struct plan *plan, const char *name)
{
	size_t n = strlen(name), i;

	for (i = plan->env.n; i-- > 0;) /* the last one counts */
		if (!strncmp(plan->env.at[i], name, n) && plan->env.at[i][n] == '=')
			return plan->env.at[i] + n + 1;
	return NULL;
}
