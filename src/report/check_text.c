#include "report/check.h"

#include "verdict/crossings.h"

#include <errno.h>
#include <stdlib.h>

static const char *display(const struct object *o)
{
	return *o->path ? o->path : "the bare program";
}

void text_candidate(struct text *t, const struct candidate *c)
{
	text_name(t, c->path);
	fputs(": ", t->stream);
	if (c->taken)
		fputs("taken", t->stream);
	else if (c->note && !c->fault)
		text_name(t, c->note);
	else if (c->error)
		fputs(c->error == ENOENT ? "no such file" : strerror(c->error), t->stream);
	else if (c->fault)
		fprintf(t->stream, "%s%s%s%s", elf_fault_text(c->fault), c->note ? " (" : "",
			c->note ? c->note : "", c->note ? ")" : "");
	else
		fputs("passed over", t->stream);
	fputs("  [", t->stream);
	text_stage(t, c->stage, c->list_of);
	fputs("]\n", t->stream);
}

static void put_context(struct text *t, const struct run *r)
{
	const struct process *p = r->life.sequence.process;

	fprintf(t->stream, "%s", text_bold(t));
	text_name(t, display(p->exe));
	fprintf(t->stream, "%s  (", text_plain(t));
	text_name(t, p->interp->path);
	fprintf(t->stream, ", glibc %d.%d; ", p->facts->version / 100, p->facts->version % 100);
	if (r->life.sequence.setup.library_path) {
		fputs("LD_LIBRARY_PATH=", t->stream);
		text_name(t, r->life.sequence.setup.library_path);
	} else {
		fputs("no LD_LIBRARY_PATH", t->stream);
	}
	if (r->life.sequence.setup.preload) {
		fputs("; LD_PRELOAD=", t->stream);
		text_name(t, r->life.sequence.setup.preload);
	}
	if (r->life.sequence.setup.secure)
		fputs("; set-id: the variables are ignored", t->stream);
	if (p->cpu_matters)
		fprintf(t->stream, "; on %s", r->life.sequence.cpu.name);
	fputs(")\n", t->stream);
}

static const char *when_of(const struct profile *p)
{
	if (!p || !p->when)
		return "";
	return !strcmp(p->when, "start") ? ", at its start" : !strcmp(p->when, "import") ? ", on import" : ", at the first use";
}

static void put_evidence(struct text *t, const struct path *path)
{
	switch (path->evidence) {
	case EVIDENCE_NEEDED: fputs(path->how == HOW_PRELOAD ? "preload" : "DT_NEEDED", t->stream); break;
	case EVIDENCE_DECLARED: fputs("declared", t->stream); break;
	case EVIDENCE_NOTE: fputs("declared in it, by a note", t->stream); break;
	case EVIDENCE_CODE: fprintf(t->stream, "in its code, at %s", path->source); break;
	case EVIDENCE_SCRIPT: fprintf(t->stream, "in a script, %s", path->source); break;
	case EVIDENCE_LITERAL: fputs("a string in it", t->stream); break;
	case EVIDENCE_PROFILE:
		fprintf(t->stream, "known from its profile: %s%s", path->source, when_of(path->profile));
		break;
	}
}

static void put_does(struct text *t, const struct path *path, const struct target *target)
{
	static const char *const words[] = {"mints ids", "makes communicators", "uses communicators", "allocates"};
	unsigned does = path_does(path, target), i, n = 0;

	for (i = 0; i < 4; i++)
		if (does & (1u << i))
			fprintf(t->stream, "%s%s", n++ ? ", " : "; ", words[i]);
}

static void put_passed_over(struct text *t, const struct lookup *l)
{
	size_t i;

	for (i = 0; i < l->candidate.n; i++) {
		if (l->candidate.at[i].taken)
			continue;
		fputs("       passed over ", t->stream);
		text_candidate(t, &l->candidate.at[i]);
	}
}

static void put_found(struct text *t, const struct lookup *l)
{
	if (l->match == MATCH_NAME)
		fputs("already loaded under this name", t->stream);
	else if (l->match == MATCH_SONAME)
		fputs("already loaded: its SONAME is this name", t->stream);
	else {
		text_stage(t, l->found_by, l->list_of);
		if (l->match == MATCH_FILE)
			fputs(", the file of a copy that is loaded already", t->stream);
	}
}

static void put_path(struct text *t, const struct path *path, size_t number, const struct target *target)
{
	const struct object *o = path->lookup->object;
	const struct instance *in = path->instance;
	size_t i;

	fprintf(t->stream, "  %zu. ", number);
	text_name(t, display(path->requester));
	fputs(path->how == HOW_DLOPEN ? " opens " : path->how == HOW_PRELOAD ? " preloads " : " needs ", t->stream);
	fputs(text_bold(t), t->stream);
	text_name(t, path->request);
	fputs(text_plain(t), t->stream);
	if (path->consumer != path->requester) {
		fputs(" for ", t->stream);
		text_name(t, display(path->consumer));
	}
	fputs("  (", t->stream);
	put_evidence(t, path);
	put_does(t, path, target);
	fputs(")\n     ", t->stream);
	if (in) {
		fprintf(t->stream, "-> copy %u, %s: ", in->id, in->surface->version ? in->surface->version : "version unknown");
		text_name(t, o->path);
		fputs("  [", t->stream);
		put_found(t, path->lookup);
		fputs("]\n", t->stream);
	} else {
		fprintf(t->stream, "%s-> no copy%s: ", text_red(t), text_plain(t));
		text_name(t, path->lookup->error ? path->lookup->error : o && o->assumed ? "assumed to be there at run time"
			  : o && !o->missing ? o->path : "cannot open shared object file");
		fputc('\n', t->stream);
	}
	put_passed_over(t, path->lookup);
	for (i = 0; in && i < path->tried.n && path->tried.at[i]->event < path->lookup->event; i++) {
		fputs("       tried before, in vain: ", t->stream);
		text_name(t, path->tried.at[i]->request);
		fputc('\n', t->stream);
	}
	if (!in && path->tried.n)
		fprintf(t->stream, "       nor do the %zu other names open that it tries\n", path->tried.n);
}

static void put_instance(struct text *t, const struct instance *in)
{
	const struct object *o = in->object;

	fprintf(t->stream, "  %u. %s%s%s", in->id, text_bold(t),
		in->surface->version ? in->surface->version : "version unknown", text_plain(t));
	if (in->surface->version_from)
		fprintf(t->stream, !strcmp(in->surface->version_from, "symbols") ? " or later (by its symbols)" : " (by its %s)",
			in->surface->version_from);
	fputs("  ", t->stream);
	text_name(t, o->path);
	if (o->file && strcmp(o->file->real, o->path)) {
		fputs(" = ", t->stream);
		text_name(t, o->file->real);
	}
	fprintf(t->stream, "\n     %s scope", o->global ? "global" : "local");
	if (in->surface->buried)
		fputs(", linked into this object", t->stream);
	if (in->surface->build_id)
		fprintf(t->stream, ", build id %s", in->surface->build_id);
	if (in->sha256)
		fprintf(t->stream, "\n     sha256 %s", in->sha256);
	fputc('\n', t->stream);
}

static void put_finding(struct text *t, const struct finding *f)
{
	size_t i;

	fprintf(t->stream, "%s%s%s: ", f->severity == SEVERITY_ERROR ? text_red(t) : text_bold(t),
		severity_name(f->severity), text_plain(t));
	text_name(t, f->message);
	fprintf(t->stream, "  [%s]\n", f->rule);
	for (i = 0; i < f->fixes.n; i++) {
		fputs(i ? "   or: " : "  fix: ", t->stream);
		text_name(t, f->fixes.at[i].command);
		fprintf(t->stream, "    (simulated: verdict %s%s%s%s)\n", verdict_name(f->fixes.at[i].after),
			f->fixes.at[i].version ? ", " : "", f->fixes.at[i].version ? f->fixes.at[i].version : "",
			f->fixes.at[i].after == VERDICT_SPLIT ? ", no crossing" : "");
	}
}

static void put_crossings(struct text *t, const struct run *r)
{
	size_t i;

	if (!r->crossings.n)
		return;
	fputs("\ncrossings\n", t->stream);
	for (i = 0; i < r->crossings.n; i++) {
		const struct crossing *c = r->crossings.at[i];

		fprintf(t->stream, "  %s of copy %u %s copy %u: %s  [%s: %s%s%s]\n", crossing_kind_name(c->kind), c->from->id,
			c->kind == CROSS_SELF_CALL ? "runs in" : c->kind == CROSS_DATA ? "is that of" : "is used in",
			c->to->id, c->symbol, phase_name(c->phase), outcome_name(c->outcome), *c->effect ? "; " : "", c->effect);
	}
}

static void put_run(struct text *t, const struct run *r)
{
	const struct target *target = r->surfaces->target;
	size_t i;

	put_context(t, r);
	fprintf(t->stream, "\npaths to %s\n", target->name);
	for (i = 0; i < r->paths.n; i++)
		put_path(t, r->paths.at[i], i + 1, target);
	if (!r->paths.n)
		fputs("  none\n", t->stream);
	fputs("\ncopies\n", t->stream);
	for (i = 0; i < r->instances.n; i++)
		put_instance(t, r->instances.at[i]);
	if (!r->instances.n)
		fputs("  none\n", t->stream);
	put_crossings(t, r);
	if (r->findings.n)
		fputc('\n', t->stream);
	for (i = 0; i < r->findings.n; i++)
		put_finding(t, r->findings.at[i]);
}

void check_text(struct text *t, const struct check_report *c)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		if (i)
			fputc('\n', t->stream);
		put_run(t, c->run[i]);
		if (c->n > 1)
			fprintf(t->stream, "verdict here: %s\n", verdict_name(c->run[i]->verdict));
	}
	fprintf(t->stream, "\nverdict: %s%s%s\n", c->verdict == VERDICT_ONE ? text_green(t) : text_red(t),
		verdict_name(c->verdict), text_plain(t));
}
