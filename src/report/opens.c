#include "report/opens.h"

#include "linkage/discover.h"
#include "linkage/flags.h"

#include <stdlib.h>

/* One open, however it is known. */
struct shown {
	const char *name; /* NULL: only known to be computed */
	bool computed;
	const char *evidence, *where;
	unsigned flags;
	bool flags_known;
};

typedef void show_function(void *to, const struct shown *s);

static void each_profile_open(const struct profile *p, const char *version, show_function *show, void *to)
{
	const struct profile_row *row = p ? profile_row_of(p, version) : NULL;
	unsigned i, n;

	for (n = 0; row && n < row->names_count; n++)
		show(to, &(struct shown){.name = row->names[n], .evidence = "profile", .where = p->name,
					 .flags = flags_of_words(p->flags, p->flags_count), .flags_known = true});
	for (i = 0; row && i < p->also_count; i++)
		for (n = 0; n < p->also[i].names_count; n++)
			show(to, &(struct shown){.name = p->also[i].names[n], .evidence = "profile", .where = p->name,
						 .flags = flags_of_words(p->also[i].flags, p->also[i].flags_count),
						 .flags_known = true});
}

static void each_script_open(const struct python_file *f, show_function *show, void *to)
{
	size_t i;

	each_profile_open(f->profile, NULL, show, to);
	for (i = 0; i < f->opens.n; i++) {
		char where[32];

		snprintf(where, sizeof(where), "line %u", f->opens.at[i].line);
		show(to, &(struct shown){.name = f->opens.at[i].name, .computed = !f->opens.at[i].name,
					 .evidence = "script", .where = where, .flags = f->opens.at[i].flags,
					 .flags_known = true});
	}
}

static void each_open(const struct opens_entry *entry, show_function *show, void *to)
{
	const struct surface *f = entry->surface;
	size_t i, k;

	if (entry->is_script)
		each_script_open(&entry->script, show, to);
	each_profile_open(f->profile, f->profile_version, show, to);
	for (i = 0; i < entry->plugins.at.n; i++)
		show(to, &(struct shown){.name = entry->plugins.at.at[i].name, .evidence = "profile",
					 .where = entry->plugins.at.at[i].what, .flags = entry->plugins.at.at[i].flags,
					 .flags_known = true});
	for (i = 0; i < f->notes.n; i++)
		for (k = 0; k < f->notes.at[i].n; k++)
			show(to, &(struct shown){.name = f->notes.at[i].name[k], .evidence = "note",
						 .where = f->notes.at[i].feature});
	for (i = 0; i < f->code.n; i++) {
		const struct elf_open *o = &f->code.at[i];
		const char *name = o->name ? o->name : o->form;

		/* dlopen(NULL) opens nothing. */
		if ((name || o->computed) && elf_open_is_file(o))
			show(to, &(struct shown){.name = name, .computed = o->computed, .evidence = "code",
						 .where = elf_open_in(o), .flags = flags_of_bits(o->flags),
						 .flags_known = o->flags >= 0});
	}
	for (i = 0; i < f->literal.n; i++)
		show(to, &(struct shown){.name = f->literal.at[i].name, .evidence = "literal",
					 .where = f->literal.at[i].whole ? NULL : "the end of another text"});
}

/* By the code where a call of dlsym shows the name, else by the text in it. */
static bool looks_up_symbol(const struct target *t, const struct surface *f, unsigned k)
{
	size_t i;

	for (i = 0; i < f->code.n; i++)
		if (f->code.at[i].name && elf_open_is_lookup(&f->code.at[i]) &&
		    !strcmp(f->code.at[i].name, t->symbols[k].name))
			return true;
	return surface_names_unlinked(f, k);
}

static bool is_api_lookup(const struct target *t, const struct elf_open *o)
{
	return elf_open_is_lookup(o) && o->name && target_symbol_index(t, o->name) >= 0;
}

static const char *handle_name(const struct elf_open *o)
{
	static const char *const names[] = {NULL, "default", "next", "opened"};

	return names[o->handle];
}

static json_t *json_lookups(const struct target *t, const struct surface *f)
{
	json_t *list = json_array(), *j;
	size_t i;

	for (i = 0; i < f->code.n; i++) {
		const struct elf_open *o = &f->code.at[i];

		if (!is_api_lookup(t, o))
			continue;
		j = json_object();
		json_put_text(j, "name", o->name);
		json_put_text(j, "handle", handle_name(o));
		json_put_text(j, "opened_at", o->opened_in);
		json_put_text(j, "where", elf_open_in(o));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *json_imports(const struct surface *f)
{
	json_t *list = json_array();

	if (f->imports_dlopen)
		json_array_append_new(list, json_string("dlopen"));
	if (f->imports_dlsym)
		json_array_append_new(list, json_string("dlsym"));
	return list;
}

static void put_json(void *to, const struct shown *s)
{
	json_t *j = json_object();

	json_put_text(j, "name", s->name);
	json_object_set_new(j, "computed", json_boolean(s->computed));
	json_object_set_new(j, "flags", s->flags_known ? json_flags(s->flags) : json_null());
	json_object_set_new(j, "evidence", json_string(s->evidence));
	json_put_text(j, "where", s->where);
	json_array_append_new(to, j);
}

json_t *opens_json(const struct opens_report *o)
{
	json_t *root = json_object(), *objects = json_array();
	size_t i;
	unsigned k;

	for (i = 0; i < o->at.n; i++) {
		const struct surface *f = o->at.at[i].surface;
		json_t *j = json_object(), *opens = json_array(), *looks_up = json_array(), *hidden = json_array();

		json_put_text(j, "path", o->at.at[i].path);
		json_object_set_new(j, "imports", json_imports(f));
		each_open(&o->at.at[i], put_json, opens);
		json_object_set_new(j, "opens", opens);
		for (k = 0; k < o->target->symbols_count; k++)
			if (looks_up_symbol(o->target, f, k))
				json_array_append_new(looks_up, json_string(o->target->symbols[k].name));
		json_object_set_new(j, "looks_up", looks_up);
		json_object_set_new(j, "lookups", json_lookups(o->target, f));
		if (surface_hides_loader(f))
			json_array_append_new(hidden, json_string(o->target->name));
		json_object_set_new(j, "hidden_loader", hidden);
		if (f->profile) {
			json_put_text(j, "profile", f->profile->name);
			json_put_text(j, "profile_version", f->profile_version);
		}
		if (f->note)
			json_put_text(j, "note", f->note);
		json_array_append_new(objects, j);
	}
	json_object_set_new(root, "schema", json_string("ncclwhich-opens/1"));
	json_object_set_new(root, "objects", objects);
	return root;
}

/* A name can be opened at many places, and most of them compute it: they become
 * one line, with the first of the places. */
struct line {
	struct shown first; /* `where` is its own */
	size_t places;
};

struct listing {
	VEC(struct line) line;
};

static bool is_alike(const struct shown *a, const struct shown *b)
{
	if (!a->name || !b->name)
		return !a->name && !b->name && !strcmp(a->evidence, b->evidence);
	return !strcmp(a->name, b->name) && !strcmp(a->evidence, b->evidence) && a->flags == b->flags &&
	       a->flags_known == b->flags_known && (!strcmp(a->evidence, "code") || !strcmp(a->evidence, "script"));
}

static void put_text(void *to, const struct shown *s)
{
	struct listing *l = to;
	struct line line = {*s, 1};
	size_t i;

	for (i = 0; i < l->line.n; i++)
		if (is_alike(&l->line.at[i].first, s)) {
			l->line.at[i].places++;
			return;
		}
	if (s->where)
		line.first.where = xstrdup(s->where);
	vec_push(&l->line, line);
}

static void put_flags(struct text *t, const struct shown *s)
{
	const char *word;
	unsigned i;

	for (i = 0; s->name && s->flags_known && (word = flags_word(s->flags, i)); i++)
		fprintf(t->stream, "%s%s", i ? " " : ", ", word);
}

static void put_lines(struct text *t, struct listing *l)
{
	size_t i, pass;

	/* What is known comes first. */
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < l->line.n; i++) {
			const struct shown *s = &l->line.at[i].first;

			if ((s->name == NULL) != (pass == 1))
				continue;
			fputs("  opens ", t->stream);
			text_name(t, s->name ? s->name : "a name that is computed at run time");
			put_flags(t, s);
			fprintf(t->stream, "  [%s", s->evidence);
			if (s->where) {
				fputs(": ", t->stream);
				text_name(t, s->where);
			}
			if (l->line.at[i].places > 1)
				fprintf(t->stream, " and %zu other place%s", l->line.at[i].places - 1,
					l->line.at[i].places > 2 ? "s" : "");
			fputs("]\n", t->stream);
		}
	for (i = 0; i < l->line.n; i++)
		free((char *)l->line.at[i].first.where);
	vec_free(&l->line);
}

/* The call of dlsym that shows on which handle symbol K is looked up, NULL if none does. */
static const struct elf_open *lookup_of(const struct target *t, const struct surface *f, unsigned k)
{
	size_t i;

	for (i = 0; i < f->code.n; i++)
		if (is_api_lookup(t, &f->code.at[i]) && f->code.at[i].handle && !strcmp(f->code.at[i].name, t->symbols[k].name))
			return &f->code.at[i];
	return NULL;
}

static bool same_handle(const struct elf_open *a, const struct elf_open *b)
{
	if (!a || !b)
		return a == b;
	return a->handle == b->handle && a->opened_at == b->opened_at;
}

/* One line for each handle. */
static void put_lookups(struct text *t, const struct target *target, const struct surface *f)
{
	bool *done = xmalloc(target->symbols_count + 1);
	unsigned k, other;

	memset(done, 0, target->symbols_count + 1);
	for (k = 0; k < target->symbols_count; k++) {
		const struct elf_open *o = lookup_of(target, f, k);

		if (done[k] || !looks_up_symbol(target, f, k))
			continue;
		for (other = k; other < target->symbols_count; other++)
			if (!done[other] && looks_up_symbol(target, f, other) && same_handle(o, lookup_of(target, f, other))) {
				fprintf(t->stream, "%s%s", other == k ? "  looks up " : ", ", target->symbols[other].name);
				done[other] = true;
			}
		if (o && o->handle == HANDLE_OPENED)
			fprintf(t->stream, "  [in what is opened at %s]", o->opened_in);
		else if (o)
			fprintf(t->stream, "  [with %s]", o->handle == HANDLE_DEFAULT ? "RTLD_DEFAULT" : "RTLD_NEXT");
		fputc('\n', t->stream);
	}
	free(done);
}

void opens_text(struct text *t, const struct opens_report *o)
{
	size_t i;

	for (i = 0; i < o->at.n; i++) {
		const struct surface *f = o->at.at[i].surface;
		struct listing listing = {0};

		fputs(text_bold(t), t->stream);
		text_name(t, o->at.at[i].path);
		fprintf(t->stream, "%s%s\n", text_plain(t), f->imports_dlopen || o->at.at[i].is_script ? "" : "  (does not import dlopen)");
		each_open(&o->at.at[i], put_text, &listing);
		put_lines(t, &listing);
		put_lookups(t, o->target, f);
		if (f->profile)
			fprintf(t->stream, "  known: %s%s%s\n", f->profile->about, f->profile_version ? " " : "",
				f->profile_version ? f->profile_version : "");
		else if (surface_hides_loader(f) && !f->literal.n && !f->notes.n)
			fprintf(t->stream, "  opens %s under a name that it does not show\n", o->target->name);
		if (f->note)
			fprintf(t->stream, "  note: %s\n", f->note);
	}
}
