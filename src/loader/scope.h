/* Symbol lookup over the predicted link map: glibc elf/dl-lookup.c.
 *
 * A reference is looked for in the scopes of the object that has it, object by
 * object; the first acceptable definition wins, be it weak or not, in the
 * object itself or not.  That is all that symbol interposition is. */
#ifndef NCCLWHICH_LOADER_SCOPE_H
#define NCCLWHICH_LOADER_SCOPE_H

#include "elf/symbols.h"
#include "loader/process.h"

/* A file's dynamic symbols and relocations, with an index by name. */
struct symbol_table {
	struct elf_symbols symbols;
	struct elf_relocations relocations;
	struct name_map first;   /* interned name -> index + 1 of its first symbol */
	const char **name;       /* by index, interned */
	uint32_t *next;          /* the next symbol of that name, 0 = none */
	const struct elf_object *elf;
	bool hashed;             /* there is a hash table to be found through */
};

/* Read once a file; never NULL. */
const struct symbol_table *store_symbols(struct store *s, const struct root_file *file,
					 const struct elf_object *elf);

struct definition {
	struct object *object; /* NULL: nowhere */
	uint32_t symbol;       /* index in its table */
	bool broken;           /* the file that a version need names has lost the symbol: an error even if weak */
};

/* Where the reference SYMBOL of O, by a relocation of CLASS, is bound with the
 * scopes as they are now. */
struct definition scope_bind(struct process *p, struct object *o, uint32_t symbol, enum reloc_class class);

/* dlsym(HANDLE, NAME): the list of what was opened; of the program the global scope. */
struct definition scope_dlsym(struct process *p, struct object *handle, const char *name);

/* dlsym(RTLD_DEFAULT, NAME) by O, through all scopes of O; with RTLD_NEXT what comes
 * behind O in the list of the program or of the open that it belongs to. */
struct definition scope_default(struct process *p, struct object *o, const char *name);
struct definition scope_next(struct process *p, struct object *o, const char *name);

/* Every object that SYMBOL of O passes, in order, until CALLBACK returns false. */
typedef bool scope_visitor(void *context, struct object *searched, const char *scope_name, bool accepted);
void scope_walk(struct process *p, struct object *o, uint32_t symbol, enum reloc_class class,
		scope_visitor *visit, void *context);

/* Fills in what the lazily bound calls of every object would be bound to if
 * they happened now; the rest was kept while loading. */
void process_bind_calls(struct process *p);

/* Is O's PLT bound while loading? */
bool object_binds_now(const struct process *p, const struct object *o);

#endif
