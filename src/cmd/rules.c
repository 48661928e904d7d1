/* rules: what each finding means; for split-crossed also what every pair of
 * known versions does. */
#include "cmd/commands.h"
#include "linkage/data.h"
#include "report/text.h"
#include "verdict/effects.h"

#include <elf.h>
#include <stdlib.h>

/* The paragraph of rule ID in the text of doc/rules.md, which is compiled in;
 * NULL if there is none. */
static const char *find_rule(const char *id, size_t *length)
{
	const char *at = data_rules, *end;
	size_t n = strlen(id);

	while ((at = strstr(at, "\n## "))) {
		at += 4;
		if (!strncmp(at, id, n) && at[n] == '\n') {
			end = strstr(at, "\n## ");
			at += n + 1;
			*length = end ? (size_t)(end - at) : strlen(at);
			return at;
		}
	}
	return NULL;
}

static void list_rules(struct text *t)
{
	const char *at = data_rules;

	while ((at = strstr(at, "\n## "))) {
		at += 4;
		fprintf(t->stream, "%.*s\n", (int)strcspn(at, "\n"), at);
	}
}

static const char *letter(struct first_trouble f)
{
	static const char *const letters[] = {".", "4", "crash", "hang", "?", "unknown"};

	return f.phase == PHASE_EXIT && f.outcome == OUTCOME_CRASH ? "exit" : letters[f.outcome];
}

typedef struct first_trouble cell_function(const struct target *t, const char *row, const char *column);

static struct first_trouble self_calls(const struct target *t, const char *row, const char *column)
{
	return crossing_of_versions(t, "x86-64", column, row);
}

static struct first_trouble comms(const struct target *t, const char *row, const char *column)
{
	return comm_between_versions(t, "x86-64", column, row);
}

static void put_table(struct text *t, const struct target *target, const char *title, cell_function *cell)
{
	unsigned a, b;

	fprintf(t->stream, "\n%s\n%-8s", title, "A \\ B");
	for (b = 0; b < target->layouts_count; b++)
		if (!strcmp(target->layouts[b].machine, "x86-64"))
			fprintf(t->stream, "%8s", target->layouts[b].version);
	fputc('\n', t->stream);
	for (a = 0; a < target->layouts_count; a++) {
		if (strcmp(target->layouts[a].machine, "x86-64"))
			continue;
		fprintf(t->stream, "%-8s", target->layouts[a].version);
		for (b = 0; b < target->layouts_count; b++)
			if (!strcmp(target->layouts[b].machine, "x86-64"))
				fprintf(t->stream, "%8s", letter(cell(target, target->layouts[a].version,
								      target->layouts[b].version)));
		fputc('\n', t->stream);
	}
}

static void crossing_tables(struct text *t)
{
	const struct target *target = data_embedded.targets[0];

	fputs("\nFirst trouble by version, x86-64: . nothing, 4 ncclInvalidArgument at the first collective, crash and hang\n"
	      "in init or at the first collective, exit an abort at exit, ? undefined.\n", t->stream);
	put_table(t, target, "Self-calls: A is in the global scope, everything is asked of B", self_calls);
	put_table(t, target, "An id: minted in A, used in B", id_between_versions);
	put_table(t, target, "A communicator: made in B, used in A", comms);
}

int cmd_rules(struct options *o, struct error *e)
{
	const char *id = o->plan.engine, *paragraph;
	struct text t;
	char *text;
	size_t n = 0;
	int status = 0;

	if (id && !(paragraph = find_rule(id, &n)))
		return error_set(e, "rules: no rule '%s'; 'ncclwhich rules' lists them", id);
	text_open(&t, false);
	if (id)
		fwrite(paragraph, 1, n, t.stream);
	else
		list_rules(&t);
	if (id && !strcmp(id, "split-crossed"))
		crossing_tables(&t);
	text = text_take(&t);
	if (output_write(o->outputs.at[0].path, text, t.size, e) < 0)
		status = -1;
	free(text);
	return status;
}
