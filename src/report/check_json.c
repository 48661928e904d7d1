#include "report/check.h"

#include "verdict/crossings.h"

#include <errno.h>

static const char *candidate_code(const struct candidate *c)
{
	if (c->taken)
		return "taken";
	if (c->fault)
		return elf_fault_code(c->fault);
	if (c->error)
		return strerrorname_np(c->error) ? strerrorname_np(c->error) : "errno";
	return "refused";
}

static json_t *json_candidate(const struct candidate *c)
{
	json_t *j = json_object();

	json_put_text(j, "path", c->path);
	json_object_set_new(j, "stage", json_string(stage_name(c->stage)));
	if (c->list_of)
		json_object_set_new(j, "list_of", json_integer(c->list_of->id));
	json_object_set_new(j, "code", json_string(candidate_code(c)));
	json_object_set_new(j, "why", json_string(c->taken ? "taken" : c->note && !c->fault ? c->note
						  : c->fault ? elf_fault_text(c->fault)
						  : c->error == ENOENT ? "no such file" : strerror(c->error)));
	return j;
}

static json_t *json_candidates(const struct lookup *l)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < l->candidate.n; i++)
		json_array_append_new(list, json_candidate(&l->candidate.at[i]));
	return list;
}

json_t *json_lookup(const struct lookup *l)
{
	json_t *j = json_object();

	json_put_text(j, "requester", l->requester->path);
	json_put_text(j, "request", l->request);
	json_object_set_new(j, "how", json_string(how_name(l->how)));
	json_put_text(j, "object", l->object && !l->object->missing ? l->object->path : NULL);
	json_object_set_new(j, "found_by", json_string(stage_name(l->found_by)));
	json_put_text(j, "error", l->error);
	json_object_set_new(j, "candidates", json_candidates(l));
	return j;
}

static json_t *json_words(const struct path *path, const struct target *t)
{
	static const char *const words[] = {"mints-id", "makes-comm", "uses-comm", "allocates"};
	unsigned does = path_does(path, t), i;
	json_t *list = json_array();

	for (i = 0; i < 4; i++)
		if (does & (1u << i))
			json_array_append_new(list, json_string(words[i]));
	return list;
}

static json_t *json_path(const struct path *path, const struct target *t)
{
	static const char *const matches[] = {NULL, "name", "soname", "file"};
	const struct lookup *l = path->lookup;
	const struct object *o = l->object && !l->object->missing ? l->object : NULL;
	json_t *j = json_object(), *uses = json_array(), *tried = json_array(), *evidence = json_array();
	unsigned k;
	size_t i;

	json_object_set_new(j, "requester", json_integer(path->requester->id));
	json_put_text(j, "request", path->request);
	json_array_append_new(evidence, json_string(evidence_name(path->evidence)));
	json_object_set_new(j, "evidence", evidence);
	if (path->source)
		json_put_text(j, "profile", path->source);
	if (path->consumer != path->requester)
		json_object_set_new(j, "consumer", json_integer(path->consumer->id));
	if (path->profile && path->profile->when)
		json_put_text(j, "when", path->profile->when);
	json_object_set_new(j, "by", json_string(path->how == HOW_DLOPEN || path->how == HOW_PRELOAD ? how_name(path->how) : "needed"));
	json_object_set_new(j, "target", json_string(t->name));
	json_put_text(j, "resolved", o && o->file ? o->file->real : NULL);
	json_object_set_new(j, "object", o ? json_integer(o->id) : json_null());
	json_object_set_new(j, "instance", path->instance ? json_integer(path->instance->id) : json_null());
	json_object_set_new(j, "found_by", o ? json_string(stage_name(l->found_by)) : json_null());
	if (l->match)
		json_object_set_new(j, "matched", json_string(matches[l->match]));
	if (l->error)
		json_put_text(j, "error", l->error);
	json_object_set_new(j, "candidates", json_candidates(l));
	for (i = 0; i < path->tried.n; i++)
		json_array_append_new(tried, json_string(path->tried.at[i]->request));
	if (path->tried.n)
		json_object_set(j, "tried", tried);
	json_decref(tried);
	for (k = 0; k < t->symbols_count; k++)
		if (path_uses(path, k))
			json_array_append_new(uses, json_string(t->symbols[k].name));
	json_object_set_new(j, "uses", uses);
	json_object_set_new(j, "does", json_words(path, t));
	return j;
}

static json_t *json_instance(const struct instance *in, const struct target *t)
{
	json_t *j = json_object();

	json_object_set_new(j, "id", json_integer(in->id));
	json_object_set_new(j, "target", json_string(t->name));
	json_object_set_new(j, "object", json_integer(in->object->id));
	json_put_text(j, "path", in->object->path);
	json_put_text(j, "realpath", in->object->file->real);
	json_put_text(j, "version", in->surface->version);
	json_put_text(j, "version_from", in->surface->version_from);
	json_put_text(j, "build_id", in->surface->build_id);
	if (in->sha256)
		json_put_text(j, "sha256", in->sha256);
	json_object_set_new(j, "scope", json_string(in->object->global ? "global" : "local"));
	json_object_set_new(j, "buried", json_boolean(in->surface->buried));
	return j;
}

static json_t *json_finding(const struct finding *f)
{
	json_t *j = json_object(), *fixes = json_array();
	size_t i;

	json_object_set_new(j, "rule", json_string(f->rule));
	json_object_set_new(j, "severity", json_string(severity_name(f->severity)));
	json_put_text(j, "message", f->message);
	json_object_set_new(j, "object", f->object ? json_integer(f->object->id) : json_null());
	for (i = 0; i < f->fixes.n; i++) {
		json_t *fix = json_object();

		json_put_text(fix, "command", f->fixes.at[i].command);
		json_object_set_new(fix, "verdict_after", json_string(verdict_name(f->fixes.at[i].after)));
		json_array_append_new(fixes, fix);
	}
	json_object_set_new(j, "fixes", fixes);
	return j;
}

static json_t *json_bindings(const struct run *r)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < r->bindings.n; i++) {
		const struct api_binding *b = r->bindings.at[i];
		json_t *j = json_object();

		json_object_set_new(j, "object", json_integer(b->object->id));
		json_object_set_new(j, "symbol", json_string(b->symbol));
		json_object_set_new(j, "version", json_null()); /* the API has no symbol versions */
		json_object_set_new(j, "to", b->to ? json_integer(b->to->id) : json_null());
		json_object_set_new(j, "instance", b->instance ? json_integer(b->instance->id) : json_null());
		json_object_set_new(j, "when", json_string(b->at_call ? "call" : "load"));
		if (b->looked_up)
			json_put_text(j, "looked_up", b->looked_up);
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *json_crossings(const struct run *r)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < r->crossings.n; i++) {
		const struct crossing *c = r->crossings.at[i];
		json_t *j = json_object();

		json_object_set_new(j, "kind", json_string(crossing_kind_name(c->kind)));
		json_object_set_new(j, "symbol", json_string(c->symbol));
		json_object_set_new(j, "from", json_integer(c->from->id));
		json_object_set_new(j, "to", json_integer(c->to->id));
		json_object_set_new(j, "phase", json_string(phase_name(c->phase)));
		json_object_set_new(j, "outcome", json_string(outcome_name(c->outcome)));
		json_object_set_new(j, "effect", json_string(c->effect));
		json_object_set_new(j, "when", json_string(c->at_call ? "call" : "load"));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *json_outcome(const struct run *r)
{
	json_t *j = json_object();

	json_object_set_new(j, "phase", json_string(phase_name(r->outcome->phase)));
	json_object_set_new(j, "outcome", json_string(outcome_name(r->outcome->outcome)));
	json_put_text(j, "effect", r->outcome->effect);
	return j;
}

static json_t *json_run(const struct run *r)
{
	const struct target *t = r->surfaces->target;
	json_t *j = json_object(), *targets = json_array(), *target = json_object();
	json_t *paths = json_array(), *instances = json_array(), *findings = json_array();
	size_t i;

	json_object_set_new(j, "role", json_null());
	json_object_set_new(j, "verdict", json_string(verdict_name(r->verdict)));
	json_object_set_new(target, "target", json_string(t->name));
	json_object_set_new(target, "verdict", json_string(verdict_name(r->verdict)));
	json_array_append_new(targets, target);
	json_object_set_new(j, "targets", targets);
	json_object_set_new(j, "context", json_context(&r->life.sequence));
	json_object_set_new(j, "start", json_start(r->life.sequence.process));
	json_object_set_new(j, "objects", json_objects(r->life.sequence.process));
	json_object_set_new(j, "events", json_events(&r->life.sequence));
	for (i = 0; i < r->paths.n; i++)
		json_array_append_new(paths, json_path(r->paths.at[i], t));
	for (i = 0; i < r->instances.n; i++)
		json_array_append_new(instances, json_instance(r->instances.at[i], t));
	for (i = 0; i < r->findings.n; i++)
		json_array_append_new(findings, json_finding(r->findings.at[i]));
	json_object_set_new(j, "paths", paths);
	json_object_set_new(j, "instances", instances);
	json_object_set_new(j, "bindings", json_bindings(r));
	json_object_set_new(j, "crossings", json_crossings(r));
	json_object_set_new(j, "outcome", json_outcome(r));
	json_object_set_new(j, "findings", findings);
	return j;
}

json_t *check_json(const struct check_report *c)
{
	json_t *j = json_object(), *runs = json_array();
	size_t i;

	json_object_set_new(j, "schema", json_string("ncclwhich-report/1"));
	json_object_set_new(j, "command", json_string("check"));
	json_object_set_new(j, "verdict", json_string(verdict_name(c->verdict)));
	for (i = 0; i < c->n; i++)
		json_array_append_new(runs, json_run(c->run[i]));
	json_object_set_new(j, "runs", runs);
	return j;
}
