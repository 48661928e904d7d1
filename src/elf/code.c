#include "elf/code_internal.h"

#include <capstone/capstone.h>
#include <stdlib.h>

enum opener { OPEN_DLOPEN, OPEN_DLMOPEN, OPEN_DLSYM, OPEN_DLVSYM, OPENERS };

static const struct {
	const char *name;
	unsigned text, more; /* which arguments; more: the flags, or the handle */
} openers[OPENERS] = {
	{"dlopen", 0, 1},
	{"dlmopen", 1, 2},
	{"dlsym", 1, 0},
	{"dlvsym", 1, 0},
};

/* Where a name is to be looked for: an argument of a call, for the sake of a call
 * of dlopen that may be in a function further down. */
struct question {
	enum opener opener;
	uint64_t where, via;
	uint8_t text, more; /* registers; REG_NONE: flags or handle are known, or cannot be */
	long flags;
	enum elf_handle handle;
	uint64_t opened_at;
	unsigned level;
	uint64_t entry; /* of the function that has it as a parameter */
	struct code_text around; /* the hole in it is what is looked for */
	bool row;                /* one of a table */
};

struct opens {
	struct code c;
	uint8_t *opener; /* per symbol: enum opener + 1, or 0 */
	VEC(struct elf_open) out;
	VEC(struct question) asked;
};

static void emit(struct opens *o, struct elf_open open, const struct question *q)
{
	open.function = openers[q->opener].name;
	open.flags = q->flags;
	open.handle = q->handle;
	open.opened_at = q->opened_at;
	open.where = q->where;
	open.via = q->via;
	open.order = (unsigned)o->out.n;
	if (o->out.n < OPENS_MOST)
		vec_push(&o->out, open);
	else
		code_note(&o->c, "it opens too much: not everything is listed");
}

static void emit_computed(struct opens *o, const struct question *q)
{
	emit(o, (struct elf_open){.computed = true}, q);
}

static bool opens_files(const struct question *q)
{
	return q->opener == OPEN_DLOPEN || q->opener == OPEN_DLMOPEN;
}

/* ---- answers */

/* RTLD_DEFAULT, RTLD_NEXT, or what an open has returned in the same function. */
static void take_handle(struct opens *o, struct function *f, const struct value *v, struct question *q)
{
	const char *callee;
	long call;

	if (v->kind == V_NUMBER && (!v->n || v->n == UINT64_MAX)) {
		q->handle = v->n ? HANDLE_NEXT : HANDLE_DEFAULT;
	} else if (v->kind == V_RESULT && (call = code_insn_at(f, v->n)) >= 0) {
		callee = code_callee_at(&o->c, f, (uint32_t)call);
		if (!strcmp(callee, "dlopen") || !strcmp(callee, "dlmopen")) {
			q->handle = HANDLE_OPENED;
			q->opened_at = v->n;
		}
	}
}

static void answer_more(struct opens *o, struct function *f, uint32_t i, struct question *q)
{
	struct operand x = code_reg(q->more, opens_files(q) ? 4 : 8);
	struct values v = {0};

	if (q->more == REG_NONE)
		return;
	q->more = REG_NONE;
	code_trace(&o->c, f, i, &x, &v);
	if (values_single(&v)) {
		if (v.v.at[0].kind == V_ENTRY && v.v.at[0].reg != REG_NONE) {
			q->more = v.v.at[0].reg;
			q->entry = v.v.at[0].n;
		} else if (!opens_files(q)) {
			take_handle(o, f, &v.v.at[0], q);
		} else if (v.v.at[0].kind == V_NUMBER) {
			q->flags = (long)(uint32_t)v.v.at[0].n;
		}
	}
	values_free(&v);
}

/* A parameter: whoever calls the function knows. */
static void ask_callers(struct opens *o, const struct question *q, const struct code_text *t, bool row)
{
	struct question next = *q;

	if (q->level >= LEVELS_MOST || o->asked.n >= SITES_MOST) {
		emit_computed(o, q);
		return;
	}
	if (next.more != REG_NONE && next.entry != t->entry)
		next.more = REG_NONE;
	next.entry = t->entry;
	next.text = t->reg;
	next.around = *t;
	next.row |= row;
	next.level++;
	vec_push(&o->asked, next);
}

/* T in what stands around it further down; false if that cannot be said. */
static bool surround(struct opens *o, const struct question *q, struct code_text *t)
{
	struct code_text before = q->around, after = q->around;

	if (!q->level)
		return true;
	before.hole = after.hole = false;
	after.before = q->around.after;
	before.after = after.after = names_add(o->c.names, "");
	return code_text_join(&o->c, &before, t, t) && code_text_join(&o->c, t, &after, t);
}

static void answer(struct opens *o, struct function *f, uint32_t i, struct question q)
{
	struct operand x = code_reg(q.text, 8);
	struct code_texts texts = {0};
	size_t k;

	answer_more(o, f, i, &q);
	code_texts(&o->c, f, i, &x, &texts);
	for (k = 0; k < texts.v.n; k++) {
		struct code_text t = texts.v.at[k];

		if (!surround(o, &q, &t) || (t.env && !opens_files(&q)))
			texts.computed = true;
		else if (t.hole)
			ask_callers(o, &q, &t, texts.row);
		else
			emit(o, (struct elf_open){.name = t.env ? NULL : t.before, .form = t.env ? t.before : NULL,
						  .row = texts.row || q.row}, &q);
	}
	if (texts.null && opens_files(&q) && !*q.around.before && !*q.around.after)
		emit(o, (struct elf_open){0}, &q);
	else
		texts.computed |= texts.null;
	if (texts.computed)
		emit_computed(o, &q);
	vec_free(&texts.v);
}

static struct question question_at(const struct opens *o, uint64_t where, uint32_t symbol)
{
	enum opener opener = (enum opener)(o->opener[symbol] - 1);

	return (struct question){.opener = opener, .where = where, .flags = -1,
				 .text = code_argument(&o->c, openers[opener].text).reg,
				 .more = code_argument(&o->c, openers[opener].more).reg,
				 .around = {.before = "", .after = ""}};
}

/* ---- calls */

static bool is_same_callee(const struct opens *o, const struct value *x, const struct value *y)
{
	if (x->kind != y->kind)
		return false;
	return x->kind == V_FUNCTION ? o->opener[x->n] == o->opener[y->n] : x->n == y->n;
}

/* A function that loads the address of another one: which of its calls go there?
 * Answers Q for each; false if there are none. */
static bool answer_register_calls(struct opens *o, struct function *f, const struct value *callee, struct question q)
{
	bool any = false;
	uint32_t i;
	size_t k;

	for (i = 0; i < f->insn.n; i++) {
		const struct operand *x = &f->insn.at[i].through;
		struct values v = {0};

		if (x->kind == O_NONE || (x->kind == O_MEM && x->reg == REG_NONE && x->index == REG_NONE))
			continue;
		code_trace(&o->c, f, i, x, &v);
		for (k = 0; k < v.v.n; k++)
			if (is_same_callee(o, callee, &v.v.at[k])) {
				if (!q.level)
					q.where = f->insn.at[i].at;
				else if (q.level == 1)
					q.via = f->insn.at[i].at;
				answer(o, f, i, q);
				any = true;
			}
		values_free(&v);
	}
	return any;
}

static void emit_taken(struct opens *o, uint64_t where, uint32_t symbol)
{
	struct question q = question_at(o, where, symbol);

	emit(o, (struct elf_open){.computed = true, .taken = true}, &q);
}

/* AArch64 forms an address in two steps, which the scan has only guessed to
 * belong together. */
static bool is_reference(struct opens *o, const struct code_reference *ref)
{
	struct function *f = code_function(&o->c, ref->at);
	long i = f ? code_insn_at(f, ref->at) : -1;
	struct values v = {0};
	const struct effect *e;
	size_t k;
	bool result = false;

	if (!o->c.arm || i < 0 || !f->insn.at[i].n_effect)
		return !o->c.arm;
	e = &f->effect.at[f->insn.at[i].effect];
	if (ref->kind == REF_ADDRESS) {
		code_trace(&o->c, f, (uint32_t)i, &e->a, &v);
		for (k = 0; k < v.v.n; k++)
			result |= v.v.at[k].kind == V_NUMBER && code_segment(&o->c, v.v.at[k].n);
	} else {
		code_trace(&o->c, f, (uint32_t)i, &e->a, &v);
		for (k = 0; k < v.v.n; k++)
			result |= v.v.at[k].kind == V_FUNCTION && v.v.at[k].n == ref->id;
	}
	values_free(&v);
	return result;
}

static void follow_load(struct opens *o, const struct code_references *f, size_t i)
{
	struct function *g = code_function(&o->c, f->ref.at[i].at);
	struct value callee = {.kind = V_FUNCTION, .n = f->ref.at[i].id};
	uint8_t bit = (uint8_t)(1u << o->opener[f->ref.at[i].id]);

	if ((g && (g->answered & bit)) || !is_reference(o, &f->ref.at[i]))
		return;
	if (g)
		g->answered |= bit;
	if (!g || !answer_register_calls(o, g, &callee, question_at(o, 0, f->ref.at[i].id)))
		emit_taken(o, f->ref.at[i].at, f->ref.at[i].id);
}

static void follow_reference(struct opens *o, const struct code_references *f, size_t i)
{
	const struct code_reference *ref = &f->ref.at[i];
	struct function *g;
	long k;

	if (ref->kind == REF_ADDRESS) {
		if (is_reference(o, ref))
			emit_taken(o, ref->at, ref->id);
		return;
	}
	if (ref->kind == REF_LOAD) {
		follow_load(o, f, i);
		return;
	}
	g = code_function(&o->c, ref->at);
	k = g ? code_insn_at(g, ref->at) : -1;
	if (k >= 0 && g->insn.at[k].flow != F_NEXT) {
		answer(o, g, (uint32_t)k, question_at(o, ref->at, ref->id));
	} else if (!g || ref->kind == REF_CALL) {
		struct question q = question_at(o, ref->at, ref->id);

		emit_computed(o, &q);
	}
}

/* Where instructions begin beyond doubt: a match of five bytes and more is no
 * accident.  Short jumps and numbers may be, and the decoder has to agree. */
static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void fix_places(struct code *c, const struct code_references *f)
{
	size_t i;

	for (i = 0; i < f->ref.n; i++)
		if (f->ref.at[i].kind == REF_CALL || f->ref.at[i].kind == REF_LOAD)
			vec_push(&c->fixed, f->ref.at[i].at);
	if (c->fixed.n)
		qsort(c->fixed.at, c->fixed.n, sizeof(*c->fixed.at), by_value);
}

static void find_calls(struct opens *o)
{
	struct code_references f = {0};
	size_t i;

	for (i = 0; i < o->c.slot.n; i++)
		if (o->opener[o->c.slot.at[i].symbol])
			vec_push(&f.target, ((struct code_target){o->c.slot.at[i].at, o->c.slot.at[i].symbol, true}));
	code_find(&o->c, &f);
	fix_places(&o->c, &f);
	for (i = 0; i < f.ref.n; i++)
		follow_reference(o, &f, i);
	/* In a program at a fixed address the stub is the function's address for all. */
	for (i = 1; i < o->c.s->n; i++)
		if (o->opener[i] && !elf_symbol_defined(o->c.s, i) && o->c.s->symbol[i].st_value)
			emit_taken(o, o->c.s->symbol[i].st_value, (uint32_t)i);
	for (i = 0; i < o->c.stored.n; i++)
		emit_taken(o, o->c.stored.at[i].at, o->c.stored.at[i].symbol);
	code_references_free(&f);
}

/* ---- callers of wrappers */

struct wrapper {
	uint64_t entry;
	bool open; /* others may call it too: exported, or its address is used */
	bool called;
};

static int by_entry(const void *a, const void *b)
{
	const struct wrapper *x = a, *y = b;

	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* The functions that are asked about, with the ways in which they can be called. */
static size_t list_wrappers(struct opens *o, const struct question *q, size_t n, struct wrapper *w,
			    struct code_references *f)
{
	size_t i, count = 0;
	struct wrapper key = {0}, *found;

	for (i = 0; i < n; i++)
		w[i] = (struct wrapper){.entry = q[i].entry};
	qsort(w, n, sizeof(*w), by_entry);
	for (i = 0; i < n; i++)
		if (!count || w[count - 1].entry != w[i].entry)
			w[count++] = w[i];
	for (i = 0; i < count; i++)
		vec_push(&f->target, ((struct code_target){w[i].entry, (uint32_t)i, false}));
	code_read_pointers(&o->c);
	for (i = 0; i < o->c.pointer.n; i++) {
		key.entry = o->c.pointer.at[i].value;
		if (!code_slot_symbol(&o->c, o->c.pointer.at[i].at) &&
		    (found = bsearch(&key, w, count, sizeof(key), by_entry)))
			found->open = true;
	}
	for (i = 1; i < o->c.s->n; i++) {
		key.entry = o->c.s->symbol[i].st_value;
		if (elf_symbol_defined(o->c.s, i) && (found = bsearch(&key, w, count, sizeof(key), by_entry)))
			found->open = true;
	}
	for (i = 0; i < o->c.slot.n && f->target.n < SITES_MOST; i++) {
		key.entry = o->c.s->symbol[o->c.slot.at[i].symbol].st_value;
		if (elf_symbol_defined(o->c.s, o->c.slot.at[i].symbol) &&
		    (found = bsearch(&key, w, count, sizeof(key), by_entry)))
			vec_push(&f->target, ((struct code_target){o->c.slot.at[i].at, (uint32_t)(found - w), true}));
	}
	return count;
}

static void ask(struct opens *o, const struct question *q, struct wrapper *w, const struct code_reference *ref)
{
	struct function *g;
	struct question next = *q;
	long k;

	g = code_function(&o->c, ref->at);
	if (ref->kind == REF_LOAD || ref->kind == REF_ADDRESS) {
		struct value callee = {.kind = V_NUMBER, .n = w->entry};

		w->called |= g && answer_register_calls(o, g, &callee, next);
		w->open |= !w->called || ref->kind == REF_ADDRESS;
		return;
	}
	k = g ? code_insn_at(g, ref->at) : -1;
	if (k < 0 || g->insn.at[k].flow == F_NEXT) {
		w->open |= !g || ref->kind == REF_CALL;
		return;
	}
	/* A jump within the function was followed as such. */
	if (g->insn.at[k].flow != F_CALL && code_insn_at(g, w->entry) >= 0 && g->insn.at[k].target == w->entry)
		return;
	w->called = true;
	if (next.level == 1)
		next.via = ref->at;
	answer(o, g, (uint32_t)k, next);
}

/* One level: everything asked so far is looked up in one scan. */
static void ask_level(struct opens *o)
{
	VEC(struct question) q = {0};
	struct code_references f = {0};
	struct wrapper *w, key = {0}, *mine;
	size_t i, k, n;

	q.at = o->asked.at;
	q.n = o->asked.n;
	memset(&o->asked, 0, sizeof(o->asked));
	w = xmalloc((q.n + 1) * sizeof(*w));
	n = list_wrappers(o, q.at, q.n, w, &f);
	if (code_find(&o->c, &f) < 0)
		for (i = 0; i < n; i++)
			w[i].open = true;
	fix_places(&o->c, &f);
	for (i = 0; i < q.n; i++) {
		key.entry = q.at[i].entry;
		mine = bsearch(&key, w, n, sizeof(key), by_entry);
		if (!mine) /* every entry is there */
			continue;
		mine->called = false;
		if (o->out.n >= OPENS_MOST || o->c.budget <= 0)
			mine->open = true;
		for (k = 0; k < f.ref.n && o->out.n < OPENS_MOST && o->c.budget > 0; k++)
			if (f.ref.at[k].id == (uint32_t)(mine - w))
				ask(o, &q.at[i], mine, &f.ref.at[k]);
		if (mine->open || !mine->called)
			emit_computed(o, &q.at[i]);
	}
	code_references_free(&f);
	vec_free(&q);
	free(w);
}

/* ---- the report */

static int compare_text(const char *a, const char *b)
{
	if (!a || !b)
		return !a - !b;
	return strcmp(a, b);
}

static int by_call(const struct elf_open *x, const struct elf_open *y)
{
	if (x->where != y->where)
		return x->where < y->where ? -1 : 1;
	if (x->via != y->via)
		return x->via < y->via ? -1 : 1;
	return x->computed - y->computed;
}

static int compare_content(const struct elf_open *x, const struct elf_open *y)
{
	if (by_call(x, y))
		return by_call(x, y);
	if (compare_text(x->name, y->name))
		return compare_text(x->name, y->name);
	if (compare_text(x->form, y->form))
		return compare_text(x->form, y->form);
	if (x->flags != y->flags)
		return x->flags < y->flags ? -1 : 1;
	if (x->handle != y->handle)
		return x->handle < y->handle ? -1 : 1;
	if (x->opened_at != y->opened_at)
		return x->opened_at < y->opened_at ? -1 : 1;
	return compare_text(x->function, y->function);
}

static int by_content(const void *a, const void *b)
{
	const struct elf_open *x = a, *y = b;

	return compare_content(x, y) ? compare_content(x, y) : x->order < y->order ? -1 : x->order > y->order;
}

static int by_order(const void *a, const void *b)
{
	const struct elf_open *x = a, *y = b;

	return by_call(x, y) ? by_call(x, y) : x->order < y->order ? -1 : x->order > y->order;
}

struct place {
	uint64_t at;
	const char *text;
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* One pass over the symbols, which may be many more than the places. */
static void name_places(struct opens *o, struct place *p, size_t n)
{
	const struct elf_symbols *s = o->c.s;
	size_t i, low, high;

	for (i = 1; i < s->n; i++) {
		const Elf64_Sym *y = &s->symbol[i];

		if (!elf_symbol_defined(s, i) || ELF64_ST_TYPE(y->st_info) != STT_FUNC || !y->st_size)
			continue;
		for (low = 0, high = n; low < high;) {
			size_t mid = low + (high - low) / 2;

			if (p[mid].at < y->st_value)
				low = mid + 1;
			else
				high = mid;
		}
		for (; low < n && p[low].at - y->st_value < y->st_size; low++)
			if (!p[low].text)
				p[low].text = arena_printf(o->c.arena, "%s+0x%llx", elf_symbol_name(s, i),
							   (unsigned long long)(p[low].at - y->st_value));
	}
	for (i = 0; i < n; i++)
		if (!p[i].text)
			p[i].text = arena_printf(o->c.arena, "0x%llx", (unsigned long long)p[i].at);
}

static const char *place_name(const struct place *p, size_t n, uint64_t at)
{
	struct place key = {.at = at};
	const struct place *found = bsearch(&key, p, n, sizeof(key), by_place);

	return found ? found->text : NULL;
}

/* Are these calls of one function of which only one is made? */
static bool excludes(struct opens *o, const struct elf_open *a, const struct elf_open *b)
{
	struct function *f = code_function(&o->c, elf_open_place(a));
	long i, k;

	if (!f || f != code_function(&o->c, elf_open_place(b)))
		return false;
	i = code_insn_at(f, elf_open_place(a));
	k = code_insn_at(f, elf_open_place(b));
	return i >= 0 && k >= 0 && i != k && !code_reaches(f, (uint32_t)i, (uint32_t)k) && !code_reaches(f, (uint32_t)k, (uint32_t)i);
}

/* `if (variable) dlopen(variable) else dlopen(name)`: two calls, and not alternatives. */
static void find_exclusive(struct opens *o)
{
	enum { NEAR = 16384 };
	struct elf_open *e = o->out.at;
	size_t i, k;

	for (i = 0; i < o->out.n; i++)
		for (k = 0; k < o->out.n && e[i].name && !e[i].instead; k++)
			if (e[k].form && elf_open_place(&e[i]) - elf_open_place(&e[k]) + NEAR < 2 * NEAR && excludes(o, &e[i], &e[k]))
				e[i].instead = elf_open_place(&e[k]);
}

static void finish(struct opens *o, struct elf_opens *out)
{
	struct place *p = xmalloc((o->out.n * 3 + 1) * sizeof(*p));
	size_t i, n = 0, m = 0, distinct = 0;

	if (o->out.n)
		qsort(o->out.at, o->out.n, sizeof(*o->out.at), by_content);
	for (i = 0; i < o->out.n; i++)
		if (!n || compare_content(&o->out.at[n - 1], &o->out.at[i]))
			o->out.at[n++] = o->out.at[i];
	if (n)
		qsort(o->out.at, n, sizeof(*o->out.at), by_order);
	o->out.n = n;
	find_exclusive(o);
	for (i = 0; i < n; i++) {
		p[m++] = (struct place){o->out.at[i].where, NULL};
		if (o->out.at[i].via)
			p[m++] = (struct place){o->out.at[i].via, NULL};
		if (o->out.at[i].opened_at)
			p[m++] = (struct place){o->out.at[i].opened_at, NULL};
	}
	qsort(p, m, sizeof(*p), by_place);
	for (i = 0; i < m; i++)
		if (!distinct || p[distinct - 1].at != p[i].at)
			p[distinct++] = p[i];
	name_places(o, p, distinct);
	out->at = arena_alloc(o->c.arena, (n + 1) * sizeof(*out->at));
	out->n = n;
	out->note = o->c.note;
	for (i = 0; i < n; i++) {
		out->at[i] = o->out.at[i];
		out->at[i].in = place_name(p, distinct, out->at[i].where);
		out->at[i].via_in = out->at[i].via ? place_name(p, distinct, out->at[i].via) : NULL;
		out->at[i].opened_in = out->at[i].opened_at ? place_name(p, distinct, out->at[i].opened_at) : NULL;
	}
	free(p);
}

/* ---- */

static bool find_openers(struct opens *o, bool *wanted)
{
	const struct elf_symbols *s = o->c.s;
	size_t i, k;
	bool any = false;

	for (i = 1; i < s->n; i++) {
		const char *name = elf_symbol_name(s, i);

		if (name[0] != 'd' || name[1] != 'l')
			continue;
		for (k = 0; k < OPENERS; k++)
			if (!strcmp(name, openers[k].name)) {
				o->opener[i] = (uint8_t)(k + 1);
				wanted[i] = any = true;
			}
	}
	return any;
}

static int open_decoder(struct code *c)
{
	csh handle;

	if (c->arm)
		return 0;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return -1;
	c->capstone = handle;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	c->decoded = cs_malloc(handle);
	return c->decoded ? 0 : -1;
}

static void close_all(struct opens *o)
{
	struct code *c = &o->c;
	csh handle = c->capstone;

	code_functions_free(c);
	if (c->decoded)
		cs_free(c->decoded, 1);
	if (c->capstone)
		cs_close(&handle);
	vec_free(&c->slot);
	vec_free(&c->stored);
	vec_free(&c->pointer);
	vec_free(&c->span);
	vec_free(&c->fixed);
	vec_free(&o->out);
	vec_free(&o->asked);
	free(o->opener);
}

int elf_code_opens(struct reader *r, const struct elf_object *object, const struct elf_symbols *s, struct names *names,
		   struct arena *arena, struct elf_opens *out)
{
	struct opens o = {.c = {.r = r, .o = object, .s = s, .names = names, .arena = arena, .budget = BUDGET}};
	bool *wanted, any;
	unsigned level;
	int result = 0;

	memset(out, 0, sizeof(*out));
	if ((object->machine != EM_X86_64 && object->machine != EM_AARCH64) || !s->n)
		return 0;
	o.c.arm = object->machine == EM_AARCH64;
	o.c.sp = o.c.arm ? ARM_SP : X86_SP;
	o.c.fp = o.c.arm ? ARM_FP : X86_FP;
	o.opener = xmalloc(s->n);
	memset(o.opener, 0, s->n);
	wanted = xmalloc(s->n * sizeof(*wanted));
	memset(wanted, 0, s->n * sizeof(*wanted));
	any = find_openers(&o, wanted);
	if (any && (code_image_open(&o.c, wanted) < 0 || open_decoder(&o.c) < 0)) {
		code_note(&o.c, "its tables could not be read");
		result = -1;
	} else if (any) {
		find_calls(&o);
		for (level = 0; level < LEVELS_MOST && o.asked.n; level++)
			ask_level(&o);
		finish(&o, out);
	}
	out->note = o.c.note;
	free(wanted);
	close_all(&o);
	return result;
}
