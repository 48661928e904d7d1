#include "cmd/simulate.h"

#include "linkage/wheels.h"
#include "verdict/fix.h"
#include "verdict/order.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <unistd.h>

static const char *sha256_of(struct run *r, const struct root_file *file)
{
	unsigned char digest[SHA256_DIGEST_SIZE], chunk[65536];
	struct sha256_ctx context;
	char *text;
	ssize_t n;
	size_t i;
	int fd = root_open(r->surfaces->store->root, file);

	if (fd < 0)
		return NULL;
	sha256_init(&context);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		sha256_update(&context, (size_t)n, chunk);
	close(fd);
	if (n < 0)
		return NULL;
	sha256_digest(&context, sizeof(digest), digest);
	text = arena_alloc(&r->arena, 2 * sizeof(digest) + 1);
	for (i = 0; i < sizeof(digest); i++) {
		text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
	}
	return text;
}

static int run_on(struct simulation *s, const struct options *o, const struct cpu *cpu, bool with_fixes,
		  struct error *e)
{
	struct run *r = run_new(&o->plan, &s->surfaces, cpu, e);
	size_t i;

	if (!r)
		return -1;
	for (i = 0; i < s->report.n; i++)
		if (run_same(s->runs[i], r)) {
			run_free(r);
			return 0;
		}
	s->runs[s->report.n++] = r;
	if (r->verdict < s->report.verdict)
		s->report.verdict = r->verdict;
	for (i = 0; o->plan.sha256 && i < r->instances.n; i++)
		r->instances.at[i]->sha256 = sha256_of(r, r->instances.at[i]->object->file);
	if (order_check(r, &o->plan, cpu, e) < 0)
		return -1;
	return with_fixes ? fix_propose(r, &o->plan, cpu, e) : 0;
}

static int find_imports(struct simulation *s, struct options *o, struct error *e)
{
	if (!o->plan.python)
		return 0;
	if (imports_collect(&o->plan, s->store, o->plan.python, o->plan.modules.at, o->plan.modules.n, &s->imports, e) < 0)
		return -1;
	o->plan.engine = s->imports.executable;
	o->plan.imports = &s->imports;
	return 0;
}

int simulation_start(struct simulation *s, struct options *o, bool with_fixes, struct error *e)
{
	uint16_t machine;
	int n, i;

	memset(s, 0, sizeof(*s));
	s->report.run = s->runs;
	s->report.verdict = VERDICT_ONE;
	s->store = store_new(o->plan.root, e);
	if (!s->store)
		return -1;
	if (data_load(&s->data, o->plan.profiles.at, o->plan.profiles.n, o->plan.data_dir, e) < 0)
		return -1;
	surfaces_init(&s->surfaces, s->store, &s->data.data, s->data.data.targets[0]);
	if (wheels_install(&o->plan, s->store, e) < 0 || find_imports(s, o, e) < 0 ||
	    plan_machine(&o->plan, s->store, &machine, e) < 0 ||
	    (n = plan_cpus(&o->plan, machine, s->cpu, e)) < 0)
		return -1;
	s->surfaces.engine = plan_engine_file(&o->plan, s->store);
	for (i = 0; i < n; i++) {
		if (run_on(s, o, &s->cpu[i], with_fixes, e) < 0)
			return -1;
		/* The first processor has every subdirectory that any has: if it
		 * did not matter there, it matters nowhere. */
		if (!i && !s->runs[0]->life.sequence.process->cpu_matters)
			break;
	}
	return 0;
}

void simulation_end(struct simulation *s)
{
	size_t i;

	for (i = 0; i < s->report.n; i++)
		run_free(s->runs[i]);
	imports_free(&s->imports);
	surfaces_free(&s->surfaces);
	data_free(&s->data);
	store_free(s->store);
}

int simulation_status(const struct options *o, const struct check_report *report)
{
	size_t i, k;

	for (i = 0; i < report->n; i++)
		for (k = 0; k < report->run[i]->findings.n && o->fail_on != FAIL_ON_NEVER; k++)
			if ((int)report->run[i]->findings.at[k]->severity <= (int)o->fail_on)
				return 1;
	if (report->verdict == VERDICT_UNSURE || report->verdict == VERDICT_NONE)
		return o->strict ? 1 : o->allow_unsure ? 0 : 3;
	return 0;
}
