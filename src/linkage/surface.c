#include "linkage/surface.h"

#include "elf/library.h"
#include "elf/scan.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool target_matches(const struct target *t, const char *name)
{
	unsigned i;

	name = path_base(name);
	for (i = 0; i < t->names_count; i++)
		if (!fnmatch(t->names[i], name, 0))
			return true;
	return false;
}

int target_symbol_index(const struct target *t, const char *name)
{
	unsigned low = 0, high = t->symbols_count;

	while (low < high) { /* the data file is sorted */
		unsigned mid = low + (high - low) / 2;
		int order = strcmp(name, t->symbols[mid].name);

		if (!order)
			return (int)mid;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return -1;
}

bool symbol_is_key(const struct target_symbol *y)
{
	return y->does && (!strcmp(y->does, "mints-id") || !strcmp(y->does, "makes-comm"));
}

bool surface_hides_loader(const struct surface *s)
{
	if (s->tracked || !(s->imports_dlopen || s->imports_dlsym))
		return false;
	return s->stub || s->unlinked_key || s->n_unlinked >= 2;
}

struct reading {
	struct surfaces *owner;
	struct surface *s;
	const struct target *t;
	const struct elf_symbols *symbols;
	int banner_code;
};

/* Symbols: those of the API, and the ways to open something. */
static void take_symbols(struct reading *rd, const struct elf_symbols *symbols)
{
	const char *prefix = rd->t->prefix;
	size_t i, length = strlen(prefix);

	for (i = 1; i < symbols->n; i++) {
		const char *name = elf_symbol_name(symbols, i);
		int k;

		if (name[0] == 'd' && name[1] == 'l') {
			if (elf_symbol_defined(symbols, i))
				continue;
			rd->s->imports_dlopen |= !strcmp(name, "dlopen") || !strcmp(name, "dlmopen");
			rd->s->imports_dlsym |= !strcmp(name, "dlsym") || !strcmp(name, "dlvsym");
		}
		if (strncmp(name, prefix, length) || (k = target_symbol_index(rd->t, name)) < 0)
			continue;
		if (!elf_symbol_defined(symbols, i)) {
			rd->s->n_imported += !rd->s->imported[k];
			rd->s->imported[k] = true;
		} else if (ELF64_ST_BIND(symbols->symbol[i].st_info) != STB_LOCAL) {
			rd->s->n_defined += !rd->s->defined[k];
			rd->s->defined[k] = true;
		}
	}
}

/* No consumer has more names; a file made to have millions must not cost more. */
enum { LITERALS_MOST = 256 };

static bool is_printable(unsigned char c)
{
	return c >= 0x20 && c < 0x7f;
}

/* In a sentence and not in a list of names: "via ncclCommInitRankScalable. A
 * value of zero", "ncclCommInitRank failed". */
static bool is_prose(const struct scan_hit *hit, size_t length)
{
	unsigned char before = hit->before ? hit->at[-1] : 0, after = length < hit->after ? hit->at[length] : 0;

	return after && strchr(" .,:;()'`\"", after) && (!is_printable(before) || strchr(" (`'\"", before));
}

/* A name of the API: the longest that stands here.  Rust and Go run their
 * strings together, so what follows is no end and what precedes no start. */
static bool take_symbol_name(struct reading *rd, const struct scan_hit *hit)
{
	size_t longest = 0;
	unsigned i;
	int which = -1;

	for (i = 0; i < rd->t->symbols_count; i++) {
		size_t n = strlen(rd->t->symbols[i].name);

		if (n > longest && n <= hit->after && !memcmp(hit->at, rd->t->symbols[i].name, n)) {
			longest = n;
			which = (int)i;
		}
	}
	if (which < 0)
		return false;
	if (is_prose(hit, longest))
		return true;
	rd->s->n_held += !rd->s->held[which];
	rd->s->held[which] = true;
	return true;
}

/* "libnccl.so.2", alone or as the end of a path, up to its NUL. */
static void take_literal(struct reading *rd, const struct scan_hit *hit)
{
	const unsigned char *start = hit->at, *end, *path;
	size_t i, before = hit->before;
	struct literal literal;

	if (before < 3 || memcmp(start - 3, "lib", 3))
		return;
	start -= 3;
	before -= 3;
	end = memchr(start, 0, hit->after + 3);
	if (!end || (size_t)(end - start) > 255)
		return;
	for (i = 0; start + i < end; i++)
		if (!is_printable(start[i]))
			return;
	if (!target_matches(rd->t, names_add_n(&rd->owner->store->names, (const char *)start, (size_t)(end - start))))
		return;
	for (path = start; before && is_printable(path[-1]) && path[-1] != ' ' && path[-1] != '"'; before--)
		path--;
	/* A path is whole from its first slash; a name with a word before it is
	 * the end of a message, or of a neighbour in the pool. */
	literal.whole = path == start || *path == '/';
	literal.name = names_add_n(&rd->owner->store->names, (const char *)(literal.whole ? path : start),
				   (size_t)(end - (literal.whole ? path : start)));
	if (before && literal.whole && is_printable(path[-1]))
		literal.whole = false;
	for (i = 0; i < rd->s->literal.n; i++)
		if (rd->s->literal.at[i].name == literal.name) {
			rd->s->literal.at[i].whole |= literal.whole;
			return;
		}
	if (rd->s->literal.n < LITERALS_MOST)
		vec_push(&rd->s->literal, literal);
	else
		rd->s->note = "more names of the library than anybody needs: not all are listed";
}

/* "NCCL version 2.30.7+cuda13.0".  Messages about versions that are wanted read
 * alike up to the number; only a banner goes on with what it was built for. */
static bool is_build(const char *text)
{
	while (*text && *text != '+' && *text != ' ')
		text++; /* a suffix of the version */
	return !strncmp(text, "+cuda", 5) || !strncmp(text, "+hip", 4) || !strncmp(text, " compiled with", 14);
}

static void take_banner(struct reading *rd, const struct scan_hit *hit)
{
	size_t n = strlen(rd->t->banner), have = hit->after > n ? hit->after - n : 0;
	char text[64] = "";
	int major, minor, patch, length = 0;

	memcpy(text, hit->at + n, have < sizeof(text) - 1 ? have : sizeof(text) - 1);
	if (sscanf(text, "%2d.%2d.%3d%n", &major, &minor, &patch, &length) != 3 || rd->banner_code ||
	    !is_build(text + length))
		return;
	rd->banner_code = major * 10000 + minor * 100 + patch;
	rd->s->version = arena_strndup(&rd->owner->arena, text, (size_t)length);
	rd->s->version_from = "banner";
}

/* What the second pass is about: the texts that consumers are known by. */
struct known_text {
	size_t profile;
	int string; /* index in its strings, -1 = version_before */
};

struct recognition {
	struct reading *rd;
	VEC(const char *) needle;
	VEC(struct known_text) known;
	bool *seen;           /* by needle */
	const char **version; /* by profile */
};

/* A profile's version stands between two texts: "cudarc-" and "/src/". */
static void take_version(struct recognition *rc, const struct scan_hit *hit, size_t profile)
{
	const struct profile *p = rc->rd->owner->data->profiles[profile];
	size_t n = strlen(p->version_before), m = strlen(p->version_after), k;
	const unsigned char *v = hit->at + n;

	for (k = 0; n + k + m <= hit->after && k < 24 && ((v[k] >= '0' && v[k] <= '9') || v[k] == '.'); k++)
		;
	if (!k || n + k + m > hit->after || memcmp(v + k, p->version_after, m))
		return;
	rc->seen[hit->needle] = true;
	rc->version[profile] = arena_strndup(&rc->rd->owner->arena, (const char *)v, k);
}

/* "64130lib.so": pointer width, CUDA major and minor, prefix and suffix, as a
 * Rust pool packs them. */
static void take_cuda(struct reading *rd, const struct scan_hit *hit)
{
	const unsigned char *at = hit->at;

	if (hit->before < 5 || at[-5] != '6' || at[-4] != '4' || at[-3] != '1' || at[-2] < '0' || at[-2] > '9' ||
	    at[-1] < '0' || at[-1] > '9')
		return;
	rd->s->cuda_major = 10 + (at[-2] - '0');
	rd->s->cuda_minor = at[-1] - '0';
}

static void take_known(void *context, const struct scan_hit *hit)
{
	struct recognition *rc = context;
	const struct known_text *k = &rc->known.at[hit->needle];

	if (!hit->needle)
		take_cuda(rc->rd, hit);
	else if (k->string < 0)
		take_version(rc, hit, k->profile);
	else
		rc->seen[hit->needle] = true;
}

static void add_text(struct recognition *rc, const char *text, size_t profile, int string)
{
	vec_push(&rc->needle, text);
	vec_push(&rc->known, ((struct known_text){profile, string}));
}

static bool imports_all(const struct elf_symbols *symbols, const struct profile *p)
{
	unsigned k;
	size_t i;

	for (k = 0; k < p->imports_count; k++) {
		for (i = 1; i < symbols->n; i++)
			if (!elf_symbol_defined(symbols, i) && !strcmp(elf_symbol_name(symbols, i), p->imports[k]))
				break;
		if (i >= symbols->n)
			return false;
	}
	return true;
}

static bool names_object(const struct profile *p, const struct root_file *file, const struct elf_object *elf)
{
	const char *base = path_base(file->real);
	unsigned i;

	for (i = 0; i < p->objects_count; i++)
		if (!fnmatch(p->objects[i], base, 0) ||
		    (elf->soname && !fnmatch(p->objects[i], elf->soname, 0)))
			return true;
	return !p->objects_count;
}

/* It opens the library by way of another one, as its plugin: then neither names of
 * the library nor of its functions stand in the file. */
static bool is_roundabout(const struct profile *p, const struct target *t)
{
	unsigned i, k;

	for (i = 0; i < p->versions_count; i++)
		for (k = 0; k < p->versions[i].names_count; k++)
			if (target_matches(t, p->versions[i].names[k]))
				return false;
	return p->objects_count && p->strings_count && p->versions[0].names_count;
}

/* May the file be this consumer, by its name? */
static bool may_be(const struct profile *p, const struct target *t, const struct root_file *file,
		   const struct elf_object *elf)
{
	return !strcmp(p->target, t->name) && !p->named_only && names_object(p, file, elf);
}

static bool is_named_by_roundabout(const struct reading *rd, const struct root_file *file, const struct elf_object *elf)
{
	const struct data *data = rd->owner->data;
	size_t i;

	for (i = 0; i < data->n_profiles; i++)
		if (!strcmp(data->profiles[i]->target, rd->t->name) && is_roundabout(data->profiles[i], rd->t) &&
		    names_object(data->profiles[i], file, elf))
			return true;
	return false;
}

static bool all_seen(const struct recognition *rc, size_t profile)
{
	size_t i;

	for (i = 1; i < rc->known.n; i++)
		if (rc->known.at[i].profile == profile && !rc->seen[i])
			return false;
	return true;
}

/* Which known consumer is this?  Asked of what looks the API up; of others (not
 * DIRECT) those only count that open the library in a roundabout way. */
static void recognise(struct reading *rd, struct reader *r, const struct root_file *file, const struct elf_object *elf,
		      bool direct)
{
	const struct data *data = rd->owner->data;
	struct recognition rc = {.rd = rd};
	size_t i;
	unsigned k;

	add_text(&rc, "lib.so", 0, 0);
	for (i = 0; i < data->n_profiles; i++) {
		const struct profile *p = data->profiles[i];

		if (!may_be(p, rd->t, file, elf))
			continue;
		if (p->version_before)
			add_text(&rc, p->version_before, i, -1);
		for (k = 0; k < p->strings_count; k++)
			add_text(&rc, p->strings[k], i, (int)k);
	}
	rc.seen = xmalloc(rc.needle.n * sizeof(*rc.seen));
	memset(rc.seen, 0, rc.needle.n * sizeof(*rc.seen));
	rc.version = xmalloc((data->n_profiles + 1) * sizeof(*rc.version));
	memset(rc.version, 0, (data->n_profiles + 1) * sizeof(*rc.version));
	if (elf_scan(r, elf, rc.needle.at, (unsigned)rc.needle.n, take_known, &rc) < 0)
		rd->s->note = "its strings could not all be read";
	for (i = 0; i < data->n_profiles && !rd->s->profile; i++)
		if (may_be(data->profiles[i], rd->t, file, elf) && (direct || is_roundabout(data->profiles[i], rd->t)) &&
		    all_seen(&rc, i) && imports_all(rd->symbols, data->profiles[i])) {
			rd->s->profile = data->profiles[i];
			rd->s->profile_version = rc.version[i];
		}
	vec_free(&rc.needle);
	vec_free(&rc.known);
	free(rc.seen);
	free(rc.version);
}

enum { NEEDLE_PREFIX, NEEDLE_BANNER, NEEDLES };

static void take_hit(void *context, const struct scan_hit *hit)
{
	struct reading *rd = context;

	if (hit->needle == NEEDLE_BANNER)
		take_banner(rd, hit);
	else if (!take_symbol_name(rd, hit))
		take_literal(rd, hit);
}

static void scan_strings(struct reading *rd, struct reader *r, const struct elf_object *elf)
{
	const char *needle[NEEDLES] = {rd->t->prefix, rd->t->banner};

	if (elf_scan(r, elf, needle, NEEDLES, take_hit, rd) < 0)
		rd->s->note = "its strings could not all be read";
}

/* The newest symbol that it exports is what the version cannot be below. */
static void version_by_symbols(struct reading *rd)
{
	int highest = 0, code;
	unsigned i;

	for (i = 0; i < rd->t->symbols_count; i++)
		if (rd->s->defined[i] && (code = data_version_code(rd->t->symbols[i].since)) > highest) {
			highest = code;
			rd->s->version = rd->t->symbols[i].since;
		}
	rd->s->version_from = rd->s->version ? "symbols" : NULL;
}

static void identify(struct reading *rd, struct reader *r, const struct elf_object *elf, int code)
{
	struct surface *s = rd->s;

	s->build_id = elf_build_id(r, elf, &rd->owner->arena);
	if (code && rd->banner_code && code != rd->banner_code)
		s->disagreement = arena_printf(&rd->owner->arena, "the banner says %s, %s returns %d", s->version,
					       rd->t->version_symbol, code);
	if (code && !rd->banner_code) {
		/* Up to 2.8 the code was major, minor, patch as 1000, 100, 1. */
		s->version = code >= 10000 ? arena_printf(&rd->owner->arena, "%d.%d.%d", code / 10000,
							  code / 100 % 100, code % 100)
					   : arena_printf(&rd->owner->arena, "%d.%d.%d", code / 1000,
							  code / 100 % 10, code % 100);
		s->version_from = "code";
	}
	if (!s->version)
		version_by_symbols(rd);
}

bool surface_names_unlinked(const struct surface *s, unsigned k)
{
	return s->held[k] && !s->imported[k] && !s->defined[k];
}

/* Of those that are LOOKED_UP in a copy that was opened; NULL: all may be. */
static void count_unlinked(struct reading *rd, const bool *looked_up)
{
	struct surface *s = rd->s;
	unsigned k;

	s->n_unlinked = 0;
	s->unlinked_key = false;
	for (k = 0; k < rd->t->symbols_count; k++)
		if (surface_names_unlinked(s, k) && (!looked_up || looked_up[k])) {
			s->n_unlinked++;
			s->unlinked_key |= symbol_is_key(&rd->t->symbols[k]);
		}
}

/* A copy of the library says its version, by its banner or by the function that
 * returns it.  A file that exports the API and says none is a stub: trampolines
 * in front of a copy that it opens itself. */
static void judge(struct reading *rd, struct reader *r, const struct elf_object *elf,
		  const struct elf_symbols *symbols)
{
	struct surface *s = rd->s;
	int code = s->n_defined ? (int)elf_stored_constant(r, elf, symbols, rd->t->version_symbol) : 0;

	s->tracked = code || rd->banner_code || (elf->soname && target_matches(rd->t, elf->soname));
	s->stub = s->n_defined >= 3 && !s->tracked;
	s->buried = s->tracked && !(elf->soname && target_matches(rd->t, elf->soname));
	if (s->tracked)
		identify(rd, r, elf, code);
}

static void read_code(struct surfaces *owner, struct surface *s, struct reader *r, const struct elf_object *elf,
		      const struct elf_symbols *symbols)
{
	s->code_read = true;
	if (elf_code_opens(r, elf, symbols, &owner->store->names, &owner->arena, &s->code) < 0 && !s->note)
		s->note = "its code could not be read";
}

/* A function that is only looked up in a scope needs no name of the library. */
static void take_lookups(struct reading *rd)
{
	struct surface *s = rd->s;
	bool *elsewhere = xmalloc(rd->t->symbols_count + 1), computed = false;
	size_t i;
	unsigned k;
	int symbol;

	memset(elsewhere, 0, rd->t->symbols_count + 1);
	for (i = 0; i < s->code.n; i++) {
		const struct elf_open *o = &s->code.at[i];

		computed |= elf_open_is_lookup(o) && o->computed;
		if (!elf_open_is_lookup(o) || !o->name || (symbol = target_symbol_index(rd->t, o->name)) < 0)
			continue;
		if (o->handle == HANDLE_DEFAULT)
			s->by_default[symbol] = true;
		else if (o->handle == HANDLE_NEXT)
			s->by_next[symbol] = true;
		else
			elsewhere[symbol] = true;
	}
	for (k = 0; k < rd->t->symbols_count; k++) {
		s->by_default[k] |= surface_names_unlinked(s, k) && s->profile && s->profile->default_first;
		s->scoped |= s->by_default[k] || s->by_next[k];
		elsewhere[k] |= computed || !(s->by_default[k] || s->by_next[k]);
	}
	count_unlinked(rd, elsewhere); /* once more, with what the code has shown */
	free(elsewhere);
}

bool surface_computes(const struct surface *s)
{
	size_t i;

	if (!s->code_read || s->code.note)
		return true;
	for (i = 0; i < s->code.n; i++)
		if (elf_open_is_file(&s->code.at[i]) && s->code.at[i].computed)
			return true;
	return false;
}

static struct surface *read_surface(struct surfaces *owner, const struct root_file *file,
				    const struct elf_object *elf)
{
	struct surface *s = arena_new(&owner->arena, struct surface);
	const size_t n = owner->target->symbols_count;
	struct reading rd = {.owner = owner, .s = s, .t = owner->target};
	struct elf_symbols symbols;
	struct reader *r;
	int fd;

	s->imported = arena_alloc(&owner->arena, n);
	s->defined = arena_alloc(&owner->arena, n);
	s->held = arena_alloc(&owner->arena, n);
	s->by_default = arena_alloc(&owner->arena, n);
	s->by_next = arena_alloc(&owner->arena, n);
	s->cuda_major = s->cuda_minor = -1;
	if (!file || !elf || elf->fault)
		return s;
	r = xmalloc(sizeof(*r));
	fd = store_reader(owner->store, file, r);
	if (fd >= 0) {
		if (elf_symbols_read(r, elf, &symbols) < 0)
			s->note = "its symbol table lies outside the file";
		rd.symbols = &symbols;
		take_symbols(&rd, &symbols);
		if (s->imports_dlopen || s->imports_dlsym || s->n_defined ||
		    (elf->soname && target_matches(rd.t, elf->soname)))
			scan_strings(&rd, r, elf);
		judge(&rd, r, elf, &symbols);
		count_unlinked(&rd, NULL);
		elf_dlopen_notes(r, elf, &owner->store->names, &owner->arena, &s->notes);
		if (owner->data->engine && owner->engine == file->real) {
			s->profile = owner->data->engine;
			s->profile_version = owner->data->engine_version;
		} else if (!s->tracked && (surface_hides_loader(s) || s->literal.n)) {
			recognise(&rd, r, file, elf, true);
			if (!s->profile)
				read_code(owner, s, r, elf, &symbols);
		} else if (!s->tracked && s->imports_dlopen && is_named_by_roundabout(&rd, file, elf)) {
			recognise(&rd, r, file, elf, false);
		}
		take_lookups(&rd);
		elf_symbols_free(&symbols);
		close(fd);
	} else {
		s->note = "cannot be opened";
	}
	free(r);
	return s;
}

void surfaces_init(struct surfaces *s, struct store *store, const struct data *data,
		   const struct target *target)
{
	memset(s, 0, sizeof(*s));
	s->store = store;
	s->data = data;
	s->target = target;
}

void surfaces_free(struct surfaces *s)
{
	size_t i;

	for (i = 0; i < s->all.n; i++)
		vec_free(&s->all.at[i]->literal);
	vec_free(&s->all);
	name_map_free(&s->by_file);
	arena_free(&s->arena);
}

const struct surface *surface_of(struct surfaces *s, const struct root_file *file,
				 const struct elf_object *elf)
{
	const char *key = file ? file->real : names_add(&s->store->names, "");
	struct surface *surface = name_map_get(&s->by_file, key);

	if (surface)
		return surface;
	surface = read_surface(s, file, elf);
	vec_push(&s->all, surface);
	name_map_put(&s->by_file, key, surface);
	return surface;
}

const struct surface *surface_with_code(struct surfaces *owner, const struct root_file *file,
					const struct elf_object *elf)
{
	struct surface *s = (struct surface *)surface_of(owner, file, elf);
	struct elf_symbols symbols;
	struct reader *r;
	int fd;

	if (s->code_read || !file || !elf || elf->fault)
		return s;
	r = xmalloc(sizeof(*r));
	fd = store_reader(owner->store, file, r);
	if (fd >= 0) {
		if (elf_symbols_read(r, elf, &symbols) == 0)
			read_code(owner, s, r, elf, &symbols);
		elf_symbols_free(&symbols);
		close(fd);
	}
	free(r);
	return s;
}
