/* Rows: tables of names in memory and in the frame, gone along by a loop or entered
 * by an index, and where they end. */
#include "elf/code_trace.h"

#include <stdlib.h>

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

	code_trace_operand(t, at, &e->a, &a);
	code_trace_operand(t, at, &e->b, &b);
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
void code_load_offset_row(struct trace *t, uint32_t i, uint64_t base, uint64_t stride, struct values *out)
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

void code_load_row(struct trace *t, uint32_t i, uint64_t base, uint64_t stride, struct values *out)
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
void code_load_stack_row(struct trace *t, uint32_t i, int64_t base, uint64_t stride, struct values *out)
{
	uint64_t count = row_count(t, i, (uint64_t)base, stride), k;

	for (k = 0; k < (count ? count : 64) && !t->bounding; k++) {
		struct values one = {0};
		struct place p = {.stack = true, .size = 8, .offset = base + (int64_t)(k * stride)};
		bool good;

		code_trace_place(t, i, &p, &one);
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
