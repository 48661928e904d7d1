/* Sets of values, and arithmetic on them.  Anything that is not exact makes the
 * result unknown; what is known of unknown values is what they are multiples of,
 * because an unknown index into a known table is still a row of known entries. */
#include "elf/code_internal.h"

#include <stdlib.h>

void values_free(struct values *s)
{
	vec_free(&s->v);
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void values_add(struct values *s, uint8_t kind, uint64_t n, uint8_t reg)
{
	size_t i;

	for (i = 0; i < s->v.n; i++)
		if (s->v.at[i].kind == kind && s->v.at[i].n == n && s->v.at[i].reg == reg)
			return;
	if (s->v.n >= VALUES_MOST)
		values_add_unknown(s, 1);
	else
		vec_push(&s->v, ((struct value){kind, reg, n}));
}

void values_add_unknown(struct values *s, uint64_t multiple)
{
	s->unknown = true;
	s->multiple = divisor(s->multiple, multiple ? multiple : 1);
}

void values_merge(struct values *s, const struct values *other)
{
	size_t i;

	for (i = 0; i < other->v.n; i++)
		values_add(s, other->v.at[i].kind, other->v.at[i].n, other->v.at[i].reg);
	if (other->unknown)
		values_add_unknown(s, other->multiple);
	if (other->stride)
		s->source = !s->stride || s->source == other->source ? other->source : 0;
	s->stride = divisor(s->stride, other->stride);
	s->cycle |= other->cycle;
	s->row |= other->row;
}

bool values_single(const struct values *s)
{
	return s->v.n == 1 && !s->unknown && !s->stride && !s->cycle;
}

static bool is_number(const struct values *s)
{
	return values_single(s) && s->v.at[0].kind == V_NUMBER;
}

static bool apply(enum effect_op op, const struct value *x, const struct value *y, struct value *out)
{
	out->kind = x->kind;
	out->reg = 0;
	if (op == E_ADD && x->kind == V_NUMBER && y->kind == V_STACK)
		return apply(op, y, x, out);
	if (y->kind != V_NUMBER || (x->kind != V_NUMBER && (x->kind != V_STACK || (op != E_ADD && op != E_SUB))))
		return false;
	switch (op) {
	case E_ADD: out->n = x->n + y->n; return true;
	case E_SUB: out->n = x->n - y->n; return true;
	case E_OR: out->n = x->n | y->n; return true;
	case E_AND: out->n = x->n & y->n; return true;
	default: return false;
	}
}

/* A known address and an index of which only the step is known; or something
 * that goes on by a constant each time round. */
static bool make_row(const struct values *a, const struct values *b, struct values *out)
{
	if (a->cycle && is_number(b) && !a->unknown) {
		struct value sum;
		size_t i;

		for (i = 0; i < a->v.n; i++)
			if (apply(E_ADD, &a->v.at[i], &b->v.at[0], &sum))
				values_add(out, sum.kind, sum.n, 0);
			else
				values_add_unknown(out, 1);
		out->stride = divisor(divisor(out->stride, a->stride), b->v.at[0].n);
		return (int64_t)b->v.at[0].n > 0;
	}
	/* Steps of less than four bytes are no table's: some pointer, somewhere. */
	if (a->unknown && a->multiple % 4 == 0 && !a->v.n && !a->cycle && b->v.n && !b->unknown && !b->cycle) {
		size_t i;

		for (i = 0; i < b->v.n; i++)
			if (b->v.at[i].kind == V_NUMBER || b->v.at[i].kind == V_STACK)
				values_add(out, b->v.at[i].kind, b->v.at[i].n, 0);
			else
				values_add_unknown(out, 1);
		out->stride = divisor(divisor(out->stride, a->multiple), b->stride);
		return true;
	}
	return false;
}

static void scale(const struct values *a, uint64_t by, struct values *out)
{
	size_t i;

	for (i = 0; i < a->v.n; i++)
		if (a->v.at[i].kind == V_NUMBER)
			values_add(out, V_NUMBER, a->v.at[i].n * by, 0);
		else
			values_add_unknown(out, by);
	if (a->unknown)
		values_add_unknown(out, a->multiple * by);
	if (a->cycle)
		values_add_unknown(out, 1);
	out->stride = divisor(out->stride, a->stride * by);
	out->source = a->source;
}

/* Two rows that are stepped along by one and the same instruction, as i + 2 * i,
 * are one with the sum of the distances; others have only a divisor in common. */
static void combine_strides(enum effect_op op, const struct values *a, const struct values *b, struct values *out)
{
	bool same = a->stride && b->stride && a->source && a->source == b->source && !out->stride;

	if (same && op == E_ADD)
		out->stride = a->stride + b->stride;
	else if (same && op == E_SUB && a->stride > b->stride)
		out->stride = a->stride - b->stride;
	else
		out->stride = divisor(out->stride, divisor(a->stride, b->stride));
	out->source = same || !b->stride ? a->source : a->stride ? 0 : b->source;
	/* What is taken away goes the other way. */
	if (b->stride && op == E_SUB && !(same && a->stride > b->stride))
		values_add_unknown(out, 1);
}

/* Nothing can be said of the sum of something and what a call returned. */
static bool without_calls(const struct values *s, struct values *out)
{
	size_t i;
	bool any = false;

	for (i = 0; i < s->v.n; i++)
		any |= s->v.at[i].kind == V_RESULT || s->v.at[i].kind == V_WRITTEN;
	if (!any)
		return false;
	*out = *s;
	memset(&out->v, 0, sizeof(out->v));
	for (i = 0; i < s->v.n; i++)
		if (s->v.at[i].kind != V_RESULT && s->v.at[i].kind != V_WRITTEN)
			vec_push(&out->v, s->v.at[i]);
	values_add_unknown(out, 1);
	return true;
}

void values_combine(enum effect_op op, const struct values *a, const struct values *b, struct values *out)
{
	struct values x = {0}, y = {0};
	size_t i, k;

	if (without_calls(a, &x)) {
		values_combine(op, &x, b, out);
		values_free(&x);
		return;
	}
	if (without_calls(b, &y)) {
		values_combine(op, a, &y, out);
		values_free(&y);
		return;
	}
	out->row |= a->row || b->row;

	if (op == E_SHIFT || op == E_MUL) {
		if (is_number(b) && (op == E_MUL || b->v.at[0].n < 32))
			scale(a, op == E_MUL ? b->v.at[0].n : 1ull << b->v.at[0].n, out);
		else if (op == E_MUL && is_number(a))
			scale(b, a->v.at[0].n, out);
		else
			values_add_unknown(out, 1);
		return;
	}
	if (op == E_ADD && (make_row(a, b, out) || make_row(b, a, out)))
		return;
	if (a->cycle || b->cycle || ((a->stride || b->stride) && op != E_ADD && op != E_SUB) ||
	    a->v.n * b->v.n > VALUES_MOST) {
		values_add_unknown(out, 1);
		return;
	}
	for (i = 0; i < a->v.n; i++)
		for (k = 0; k < b->v.n; k++) {
			struct value result;

			/* of one row, each with its own and not with the others */
			if (a->stride && b->stride && a->source && a->source == b->source && a->v.n == b->v.n && i != k)
				continue;
			if (apply(op, &a->v.at[i], &b->v.at[k], &result))
				values_add(out, result.kind, result.n, 0);
			else
				values_add_unknown(out, 1);
		}
	if (a->unknown || b->unknown)
		values_add_unknown(out, a->unknown && b->unknown && op == E_ADD ? divisor(a->multiple, b->multiple)
										: 1);
	combine_strides(op, a, b, out);
}

void values_resize(struct values *s, unsigned size, bool is_signed)
{
	unsigned shift = size < 8 ? 64 - 8 * size : 0;
	size_t i;

	for (i = 0; shift && i < s->v.n; i++) {
		struct value *v = &s->v.at[i];

		if (v->kind == V_NUMBER)
			v->n = is_signed ? (uint64_t)((int64_t)(v->n << shift) >> shift) : v->n << shift >> shift;
		else if (v->kind != V_ENTRY || size < 4) /* half of an address is none */
			s->unknown = true, s->multiple = 1, *v = s->v.at[--s->v.n], i--;
	}
}
