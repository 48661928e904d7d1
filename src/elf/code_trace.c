/* Where a value comes from: the definitions that reach an instruction, found by
 * walking back over the blocks, and what each of them computes, found by the same
 * means.  Memory in the frame is traced as registers are, as long as its address
 * has not been given away before a call. */
#include "elf/code_internal.h"

#include <stdlib.h>

struct place {
	bool stack;
	uint8_t reg, size;
	int64_t offset;
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

/* The same through a register that was set to a frame address in this block. */
static bool alias_offset(const struct trace *t, uint32_t i, const struct operand *x, int64_t *out)
{
	const struct function *f = t->f;
	uint32_t first = f->block.at[f->insn.at[i].block].first, k, e;

	for (k = i; k-- > first && i - k < 128;) {
		const struct insn *in = &f->insn.at[k];

		if (in->junk || (in->flow == F_CALL && code_clobbered_by_call(t->c, x->reg)))
			return false;
		for (e = in->effect; e < in->effect + in->n_effect; e++) {
			const struct effect *y = &f->effect.at[e];

			if (y->to.kind != O_REG || y->to.reg != x->reg)
				continue;
			if ((y->a.kind != O_REG && y->a.kind != O_ADDR) || y->a.index != REG_NONE ||
			    !frame_offset(t, k, &y->a, out))
				return false;
			*out += x->value + (y->op == E_ADD && y->b.kind == O_IMM ? y->b.value : 0);
			return y->op == E_MOVE || (y->op == E_ADD && y->b.kind == O_IMM);
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

/* Functions that do not write through what they are given. */
static bool only_reads(const char *callee)
{
	static const char *const name[] = {
		"dlopen", "dlmopen", "dlsym", "dlvsym", "dlerror", "dlclose", "getenv", "secure_getenv", "strlen",
		"strcmp", "strncmp", "strcasecmp", "strstr", "strchr", "strrchr", "strdup", "puts", "printf", "fprintf", "fputs",
		"fwrite", "syslog", "access", "__printf_chk", "__fprintf_chk", "perror", "free",
	};
	size_t k;

	for (k = 0; k < sizeof(name) / sizeof(name[0]); k++)
		if (!strcmp(callee, name[k]))
			return true;
	return false;
}

/* ---- reaching definitions */

/* What a store does to the place: 0 nothing, 1 defines it, 2 spoils it, 3 who knows. */
static int store_meets(const struct trace *t, uint32_t i, const struct operand *to, const struct place *p)
{
	int64_t offset;

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

static bool call_changes(const struct trace *t, const struct insn *call, const struct place *p)
{
	if (p->stack)
		return is_addressed(t, p->offset, true) &&
		       !only_reads(code_callee_at(t->c, t->f, (uint32_t)(call - t->f->insn.at)));
	return code_clobbered_by_call(t->c, p->reg);
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

		if (x->to.kind == O_REG && !p->stack)
			how = x->to.reg == p->reg;
		else if (x->to.kind == O_MEM && p->stack)
			how = store_meets(t, i, &x->to, p);
		if (how == 2)
			out->unknown = true;
		else if (how)
			vec_push(&out->definition, ((struct definition){i, e, how == 3}));
		stop |= how == 1 || how == 2;
	}
	if (!stop && in->flow == F_CALL && call_changes(t, in, p)) {
		out->unknown = true;
		stop = true;
	}
	return stop;
}

static bool is_transparent(const struct block *b, const struct place *p)
{
	if (b->junk)
		return false;
	return p->stack ? !b->stores && !b->calls : !(b->writes[p->reg / 64] >> p->reg % 64 & 1);
}

static void reach(struct trace *t, uint32_t i, const struct place *p, struct reaching *out)
{
	struct function *f = t->f;
	VEC(uint32_t) todo = {0};
	uint32_t stamp = ++f->stamp, b = f->insn.at[i].block, k = i;
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
		good = one.v.n && !one.cycle && one.v.at[0].kind == V_NUMBER;
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
			here |= address.v.at[k].kind == V_STACK && (int64_t)address.v.at[k].n < p->offset + p->size &&
				(address.stride || (int64_t)address.v.at[k].n + to->size > p->offset);
		here |= (address.unknown || address.cycle) && is_addressed(t, p->offset, true);
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
	if (p->stack)
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

static void trace_place(struct trace *t, uint32_t i, const struct place *p, struct values *out)
{
	struct reaching r = {0};
	size_t k;

	if (t->c->steps < 0 || p->size > 8 || (!p->stack && p->reg >= REGS)) {
		values_add_unknown(out, 1);
		return;
	}
	reach(t, i, p, &r);
	for (k = 0; k < r.definition.n; k++)
		evaluate(t, &r.definition.at[k], p, out);
	for (k = 0; k < r.entry.n; k++)
		values_add(out, V_ENTRY, t->f->insn.at[r.entry.at[k]].at, p->stack ? REG_NONE : p->reg);
	if (r.unknown)
		values_add_unknown(out, 1);
	vec_free(&r.definition);
	vec_free(&r.entry);
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

void code_trace(struct code *c, struct function *f, uint32_t i, const struct operand *x, struct values *out)
{
	struct trace t = {.c = c, .f = f};

	c->steps = c->budget < STEPS_MOST ? c->budget : STEPS_MOST;
	c->budget -= c->steps;
	trace_operand(&t, i, x, out);
	if (c->steps < 0)
		code_note(c, "a value was too far away to be traced");
	else
		c->budget += c->steps;
}

/* A byte may also be overwritten on some path by who knows what; but bytes that
 * are not written at all on some path would make texts that no path makes. */
const char *code_stack_string(struct code *c, struct function *f, uint32_t i, int64_t offset, bool *computed)
{
	enum { MOST = 256 };
	struct trace t = {.c = c, .f = f};
	char text[MOST];
	unsigned n;

	c->steps = c->budget < STEPS_MOST ? c->budget : STEPS_MOST;
	for (n = 0; n < MOST; n++) {
		struct place p = {.stack = true, .size = 1, .offset = offset + n};
		struct values v = {0};
		bool good;

		trace_place(&t, i, &p, &v);
		good = v.v.n == 1 && v.v.at[0].kind == V_NUMBER && !v.stride && !v.cycle;
		*computed |= v.unknown;
		text[n] = good ? (char)v.v.at[0].n : 1;
		values_free(&v);
		if (text[n] < 0x20 || text[n] > 0x7e)
			break;
	}
	c->budget -= (c->budget < STEPS_MOST ? c->budget : STEPS_MOST) - (c->steps > 0 ? c->steps : 0);
	return n && n < MOST && !text[n] ? names_add_n(c->names, text, n) : NULL;
}
