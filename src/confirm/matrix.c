/* Every ordered pair of copies, measured beside the prediction from versions. */
#include "base/progress.h"
#include "confirm/confirm.h"
#include "confirm/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { AT_ONCE = 12, A = 0, B = 1 };

/* A is opened first, B after it, lazily and local.  Who mints, makes, uses. */
static const struct kind {
	bool global;
	int mint, make, use;
	const char *what;
} kinds[] = {
	{false, B, B, B, "Both local, everything asked of B: nothing crosses"},
	{true, B, B, B, "A global, everything asked of B: B's self-calls"},
	{false, A, B, B, "Both local, id minted in A, used in B"},
	{true, A, B, B, "A global, id minted in A, used in B"},
	{false, B, B, A, "Both local, communicator made in B, used in A"},
	{true, B, B, A, "A global, communicator made in B, used in A"},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct copy {
	const char *path;
	const char *twin; /* the same bytes, another inode: for the diagonal */
	const struct surface *surface;
};

struct cell {
	const struct copy *a, *b;
	const struct kind *kind;
	struct first_trouble predicted;
	struct case_seen seen;
	bool skipped, running, done;
	struct child child;
	char *orders;
};

struct matrix {
	struct confirm *c;
	const struct target *target;
	struct copy *copy;
	size_t n;
	struct cell *cell; /* kind-major, then A, then B */
	size_t n_cells;
	struct child_environment env;
};

/* ---- the files */

static int make_twin(struct matrix *m, struct copy *copy, size_t number, struct error *e)
{
	char *path = confirm_text(m->c, "%s/twin.%zu", m->c->place.dir, number), *chunk = xmalloc(1 << 20);
	int in = open(copy->path, O_RDONLY | O_CLOEXEC), out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && (n = read(in, chunk, 1 << 20)) > 0)
		if (write(out, chunk, (size_t)n) != n) {
			n = -1;
			break;
		}
	copy->twin = path;
	if (n < 0)
		error_set(e, "%s: cannot be copied to %s: %s", copy->path, path, strerror(errno));
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	free(chunk);
	return n < 0 ? -1 : 0;
}

static int read_copy(struct matrix *m, struct surfaces *surfaces, const char *file, struct copy *copy, struct error *e)
{
	struct store *store = surfaces->store;
	char *real = realpath(file, NULL);
	struct root_file *f;
	const struct elf_object *elf;
	int open_error;

	if (!real)
		return error_set(e, "%s: %s", file, strerror(errno));
	copy->path = arena_strdup(&m->c->arena, real);
	free(real);
	if (root_lookup(store->root, names_add(&store->names, copy->path), &f))
		return error_set(e, "%s: not found", file);
	elf = store_object(store, f, &open_error);
	if (open_error || elf->fault)
		return error_set(e, "%s: %s", file, open_error ? strerror(open_error) : elf_fault_text(elf->fault));
	copy->surface = surface_of(surfaces, f, elf);
	if (!copy->surface->tracked)
		return error_set(e, "%s: is no copy of %s", file, m->target->name);
	return 0;
}

/* ---- the cells */

static void take_first(struct first_trouble *first, struct first_trouble next)
{
	if (next.phase != PHASE_LATER && next.phase != PHASE_EXIT && trouble_comes_first(next, *first))
		*first = next;
}

static const char *machine(void)
{
#if defined(__x86_64__)
	return elf_machine_name(EM_X86_64);
#else
	return elf_machine_name(EM_AARCH64);
#endif
}

static void predict(struct matrix *m, struct cell *cell)
{
	const char *a = cell->a->surface->version, *b = cell->b->surface->version;
	const struct kind *k = cell->kind;
	struct first_trouble id = id_between_versions(m->target, a, b);

	cell->predicted = (struct first_trouble){PHASE_EXIT, OUTCOME_NONE, ""};
	if (k->mint != k->make) {
		take_first(&cell->predicted, id);
		cell->skipped = id.outcome != OUTCOME_NONE && !m->c->setup->dangerous;
	}
	if (k->global)
		take_first(&cell->predicted, a && b ? crossing_of_versions(m->target, machine(), b, a)
			   : (struct first_trouble){PHASE_INIT, OUTCOME_UNKNOWN, "a version is not known"});
	if (k->use != k->make)
		take_first(&cell->predicted, comm_between_versions(m->target, machine(), b, a));
}

static void put_orders(struct cell *cell, const char *program)
{
	size_t size = 0;
	FILE *f = open_memstream(&cell->orders, &size);

	orders_put(f, "program", program, NULL);
	orders_put(f, "open", cell->kind->global ? "257" : "1", "", cell->a->path, NULL); /* RTLD_LAZY, RTLD_GLOBAL */
	orders_put(f, "open", "1", "", cell->a == cell->b ? cell->b->twin : cell->b->path, NULL);
	orders_put(f, "path", "opened", "0", NULL);
	orders_put(f, "path", "opened", "1", NULL);
	fclose(f);
}

static int start_cell(struct matrix *m, struct cell *cell, struct error *e)
{
	struct nccl_case k = {cell->kind->mint, cell->kind->make, cell->kind->use, NULL, m->c->place.program, "/",
			      m->env.at.at, 1};

	put_orders(cell, k.program);
	k.orders = cell->orders;
	if (case_start(m->c, &k, &cell->child, e) < 0)
		return -1;
	cell->running = true;
	return 0;
}

static int end_cell(struct matrix *m, struct cell *cell, struct error *e)
{
	cell->running = false;
	cell->done = true;
	case_read(m->c, &cell->child, &cell->seen);
	child_free(&cell->child);
	free(cell->orders);
	if (cell->seen.no_device)
		m->c->no_device = cell->seen.no_device;
	return cell->seen.trouble ? error_set(e, "%s", cell->seen.trouble) : 0;
}

/* At most twelve at a time: more wait for each other on one device, and a long
 * wait looks like a hang.  The first one goes alone, to see if there is one. */
static int run_cells(struct matrix *m, struct error *e)
{
	struct cell *running[AT_ONCE];
	struct child *children[AT_ONCE];
	size_t next = 0, n = 0, i, most = 1;
	int result = 0;

	while (result == 0 && (n || (next < m->n_cells && !m->c->no_device))) {
		while (n < most && next < m->n_cells && !m->c->no_device) {
			struct cell *cell = &m->cell[next++];

			if (cell->skipped)
				continue;
			if (start_cell(m, cell, e) < 0)
				return -1;
			running[n] = cell;
			children[n++] = &cell->child;
		}
		progress_show("cells of the matrix", next - n, m->n_cells);
		children_poll(children, n);
		for (i = 0; i < n;) {
			if (!child_step(children[i])) {
				i++;
				continue;
			}
			result |= end_cell(m, running[i], e);
			most = AT_ONCE;
			running[i] = running[--n];
			children[i] = children[n];
			if (result)
				break;
		}
	}
	progress_end();
	for (i = 0; i < n; i++) {
		child_free(&running[i]->child);
		free(running[i]->orders);
	}
	return result;
}

/* ---- what came of it */

static const char *letter(enum outcome outcome, int code, struct confirm *c)
{
	switch (outcome) {
	case OUTCOME_NONE: return ".";
	case OUTCOME_ERROR:
		if (code < 0 || code > 99) /* no result code of any version: memory of something else */
			return "junk";
		return code ? confirm_text(c, "%d", code) : "wrong";
	case OUTCOME_CRASH: return "crash";
	case OUTCOME_HANG: return "hang";
	default: return "?";
	}
}

static const char *version_of(const struct copy *copy)
{
	return copy->surface->version ? copy->surface->version : "unknown";
}

static void put_tables(struct matrix *m, FILE *f)
{
	size_t k, a, b, i = 0;

	fputs("measured / predicted: . every call 0 and the sums right, 4 ncclInvalidArgument, other numbers: other results,\n"
	      "junk: what is no result, wrong: all calls 0 but not the sums, crash, hang; ? nothing definite is predicted;\n"
	      "- not tried (an id across eras; --dangerous tries it); ! differs\n", f);
	for (k = 0; k < KINDS; k++) {
		fprintf(f, "\n%s\n%-10s", kinds[k].what, "A \\ B");
		for (b = 0; b < m->n; b++)
			fprintf(f, "%15s", version_of(&m->copy[b]));
		fputc('\n', f);
		for (a = 0; a < m->n; a++) {
			fprintf(f, "%-10s", version_of(&m->copy[a]));
			for (b = 0; b < m->n; b++, i++) {
				const struct cell *cell = &m->cell[i];

				fprintf(f, "%15s", confirm_text(m->c, "%s%s / %s",
					cell->done && case_compare(cell->predicted, &cell->seen) == ROW_DIFFERENT ? "! " : "",
					cell->done ? letter(cell->seen.outcome, cell->seen.code, m->c) : "-",
					letter(cell->predicted.outcome, 4, m->c)));
			}
			fputc('\n', f);
		}
	}
}

static void add_rows(struct matrix *m)
{
	char *text = NULL;
	size_t i, size = 0;
	FILE *f;

	for (i = 0; i < m->n_cells; i++) {
		const struct cell *cell = &m->cell[i];
		struct confirm_row row = {.stage = "matrix", .kind = "cell", .minor = true, .state = ROW_OPEN,
					  .observed = "not tried: an id across eras (--dangerous tries it)"};

		row.what = confirm_text(m->c, "%s; A %s, B %s", cell->kind->what, version_of(cell->a), version_of(cell->b));
		row.predicted = case_predicted(m->c, cell->predicted);
		if (cell->done) {
			row.observed = cell->seen.text;
			row.note = cell->seen.note;
			row.state = case_compare(cell->predicted, &cell->seen);
		}
		confirm_add(m->c, row);
	}
	f = open_memstream(&text, &size);
	put_tables(m, f);
	fclose(f);
	m->c->tables = arena_strdup(&m->c->arena, text);
	free(text);
}

static int prepare(struct matrix *m, struct surfaces *surfaces, const char *const *files, struct error *e)
{
	const struct plan *plan = m->c->setup->plan;
	struct process_setup setup = {.library_path = plan->library_path, .preload = plan->preload};
	size_t i, k, a, b;
#if defined(__x86_64__)
	const uint16_t here = EM_X86_64;
	const char *interp = "/lib64/ld-linux-x86-64.so.2";
#else
	const uint16_t here = EM_AARCH64;
	const char *interp = "/lib/ld-linux-aarch64.so.1";
#endif

	m->copy = arena_alloc(&m->c->arena, m->n * sizeof(*m->copy));
	m->n_cells = KINDS * m->n * m->n;
	m->cell = arena_alloc(&m->c->arena, m->n_cells * sizeof(*m->cell));
	for (i = 0; i < m->n; i++)
		if (read_copy(m, surfaces, files[i], &m->copy[i], e) < 0 || make_twin(m, &m->copy[i], i, e) < 0)
			return -1;
	for (i = k = 0; k < KINDS; k++)
		for (a = 0; a < m->n; a++)
			for (b = 0; b < m->n; b++, i++) {
				m->cell[i].a = &m->copy[a];
				m->cell[i].b = &m->copy[b];
				m->cell[i].kind = &kinds[k];
				predict(m, &m->cell[i]);
			}
	confirm_environment(m->c, &setup, &m->env);
	confirm_environment_for_nccl(m->c, &m->env);
	confirm_environment_add(m->c, &m->env, REPLAY_VARIABLE "=97,98");
	return place_bare_program(&m->c->place, interp, here, e);
}

int confirm_matrix(struct confirm *c, struct surfaces *surfaces, const char *const *files, size_t n, struct error *e)
{
	struct matrix m = {.c = c, .target = surfaces->target, .n = n};
	int result = prepare(&m, surfaces, files, e);
	size_t i;

	if (result == 0)
		result = run_cells(&m, e);
	if (result == 0 && !c->no_device)
		add_rows(&m);
	for (i = 0; m.copy && i < n; i++)
		if (m.copy[i].twin)
			unlink(m.copy[i].twin);
	vec_free(&m.env.at);
	return result;
}
