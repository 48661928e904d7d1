#include "report/json.h"

#include "linkage/flags.h"
#include "loader/scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Length of the UTF-8 sequence at S, or 0. */
static size_t utf8_length(const unsigned char *s)
{
	static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : 0, i;
	unsigned c = n == 2 ? s[0] & 0x1f : n == 3 ? s[0] & 0x0f : s[0] & 0x07;

	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return n < 2 || (c >= least[n] && c < 0x110000 && (c < 0xd800 || c > 0xdfff)) ? n : 0;
}

void json_put_text(json_t *object, const char *key, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	json_t *value;
	char *clean, *to;
	size_t n;

	if (!text) {
		json_object_set_new(object, key, json_null());
		return;
	}
	value = json_string(text);
	if (value) {
		json_object_set_new(object, key, value);
		return;
	}
	clean = to = xmalloc(strlen(text) * 3 + 1);
	while (*s) {
		n = utf8_length(s);
		if (n) {
			memcpy(to, s, n);
			to += n;
			s += n;
		} else {
			memcpy(to, "\xef\xbf\xbd", 3);
			to += 3;
			s++;
		}
	}
	*to = '\0';
	json_object_set_new(object, key, json_string(clean));
	free(clean);
	clean = to = xmalloc(strlen(text) * 2 + 1);
	for (s = (const unsigned char *)text; *s; s++) {
		*to++ = "0123456789abcdef"[*s >> 4];
		*to++ = "0123456789abcdef"[*s & 15];
	}
	*to = '\0';
	value = json_string(clean);
	free(clean);
	clean = xprintf("%s_hex", key);
	json_object_set_new(object, clean, value);
	free(clean);
}

static json_t *json_object_entry(const struct object *o)
{
	json_t *j = json_object();

	json_object_set_new(j, "id", json_integer(o->id));
	json_object_set_new(j, "namespace", json_integer(o->ns));
	json_put_text(j, "path", o->path);
	json_put_text(j, "realpath", o->file ? o->file->real : NULL);
	json_put_text(j, "soname", o->elf ? o->elf->soname : NULL);
	json_put_text(j, "request", o->request);
	json_object_set_new(j, "requester", o->requester ? json_integer(o->requester->id) : json_null());
	json_object_set_new(j, "how", json_string(how_name(o->how)));
	json_object_set_new(j, "found_by", json_string(o->missing ? "nothing" : stage_name(o->found_by)));
	json_object_set_new(j, "scope", json_string(o->global ? "global" : "local"));
	if (o->missing)
		json_object_set_new(j, "missing", json_true());
	return j;
}

json_t *json_objects(const struct process *p)
{
	json_t *list = json_array();
	const struct object *o;
	size_t i;

	for (i = 0; i < p->ns.n; i++)
		for (o = process_first(p, i); o; o = o->next)
			json_array_append_new(list, json_object_entry(o));
	return list;
}

json_t *json_start(const struct process *p)
{
	json_t *j = json_object();

	json_object_set_new(j, "ok", json_boolean(p->started));
	if (!p->started) {
		json_put_text(j, "error", p->start_error);
		json_put_text(j, "about", p->start_object);
	}
	return j;
}

json_t *json_flags(unsigned flags)
{
	json_t *list = json_array();
	const char *word;
	unsigned i;

	for (i = 0; (word = flags_word(flags, i)); i++)
		json_array_append_new(list, json_string(word));
	return list;
}

json_t *json_events(const struct sequence *s)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < s->opened.n; i++) {
		const struct opened *o = &s->opened.at[i];
		json_t *j = json_object();

		json_put_text(j, "request", o->name);
		json_object_set_new(j, "requester", o->caller ? json_integer(o->caller->id) : json_null());
		json_object_set_new(j, "flags", json_flags(o->flags));
		json_object_set_new(j, "evidence", json_string(evidence_name(o->evidence)));
		json_object_set_new(j, "object", o->lookup && o->lookup->object ? json_integer(o->lookup->object->id)
										 : json_null());
		json_put_text(j, "error", !o->caller ? "caller not loaded" : o->lookup->error);
		json_array_append_new(list, j);
	}
	return list;
}

json_t *json_all_bindings(struct process *p)
{
	static const char *const classes[] = {"plt", "data", "data", "tls", "copy"}; /* enum reloc_class */
	json_t *list = json_array();
	const struct object *o;
	size_t i;

	process_bind_calls(p);
	for (o = process_first(p, 0); o; o = o->next)
		for (i = 0; i < o->bindings.n; i++) {
			const struct binding *b = &o->bindings.at[i];
			const struct symbol_table *t = store_symbols(p->store, o->file, o->elf);
			json_t *j = json_object();

			json_object_set_new(j, "object", json_integer(o->id));
			json_put_text(j, "symbol", t->name[b->symbol]);
			json_object_set_new(j, "class", json_string(classes[b->class]));
			json_object_set_new(j, "to", b->to ? json_integer(b->to->id) : json_null());
			json_object_set_new(j, "when", json_string(b->at_call ? "call" : "load"));
			json_array_append_new(list, j);
		}
	return list;
}

json_t *json_context(const struct sequence *s)
{
	const struct ld_facts *f = s->process->facts;
	json_t *j = json_object(), *dirs = json_array(), *loader = json_object();
	char version[16];
	size_t i;

	snprintf(version, sizeof(version), "%d.%02d", f->version / 100, f->version % 100);
	json_put_text(loader, "path", s->process->interp->path);
	json_object_set_new(loader, "libc", json_string("glibc"));
	json_object_set_new(loader, "version", json_string(version));
	json_object_set_new(loader, "version_from", json_string(f->version_from));
	for (i = 0; i < f->n_system_dir; i++)
		json_array_append_new(dirs, json_string(f->system_dir[i]));
	json_object_set_new(loader, "default_directories", dirs);
	json_object_set_new(loader, "default_directories_from", json_string(f->dirs_from));
	json_put_text(loader, "lib", f->lib);
	json_put_text(loader, "cache", s->setup.cache ? s->setup.cache : f->cache_path);
	json_object_set_new(loader, "cache_from", json_string(s->setup.cache ? "command line" : f->cache_from));
	json_object_set_new(j, "loader", loader);
	json_put_text(j, "library_path", s->setup.library_path);
	json_put_text(j, "preload", s->setup.preload);
	if (s->setup.audit)
		json_put_text(j, "audit", s->setup.audit);
	json_object_set_new(j, "secure", json_boolean(s->setup.secure));
	if (s->process->cwd_matters)
		json_put_text(j, "cwd", s->setup.cwd);
	if (s->process->cpu_matters)
		json_object_set_new(j, "cpu", json_string(s->cpu.name));
	return j;
}

char *json_text(json_t *root, bool compact)
{
	char *text = json_dumps(root, (compact ? JSON_COMPACT : JSON_INDENT(1)) | JSON_ENSURE_ASCII), *whole;

	json_decref(root);
	whole = xprintf("%s\n", text);
	free(text);
	return whole;
}
