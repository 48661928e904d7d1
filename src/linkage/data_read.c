#include "linkage/data.h"

#include "base/memory.h"
#include "linkage/flags.h"

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const cyaml_schema_value_t text = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, CYAML_UNLIMITED),
};

static const cyaml_schema_field_t symbol_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct target_symbol, name, 1, 128),
	CYAML_FIELD_STRING_PTR("since", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target_symbol, since, 1, 32),
	CYAML_FIELD_STRING_PTR("until", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target_symbol, until, 1, 32),
	CYAML_FIELD_STRING_PTR("does", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target_symbol, does, 1, 32),
	CYAML_FIELD_BOOL("unchecked", CYAML_FLAG_OPTIONAL, struct target_symbol, unchecked),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t symbol = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct target_symbol, symbol_fields),
};

static const cyaml_schema_field_t era_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct target_era, name, 1, 32),
	CYAML_FIELD_STRING_PTR("from", CYAML_FLAG_POINTER, struct target_era, from, 1, 32),
	CYAML_FIELD_STRING_PTR("to", CYAML_FLAG_POINTER, struct target_era, to, 1, 32),
	CYAML_FIELD_UINT("message", CYAML_FLAG_DEFAULT, struct target_era, message),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t era = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct target_era, era_fields),
};

static const cyaml_schema_field_t layout_fields[] = {
	CYAML_FIELD_STRING_PTR("version", CYAML_FLAG_POINTER, struct target_layout, version, 1, 32),
	CYAML_FIELD_STRING_PTR("machine", CYAML_FLAG_POINTER, struct target_layout, machine, 1, 32),
	CYAML_FIELD_UINT("size", CYAML_FLAG_DEFAULT, struct target_layout, size),
	CYAML_FIELD_UINT("end", CYAML_FLAG_DEFAULT, struct target_layout, end),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t layout = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct target_layout, layout_fields),
};

static const cyaml_schema_field_t reached_fields[] = {
	CYAML_FIELD_STRING_PTR("symbol", CYAML_FLAG_POINTER, struct target_reached, symbol, 1, 128),
	CYAML_FIELD_STRING_PTR("phase", CYAML_FLAG_POINTER, struct target_reached, phase, 1, 32),
	CYAML_FIELD_STRING_PTR("effect", CYAML_FLAG_POINTER, struct target_reached, effect, 1, 32),
	CYAML_FIELD_STRING_PTR("from", CYAML_FLAG_POINTER, struct target_reached, from, 1, 32),
	CYAML_FIELD_STRING_PTR("to", CYAML_FLAG_POINTER, struct target_reached, to, 1, 32),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t reached = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct target_reached, reached_fields),
};

static const cyaml_schema_field_t opens_fields[] = {
	CYAML_FIELD_STRING_PTR("what", CYAML_FLAG_POINTER, struct target_opens, what, 1, 64),
	CYAML_FIELD_STRING_PTR("variable", CYAML_FLAG_POINTER, struct target_opens, variable, 1, 128),
	CYAML_FIELD_STRING_PTR("from", CYAML_FLAG_POINTER, struct target_opens, from, 1, 32),
	CYAML_FIELD_STRING_PTR("to", CYAML_FLAG_POINTER, struct target_opens, to, 1, 32),
	CYAML_FIELD_SEQUENCE("set", CYAML_FLAG_POINTER, struct target_opens, set, &text, 0, 16),
	CYAML_FIELD_SEQUENCE("unset", CYAML_FLAG_POINTER, struct target_opens, unset, &text, 0, 16),
	CYAML_FIELD_SEQUENCE("flags", CYAML_FLAG_POINTER, struct target_opens, flags, &text, 1, 8),
	CYAML_FIELD_BOOL("list", CYAML_FLAG_OPTIONAL, struct target_opens, list),
	CYAML_FIELD_BOOL("bare", CYAML_FLAG_OPTIONAL, struct target_opens, bare),
	CYAML_FIELD_STRING_PTR("none_from", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target_opens, none_from, 1, 32),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t opens = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct target_opens, opens_fields),
};

static const cyaml_schema_field_t conf_fields[] = {
	CYAML_FIELD_STRING_PTR("variable", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target_conf, variable, 1, 128),
	CYAML_FIELD_STRING_PTR("file", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target_conf, file, 1, 256),
	CYAML_FIELD_STRING_PTR("from", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target_conf, from, 1, 32),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t conf = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct target_conf, conf_fields),
};

static const cyaml_schema_field_t target_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct target, name, 1, 64),
	CYAML_FIELD_STRING_PTR("soname", CYAML_FLAG_POINTER, struct target, soname, 1, 256),
	CYAML_FIELD_SEQUENCE("names", CYAML_FLAG_POINTER, struct target, names, &text, 1, CYAML_UNLIMITED),
	CYAML_FIELD_STRING_PTR("prefix", CYAML_FLAG_POINTER, struct target, prefix, 2, 64),
	CYAML_FIELD_STRING_PTR("banner", CYAML_FLAG_POINTER, struct target, banner, 4, 64),
	CYAML_FIELD_STRING_PTR("version_symbol", CYAML_FLAG_POINTER, struct target, version_symbol, 1, 128),
	CYAML_FIELD_SEQUENCE("symbols", CYAML_FLAG_POINTER, struct target, symbols, &symbol, 1, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("eras", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target, eras, &era, 0, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("layouts", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target, layouts, &layout, 0,
			     CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("reached", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target, reached, &reached, 0,
			     CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("opens", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target, opens, &opens, 0,
			     CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("conf", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct target, conf, &conf, 0,
			     CYAML_UNLIMITED),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t target_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct target, target_fields),
};

static const cyaml_schema_field_t row_fields[] = {
	CYAML_FIELD_STRING_PTR("from", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile_row, from, 1, 32),
	CYAML_FIELD_STRING_PTR("to", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile_row, to, 1, 32),
	CYAML_FIELD_BOOL("eager", CYAML_FLAG_OPTIONAL, struct profile_row, eager),
	CYAML_FIELD_STRING_PTR("override", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile_row, override, 1, 128),
	CYAML_FIELD_SEQUENCE("names", CYAML_FLAG_POINTER, struct profile_row, names, &text, 0, CYAML_UNLIMITED),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t row = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct profile_row, row_fields),
};

static const cyaml_schema_field_t also_fields[] = {
	CYAML_FIELD_SEQUENCE("names", CYAML_FLAG_POINTER, struct profile_also, names, &text, 1, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("flags", CYAML_FLAG_POINTER, struct profile_also, flags, &text, 1, 8),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t also = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct profile_also, also_fields),
};

static const cyaml_schema_field_t profile_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct profile, name, 1, 64),
	CYAML_FIELD_STRING_PTR("target", CYAML_FLAG_POINTER, struct profile, target, 1, 64),
	CYAML_FIELD_STRING_PTR("about", CYAML_FLAG_POINTER, struct profile, about, 1, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("objects", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, objects, &text, 0, 64),
	CYAML_FIELD_SEQUENCE("strings", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, strings, &text, 0, 16),
	CYAML_FIELD_SEQUENCE("imports", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, imports, &text, 0, 16),
	CYAML_FIELD_STRING_PTR("version_before", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, version_before,
			       4, 64),
	CYAML_FIELD_STRING_PTR("version_after", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, version_after,
			       1, 64),
	CYAML_FIELD_BOOL("named_only", CYAML_FLAG_OPTIONAL, struct profile, named_only),
	CYAML_FIELD_BOOL("default_first", CYAML_FLAG_OPTIONAL, struct profile, default_first),
	CYAML_FIELD_BOOL("optional", CYAML_FLAG_OPTIONAL, struct profile, optional),
	CYAML_FIELD_STRING_PTR("when", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, when, 1, 16),
	CYAML_FIELD_STRING_PTR("caller", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, caller, 1, 128),
	CYAML_FIELD_SEQUENCE("does", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, does, &text, 0, 8),
	CYAML_FIELD_STRING_PTR("unless", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, unless, 1, 128),
	CYAML_FIELD_STRING_PTR("failure", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, failure, 1, 512),
	CYAML_FIELD_SEQUENCE("also", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct profile, also, &also, 0, 8),
	CYAML_FIELD_SEQUENCE("flags", CYAML_FLAG_POINTER, struct profile, flags, &text, 1, 8),
	CYAML_FIELD_SEQUENCE("versions", CYAML_FLAG_POINTER, struct profile, versions, &row, 1, CYAML_UNLIMITED),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t profile_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct profile, profile_fields),
};

/* libcyaml explains a fault over several lines; the last but the backtrace
 * says it. */
static void __attribute__((format(printf, 3, 0)))
keep_message(cyaml_log_t level, void *context, const char *format, va_list ap)
{
	struct error *e = context;
	char *message;
	size_t n;

	(void)level;
	message = xvprintf(format, ap);
	for (n = strlen(message); n && message[n - 1] == '\n';)
		message[--n] = '\0';
	if (!e->text)
		error_set(e, "%s", message);
	free(message);
}

static cyaml_config_t configuration(struct error *message)
{
	return (cyaml_config_t){
		.log_fn = keep_message, .log_ctx = message, .mem_fn = cyaml_mem,
		.log_level = CYAML_LOG_ERROR,
	};
}

static void *read_file(const char *path, const cyaml_schema_value_t *schema, struct error *e)
{
	struct error message = {0};
	cyaml_config_t config = configuration(&message);
	cyaml_data_t *data = NULL;
	cyaml_err_t result = cyaml_load_file(path, &config, schema, &data, NULL);

	if (result != CYAML_OK)
		error_set(e, "%s: %s", path, message.text ? message.text : cyaml_strerror(result));
	error_clear(&message);
	return data;
}

/* What the schema cannot say: versions are versions, symbols are sorted. */
static int check_symbols(const char *path, const struct target *t, struct error *e)
{
	unsigned i;

	for (i = 0; i < t->symbols_count; i++) {
		const struct target_symbol *y = &t->symbols[i];

		if (y->since && !data_version_code(y->since))
			return error_set(e, "%s: symbol %s: '%s' is no version", path, y->name, y->since);
		if (i && strcmp(t->symbols[i - 1].name, y->name) >= 0)
			return error_set(e, "%s: symbol %s: out of order (sort by byte value)", path, y->name);
	}
	return 0;
}

/* A place is a variable or a file, not both and not neither. */
static int check_conf(const char *path, const struct target *t, struct error *e)
{
	unsigned i;

	for (i = 0; i < t->conf_count; i++)
		if (!t->conf[i].variable == !t->conf[i].file)
			return error_set(e, "%s: conf: one of variable and file", path);
	return 0;
}

struct target *data_read_target(const char *path, struct error *e)
{
	struct target *t = read_file(path, &target_schema, e);

	if (t && (check_symbols(path, t, e) < 0 || check_conf(path, t, e) < 0)) {
		data_free_target(t);
		return NULL;
	}
	return t;
}

static int check_flags(const char *path, const char *const *word, unsigned n, struct error *e)
{
	for (; n--; word++) {
		unsigned flags = 0;

		if (!flags_take_word(&flags, *word, strlen(*word)) || flags & (OPEN_NOLOAD | OPEN_NEWLM))
			return error_set(e, "%s: '%s' is no flag: lazy, now, local, global, deepbind, nodelete", path, *word);
	}
	return 0;
}

static int check_does(const char *path, const struct profile *p, struct error *e)
{
	static const char *const known[] = {"mints-id", "makes-comm", "uses-comm", "allocates"};
	unsigned i, k;

	for (i = 0; i < p->does_count; i++) {
		for (k = 0; k < 4 && strcmp(p->does[i], known[k]); k++)
			;
		if (k == 4)
			return error_set(e, "%s: does '%s': mints-id, makes-comm, uses-comm, allocates", path, p->does[i]);
	}
	return 0;
}

/* What the schema cannot say: something to be known by, versions in pairs. */
static int check_profile(const char *path, const struct profile *p, struct error *e)
{
	unsigned i;

	if (!p->objects_count && !p->strings_count && !p->imports_count && !p->version_before && !p->named_only)
		return error_set(e, "%s: nothing to know the consumer by: objects, strings, imports or version_before", path);
	if (!p->version_before != !p->version_after)
		return error_set(e, "%s: version_before and version_after go together", path);
	if (p->when && strcmp(p->when, "start") && strcmp(p->when, "import") && strcmp(p->when, "first-use"))
		return error_set(e, "%s: when '%s': start, import or first-use", path, p->when);
	if (check_flags(path, p->flags, p->flags_count, e) < 0 || check_does(path, p, e) < 0)
		return -1;
	for (i = 0; i < p->also_count; i++)
		if (check_flags(path, p->also[i].flags, p->also[i].flags_count, e) < 0)
			return -1;
	for (i = 0; i < p->versions_count; i++)
		if (!p->versions[i].from != !p->versions[i].to || (p->versions[i].from && !p->version_before))
			return error_set(e, "%s: a row's from and to go together, and need version_before", path);
	return 0;
}

struct profile *data_read_profile(const char *path, struct error *e)
{
	struct profile *p = read_file(path, &profile_schema, e);

	if (p && check_profile(path, p, e) < 0) {
		data_free_profile(p);
		return NULL;
	}
	return p;
}

static void free_data(const cyaml_schema_value_t *schema, void *data)
{
	struct error message = {0};
	cyaml_config_t config = configuration(&message);

	cyaml_free(&config, schema, data, 0);
	error_clear(&message);
}

void data_free_target(struct target *t)
{
	free_data(&target_schema, t);
}

void data_free_profile(struct profile *p)
{
	free_data(&profile_schema, p);
}
