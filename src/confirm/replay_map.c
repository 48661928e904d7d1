/* The link map as it really is, and the slots of its global offset tables.
 *
 * A lazily bound slot that nobody has called through still points into its
 * object's own PLT.  What a call would reach is then asked of dlsym, in the
 * order in which the loader would look (glibc elf/dl-runtime.c, _dl_fixup):
 * nothing is called, so nothing of the engine runs. */
#include "confirm/replay_map.h"

#if defined(__x86_64__)
enum { R_SLOT = R_X86_64_JUMP_SLOT, R_DATA = R_X86_64_GLOB_DAT, R_WORD = R_X86_64_64 };
#else
enum { R_SLOT = R_AARCH64_JUMP_SLOT, R_DATA = R_AARCH64_GLOB_DAT, R_WORD = R_AARCH64_ABS64 };
#endif

struct mapped objects[OBJECTS_MOST];
int n_objects;
struct event events[EVENTS_MOST];
int n_events;
const char *symbols[SYMBOLS_MOST];
int n_symbols;
const char *program_path = "";

static const struct link_map *namespaces[NAMESPACES_MOST]; /* any object of each; 0 is the program's */
static int n_namespaces;
static const struct link_map *order[OBJECTS_MOST]; /* by number */
static int n_order;

static const struct link_map *first_of(const struct link_map *map)
{
	while (map && map->l_prev)
		map = map->l_prev;
	return map;
}

struct wanted {
	const struct link_map *map;
	const ElfW(Phdr) *phdr;
	unsigned phnum;
};

static int take_headers(struct dl_phdr_info *info, size_t size, void *context)
{
	struct wanted *w = context;

	(void)size;
	if (info->dlpi_addr != w->map->l_addr || !bare_equal(info->dlpi_name, w->map->l_name))
		return 0;
	w->phdr = info->dlpi_phdr;
	w->phnum = info->dlpi_phnum;
	return 1;
}

static void find_headers(struct mapped *o)
{
	struct wanted w = {.map = o->map};
	unsigned i;

	if (o->ns == 0 && dl_iterate_phdr)
		dl_iterate_phdr(take_headers, &w);
	/* It shows our own namespace only, and that from the program on: filtees
	 * of the program stand before it. */
	if (!w.phdr && o->map->l_addr) {
		const ElfW(Ehdr) *header = (const void *)o->map->l_addr;

		w.phdr = (const void *)(o->map->l_addr + header->e_phoff);
		w.phnum = header->e_phnum;
	}
	o->phdr = w.phdr;
	o->phnum = w.phnum;
	o->start = UINTPTR_MAX;
	for (i = 0; i < w.phnum; i++) {
		uintptr_t from = o->map->l_addr + w.phdr[i].p_vaddr;

		if (w.phdr[i].p_type != PT_LOAD)
			continue;
		if (from < o->start)
			o->start = from;
		if (from + w.phdr[i].p_memsz > o->end)
			o->end = from + w.phdr[i].p_memsz;
	}
}

void map_add_namespace(const struct link_map *any)
{
	int i;

	for (i = 0; i < n_namespaces; i++)
		if (first_of(namespaces[i]) == first_of(any))
			return;
	if (n_namespaces < NAMESPACES_MOST)
		namespaces[n_namespaces++] = any;
}

int map_of(const struct link_map *map)
{
	int i;

	for (i = 0; map && i < n_objects; i++)
		if (objects[i].map == map)
			return i;
	return -1;
}

void map_scan(int event)
{
	const struct link_map *map;
	int i, k;

	for (i = 0; i < n_objects; i++)
		objects[i].number = -1;
	n_order = 0;
	for (i = 0; i < n_namespaces; i++)
		for (map = first_of(namespaces[i]); map && n_order < OBJECTS_MOST; map = map->l_next) {
			k = map_of(map);
			if (k < 0 && n_objects < OBJECTS_MOST) {
				k = n_objects++;
				objects[k].map = map;
				objects[k].ns = (unsigned)i;
				objects[k].event = event;
				find_headers(&objects[k]);
			}
			if (k < 0)
				replay_give_up("too many objects are loaded");
			objects[k].number = n_order;
			order[n_order++] = map;
		}
	for (i = 0; i < n_objects; i++)
		if (objects[i].number < 0)
			objects[i].map = NULL;
}

int map_owner(uintptr_t address)
{
	int i;
	unsigned k;

	for (i = 0; address && i < n_objects; i++) {
		const struct mapped *o = &objects[i];

		if (!o->map || address < o->start || address >= o->end)
			continue;
		for (k = 0; k < o->phnum; k++)
			if (o->phdr[k].p_type == PT_LOAD && address >= o->map->l_addr + o->phdr[k].p_vaddr &&
			    address < o->map->l_addr + o->phdr[k].p_vaddr + o->phdr[k].p_memsz)
				return i;
	}
	return -1;
}

int map_find(const char *path)
{
	int i;

	for (i = 0; i < n_order; i++)
		if (bare_equal(order[i]->l_name, path))
			return map_of(order[i]);
	return -1;
}

uintptr_t map_return_in(int object)
{
	const struct mapped *o = &objects[object];
	unsigned i;

	for (i = 0; i < o->phnum; i++) {
		const ElfW(Phdr) *p = &o->phdr[i];
		uintptr_t at = o->map->l_addr + p->p_vaddr, end = at + p->p_filesz;

		if (p->p_type != PT_LOAD || (p->p_flags & (PF_R | PF_X)) != (PF_R | PF_X))
			continue;
#if defined(__x86_64__)
		for (; at < end; at++)
			if (*(const unsigned char *)at == 0xc3) /* ret */
				return at;
#else
		for (at = (at + 3) & ~(uintptr_t)3; at + 8 <= end; at += 4)
			if (((const uint32_t *)at)[0] == 0xa8c17bfd && /* ldp x29, x30, [sp], #16 */
			    ((const uint32_t *)at)[1] == 0xd65f03c0)   /* ret */
				return at;
#endif
	}
	return 0;
}

void map_identity(int object, struct stat *st)
{
	const struct mapped *o = &objects[object];
	const char *path = o->map->l_name;

	if (!*path && o->ns == 0)
		path = program_path;
	if (!*path || bare_stat(path, st) < 0)
		st->st_dev = 0, st->st_ino = 0;
}

void map_build_id(int object, char *hex, size_t room)
{
	const struct mapped *o = &objects[object];
	size_t n = 0;
	unsigned i, k;

	*hex = '\0';
	for (i = 0; i < o->phnum; i++) {
		const char *at = (const char *)(o->map->l_addr + o->phdr[i].p_vaddr);
		const char *end = at + o->phdr[i].p_filesz;

		while (o->phdr[i].p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const unsigned char *data = (const void *)(at + sizeof(*note) + ((note->n_namesz + 3) & ~3u));

			if ((const char *)data + note->n_descsz > end)
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && bare_starts((const char *)(note + 1), "GNU")) {
				for (k = 0; k < note->n_descsz && n + 2 < room; k++) {
					hex[n++] = "0123456789abcdef"[data[k] >> 4];
					hex[n++] = "0123456789abcdef"[data[k] & 15];
				}
				hex[n] = '\0';
				return;
			}
			at = (const char *)data + ((note->n_descsz + 3) & ~3u);
		}
	}
}

void map_report(const char *phase)
{
	struct line l;
	struct stat st = {.st_dev = 0};
	char build_id[132];
	int i, self = map_owner((uintptr_t)&objects);

	l.n = 0;
	for (i = 0; i < n_order; i++) {
		int k = map_of(order[i]);

		map_identity(k, &st);
		map_build_id(k, build_id, sizeof(build_id));
		line_field(&l, "object");
		line_field(&l, phase);
		line_number(&l, i);
		line_number(&l, (long)objects[k].ns);
		line_field(&l, order[i]->l_name);
		line_number(&l, (long)st.st_dev);
		line_number(&l, (long)st.st_ino);
		line_number(&l, k == self);
		line_field(&l, build_id);
		line_end(&l);
	}
	line_say("mapped", phase);
}

/* ---- relocations */

struct tables {
	const ElfW(Rela) *rela, *slots;
	size_t n_rela, n_slots;
	const ElfW(Sym) *symbol;
	const char *strings;
	int symbolic;
};

/* ld.so makes the addresses of a dynamic section absolute in place, but not
 * where the section is read-only. */
static uintptr_t absolute(const struct mapped *o, uintptr_t value)
{
	return value < o->start ? value + o->map->l_addr : value;
}

static void read_tables(const struct mapped *o, struct tables *t)
{
	const ElfW(Dyn) *d;

	*t = (struct tables){0};
	for (d = o->map->l_ld; d && d->d_tag != DT_NULL; d++)
		switch (d->d_tag) {
		case DT_RELA: t->rela = (const void *)absolute(o, d->d_un.d_ptr); break;
		case DT_RELASZ: t->n_rela = d->d_un.d_val / sizeof(*t->rela); break;
		case DT_JMPREL: t->slots = (const void *)absolute(o, d->d_un.d_ptr); break;
		case DT_PLTRELSZ: t->n_slots = d->d_un.d_val / sizeof(*t->slots); break;
		case DT_SYMTAB: t->symbol = (const void *)absolute(o, d->d_un.d_ptr); break;
		case DT_STRTAB: t->strings = (const void *)absolute(o, d->d_un.d_ptr); break;
		case DT_SYMBOLIC: t->symbolic = 1; break;
		case DT_FLAGS: t->symbolic |= (d->d_un.d_val & DF_SYMBOLIC) != 0; break;
		}
	if (!t->rela)
		t->n_rela = 0;
	if (!t->slots)
		t->n_slots = 0;
	if (!t->symbol || !t->strings)
		t->n_rela = t->n_slots = 0;
}

int map_soname(const char *soname)
{
	const ElfW(Dyn) *d;
	const char *strings;
	int i;

	for (i = 0; i < n_objects; i++) {
		uintptr_t table = 0, name = 0;

		for (d = objects[i].map ? objects[i].map->l_ld : NULL; d && d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_STRTAB)
				table = absolute(&objects[i], d->d_un.d_ptr);
			else if (d->d_tag == DT_SONAME)
				name = d->d_un.d_val;
		strings = (const char *)table;
		if (strings && name && bare_equal(strings + name, soname))
			return i;
	}
	return -1;
}

static int symbol_index(const char *name)
{
	int i;

	if (n_symbols && name[0] != symbols[0][0]) /* nearly always */
		return -1;
	for (i = 0; i < n_symbols; i++)
		if (bare_equal(symbols[i], name))
			return i;
	return -1;
}

static uintptr_t ask(const void *handle, const char *name)
{
	return handle && dlsym ? (uintptr_t)dlsym((void *)handle, name) : 0;
}

/* What a call of NAME by OBJECT would be bound to if it happened now. */
static uintptr_t lookup_now(int object, const char *name, const ElfW(Sym) *own, int symbolic)
{
	const struct mapped *o = &objects[object];
	const struct event *opened = o->event >= 0 ? &events[o->event] : NULL;
	const struct link_map *global = o->ns ? first_of(o->map) : namespaces[0];
	const struct link_map *local = opened ? opened->handle : NULL;
	int deepbind = opened && (opened->flags & RTLD_DEEPBIND), i;
	uintptr_t address = 0;

	if (symbolic && own && own->st_shndx != SHN_UNDEF)
		return o->map->l_addr + own->st_value;
	if (deepbind)
		address = ask(local, name);
	if (!address)
		address = ask(global, name);
	if (!address && !deepbind)
		address = ask(local, name);
	/* Later opens that this object is part of add their lists to its
	 * scopes; whether it is part of them cannot be asked. */
	for (i = o->event + 1; !address && i < n_events; i++)
		if (events[i].handle && events[i].handle != local && map_of(events[i].handle) == object)
			address = ask(events[i].handle, name);
	return address;
}

/* A slot that leads into its own object, but not to the definition there. */
static int is_unbound(int object, const struct tables *t, const ElfW(Rela) *r, uintptr_t value)
{
	const ElfW(Sym) *s = &t->symbol[ELF64_R_SYM(r->r_info)];

	if (ELF64_R_TYPE(r->r_info) != R_SLOT || map_owner(value) != object)
		return 0;
	return s->st_shndx == SHN_UNDEF || value != objects[object].map->l_addr + s->st_value;
}

static void report_binding(int object, const char *symbol, int slot, int lazy, uintptr_t address)
{
	struct line l;
	int to = map_owner(address);

	l.n = 0;
	line_field(&l, "binding");
	line_number(&l, objects[object].number);
	line_field(&l, symbol);
	line_field(&l, slot ? "plt" : "data");
	line_field(&l, lazy ? "call" : "load");
	line_number(&l, to < 0 ? -1 : objects[to].number);
	line_end(&l);
}

static void report_relocations(int object, const struct tables *t, const ElfW(Rela) *r, size_t n,
			       unsigned char *seen)
{
	for (; n--; r++) {
		unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
		uintptr_t value;
		const char *name;
		int k, slot = type == R_SLOT, lazy;

		if (!ELF64_R_SYM(r->r_info) || (type != R_SLOT && type != R_DATA && type != R_WORD))
			continue;
		name = t->strings + t->symbol[ELF64_R_SYM(r->r_info)].st_name;
		k = symbol_index(name);
		if (k < 0 || (seen[k] & (1 << slot)))
			continue;
		seen[k] |= (unsigned char)(1 << slot);
		value = *(const uintptr_t *)(objects[object].map->l_addr + r->r_offset);
		lazy = is_unbound(object, t, r, value);
		if (lazy)
			value = lookup_now(object, name, &t->symbol[ELF64_R_SYM(r->r_info)], t->symbolic);
		report_binding(object, name, slot, lazy, value);
	}
}

void bindings_report(void)
{
	unsigned char seen[SYMBOLS_MOST];
	struct tables t;
	int i, k;

	for (i = 0; i < n_order; i++) {
		int object = map_of(order[i]);

		if (!objects[object].phnum) /* the vDSO of some loaders */
			continue;
		for (k = 0; k < n_symbols; k++)
			seen[k] = 0;
		read_tables(&objects[object], &t);
		report_relocations(object, &t, t.rela, t.n_rela, seen);
		report_relocations(object, &t, t.slots, t.n_slots, seen);
	}
}

void *binding_of(int object, const char *name)
{
	struct tables t;
	const ElfW(Sym) *own = NULL;
	size_t i;

	read_tables(&objects[object], &t);
	for (i = 0; i < t.n_rela + t.n_slots; i++) {
		const ElfW(Rela) *r = i < t.n_rela ? &t.rela[i] : &t.slots[i - t.n_rela];
		unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
		uintptr_t value;

		if (!ELF64_R_SYM(r->r_info) || (type != R_SLOT && type != R_DATA) ||
		    !bare_equal(t.strings + t.symbol[ELF64_R_SYM(r->r_info)].st_name, name))
			continue;
		own = &t.symbol[ELF64_R_SYM(r->r_info)];
		value = *(const uintptr_t *)(objects[object].map->l_addr + r->r_offset);
		if (!is_unbound(object, &t, r, value))
			return (void *)value;
	}
	return (void *)lookup_now(object, name, own, t.symbolic);
}
