#include "linkage/python.h"

#include <ctype.h>
#include <stdlib.h>

enum { FILE_MOST = 16 << 20, NAME_MOST = 4096 };

struct cursor {
	struct surfaces *s;
	const struct plan *plan;
	struct python_file *out;
	const char *at;
	unsigned line;
};

static const struct root_file *file_at(struct store *store, const char *path)
{
	struct root_file *file;

	return !root_lookup(store->root, path, &file) && S_ISREG(file->mode) ? file : NULL;
}

bool python_is_file(struct store *store, const char *path)
{
	const struct root_file *file = file_at(store, path);
	size_t n = strlen(path), size, first;
	const unsigned char *data;

	if (!file)
		return false;
	if (n > 3 && !strcmp(path + n - 3, ".py"))
		return true;
	data = file->size < FILE_MOST ? store_slurp(store, file, FILE_MOST, &size) : NULL;
	if (!data || size < 3 || data[0] != '#' || data[1] != '!')
		return false;
	first = strcspn((const char *)data, "\n");
	return memmem(data, first, "python", 6) != NULL;
}

/* ---- the little of the language that is needed ---- */

static void advance(struct cursor *c)
{
	c->line += *c->at == '\n';
	c->at++;
}

/* Blanks, line breaks and comments. */
static void skip_blank(struct cursor *c)
{
	for (;;) {
		if (isspace((unsigned char)*c->at) || *c->at == '\\')
			advance(c);
		else if (*c->at == '#')
			while (*c->at && *c->at != '\n')
				c->at++;
		else
			return;
	}
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* A string literal at the cursor, which is left behind it: its text, or NULL
 * for an f-string with a field and for text with an escape that matters. */
static const char *read_string(struct cursor *c, bool *is_string)
{
	const char *start = c->at;
	char quote, text[NAME_MOST];
	size_t n = 0;
	bool triple, plain = true, formatted = false;

	while (*c->at && strchr("rRbBuUfF", *c->at))
		formatted |= *c->at == 'f' || *c->at == 'F', c->at++;
	*is_string = (*c->at == '"' || *c->at == '\'') && c->at - start <= 2;
	if (!*is_string) {
		c->at = start;
		return NULL;
	}
	quote = *c->at;
	triple = c->at[1] == quote && c->at[2] == quote;
	c->at += triple ? 3 : 1;
	while (*c->at && !(*c->at == quote && (!triple || (c->at[1] == quote && c->at[2] == quote)))) {
		if (*c->at == '\n' && !triple)
			break;
		if (*c->at == '\\' && c->at[1]) {
			plain = false;
			advance(c);
		}
		plain &= !(formatted && (*c->at == '{' || *c->at == '}'));
		if (n < sizeof(text) - 1)
			text[n++] = *c->at;
		advance(c);
	}
	if (*c->at)
		c->at += triple ? 3 : 1;
	return plain ? names_add_n(&c->s->store->names, text, n) : NULL;
}

static bool take_word(struct cursor *c, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(c->at, word, n) || is_word(c->at[n]))
		return false;
	c->at += n;
	return true;
}

static bool take_char(struct cursor *c, char wanted)
{
	skip_blank(c);
	if (*c->at != wanted)
		return false;
	advance(c);
	return true;
}

/* os.environ.get("NAME", "default"), os.getenv(…), os.environ["NAME"]. */
static const char *read_environment(struct cursor *c, bool *known)
{
	bool is_string, subscript = false;
	const char *name, *value, *fallback = NULL;

	if (take_word(c, "os"))
		take_char(c, '.');
	if (take_word(c, "environ")) {
		subscript = take_char(c, '[');
		if (!subscript && (!take_char(c, '.') || !take_word(c, "get") || !take_char(c, '(')))
			return NULL;
	} else if (!take_word(c, "getenv") || !take_char(c, '(')) {
		return NULL;
	}
	skip_blank(c);
	name = read_string(c, &is_string);
	if (!name)
		return NULL;
	if (!subscript && take_char(c, ',')) {
		skip_blank(c);
		fallback = read_string(c, &is_string);
		if (!is_string)
			return NULL;
	}
	if (!take_char(c, subscript ? ']' : ')'))
		return NULL;
	*known = true;
	value = plan_getenv(c->plan, name);
	return value ? names_add(&c->s->store->names, value) : fallback;
}

/* find_library("nccl") asks the linker's cache: the SONAME of libnccl.so. */
static const char *read_find_library(struct cursor *c)
{
	bool is_string;
	const char *stem;
	char *text;

	if (!take_word(c, "find_library") || !take_char(c, '('))
		return NULL;
	skip_blank(c);
	stem = read_string(c, &is_string);
	if (!stem || !take_char(c, ')'))
		return NULL;
	if (!strcmp(stem, c->s->target->prefix))
		return names_add(&c->s->store->names, c->s->target->soname);
	text = xprintf("lib%s.so", stem);
	stem = names_add(&c->s->store->names, text);
	free(text);
	return stem;
}

/* The rest of the call: only the flags in it are of interest. */
static unsigned read_mode(struct cursor *c)
{
	unsigned flags = OPEN_NOW, depth = 1;
	bool is_string;

	while (*c->at && depth) {
		if (*c->at == '(' || *c->at == '[')
			depth++;
		else if (*c->at == ')' || *c->at == ']')
			depth--;
		else if (!strncmp(c->at, "RTLD_GLOBAL", 11))
			flags |= OPEN_GLOBAL;
		else if (!strncmp(c->at, "RTLD_DEEPBIND", 13))
			flags |= OPEN_DEEPBIND;
		if (*c->at == '"' || *c->at == '\'')
			read_string(c, &is_string);
		else
			advance(c);
	}
	return flags;
}

/* The first argument of an opening call; the cursor is behind its '('. */
static void take_call(struct cursor *c)
{
	struct python_open open = {.line = c->line};
	struct cursor argument;
	bool is_string, known = false;

	skip_blank(c);
	open.name = read_string(c, &is_string);
	argument = *c;
	if (!is_string) {
		open.name = read_environment(&argument, &known);
		if (!open.name && !known) {
			argument = *c;
			if (take_word(&argument, "ctypes"))
				take_char(&argument, '.');
			if (take_word(&argument, "util"))
				take_char(&argument, '.');
			open.name = read_find_library(&argument);
		}
		if (open.name || known)
			*c = argument;
	}
	skip_blank(c);
	if (*c->at != ',' && *c->at != ')') /* "lib" + name, a call, a format: computed after all */
		open.name = NULL;
	open.flags = read_mode(c);
	vec_push(&c->out->opens, open);
}

static void take_held(struct cursor *c, const char *text)
{
	const struct target *t = c->s->target;
	int k = text ? target_symbol_index(t, text) : -1;

	if (k < 0 || c->out->held[k])
		return;
	c->out->held[k] = true;
	c->out->n_held++;
	c->out->held_key |= symbol_is_key(&t->symbols[k]);
}

static bool is_opener(const char *word, size_t n)
{
	static const char *const openers[] = {"CDLL", "PyDLL", "LoadLibrary", "dlopen"};
	size_t i;

	for (i = 0; i < sizeof(openers) / sizeof(openers[0]); i++)
		if (strlen(openers[i]) == n && !strncmp(openers[i], word, n))
			return true;
	return false;
}

static void read_text(struct cursor *c)
{
	bool is_string;

	for (;;) {
		const char *word;

		skip_blank(c);
		if (!*c->at)
			return;
		take_held(c, read_string(c, &is_string));
		if (is_string)
			continue;
		if (!is_word(*c->at)) {
			advance(c);
			continue;
		}
		for (word = c->at; is_word(*c->at); c->at++)
			;
		if (is_opener(word, (size_t)(c->at - word)) && take_char(c, '('))
			take_call(c);
	}
}

static const struct profile *recognise(const struct surfaces *s, const unsigned char *data, size_t size)
{
	size_t i;
	unsigned k;

	for (i = 0; i < s->data->n_profiles; i++) {
		const struct profile *p = s->data->profiles[i];

		if (!p->strings_count || p->objects_count || p->imports_count || p->version_before || strcmp(p->target, s->target->name))
			continue;
		for (k = 0; k < p->strings_count; k++)
			if (!memmem(data, size, p->strings[k], strlen(p->strings[k])))
				break;
		if (k == p->strings_count)
			return p;
	}
	return NULL;
}

int python_read(struct surfaces *s, const struct plan *plan, const char *path, struct python_file *out,
		struct error *e)
{
	const struct root_file *file = file_at(s->store, path);
	struct cursor c = {.s = s, .plan = plan, .out = out, .line = 1};
	const unsigned char *data;
	size_t size;

	memset(out, 0, sizeof(*out));
	out->path = path;
	out->held = arena_alloc(&s->arena, s->target->symbols_count);
	data = file ? store_slurp(s->store, file, FILE_MOST, &size) : NULL;
	if (!data)
		return error_set(e, "%s: cannot be read as a script", path);
	c.at = (const char *)data;
	read_text(&c);
	out->profile = recognise(s, data, size);
	return 0;
}

bool python_hides_loader(const struct python_file *f, const struct target *t)
{
	bool seen = false, computed = false;
	size_t i;

	for (i = 0; i < f->opens.n; i++) {
		computed |= !f->opens.at[i].name;
		seen |= f->opens.at[i].name && target_matches(t, f->opens.at[i].name);
	}
	return !f->profile && !seen && computed && (f->held_key || f->n_held >= 2);
}

void python_open(struct discovery *d, const struct python_file *f, struct object *caller, size_t *next, unsigned line)
{
	if (f->profile && !*next) {
		*next = 1;
		discover_by_profile(d, caller, f->profile, NULL, f->path);
	}
	for (; !f->profile && *next < f->opens.n && f->opens.at[*next].line < line; ++*next) {
		const struct python_open *o = &f->opens.at[*next];

		if (o->name && target_matches(d->surfaces->target, o->name))
			sequence_open(d->sequence, caller, o->name, o->flags, EVIDENCE_SCRIPT,
				      arena_printf(&d->surfaces->arena, "%s:%u", f->path, o->line));
	}
}
