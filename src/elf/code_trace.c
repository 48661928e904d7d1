/* Where a value comes from: the definitions that reach an instruction, found by
 * walking back over the blocks, and what each of them computes, found by the same
 * means.  Memory in the frame is traced as registers are, as long as its address
 * has not been given away before a call. */
#include "elf/code_internal.h"

#include <stdlib.h>

struct place {
	bool stack;    /* bytes of the frame at OFFSET, else register REG */
	bool text;     /* neither: the text that a pointer of value OBJECT leads to */
	uint8_t reg, size;
	int64_t offset;
	struct value object;
};

struct definition {
	uint32_t insn, effect;
	bool maybe; /* a store through a register */
};

struct active { /* being evaluated, up the call chain */
	const struct active *up;
	uint32_t effect;
	unsigned depth;
};

struct trace {
	struct code *c;
	struct function *f;
	const struct active *active;
	unsigned depth;
	bool bounding; /* already looking for the bound of a table */
};

struct reaching {
	VEC(struct definition) definition;
	VEC(uint32_t) entry; /* instructions to which control comes from outside */
	VEC(struct value) call; /* V_RESULT and V_WRITTEN */
	bool unknown;
};

static void trace_operand(struct trace *t, uint32_t i, const struct operand *x, struct values *out);
static void trace_place(struct trace *t, uint32_t i, const struct place *p, struct values *out);

bool code_clobbered_by_call(const struct code *c, uint8_t reg)
{
	if (code_is_vector(c, reg)) /* the low halves of v8 to v15 survive */
		return !c->arm || !(reg >= ARM_VECTOR_LOW + 8 && reg < ARM_VECTOR_LOW + 16);
	if (c->arm)
		return reg <= 18 || reg == 30;
	return reg <= 2 || (reg >= 6 && reg <= 11);
}

/* ---- the frame */

/* The frame offset that a memory operand has by itself, or false. */
static bool frame_offset(const struct trace *t, uint32_t i, const struct operand *x, int64_t *out)
{
	const struct insn *in = &t->f->insn.at[i];
	int32_t base = x->reg == t->c->sp ? in->sp : x->reg == t->c->fp ? in->fp : NOT_KNOWN;

	*out = (int64_t)base + x->value;
	return base != NOT_KNOWN;
}

/* The same through a register that was set to a frame address in this block, be it
 * by way of others. */
static bool alias_offset(const struct trace *t, uint32_t i, const struct operand *x, int64_t *out)
{
	const struct function *f = t->f;
	uint32_t first = f->block.at[f->insn.at[i].block].first, k, e;
	uint8_t reg = x->reg;
	int64_t by = x->value, offset;

	for (k = i; k-- > first && i - k < 128;) {
		const struct insn *in = &f->insn.at[k];

		if (in->junk || (in->flow == F_CALL && code_clobbered_by_call(t->c, reg)))
			return false;
		for (e = in->effect; e < in->effect + in->n_effect; e++) {
			const struct effect *y = &f->effect.at[e];

			if (y->to.kind != O_REG || y->to.reg != reg)
				continue;
			if ((y->a.kind != O_REG && y->a.kind != O_ADDR) || y->a.index != REG_NONE || y->a.size < 8 ||
			    (y->op != E_MOVE && (y->op != E_ADD || y->b.kind != O_IMM)))
				return false;
			by += y->op == E_ADD ? y->b.value : 0;
			if (frame_offset(t, k, &y->a, &offset)) {
				*out = offset + by;
				return true;
			}
			by += y->a.kind == O_ADDR ? y->a.value : 0;
			reg = y->a.reg;
			break;
		}
	}
	return false;
}

static bool reads_register(const struct operand *x, uint8_t reg)
{
	return x->kind == O_REG && x->reg == reg;
}

/* Does the effect hand on what REG holds, other than by going through it? */
static bool hands_on(const struct effect *e, uint8_t reg)
{
	bool address = (e->a.kind == O_ADDR && (e->a.reg == reg || e->a.index == reg));

	if (e->op == E_COMPARE || (e->to.kind == O_REG && e->to.reg == reg))
		return false;
	return address || reads_register(&e->a, reg) || reads_register(&e->b, reg);
}

/* An address in a register that survives calls escapes where it is handed on;
 * one in another register also if it is still there at the next call. */
static bool address_escapes(const struct trace *t, uint32_t i, uint8_t reg)
{
	const struct function *f = t->f;
	bool saved = !code_clobbered_by_call(t->c, reg);
	uint32_t k = saved ? 0 : i + 1;
	size_t e;

	for (; k < f->insn.n; k++) {
		const struct insn *in = &f->insn.at[k];
		bool gone = false;

		if (!saved && in->block != f->insn.at[i].block)
			return true;
		if (!saved && in->flow == F_CALL)
			return true;
		for (e = in->effect; e < in->effect + in->n_effect; e++) {
			if (hands_on(&f->effect.at[e], reg))
				return true;
			gone |= f->effect.at[e].to.kind == O_REG && f->effect.at[e].to.reg == reg &&
				!(f->effect.at[e].a.kind == O_REG && f->effect.at[e].a.reg == reg);
		}
		if (!saved && gone)
			return false;
	}
	return !saved;
}

static void find_areas(const struct trace *t)
{
	struct function *f = t->f;
	uint32_t i;
	size_t e;

	f->areas_known = true;
	for (i = 0; i < f->insn.n && !f->areas_many; i++)
		for (e = f->insn.at[i].effect; e < f->insn.at[i].effect + f->insn.at[i].n_effect; e++) {
			const struct effect *x = &f->effect.at[e];
			int64_t offset;

			if (x->to.kind != O_REG || x->to.reg == t->c->sp || x->to.reg == t->c->fp ||
			    (x->a.kind != O_ADDR && x->a.kind != O_REG) || (x->op != E_MOVE && x->op != E_ADD) ||
			    !frame_offset(t, i, &x->a, &offset))
				continue;
			if (x->op == E_ADD && x->b.kind == O_IMM)
				offset += x->b.value;
			f->areas_many = f->area.n >= AREAS_MOST;
			vec_push(&f->area, ((struct stack_area){(int32_t)offset, address_escapes(t, i, x->to.reg)}));
		}
}

/* Is the slot, or something just below it that may include it, addressed? */
static bool is_addressed(const struct trace *t, int64_t offset, bool escaping)
{
	size_t i;

	if (!t->f->areas_known)
		find_areas(t);
	for (i = 0; i < t->f->area.n && !t->f->areas_many; i++)
		if (t->f->area.at[i].offset <= offset && t->f->area.at[i].offset > offset - 64 &&
		    (!escaping || t->f->area.at[i].escapes))
			return true;
	return t->f->areas_many;
}

/* ---- calls that write a text */

/* Where they write to is found out before a walk and not in its midst: walks
 * mark the blocks that they have come by. */
static void find_far_calls(struct trace *t)
{
	struct function *f = t->f;
	uint32_t i;

	for (i = 0; i < f->insn.n && t->c->steps > 0; i++) {
		struct trace inner = {.c = t->c, .f = f};
		struct values v = {0};

		if (f->insn.at[i].flow != F_CALL || f->insn.at[i].through.kind != O_REG || *code_callee_at(t->c, f, i))
			continue;
		trace_operand(&inner, i, &f->insn.at[i].through, &v);
		if (values_single(&v) && v.v.at[0].kind == V_FUNCTION)
			vec_push(&f->far_call, ((struct far_call){i, (uint32_t)v.v.at[0].n}));
		values_free(&v);
	}
}

static void find_writers(struct trace *t)
{
	struct function *f = t->f;
	uint32_t i;

	if (f->writers_known)
		return;
	f->writers_known = true;
	find_far_calls(t);
	for (i = 0; i < f->insn.n; i++)
		if (f->insn.at[i].flow == F_CALL) {
			const struct library_function *l = code_library(code_callee_at(t->c, f, i));

			if (l && (l->does == DOES_COPY || l->does == DOES_APPEND || l->does == DOES_FORMAT))
				vec_push(&f->writer, ((struct writer){.insn = i}));
		}
	for (i = 0; i < f->writer.n && t->c->steps > 0; i++) {
		uint32_t at = f->writer.at[i].insn;
		struct operand to = code_argument(t->c, code_library(code_callee_at(t->c, f, at))->to);
		struct trace inner = {.c = t->c, .f = f};
		struct values v = {0};

		trace_operand(&inner, at, &to, &v);
		if (values_single(&v)) {
			f->writer.at[i].to = v.v.at[0];
			f->writer.at[i].known = true;
		}
		values_free(&v);
	}
}

static const struct writer *writer_at(const struct function *f, uint32_t i)
{
	size_t k;

	for (k = 0; k < f->writer.n; k++)
		if (f->writer.at[k].insn == i)
			return &f->writer.at[k];
	return NULL;
}

static bool is_same(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && a->n == b->n && a->reg == b->reg;
}

/* Memory that nothing but pointers of this value leads to. */
static bool is_own_memory(const struct trace *t, const struct value *v)
{
	const struct library_function *l;
	long k = v->kind == V_RESULT ? code_insn_at(t->f, v->n) : -1;

	l = k >= 0 ? code_library(code_callee_at(t->c, t->f, (uint32_t)k)) : NULL;
	return v->kind == V_NUMBER || (l && (l->does == DOES_ALLOCATE || l->does == DOES_DUPLICATE));
}

enum meeting { PASSES, WRITES, SPOILS };

/* What the call does to a text, or to bytes of the frame. */
static enum meeting call_meets(const struct trace *t, uint32_t i, const struct place *p)
{
	const struct writer *w = writer_at(t->f, i);
	const struct library_function *l = code_library(code_callee_at(t->c, t->f, i));

	if (w && w->known && p->text)
		return is_same(&w->to, &p->object) && !l->pointer ? WRITES
		     : is_own_memory(t, &w->to) || w->to.kind == V_STACK ? PASSES : SPOILS;
	if (w && w->known && w->to.kind == V_STACK)
		return (int64_t)w->to.n == p->offset && p->size == (l->pointer ? 8 : 1) ? WRITES
		     : (int64_t)w->to.n >= p->offset + p->size ? PASSES : SPOILS;
	if (w && w->known && is_own_memory(t, &w->to))
		return PASSES;
	return l && l->does <= DOES_DUPLICATE && !(p->text && t->f->insn.at[i].at == p->object.n) ? PASSES : SPOILS;
}

/* ---- reaching definitions */

/* What a store does to the place: 0 nothing, 1 defines it, 2 spoils it, 3 who knows. */
static int store_meets(const struct trace *t, uint32_t i, const struct operand *to, const struct place *p)
{
	int64_t offset;

	if (p->text)
		return p->object.kind != V_ENTRY && to->reg != REG_OPAQUE && !frame_offset(t, i, to, &offset) ? 3 : 0;
	if (to->reg == REG_NONE || to->reg == REG_OPAQUE)
		return 0;
	if (!frame_offset(t, i, to, &offset) && !alias_offset(t, i, to, &offset))
		return is_addressed(t, p->offset, false) ? 3 : 0;
	if (to->index != REG_NONE) /* an array that is filled by index */
		return p->offset >= offset && p->offset < offset + 4096 ? 3 : 0;
	if (offset >= p->offset + p->size || offset + to->size <= p->offset)
		return 0;
	return offset <= p->offset && offset + to->size >= p->offset + p->size ? 1 : 2;
}

/* The call ends the walk: what it leaves is said. */
static bool call_changes(const struct trace *t, uint32_t i, const struct place *p, struct reaching *out)
{
	enum meeting how = p->stack || p->text ? call_meets(t, i, p) : SPOILS;
	uint64_t at = t->f->insn.at[i].at;

	if (how == PASSES || (p->stack && !is_addressed(t, p->offset, true)) ||
	    (!p->stack && !p->text && !code_clobbered_by_call(t->c, p->reg)))
		return false;
	if (p->text && p->object.kind == V_ENTRY && how == SPOILS)
		return false; /* a parameter: what others do with it is not looked at */
	if (how == WRITES)
		vec_push(&out->call, ((struct value){.kind = V_WRITTEN, .n = at}));
	else if (!p->stack && !p->text && !p->reg) /* rax, x0 */
		vec_push(&out->call, ((struct value){.kind = V_RESULT, .n = at}));
	else
		out->unknown = true;
	return true;
}

/* True when the walk ends at the instruction. */
static bool meets(struct trace *t, uint32_t i, const struct place *p, struct reaching *out)
{
	const struct insn *in = &t->f->insn.at[i];
	uint32_t e;
	bool stop = false;

	if (in->junk || --t->c->steps < 0) {
		out->unknown = true;
		return true;
	}
	for (e = in->effect; e < in->effect + in->n_effect; e++) {
		const struct effect *x = &t->f->effect.at[e];
		int how = 0;

		if (x->to.kind == O_REG && !p->stack && !p->text)
			how = x->to.reg == p->reg;
		else if (x->to.kind == O_MEM && (p->stack || p->text))
			how = store_meets(t, i, &x->to, p);
		if (how == 2)
			out->unknown = true;
		else if (how)
			vec_push(&out->definition, ((struct definition){i, e, how == 3}));
		stop |= how == 1 || how == 2;
	}
	return stop || (in->flow == F_CALL && call_changes(t, i, p, out));
}

static bool is_transparent(const struct block *b, const struct place *p)
{
	if (b->junk)
		return false;
	return p->stack || p->text ? !b->stores && !b->calls : !(b->writes[p->reg / 64] >> p->reg % 64 & 1);
}

/* Back from instruction K, or the end, of block B. */
static void reach(struct trace *t, uint32_t b, uint32_t k, const struct place *p, struct reaching *out)
{
	struct function *f = t->f;
	VEC(uint32_t) todo = {0};
	uint32_t stamp = ++f->stamp;
	bool stop = false;
	size_t n;

	for (;;) {
		const struct block *x = &f->block.at[b];

		while (!stop && k-- > x->first)
			stop = meets(t, k, p, out);
		if (!stop) {
			if (f->opaque)
				out->unknown = true;
			if (!x->n_pred && !f->bounded && !x->first)
				out->unknown = true;
			else if (!x->n_pred || x->entry)
				vec_push(&out->entry, x->first);
			for (n = 0; n < x->n_pred; n++)
				vec_push(&todo, f->pred.at[x->pred + n]);
		}
		for (;;) {
			if (!todo.n) {
				vec_free(&todo);
				return;
			}
			b = todo.at[--todo.n];
			if (f->block.at[b].stamp != stamp)
				break;
		}
		if (--t->c->steps < 0)
			out->unknown = true, todo.n = 0;
		f->block.at[b].stamp = stamp;
		stop = t->c->steps < 0;
		k = is_transparent(&f->block.at[b], p) ? f->block.at[b].first : f->block.at[b].first + f->block.at[b].n;
	}
}

/* ---- memory */

/* Is there a way to the block of instruction AT that does not pass instruction I? */
static bool is_avoidable(struct trace *t, uint32_t at, uint32_t i)
{
	struct function *f = t->f;
	VEC(uint32_t) todo = {0};
	uint32_t stamp = ++f->stamp, b = f->insn.at[at].block, avoid = f->insn.at[i].block, k;
	bool found = false;

	if (b == avoid)
		return at < i;
	vec_push(&todo, b);
	while (todo.n && !found) {
		b = todo.at[--todo.n];
		if (b == avoid || f->block.at[b].stamp == stamp)
			continue;
		f->block.at[b].stamp = stamp;
		found = !f->block.at[b].n_pred || --t->c->steps < 0;
		for (k = 0; k < f->block.at[b].n_pred; k++)
			vec_push(&todo, f->pred.at[f->block.at[b].pred + k]);
	}
	vec_free(&todo);
	return found;
}

static bool is_inclusive(const struct function *f, uint32_t at)
{
	const struct block *b = &f->block.at[f->insn.at[at].block];
	uint32_t k;

	for (k = at + 1; k < b->first + b->n; k++)
		if (f->insn.at[k].inclusive)
			return true;
	return false;
}

/* Rows: how many entries the loop around instruction I looks at, 0 = cannot be
 * told.  A comparison of something that goes on by a constant with a constant is
 * taken for the test of the loop.  What is compared before it has gone on is one
 * behind. */
static uint64_t compared_count(struct trace *t, uint32_t at, uint32_t effect, uint32_t i, uint64_t base,
			       uint64_t stride)
{
	const struct effect *e = &t->f->effect.at[effect];
	struct values a = {0}, b = {0};
	uint64_t count = 0, first, k;

	trace_operand(t, at, &e->a, &a);
	trace_operand(t, at, &e->b, &b);
	if (b.source && !a.source) {
		struct values swap = a;

		a = b;
		b = swap;
	}
	for (k = 0; k < a.v.n; k++)
		a.unknown |= a.v.at[k].kind != a.v.at[0].kind;
	if (a.stride && a.source && !a.unknown && !a.cycle && a.v.n && values_single(&b) &&
	    a.v.at[0].kind == b.v.at[0].kind && (b.v.at[0].kind == V_NUMBER || b.v.at[0].kind == V_STACK)) {
		bool behind = a.v.n > 1 && !is_avoidable(t, at, i), pointer;
		uint64_t distance, step;

		for (first = a.v.at[0].n, k = 1; k < a.v.n; k++)
			first = (int64_t)a.v.at[k].n < (int64_t)first ? a.v.at[k].n : first;
		if (a.v.n == 1)
			first -= a.stride;
		pointer = first - base + stride < 2 * stride && (first > 4096 || b.v.at[0].kind == V_STACK);
		step = pointer ? stride : a.stride;
		distance = b.v.at[0].n - (pointer ? base : first);
		if ((pointer || stride % a.stride == 0) && distance < TABLE_MOST * step)
			count = (distance + step - 1) / step + behind + is_inclusive(t->f, at);
	}
	values_free(&a);
	values_free(&b);
	return count <= TABLE_MOST ? count : 0;
}

static uint64_t row_count(struct trace *t, uint32_t i, uint64_t base, uint64_t stride)
{
	enum { NEAR = 400 };
	const struct active *active = t->active;
	uint64_t count = 0;
	uint32_t k, e, side;

	if (t->bounding)
		return 0;
	t->bounding = true;
	t->active = NULL;
	for (side = 0; side < 2 && !count; side++)
		for (k = 1; k < NEAR && !count; k++) {
			const struct insn *in;

			if (side ? k > i : i + k >= t->f->insn.n)
				break;
			in = &t->f->insn.at[side ? i - k : i + k];
			for (e = in->effect; e < in->effect + in->n_effect && !count; e++)
				if (t->f->effect.at[e].op == E_COMPARE)
					count = compared_count(t, side ? i - k : i + k, e, i, base, stride);
		}
	t->bounding = false;
	t->active = active;
	return count;
}

/* Without a bound a table ends where other code begins to use what follows. */
static uint64_t next_reference(struct code *c, uint64_t base, uint64_t stride)
{
	struct code_references f = {0};
	uint64_t k, count = 64;

	for (k = 1; k <= 64; k++)
		vec_push(&f.target, ((struct code_target){base + k * stride, (uint32_t)k, false}));
	if (!code_find(c, &f))
		for (k = 0; k < f.ref.n; k++)
			if (f.ref.at[k].kind == REF_ADDRESS && f.ref.at[k].id < count)
				count = f.ref.at[k].id;
	code_references_free(&f);
	return count;
}

/* A table of 32-bit distances, from the table itself when there is no bound to
 * go by. */
static void load_offset_row(struct trace *t, uint32_t i, uint64_t base, uint64_t stride, struct values *out)
{
	uint64_t count = row_count(t, i, base, stride), k, word;

	for (k = 0; k < (count ? count : TABLE_MOST) && !t->bounding; k++) {
		if (!code_constant_at(t->c, base + k * stride, 4, &word) ||
		    (!count && !code_string_at(t->c, base + (uint64_t)(int64_t)(int32_t)word)))
			break;
		values_add(out, V_NUMBER, word, 0);
	}
	if (!k || k < count)
		values_add_unknown(out, 1);
	out->row = true;
}

static void load_row(struct trace *t, uint32_t i, uint64_t base, uint64_t stride, struct values *out)
{
	struct code *c = t->c;
	uint64_t count = row_count(t, i, base, stride), k, value = 0, most, word;
	size_t before = out->v.n;

	if (t->bounding || !code_pointer_at(c, base, &value)) {
		values_add_unknown(out, 1);
		return;
	}
	if (!code_is_constant(c, base))
		values_add_unknown(out, 1);
	most = count ? count : TABLE_MOST;
	for (k = 0; k < most; k++) {
		bool pointer = code_pointer_at(c, base + k * stride, &value);

		if (pointer && (count || code_string_at(c, value))) {
			if (!count && k == 1 && (most = next_reference(c, base, stride)) <= 1)
				break;
			values_add(out, V_NUMBER, value, 0);
			continue;
		}
		if (!count)
			break;
		if (pointer || !code_read(c, base + k * stride, &word, 8) || word)
			values_add_unknown(out, 1);
	}
	t->c->steps -= (long)k;
	if (!count && k == 64)
		values_add_unknown(out, 1); /* it may go on */
	if (out->v.n == before)
		values_add_unknown(out, 1);
	out->row = true;
}

/* The same for an array in the frame. */
static void load_stack_row(struct trace *t, uint32_t i, int64_t base, uint64_t stride, struct values *out)
{
	uint64_t count = row_count(t, i, (uint64_t)base, stride), k;

	for (k = 0; k < (count ? count : 64) && !t->bounding; k++) {
		struct values one = {0};
		struct place p = {.stack = true, .size = 8, .offset = base + (int64_t)(k * stride)};
		bool good;

		trace_place(t, i, &p, &one);
		good = one.v.n && !one.cycle && (one.v.at[0].kind == V_NUMBER || one.v.at[0].kind == V_RESULT);
		if (good && (one.v.at[0].n || count))
			values_merge(out, &one);
		values_free(&one);
		if (good)
			continue;
		/* Without a bound this is the end, unless it is the beginning: a list
		 * that a setting of the user comes first in. */
		if (!k || count)
			values_add_unknown(out, 1);
		if (k && !count)
			break;
	}
	if (t->bounding)
		values_add_unknown(out, 1);
	out->row = true;
}

static void load_number(struct trace *t, uint64_t at, unsigned size, struct values *out)
{
	struct code *c = t->c;
	uint32_t symbol = code_slot_symbol(c, at);
	uint64_t value;

	if (size == 8 && symbol && !elf_symbol_defined(c->s, symbol)) {
		values_add(out, V_FUNCTION, symbol, 0);
	} else if (size == 8 && code_pointer_at(c, at, &value)) {
		values_add(out, V_NUMBER, value, 0);
		if (!symbol && !code_is_constant(c, at)) /* the value it starts with */
			values_add_unknown(out, 1);
	} else if (code_constant_at(c, at, size, &value)) {
		values_add(out, V_NUMBER, value, 0);
	} else {
		values_add_unknown(out, 1);
	}
}

static void trace_address(struct trace *t, uint32_t i, const struct operand *x, struct values *out)
{
	struct values base = {0}, index = {0}, sum = {0}, offset = {0}, factor = {0};
	struct operand reg = code_reg(x->reg, 8), second = code_reg(x->index, 8);

	if (x->reg == REG_NONE)
		values_add(&base, V_NUMBER, 0, 0);
	else
		trace_operand(t, i, &reg, &base);
	values_add(&offset, V_NUMBER, (uint64_t)x->value, 0);
	if (x->index == REG_NONE) {
		values_merge(&sum, &base);
	} else if (x->index == x->reg) {
		values_add(&factor, V_NUMBER, 1 + (1ull << x->shift), 0);
		values_combine(E_MUL, &base, &factor, &sum);
	} else {
		struct values scaled = {0};

		trace_operand(t, i, &second, &index);
		values_add(&factor, V_NUMBER, x->shift, 0);
		values_combine(E_SHIFT, &index, &factor, &scaled);
		values_combine(E_ADD, &base, &scaled, &sum);
		values_free(&scaled);
	}
	values_combine(E_ADD, &sum, &offset, out);
	values_free(&base);
	values_free(&index);
	values_free(&sum);
	values_free(&offset);
	values_free(&factor);
}

/* Of the places where a row begins and those that it goes on to, the first. */
static bool is_first_of_row(const struct values *address, size_t k)
{
	size_t i;

	for (i = 0; address->stride && i < address->v.n; i++)
		if (address->v.at[i].kind == address->v.at[k].kind && address->v.at[i].n < address->v.at[k].n &&
		    (address->v.at[k].n - address->v.at[i].n) % address->stride == 0 &&
		    address->v.at[k].n - address->v.at[i].n < TABLE_MOST * address->stride)
			return false;
	return true;
}

static void trace_load(struct trace *t, uint32_t i, const struct operand *x, struct values *out)
{
	struct values address = {0};
	size_t k;

	trace_address(t, i, x, &address);
	if (address.unknown || address.cycle)
		values_add_unknown(out, 1);
	for (k = 0; k < address.v.n; k++) {
		const struct value *v = &address.v.at[k];
		struct place p = {.stack = true, .size = x->size, .offset = (int64_t)v->n};

		if (!is_first_of_row(&address, k))
			continue;
		if ((v->kind != V_NUMBER && v->kind != V_STACK) ||
		    (address.stride && (x->size < 4 || address.stride % x->size)) ||
		    (address.stride && x->size == 4 && v->kind != V_NUMBER))
			values_add_unknown(out, 1);
		else if (address.stride && x->size == 4)
			load_offset_row(t, i, v->n, address.stride, out);
		else if (address.stride && v->kind == V_NUMBER)
			load_row(t, i, v->n, address.stride, out);
		else if (address.stride)
			load_stack_row(t, i, (int64_t)v->n, address.stride, out);
		else if (v->kind == V_NUMBER)
			load_number(t, v->n, x->size, out);
		else
			trace_place(t, i, &p, out);
	}
	values_free(&address);
}

/* ---- evaluation */

static void trace_effect(struct trace *t, uint32_t i, uint32_t effect, struct values *out)
{
	const struct effect *e = &t->f->effect.at[effect];
	struct values a = {0}, b = {0};
	size_t k;

	switch (e->op) {
	case E_MOVE: case E_SIGN:
		trace_operand(t, i, &e->a, &a);
		values_resize(&a, e->a.kind == O_ADDR ? e->to.size : e->a.size, e->op == E_SIGN);
		values_merge(out, &a);
		break;
	case E_SELECT:
		trace_operand(t, i, &e->a, out);
		trace_operand(t, i, &e->b, out);
		break;
	case E_INSERT:
		trace_operand(t, i, &e->a, &a);
		for (k = 0; k < a.v.n; k++)
			if (a.v.at[k].kind == V_NUMBER && !a.stride)
				values_add(out, V_NUMBER,
					   (a.v.at[k].n & ~(0xffffull << e->b.shift)) | (uint64_t)e->b.value, 0);
			else
				values_add_unknown(out, 1);
		if (a.unknown || a.cycle)
			values_add_unknown(out, 1);
		break;
	case E_UNKNOWN: case E_COMPARE:
		values_add_unknown(out, 1);
		break;
	default:
		/* The short way to write a constant: or with all ones, and with none. */
		if (e->b.kind == O_IMM && ((e->op == E_OR && e->b.value == -1) || (e->op == E_AND && !e->b.value))) {
			values_add(out, V_NUMBER, (uint64_t)e->b.value, 0);
			break;
		}
		trace_operand(t, i, &e->a, &a);
		trace_operand(t, i, &e->b, &b);
		values_combine((enum effect_op)e->op, &a, &b, out);
		if (out->stride && !a.stride && !b.stride)
			out->source = effect + 1;
	}
	if (e->to.size < 8)
		values_resize(out, e->to.size, false);
	values_free(&a);
	values_free(&b);
}

/* A store to address V, one of those in ADDRESS, into a place that it may lead to. */
static bool may_hit(const struct trace *t, const struct values *address, const struct value *v, unsigned size,
		    const struct place *p)
{
	enum { TEXT_MOST = 4096 };

	if (p->text && v->kind == V_NUMBER && p->object.kind == V_NUMBER)
		return v->n + size > p->object.n && v->n < p->object.n + TEXT_MOST;
	if (p->text)
		return v->kind != V_STACK && !(is_own_memory(t, v) && !is_same(v, &p->object));
	if (v->kind == V_STACK)
		return (int64_t)v->n < p->offset + p->size && (address->stride || (int64_t)v->n + size > p->offset);
	return v->kind == V_RESULT && !is_own_memory(t, v) && is_addressed(t, p->offset, true);
}

/* What a store left in the place: all of what was stored, or some bytes of it. */
static void trace_store(struct trace *t, const struct definition *d, const struct place *p, struct values *out)
{
	const struct operand *to = &t->f->effect.at[d->effect].to;
	struct values stored = {0}, address = {0};
	int64_t offset;
	uint64_t k, from;
	bool here = false;

	if (d->maybe) {
		trace_address(t, d->insn, to, &address);
		for (k = 0; k < address.v.n; k++)
			here |= may_hit(t, &address, &address.v.at[k], to->size, p);
		here |= (address.unknown || address.cycle) && (p->text || is_addressed(t, p->offset, true));
		values_free(&address);
		if (here)
			values_add_unknown(out, 1);
		return;
	}
	if (!frame_offset(t, d->insn, to, &offset) && !alias_offset(t, d->insn, to, &offset))
		return;
	trace_effect(t, d->insn, d->effect, &stored);
	from = (uint64_t)(p->offset - offset);
	for (k = 0; k < stored.v.n; k++) {
		struct value *v = &stored.v.at[k];

		if (v->kind == V_NUMBER && from < 8 && !stored.stride)
			values_add(out, V_NUMBER, v->n >> 8 * from, 0);
		else if (!from && (p->size == 8 || (p->size == 4 && v->kind == V_ENTRY) || v->kind == V_NUMBER))
			values_add(out, v->kind, v->n, v->reg);
		else
			values_add_unknown(out, 1);
	}
	if (stored.unknown)
		values_add_unknown(out, stored.multiple);
	out->cycle |= stored.cycle;
	if (stored.stride && !from) {
		out->stride = stored.stride;
		out->source = stored.source;
	}
	values_free(&stored);
	if (p->size < 8)
		values_resize(out, p->size, false);
}

static void evaluate(struct trace *t, const struct definition *d, const struct place *p, struct values *out)
{
	struct active here = {t->active, d->effect, t->depth};
	const struct active *a;
	struct values one = {0};

	for (a = t->active; a; a = a->up)
		if (a->effect == d->effect) {
			out->cycle |= 1ull << a->depth;
			return;
		}
	if (t->depth >= DEPTH_MOST) {
		values_add_unknown(out, 1);
		return;
	}
	t->active = &here;
	t->depth++;
	if (p->stack || p->text)
		trace_store(t, d, p, &one);
	else
		trace_effect(t, d->insn, d->effect, &one);
	t->depth--;
	t->active = here.up;
	/* Round and back without anything added: copies, which add no value. */
	one.cycle &= ~(1ull << here.depth);
	t->c->steps -= (long)one.v.n;
	values_merge(out, &one);
	values_free(&one);
}

static void trace_place_in(struct trace *t, uint32_t b, uint32_t i, const struct place *p, struct values *out)
{
	struct reaching r = {0};
	size_t k;

	if (t->c->steps < 0 || p->size > 8 || (!p->stack && p->reg >= REGS)) {
		values_add_unknown(out, 1);
		return;
	}
	if (p->stack || p->text)
		find_writers(t);
	reach(t, b, i, p, &r);
	for (k = 0; k < r.definition.n; k++) {
		struct values one = {0};

		evaluate(t, &r.definition.at[k], p, &one);
		/* A store into a text: what a call has written is not all of it. */
		if (r.definition.at[k].maybe && one.unknown)
			r.call.n = 0;
		values_merge(out, &one);
		values_free(&one);
	}
	for (k = 0; k < r.call.n; k++)
		values_add(out, r.call.at[k].kind, r.call.at[k].n, 0);
	for (k = 0; k < r.entry.n; k++)
		values_add(out, V_ENTRY, t->f->insn.at[r.entry.at[k]].at, p->stack || p->text ? REG_NONE : p->reg);
	if (r.unknown)
		values_add_unknown(out, 1);
	vec_free(&r.call);
	vec_free(&r.definition);
	vec_free(&r.entry);
}

static void trace_place(struct trace *t, uint32_t i, const struct place *p, struct values *out)
{
	trace_place_in(t, t->f->insn.at[i].block, i, p, out);
}

static void trace_operand(struct trace *t, uint32_t i, const struct operand *x, struct values *out)
{
	struct place p = {.reg = x->reg, .size = x->size > 8 ? 8 : x->size};
	int64_t offset;

	switch (x->kind) {
	case O_IMM:
		values_add(out, V_NUMBER, (uint64_t)x->value, 0);
		break;
	case O_REG:
		if (frame_offset(t, i, x, &offset))
			values_add(out, V_STACK, (uint64_t)offset, 0);
		else
			trace_place(t, i, &p, out);
		break;
	case O_ADDR:
		trace_address(t, i, x, out);
		break;
	case O_MEM:
		trace_load(t, i, x, out);
		break;
	default:
		values_add_unknown(out, 1);
	}
}

static void allot(struct code *c)
{
	c->steps = c->budget < STEPS_MOST ? c->budget : STEPS_MOST;
	c->budget -= c->steps;
}

static void take_back(struct code *c)
{
	if (c->steps < 0)
		code_note(c, "a value was too far away to be traced");
	else
		c->budget += c->steps;
}

void code_trace(struct code *c, struct function *f, uint32_t i, const struct operand *x, struct values *out)
{
	struct trace t = {.c = c, .f = f};

	allot(c);
	trace_operand(&t, i, x, out);
	take_back(c);
}

static void trace_from(struct code *c, struct function *f, uint32_t b, uint32_t i, const struct place *p, struct values *out)
{
	struct trace t = {.c = c, .f = f};

	allot(c);
	trace_place_in(&t, b, i, p, out);
	take_back(c);
}

void code_trace_byte(struct code *c, struct function *f, uint32_t b, uint32_t i, int64_t offset, struct values *out)
{
	trace_from(c, f, b, i, &(struct place){.stack = true, .size = 1, .offset = offset}, out);
}

void code_trace_text(struct code *c, struct function *f, uint32_t i, const struct value *v, struct values *out)
{
	trace_from(c, f, f->insn.at[i].block, i, &(struct place){.text = true, .size = 1, .object = *v}, out);
}
