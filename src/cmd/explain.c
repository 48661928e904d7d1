/* explain: every candidate of a request, and why. */
#include "cmd/commands.h"
#include "cmd/simulate.h"
#include "loader/scope.h"
#include "verdict/crossings.h"

struct explanation {
	const struct check_report *report;
	const char *what;
	size_t found;
};

static bool concerns(const struct lookup *l, const char *what)
{
	const struct object *o = l->object;

	if (!strcmp(l->request, what))
		return true;
	return o && (!strcmp(o->path, what) || (o->elf && o->elf->soname && !strcmp(o->elf->soname, what)) ||
		     (o->file && !strcmp(o->file->real, what)));
}

static void explain_lookup(struct text *t, const struct lookup *l)
{
	size_t i;

	fputs(text_bold(t), t->stream);
	text_name(t, *l->requester->path ? l->requester->path : "the bare program");
	fprintf(t->stream, "%s %s ", text_plain(t), l->how == HOW_DLOPEN ? "opens" : l->how == HOW_PRELOAD ? "preloads"
		: l->how == HOW_NEEDED ? "needs" : "filters with");
	text_name(t, l->request);
	fputc('\n', t->stream);
	if (l->match == MATCH_NAME || l->match == MATCH_SONAME) {
		fputs("  no search: ", t->stream);
		text_name(t, l->object->path);
		fprintf(t->stream, " is loaded and %s\n",
			l->match == MATCH_NAME ? "was asked for by this name, or lies at it" : "has this SONAME");
	} else if (strchr(l->request, '/')) {
		fputs("  a name with a slash is opened as it is: no directory is searched\n", t->stream);
	} else if (l->requester->elf && l->requester->elf->runpath) {
		fputs("  the requester has DT_RUNPATH, so that no DT_RPATH counts\n", t->stream);
	}
	for (i = 0; i < l->candidate.n; i++) {
		fputs("  ", t->stream);
		text_candidate(t, &l->candidate.at[i]);
	}
	if (l->match == MATCH_FILE) {
		fputs("  this file is loaded already, as ", t->stream);
		text_name(t, l->object->path);
		fputs(": the same copy\n", t->stream);
	}
	fputs("  => ", t->stream);
	if (l->object && !l->object->missing)
		text_name(t, l->object->path);
	else if (l->error)
		text_name(t, l->error);
	else
		fputs("nothing", t->stream);
	fputc('\n', t->stream);
}

struct scope_listing {
	struct text *t;
	const char *scope;
};

static bool visit_scope(void *context, struct object *searched, const char *scope_name, bool accepted)
{
	struct scope_listing *l = context;

	if (l->scope != scope_name)
		fprintf(l->t->stream, "  searched in %s:\n", scope_name);
	l->scope = scope_name;
	fputs("    ", l->t->stream);
	text_name(l->t, *searched->path ? searched->path : "the bare program");
	fputs(accepted ? ": has it\n" : ": no\n", l->t->stream);
	return !accepted;
}

/* Who asks for the symbol, every scope in order, and who answers. */
static size_t explain_symbol(struct text *t, const struct run *r, const char *symbol)
{
	struct process *p = r->life.sequence.process;
	struct object *o;
	size_t i, found = 0;

	for (o = (struct object *)process_first(p, 0); o; o = o->next) {
		const struct symbol_table *table = o->bindings.n ? store_symbols(p->store, o->file, o->elf) : NULL;

		for (i = 0; i < o->bindings.n; i++) {
			const struct binding *b = &o->bindings.at[i];
			struct scope_listing listing = {.t = t};

			if (strcmp(table->name[b->symbol], symbol))
				continue;
			found++;
			fputs(text_bold(t), t->stream);
			text_name(t, *o->path ? o->path : "the bare program");
			fprintf(t->stream, "%s %s %s%s\n", text_plain(t),
				elf_symbol_defined(&table->symbols, b->symbol) ? "asks for its own" : "asks for", symbol,
				b->class == RELOC_PLT ? (b->at_call ? " at its first call" : " (a call, bound while loading)")
						      : " (its address, while loading)");
			scope_walk(p, o, b->symbol, (enum reloc_class)b->class, visit_scope, &listing);
			fputs("  => ", t->stream);
			text_name(t, b->to ? b->to->path : "nobody has it");
			fputs(b->to == o ? " (itself)\n" : "\n", t->stream);
		}
	}
	return found;
}

static void explain_run(struct text *t, struct explanation *x, const struct run *r)
{
	const struct process *p = r->life.sequence.process;
	size_t i;

	for (i = 0; i < p->lookups.n; i++)
		if (concerns(p->lookups.at[i], x->what)) {
			x->found++;
			explain_lookup(t, p->lookups.at[i]);
		}
	x->found += explain_symbol(t, r, x->what);
	for (i = 0; i < r->findings.n; i++)
		if (!strcmp(r->findings.at[i]->rule, x->what)) {
			x->found++;
			fprintf(t->stream, "%s: ", severity_name(r->findings.at[i]->severity));
			text_name(t, r->findings.at[i]->message);
			fputc('\n', t->stream);
		}
}

static char *render_json(struct explanation *x, size_t *size)
{
	json_t *root = json_object(), *list = json_array();
	char *text;
	size_t i, k;

	for (i = 0; i < x->report->n; i++) {
		const struct process *p = x->report->run[i]->life.sequence.process;

		for (k = 0; k < p->lookups.n; k++)
			if (concerns(p->lookups.at[k], x->what)) {
				x->found++;
				json_array_append_new(list, json_lookup(p->lookups.at[k]));
			}
	}
	json_object_set_new(root, "schema", json_string("ncclwhich-explain/1"));
	json_put_text(root, "what", x->what);
	json_object_set_new(root, "lookups", list);
	text = json_text(root, false);
	*size = strlen(text);
	return text;
}

static char *render(enum format format, void *what, bool color, size_t *size)
{
	struct explanation *x = what;
	struct text t;
	char *text;
	size_t i;

	if (format == FORMAT_JSON)
		return render_json(x, size);
	text_open(&t, color);
	for (i = 0; i < x->report->n; i++)
		explain_run(&t, x, x->report->run[i]);
	text = text_take(&t);
	*size = t.size;
	return text;
}

int cmd_explain(struct options *o, struct error *e)
{
	struct simulation s;
	struct explanation x = {.what = o->what};
	int status = -1;

	if ((!o->plan.engine && !o->plan.python) || !o->what)
		return error_set(e, "explain: ENGINE and, after '--', what to explain; see 'ncclwhich explain --help'");
	if (simulation_start(&s, o, false, e) == 0) {
		x.report = &s.report;
		if (commands_output(o, render, &x, e) == 0)
			status = s.runs[0]->life.sequence.process->started ? 0 : 1;
		if (status >= 0 && !x.found)
			status = error_set(e, "explain: '%s' is no name that is asked for, no object that is loaded, no symbol "
					   "that is referred to and no finding of this run", o->what);
	}
	simulation_end(&s);
	return status;
}
