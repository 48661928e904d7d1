/* Where a value comes from: the definitions that reach an instruction, found by
 * walking back over the blocks, and what each of them computes, found by the same
 * means.  Memory in the frame is traced as registers are, as long as its address
 * has not been given away before a call. */
#include "elf/code_trace.h"

#include <stdlib.h>

struct definition {
	uint32_t insn, effect;
	bool maybe; /* a store through a register */
};

struct reaching {
	VEC(struct definition) definition;
	VEC(uint32_t) entry; /* instructions to which control comes from outside */
	VEC(struct value) call; /* V_RESULT and V_WRITTEN */
	bool unknown;
};

bool code_clobbered_by_call(const struct code *c, uint8_t reg)
{
	if (code_is_vector(c, reg)) /* the low halves of v8 to v15 survive */
		return !c->arm || !(reg >= ARM_VECTOR_LOW + 8 && reg < ARM_VECTOR_LOW + 16);
	if (c->arm)
		return reg <= 18 || reg == 30;
	return reg <= 2 || (reg >= 6 && reg <= 11);
}

/* ---- reaching definitions */

enum { TEXT_MOST = 4096 };

static void note_behind(const struct trace *t, const struct place *p, int64_t offset, uint8_t size, bool indexed)
{
	if (t->behind && p->size == 1 && offset > p->offset && offset < p->offset + TEXT_MOST)
		vec_push(&t->behind->at, ((struct behind){offset, size, indexed}));
}

/* What a store does to the place: 0 nothing, 1 defines it, 2 spoils it, 3 who knows. */
static int store_meets(const struct trace *t, uint32_t i, const struct operand *to, const struct place *p)
{
	int64_t offset;

	if (p->text)
		return p->object.kind != V_ENTRY && to->reg != REG_OPAQUE && !code_frame_offset(t, i, to, &offset) ? 3 : 0;
	if (to->reg == REG_NONE || to->reg == REG_OPAQUE)
		return 0;
	if (!code_frame_offset(t, i, to, &offset) && !code_alias_offset(t, i, to, &offset))
		return code_is_addressed(t, p->offset, false) ? 3 : 0;
	note_behind(t, p, offset, to->size, to->index != REG_NONE);
	if (to->index != REG_NONE) /* an array that is filled by index */
		return p->offset >= offset && p->offset < offset + TEXT_MOST ? 3 : 0;
	if (offset >= p->offset + p->size || offset + to->size <= p->offset)
		return 0;
	return offset <= p->offset && offset + to->size >= p->offset + p->size ? 1 : 2;
}

/* The call ends the walk: what it leaves is said. */
static bool call_changes(const struct trace *t, uint32_t i, const struct place *p, struct reaching *out)
{
	enum meeting how = p->stack || p->text ? code_call_meets(t, i, p) : SPOILS;
	uint64_t at = t->f->insn.at[i].at;

	if (how == PASSES || (p->stack && !code_is_addressed(t, p->offset, true)) ||
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
		code_trace_operand(t, i, &reg, &base);
	values_add(&offset, V_NUMBER, (uint64_t)x->value, 0);
	if (x->index == REG_NONE) {
		values_merge(&sum, &base);
	} else if (x->index == x->reg) {
		values_add(&factor, V_NUMBER, 1 + (1ull << x->shift), 0);
		values_combine(E_MUL, &base, &factor, &sum);
	} else {
		struct values scaled = {0};

		code_trace_operand(t, i, &second, &index);
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
			code_load_offset_row(t, i, v->n, address.stride, out);
		else if (address.stride && v->kind == V_NUMBER)
			code_load_row(t, i, v->n, address.stride, out);
		else if (address.stride)
			code_load_stack_row(t, i, (int64_t)v->n, address.stride, out);
		else if (v->kind == V_NUMBER)
			load_number(t, v->n, x->size, out);
		else
			code_trace_place(t, i, &p, out);
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
		code_trace_operand(t, i, &e->a, &a);
		values_resize(&a, e->a.kind == O_ADDR ? e->to.size : e->a.size, e->op == E_SIGN);
		values_merge(out, &a);
		break;
	case E_SELECT:
		code_trace_operand(t, i, &e->a, out);
		code_trace_operand(t, i, &e->b, out);
		break;
	case E_INSERT:
		code_trace_operand(t, i, &e->a, &a);
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
		code_trace_operand(t, i, &e->a, &a);
		code_trace_operand(t, i, &e->b, &b);
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
	if (v->kind == V_STACK && p->stack)
		note_behind(t, p, (int64_t)v->n, (uint8_t)size, address->stride != 0);
	if (p->text && v->kind == V_NUMBER && p->object.kind == V_NUMBER)
		return v->n + size > p->object.n && v->n < p->object.n + TEXT_MOST;
	if (p->text)
		return v->kind != V_STACK && !(code_is_own_memory(t, v) && !code_same_value(v, &p->object));
	if (v->kind == V_STACK)
		return (int64_t)v->n < p->offset + p->size && (address->stride || (int64_t)v->n + size > p->offset);
	return v->kind == V_RESULT && !code_is_own_memory(t, v) && code_is_addressed(t, p->offset, true);
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
		here |= (address.unknown || address.cycle) && (p->text || code_is_addressed(t, p->offset, true));
		values_free(&address);
		if (here)
			values_add_unknown(out, 1);
		return;
	}
	if (!code_frame_offset(t, d->insn, to, &offset) && !code_alias_offset(t, d->insn, to, &offset))
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

/* Does one of the stores go into the text that the call has written at OFFSET?  Where
 * nothing says how long that may be, single bytes and indexed ones count: whole
 * words are other variables. */
static bool is_patched(struct trace *t, uint64_t call, int64_t offset, const struct behinds *behind)
{
	long i = code_insn_at(t->f, call);
	const struct library_function *l = i < 0 ? NULL : code_library(code_callee_at(t->c, t->f, (uint32_t)i));
	struct values room = {0};
	bool known = false, result = false;
	size_t k;

	if (l && l->size && behind->at.n) {
		struct operand x = code_argument(t->c, l->size);

		code_trace_operand(t, (uint32_t)i, &x, &room);
		known = values_single(&room) && room.v.at[0].kind == V_NUMBER;
	}
	for (k = 0; k < behind->at.n; k++)
		result |= known ? (uint64_t)(behind->at.at[k].offset - offset) < room.v.at[0].n
				: behind->at.at[k].indexed || behind->at.at[k].size == 1;
	values_free(&room);
	return result;
}

static void trace_place_in(struct trace *t, uint32_t b, uint32_t i, const struct place *p, struct values *out)
{
	struct reaching r = {0};
	struct behinds behind = {0}, *outer = t->behind;
	bool patched = false;
	size_t k;

	if (t->c->steps < 0 || p->size > 8 || (!p->stack && p->reg >= REGS)) {
		values_add_unknown(out, 1);
		return;
	}
	if (p->stack || p->text)
		code_find_writers(t);
	t->behind = &behind;
	reach(t, b, i, p, &r);
	for (k = 0; k < r.definition.n; k++) {
		struct values one = {0};

		evaluate(t, &r.definition.at[k], p, &one);
		/* A store into a text: what a call has written is not all of it. */
		patched |= r.definition.at[k].maybe && one.unknown;
		values_merge(out, &one);
		values_free(&one);
	}
	t->behind = NULL;
	/* Several ways are asked one by one: which store is on which is not known here. */
	for (k = 0; k < r.call.n; k++)
		if (r.call.at[k].kind == V_WRITTEN &&
		    (patched || (!out->v.n && r.call.n == 1 && is_patched(t, r.call.at[k].n, p->offset, &behind))))
			values_add_unknown(out, 1);
		else
			values_add(out, r.call.at[k].kind, r.call.at[k].n, 0);
	t->behind = outer;
	for (k = 0; k < r.entry.n; k++)
		values_add(out, V_ENTRY, t->f->insn.at[r.entry.at[k]].at, p->stack || p->text ? REG_NONE : p->reg);
	if (r.unknown)
		values_add_unknown(out, 1);
	vec_free(&behind.at);
	vec_free(&r.call);
	vec_free(&r.definition);
	vec_free(&r.entry);
}

void code_trace_place(struct trace *t, uint32_t i, const struct place *p, struct values *out)
{
	trace_place_in(t, t->f->insn.at[i].block, i, p, out);
}

void code_trace_operand(struct trace *t, uint32_t i, const struct operand *x, struct values *out)
{
	struct place p = {.reg = x->reg, .size = x->size > 8 ? 8 : x->size};
	int64_t offset;

	switch (x->kind) {
	case O_IMM:
		values_add(out, V_NUMBER, (uint64_t)x->value, 0);
		break;
	case O_REG:
		if (code_frame_offset(t, i, x, &offset))
			values_add(out, V_STACK, (uint64_t)offset, 0);
		else
			code_trace_place(t, i, &p, out);
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
	code_trace_operand(&t, i, x, out);
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
