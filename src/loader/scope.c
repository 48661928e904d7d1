#include "loader/scope.h"

#include "loader/internal.h"

#include <stdlib.h>
#include <unistd.h>

static void index_symbols(struct store *s, struct symbol_table *t)
{
	size_t n = t->symbols.n, i;

	t->name = arena_alloc(&s->arena, (n + 1) * sizeof(*t->name));
	t->next = arena_alloc(&s->arena, (n + 1) * sizeof(*t->next));
	for (i = n; i-- > 1;) { /* backwards, so that the first comes first */
		const char *name = names_add(&s->names, elf_symbol_name(&t->symbols, i));

		t->name[i] = name;
		t->next[i] = (uint32_t)(uintptr_t)name_map_get(&t->first, name);
		name_map_put(&t->first, name, (void *)(uintptr_t)i);
	}
}

const struct symbol_table *store_symbols(struct store *s, const struct root_file *file,
					 const struct elf_object *elf)
{
	struct symbol_table *t = name_map_get(&s->symbols, file->real);
	struct reader *r;
	int fd;

	if (t)
		return t;
	t = arena_new(&s->arena, struct symbol_table);
	name_map_put(&s->symbols, file->real, t);
	vec_push(&s->symbol_tables, t);
	t->elf = elf;
	t->hashed = elf->hash || elf->gnu_hash;
	r = xmalloc(sizeof(*r));
	fd = store_reader(s, file, r);
	if (fd >= 0) {
		if (elf_symbols_read(r, elf, &t->symbols) == 0)
			elf_relocations_read(r, elf, &t->relocations);
		close(fd);
	}
	free(r);
	index_symbols(s, t);
	return t;
}

/* What a reference asks for. */
struct reference {
	const char *name;
	const char *version, *file; /* NULL = unversioned; file NULL = a version of its own */
	bool version_hidden;
	bool skip_undefined;        /* ELF_RTYPE_CLASS_PLT: a canonical PLT entry is no definition */
	bool skip_exe;              /* a COPY relocation */
	bool skip_copied;           /* the program's copy of the symbol is none either */
	bool newest;                /* dlsym without a version */
};

/* The version that symbol I of T is bound to (a reference) or is (a definition). */
static const char *version_of(const struct symbol_table *t, size_t i, const char **file, bool *hidden)
{
	const struct elf_object *elf = t->elf;
	uint16_t index;
	size_t k;

	*file = NULL;
	*hidden = false;
	if (!t->symbols.version)
		return NULL;
	index = t->symbols.version[i] & 0x7fff;
	for (k = 0; k < elf->n_version_need; k++)
		if (elf->version_need[k].index == index) {
			*file = elf->version_need[k].file;
			*hidden = elf->version_need[k].hidden;
			return elf->version_need[k].version;
		}
	for (k = 0; k < elf->n_version_def; k++)
		if (elf->version_def[k].index == index && !elf->version_def[k].base)
			return elf->version_def[k].version;
	return NULL;
}

static struct reference reference_to(const struct symbol_table *t, uint32_t symbol, enum reloc_class class)
{
	struct reference ref = {.name = t->name[symbol], .skip_undefined = class == RELOC_PLT || class == RELOC_TLS,
				.skip_exe = class == RELOC_COPY};

	ref.version = version_of(t, symbol, &ref.file, &ref.version_hidden);
	return ref;
}

static bool type_allowed(unsigned type)
{
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC || type == STT_COMMON ||
	       type == STT_TLS || type == STT_GNU_IFUNC;
}

enum match_result { NO_MATCH, A_VERSION, FULL_MATCH };

/* check_match */
static enum match_result check_match(const struct symbol_table *t, uint32_t i, const struct reference *ref)
{
	const Elf64_Sym *y = &t->symbols.symbol[i];
	unsigned type = ELF64_ST_TYPE(y->st_info);
	uint16_t versym;

	if ((!y->st_value && y->st_shndx != SHN_ABS && type != STT_TLS) ||
	    (ref->skip_undefined && y->st_shndx == SHN_UNDEF) || !type_allowed(type))
		return NO_MATCH;
	if (!t->symbols.version)
		return FULL_MATCH;
	versym = t->symbols.version[i];
	if (ref->version) {
		const char *file, *version;
		bool hidden;

		version = version_of(t, i, &file, &hidden);
		if (version == ref->version)
			return FULL_MATCH;
		return ref->version_hidden || version || (versym & 0x8000) ? NO_MATCH : FULL_MATCH;
	}
	if ((versym & 0x7fff) >= (ref->newest ? 2 : 3))
		return versym & 0x8000 ? NO_MATCH : A_VERSION;
	return FULL_MATCH;
}

/* do_lookup_x for one object: the symbol's index, 0 = not here. */
static uint32_t lookup_in(const struct symbol_table *t, const struct reference *ref)
{
	uint32_t i, versioned = 0;
	unsigned versions = 0;

	if (!t->hashed)
		return 0;
	for (i = (uint32_t)(uintptr_t)name_map_get(&t->first, ref->name); i; i = t->next[i])
		switch (check_match(t, i, ref)) {
		case FULL_MATCH: return i;
		case A_VERSION:
			if (!versions++)
				versioned = i;
			break;
		case NO_MATCH: break;
		}
	return versions == 1 ? versioned : 0;
}

static const struct symbol_table *table_of(struct process *p, const struct object *o)
{
	return o->elf && o->file ? store_symbols(p->store, o->file, o->elf) : NULL;
}

/* Is this definition one that a lookup may take? */
static bool is_exported(const struct symbol_table *t, uint32_t i)
{
	unsigned visibility = ELF64_ST_VISIBILITY(t->symbols.symbol[i].st_other);
	unsigned bind = ELF64_ST_BIND(t->symbols.symbol[i].st_info);

	return visibility != STV_HIDDEN && visibility != STV_INTERNAL &&
	       (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE);
}

struct lookup_walk {
	struct process *p;
	const struct reference *ref;
	struct object *of; /* who refers, and by which of its symbols */
	uint32_t symbol;
	scope_visitor *visit;
	void *context;
	bool stop;
};

/* STB_GNU_UNIQUE: whatever was bound first in the namespace serves everybody.
 * A COPY relocation enters the program's copy, and takes its content from where
 * it was found. */
static struct definition unique(struct lookup_walk *w, struct object *o, uint32_t i)
{
	struct process *p = w->p;
	bool copy = w->ref->skip_exe;
	size_t k;

	for (k = 0; k < p->unique.n; k++)
		if (p->unique.at[k].name == w->ref->name && p->unique.at[k].object->ns == o->ns)
			break;
	if (k == p->unique.n)
		vec_push(&p->unique, ((struct unique_symbol){w->ref->name, copy ? w->of : o, copy ? w->symbol : i}));
	if (copy)
		return (struct definition){.object = o, .symbol = i};
	return (struct definition){.object = p->unique.at[k].object, .symbol = p->unique.at[k].symbol};
}

/* Up to 2.40 an assertion holds that a file which a version need names has
 * versions of its own. */
static bool breaks_assertion(const struct lookup_walk *w, const struct object *o, const struct symbol_table *t)
{
	return w->ref->version && !t->symbols.version && w->ref->file && w->p->facts->version <= 240 &&
	       object_has_name(o, w->ref->file);
}

/* Has the program a COPY relocation for a symbol of this name? */
static bool has_copied(const struct symbol_table *t, const char *name)
{
	size_t i;

	for (i = 0; i < t->relocations.n; i++)
		if (t->relocations.at[i].class == RELOC_COPY && t->relocations.at[i].symbol < t->symbols.n &&
		    t->name[t->relocations.at[i].symbol] == name)
			return true;
	return false;
}

static struct definition lookup_list(struct lookup_walk *w, struct object *const *list, size_t n, const char *what)
{
	size_t k;

	for (k = 0; k < n; k++) {
		struct object *o = list[k];
		const struct symbol_table *t = table_of(w->p, o);
		uint32_t i;
		bool good;

		if (!t || !t->hashed || (w->ref->skip_exe && o->kind == OBJECT_EXECUTABLE))
			continue;
		i = lookup_in(t, w->ref);
		if (i && w->ref->skip_copied && o->kind == OBJECT_EXECUTABLE && has_copied(t, w->ref->name))
			continue;
		good = i && is_exported(t, i);
		if (i && breaks_assertion(w, o, t)) {
			fail_fatally(w->p, o->path, "has no symbol versions, but is named for one: the loader's assertion fails");
			w->stop = true;
			break;
		}
		if (w->visit && !w->visit(w->context, o, what, good)) {
			w->stop = true;
			break;
		}
		if (good) {
			if (ELF64_ST_BIND(t->symbols.symbol[i].st_info) == STB_GNU_UNIQUE)
				return unique(w, o, i);
			return (struct definition){.object = o, .symbol = i};
		}
		/* Up to 2.29 the very file that the version need names must have it;
		 * since then a versioned symbol may move to another file. */
		if (!i && w->p->facts->version < 230 && w->ref->version && w->ref->file && object_has_name(o, w->ref->file)) {
			w->stop = true;
			return (struct definition){.broken = true};
		}
	}
	return (struct definition){0};
}

/* The global scope as it is now.  In another namespace it is the list of the
 * first object opened there. */
static struct definition lookup_global(struct lookup_walk *w, const struct object *o)
{
	const struct object *first = w->p->ns.at[o->ns].first;

	if (!o->ns)
		return lookup_list(w, w->p->global.at, w->p->global.n, "the global scope");
	return first ? lookup_list(w, first->searchlist.at, first->searchlist.n, "the global scope of its namespace")
		     : (struct definition){0};
}

static struct definition lookup_local(struct lookup_walk *w, const struct object *o)
{
	const struct object *root = o->root;

	return lookup_list(w, root->searchlist.at, root->searchlist.n, "what was opened with it");
}

static bool has_local_scope(const struct object *o)
{
	return o->root->kind == OBJECT_DLOPENED && !(o->ns && o->root->prev == NULL);
}

/* l_scope of an object, in order. */
static struct definition lookup_scopes(struct lookup_walk *w, struct object *o)
{
	struct definition d = {0};
	size_t i;
	bool symbolic = o->elf && o->elf->symbolic && o->kind != OBJECT_EXECUTABLE && !o->deepbind;

	if (symbolic)
		d = lookup_list(w, &o, 1, "itself (DT_SYMBOLIC)");
	if (!d.object && !w->stop && o->deepbind && has_local_scope(o))
		d = lookup_local(w, o);
	if (!d.object && !w->stop)
		d = lookup_global(w, o);
	if (!d.object && !w->stop && !o->deepbind && has_local_scope(o))
		d = lookup_local(w, o);
	for (i = 0; i < o->extra.n && !d.object && !w->stop; i++)
		d = lookup_list(w, o->extra.at[i]->searchlist.at, o->extra.at[i]->searchlist.n,
				"a later open that it is part of");
	return d;
}

static bool binds_locally(const Elf64_Sym *y)
{
	unsigned visibility = ELF64_ST_VISIBILITY(y->st_other);

	return ELF64_ST_BIND(y->st_info) == STB_LOCAL || visibility == STV_HIDDEN || visibility == STV_INTERNAL;
}

/* A protected symbol is its object's own, whoever comes before; but its address
 * is the program's canonical PLT entry if that stands for it.  Up to 2.35 a
 * protected object that is referred to by a GLOB_DAT is also the program's copy of
 * it (ELF_RTYPE_CLASS_EXTERN_PROTECTED_DATA). */
static bool keeps_protected(struct lookup_walk *w, struct object *o, enum reloc_class class, unsigned type)
{
	struct reference strict = *w->ref;
	struct lookup_walk again = {.p = w->p, .ref = &strict, .of = w->of, .symbol = w->symbol};
	struct definition d;

	if (class == RELOC_PLT || class == RELOC_TLS)
		return true;
	strict.skip_copied = class == RELOC_GOT && type == STT_OBJECT && w->p->facts->version < 236;
	strict.skip_undefined = !strict.skip_copied;
	d = lookup_scopes(&again, o);
	return d.object && d.object != o;
}

struct definition scope_bind(struct process *p, struct object *o, uint32_t symbol, enum reloc_class class)
{
	const struct symbol_table *t = table_of(p, o);
	struct reference ref;
	struct lookup_walk w = {.p = p, .ref = &ref, .of = o, .symbol = symbol};
	struct definition d;
	const Elf64_Sym *y;

	if (!t || symbol >= t->symbols.n)
		return (struct definition){0};
	y = &t->symbols.symbol[symbol];
	if (binds_locally(y))
		return (struct definition){.object = o, .symbol = symbol};
	ref = reference_to(t, symbol, class);
	d = lookup_scopes(&w, o);
	if (d.object && d.object != o && ELF64_ST_VISIBILITY(y->st_other) == STV_PROTECTED &&
	    y->st_shndx != SHN_UNDEF && keeps_protected(&w, o, class, ELF64_ST_TYPE(y->st_info)))
		return (struct definition){.object = o, .symbol = symbol};
	return d;
}

void scope_walk(struct process *p, struct object *o, uint32_t symbol, enum reloc_class class,
		scope_visitor *visit, void *context)
{
	const struct symbol_table *t = table_of(p, o);
	struct reference ref;
	struct lookup_walk w = {.p = p, .ref = &ref, .visit = visit, .context = context};

	if (!t || symbol >= t->symbols.n)
		return;
	ref = reference_to(t, symbol, class);
	lookup_scopes(&w, o);
}

struct definition scope_dlsym(struct process *p, struct object *handle, const char *name)
{
	struct reference ref = {.name = names_add(&p->store->names, name), .skip_undefined = false, .newest = true};
	struct lookup_walk w = {.p = p, .ref = &ref};

	if (handle == p->exe)
		return lookup_list(&w, p->global.at, p->global.n, "the global scope");
	return lookup_list(&w, handle->searchlist.at, handle->searchlist.n, "its list");
}

/* elf/dl-sym.c, do_sym */
struct definition scope_default(struct process *p, struct object *o, const char *name)
{
	struct reference ref = {.name = names_add(&p->store->names, name), .skip_undefined = false, .newest = true};
	struct lookup_walk w = {.p = p, .ref = &ref};

	return lookup_scopes(&w, o);
}

struct definition scope_next(struct process *p, struct object *o, const char *name)
{
	struct reference ref = {.name = names_add(&p->store->names, name), .skip_undefined = false};
	struct lookup_walk w = {.p = p, .ref = &ref};
	const struct object *root = o->root;
	size_t i;

	for (i = 0; i < root->searchlist.n && root->searchlist.at[i] != o; i++)
		;
	if (i == root->searchlist.n)
		return (struct definition){0};
	return lookup_list(&w, root->searchlist.at + i + 1, root->searchlist.n - i - 1, "what comes behind it");
}

bool object_binds_now(const struct process *p, const struct object *o)
{
	/* Since 2.39 secure execution ignores LD_BIND_NOW (process_envvars_secure). */
	return o->opened_now || (o->elf && o->elf->bind_now) ||
	       (p->setup->bind_now && !(p->setup->secure && p->facts->version >= 239));
}

static void keep_binding(struct process *p, struct object *o, const struct elf_relocation *r, bool at_call,
			 struct definition d)
{
	if (p->setup->bindings)
		vec_push(&o->bindings, ((struct binding){r->symbol, r->class, at_call, d.object, d.symbol}));
}

/* RELOC_DATA comes after RELOC_GOT of the same symbol, and is nearly always bound alike. */
static bool is_repeated(const struct object *o, const struct elf_relocation *r, struct definition d)
{
	const struct binding *last = o->bindings.n ? &o->bindings.at[o->bindings.n - 1] : NULL;

	return r->class == RELOC_DATA && last && last->symbol == r->symbol && last->class == RELOC_GOT && last->to == d.object;
}

/* Relocation, as far as it can fail: every reference that is bound now must
 * have a definition, unless it is weak. */
static bool relocate(struct process *p, struct object *o)
{
	const struct symbol_table *t = table_of(p, o);
	bool now = object_binds_now(p, o);
	size_t i;

	if (!t)
		return true;
	for (i = 0; i < t->relocations.n; i++) {
		const struct elf_relocation *r = &t->relocations.at[i];
		struct definition d = {0};

		if (r->symbol >= t->symbols.n)
			continue;
		if (r->class == RELOC_PLT && !now) {
			keep_binding(p, o, r, true, d);
			continue;
		}
		d = scope_bind(p, o, r->symbol, r->class);
		if (!is_repeated(o, r, d))
			keep_binding(p, o, r, false, d);
		if (p->failure->text)
			return false;
		if (d.object)
			continue;
		if (!d.broken && ELF64_ST_BIND(t->symbols.symbol[r->symbol].st_info) == STB_WEAK)
			continue;
		return fail(p, o->path, arena_printf(&p->arena, "undefined symbol: %s", t->name[r->symbol])), false;
	}
	return true;
}

static bool own_visibility(struct process *p, const struct object *o, uint32_t symbol)
{
	const struct symbol_table *t = table_of(p, o);

	return t && ELF64_ST_VISIBILITY(t->symbols.symbol[symbol].st_other) != STV_DEFAULT;
}

/* What lazily bound calls would find if they happened now. */
void process_bind_calls(struct process *p)
{
	size_t i, k;

	for (i = 0; i < p->objects.n; i++) {
		struct object *o = p->objects.at[i];

		for (k = 0; k < o->bindings.n; k++) {
			struct binding *b = &o->bindings.at[k];
			struct definition d;

			if (!b->at_call)
				continue;
			/* _dl_fixup does not even look: what is not of default visibility
			 * is the object's own. */
			if (own_visibility(p, o, b->symbol)) {
				b->to = o;
				b->definition = b->symbol;
				continue;
			}
			d = scope_bind(p, o, b->symbol, (enum reloc_class)b->class);
			b->to = d.object;
			b->definition = d.symbol;
		}
	}
}

/* dfs_traversal of _dl_sort_maps_dfs (2.35 and later): what an object needs
 * comes before it.  What is being opened has no list of its own yet, so that a
 * circle is not followed through it. */
static void sort_object(struct object *o, const struct object *opened, const struct process *p,
			struct object **out, size_t *n)
{
	size_t i;

	if (o->visited || o->missing)
		return;
	o->visited = true;
	for (i = 0; o != opened && i < o->needed.n; i++)
		if (o->needed.at[i] != p->exe)
			sort_object(o->needed.at[i], opened, p, out, n);
	out[(*n)++] = o;
}

/* Is Y in X's l_initfini: what it needs, or if it was opened itself, all that this
 * brought? */
static bool lists(const struct object *x, const struct object *y)
{
	size_t i;

	for (i = 0; i < x->searchlist.n; i++)
		if (x->searchlist.at[i] == y)
			return true;
	for (i = 0; !x->searchlist.n && i < x->needed.n; i++)
		if (x->needed.at[i] == y)
			return true;
	return false;
}

/* _dl_sort_maps up to 2.34: from the front on, each object is moved behind the last
 * one that needs it.  In a circle that would never end: one that has come round more
 * often than there are places stays. */
static void sort_maps(struct object **map, size_t n)
{
	size_t *seen = xmalloc((n + 1) * sizeof(*seen)), i = 0, k, times;

	memset(seen, 0, (n + 1) * sizeof(*seen));
	while (n > 1 && i < n) {
		struct object *o = map[i];

		times = ++seen[i];
		for (k = n - 1; k > i && !lists(map[k], o); k--)
			;
		if (k > i) {
			memmove(map + i, map + i + 1, (k - i) * sizeof(struct object *));
			map[k] = o;
			if (seen[i + 1] <= n - i) {
				memmove(seen + i, seen + i + 1, (k - i) * sizeof(*seen));
				seen[k] = times;
				continue;
			}
		}
		i++;
		memset(seen + i, 0, (n - i) * sizeof(*seen));
	}
	free(seen);
}

/* Relocation goes through them from the back.  Up to 2.31 an open sorts what stands
 * in the link map from the opened object on, later ones its list but for the first. */
static size_t relocation_order_to_234(const struct process *p, const struct object_list *list, struct object **out)
{
	struct object *opened = list->at[0], *o, *swap;
	bool by_map = p->facts->version < 232 && opened != p->exe;
	size_t n = 0, i;

	if (by_map) {
		for (o = opened; o; o = o->next)
			if (!o->relocated && !o->missing)
				out[n++] = o;
	} else {
		for (i = 0; i < list->n; i++)
			if (!list->at[i]->missing)
				out[n++] = list->at[i];
	}
	sort_maps(by_map || !n ? out : out + 1, by_map || !n ? n : n - 1);
	for (i = 0; i < n / 2; i++) {
		swap = out[i];
		out[i] = out[n - 1 - i];
		out[n - 1 - i] = swap;
	}
	return n;
}

/* The order of relocation: dependencies first, the opened object last.  It only
 * matters to STB_GNU_UNIQUE, whose first binding decides. */
static size_t relocation_order(struct process *p, const struct object_list *list, struct object **out)
{
	size_t i, n = 0, k;

	for (i = 0; i < p->objects.n; i++)
		p->objects.at[i]->visited = true; /* outside the list: not to be followed */
	for (i = 0; i < list->n; i++)
		list->at[i]->visited = false;
	for (i = list->n; i-- > 0;)
		sort_object(list->at[i], list->at[0], p, out, &n);
	for (i = 0; i < n && out[i] != list->at[0]; i++)
		;
	for (k = i; k + 1 < n; k++)
		out[k] = out[k + 1];
	if (i < n)
		out[n - 1] = list->at[0];
	return n;
}

bool relocate_list(struct process *p, const struct object_list *list)
{
	struct object **order;
	size_t i, n;

	if (!p->setup->symbols)
		return true;
	order = arena_alloc(&p->arena, (list->n + p->objects.n + 1) * sizeof(struct object *));
	n = p->facts->version < 235 ? relocation_order_to_234(p, list, order) : relocation_order(p, list, order);
	for (i = 0; i < n; i++) {
		struct object *o = order[i];

		if (o->relocated || o->how == HOW_INTERP)
			continue;
		if (!relocate(p, o))
			return false;
		o->relocated = true;
	}
	return true;
}
