/* Checks the data files and writes them as C tables: embed RULES.md FILE... >embedded.c
 *
 * A file is a target or a profile by the folder it is in.  A file that does
 * not fit its schema ends the build with the file, the line and the key. */
#include "linkage/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_text(const char *s)
{
	if (!s) {
		fputs("NULL", stdout);
		return;
	}
	putchar('"');
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			printf("\\%03o", (unsigned char)*s);
		else
			putchar(*s);
	putchar('"');
}

static void put_member(const char *name, const char *value)
{
	printf("\t.%s = ", name);
	put_text(value);
	puts(",");
}

static void put_list(const char *name, const char *const *at, unsigned n)
{
	unsigned i;

	if (!n)
		return;
	printf(".%s_count = %u, .%s = (const char *[]){", name, n, name);
	for (i = 0; i < n; i++) {
		put_text(at[i]);
		fputs(", ", stdout);
	}
	puts("},");
}

static void put_words(const char *const *word, int n)
{
	fputs("\t\t{", stdout);
	for (; n--; word++) {
		put_text(*word);
		fputs(", ", stdout);
	}
}

static void put_facts(const struct target *t)
{
	unsigned i;

	printf("\t.eras_count = %u, .eras = (struct target_era[]){\n", t->eras_count);
	for (i = 0; i < t->eras_count; i++) {
		put_words((const char *[]){t->eras[i].name, t->eras[i].from, t->eras[i].to}, 3);
		printf("%u},\n", t->eras[i].message);
	}
	printf("\t},\n\t.layouts_count = %u, .layouts = (struct target_layout[]){\n", t->layouts_count);
	for (i = 0; i < t->layouts_count; i++) {
		put_words((const char *[]){t->layouts[i].version, t->layouts[i].machine}, 2);
		printf("%u, %u},\n", t->layouts[i].size, t->layouts[i].end);
	}
	printf("\t},\n\t.reached_count = %u, .reached = (struct target_reached[]){\n", t->reached_count);
	for (i = 0; i < t->reached_count; i++) {
		const struct target_reached *r = &t->reached[i];

		put_words((const char *[]){r->symbol, r->phase, r->effect, r->from, r->to}, 5);
		puts("},");
	}
	puts("\t},");
}

static void put_opens(const struct target *t)
{
	unsigned i;

	printf("\t.opens_count = %u, .opens = (struct target_opens[]){\n", t->opens_count);
	for (i = 0; i < t->opens_count; i++) {
		const struct target_opens *o = &t->opens[i];

		puts("\t\t{");
		put_member("what", o->what);
		put_member("variable", o->variable);
		put_member("from", o->from);
		put_member("to", o->to);
		put_member("none_from", o->none_from);
		put_list("set", o->set, o->set_count);
		put_list("unset", o->unset, o->unset_count);
		put_list("flags", o->flags, o->flags_count);
		printf(".list = %d, .bare = %d},\n", o->list, o->bare);
	}
	printf("\t},\n\t.conf_count = %u, .conf = (struct target_conf[]){\n", t->conf_count);
	for (i = 0; i < t->conf_count; i++) {
		put_words((const char *[]){t->conf[i].variable, t->conf[i].file, t->conf[i].from}, 3);
		puts("},");
	}
	puts("\t},");
}

static void put_target(const struct target *t, int index)
{
	unsigned i;

	printf("static const struct target target_%d = {\n", index);
	put_member("name", t->name);
	put_member("soname", t->soname);
	put_member("prefix", t->prefix);
	put_member("banner", t->banner);
	put_member("version_symbol", t->version_symbol);
	put_list("names", t->names, t->names_count);
	printf("\t.symbols_count = %u, .symbols = (struct target_symbol[]){\n", t->symbols_count);
	for (i = 0; i < t->symbols_count; i++) {
		fputs("\t\t{", stdout);
		put_text(t->symbols[i].name);
		fputs(", ", stdout);
		put_text(t->symbols[i].since);
		fputs(", ", stdout);
		put_text(t->symbols[i].until);
		fputs(", ", stdout);
		put_text(t->symbols[i].does);
		printf(", %s},\n", t->symbols[i].unchecked ? "true" : "false");
	}
	puts("\t},");
	put_facts(t);
	put_opens(t);
	puts("};");
}

static void put_profile(const struct profile *p, int index)
{
	unsigned i;

	printf("static const struct profile profile_%d = {\n", index);
	put_member("name", p->name);
	put_member("target", p->target);
	put_member("about", p->about);
	put_member("version_before", p->version_before);
	put_member("version_after", p->version_after);
	put_list("objects", p->objects, p->objects_count);
	put_list("strings", p->strings, p->strings_count);
	put_list("imports", p->imports, p->imports_count);
	put_list("flags", p->flags, p->flags_count);
	put_member("when", p->when);
	put_member("caller", p->caller);
	put_list("does", p->does, p->does_count);
	put_member("unless", p->unless);
	put_member("failure", p->failure);
	printf("\t.also_count = %u, .also = (struct profile_also[]){\n", p->also_count);
	for (i = 0; i < p->also_count; i++) {
		fputs("\t\t{", stdout);
		put_list("names", p->also[i].names, p->also[i].names_count);
		put_list("flags", p->also[i].flags, p->also[i].flags_count);
		puts("\t\t},");
	}
	puts("\t},");
	printf("\t.named_only = %d, .default_first = %d, .optional = %d,\n", p->named_only, p->default_first, p->optional);
	printf("\t.versions_count = %u, .versions = (struct profile_row[]){\n", p->versions_count);
	for (i = 0; i < p->versions_count; i++) {
		fputs("\t\t{.from = ", stdout);
		put_text(p->versions[i].from);
		fputs(", .to = ", stdout);
		put_text(p->versions[i].to);
		printf(", .eager = %s, .override = ", p->versions[i].eager ? "true" : "false");
		put_text(p->versions[i].override);
		fputs(", ", stdout);
		put_list("names", p->versions[i].names, p->versions[i].names_count);
		puts("\t\t},");
	}
	puts("\t},\n};");
}

static void put_index(const char *kind, int n)
{
	int i;

	printf("static const struct %s *const %ss[] = {", kind, kind);
	for (i = 0; i < n; i++)
		printf("&%s_%d, ", kind, i);
	puts("};");
}

/* A text as it is, a line a string. */
static int put_rules(const char *path)
{
	char line[4096];
	FILE *f = fopen(path, "re");

	if (!f) {
		perror(path);
		return -1;
	}
	puts("const char data_rules[] =");
	while (fgets(line, sizeof(line), f)) {
		putchar('\t');
		put_text(line);
		putchar('\n');
	}
	puts("\t\"\";");
	return fclose(f);
}

int main(int argc, char **argv)
{
	int i, targets = 0, profiles = 0;
	struct error e = {0};

	puts("/* Written by data/embed from the files in data/. */\n#include \"linkage/data.h\"\n");
	if (argc < 2 || put_rules(argv[1]) < 0)
		return 1;
	for (i = 2; i < argc; i++) {
		if (strstr(argv[i], "targets/")) {
			struct target *t = data_read_target(argv[i], &e);

			if (t)
				put_target(t, targets++);
		} else {
			struct profile *p = data_read_profile(argv[i], &e);

			if (p)
				put_profile(p, profiles++);
		}
		if (e.text) {
			fprintf(stderr, "embed: %s\n", e.text);
			return 1;
		}
	}
	put_index("target", targets);
	put_index("profile", profiles);
	puts("const struct data data_embedded = {\n"
	     "\ttargets, sizeof(targets) / sizeof(targets[0]),\n"
	     "\tprofiles, sizeof(profiles) / sizeof(profiles[0]),\n};");
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
