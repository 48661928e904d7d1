/* The frame of a function, and the calls that write texts into it and elsewhere:
 * what a walk back has to know of memory. */
#include "elf/code_trace.h"

#include <stdlib.h>

bool code_frame_offset(const struct trace *t, uint32_t i, const struct operand *x, int64_t *out)
{
	const struct insn *in = &t->f->insn.at[i];
	int32_t base = x->reg == t->c->sp ? in->sp : x->reg == t->c->fp ? in->fp : NOT_KNOWN;

	*out = (int64_t)base + x->value;
	return base != NOT_KNOWN;
}

bool code_alias_offset(const struct trace *t, uint32_t i, const struct operand *x, int64_t *out)
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
			if (code_frame_offset(t, k, &y->a, &offset)) {
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
			    !code_frame_offset(t, i, &x->a, &offset))
				continue;
			if (x->op == E_ADD && x->b.kind == O_IMM)
				offset += x->b.value;
			f->areas_many = f->area.n >= AREAS_MOST;
			vec_push(&f->area, ((struct stack_area){(int32_t)offset, address_escapes(t, i, x->to.reg)}));
		}
}

bool code_is_addressed(const struct trace *t, int64_t offset, bool escaping)
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

static void find_far_calls(struct trace *t)
{
	struct function *f = t->f;
	uint32_t i;

	for (i = 0; i < f->insn.n && t->c->steps > 0; i++) {
		struct trace inner = {.c = t->c, .f = f};
		struct values v = {0};

		if (f->insn.at[i].flow != F_CALL || f->insn.at[i].through.kind != O_REG || *code_callee_at(t->c, f, i))
			continue;
		code_trace_operand(&inner, i, &f->insn.at[i].through, &v);
		if (values_single(&v) && v.v.at[0].kind == V_FUNCTION)
			vec_push(&f->far_call, ((struct far_call){i, (uint32_t)v.v.at[0].n}));
		values_free(&v);
	}
}

void code_find_writers(struct trace *t)
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

		code_trace_operand(&inner, at, &to, &v);
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

bool code_same_value(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && a->n == b->n && a->reg == b->reg;
}

bool code_is_own_memory(const struct trace *t, const struct value *v)
{
	const struct library_function *l;
	long k = v->kind == V_RESULT ? code_insn_at(t->f, v->n) : -1;

	l = k >= 0 ? code_library(code_callee_at(t->c, t->f, (uint32_t)k)) : NULL;
	return v->kind == V_NUMBER || (l && (l->does == DOES_ALLOCATE || l->does == DOES_DUPLICATE));
}

enum meeting code_call_meets(const struct trace *t, uint32_t i, const struct place *p)
{
	const struct writer *w = writer_at(t->f, i);
	const struct library_function *l = code_library(code_callee_at(t->c, t->f, i));

	if (w && w->known && p->text)
		return code_same_value(&w->to, &p->object) && !l->pointer ? WRITES
		     : code_is_own_memory(t, &w->to) || w->to.kind == V_STACK ? PASSES : SPOILS;
	if (w && w->known && w->to.kind == V_STACK)
		return (int64_t)w->to.n == p->offset && p->size == (l->pointer ? 8 : 1) ? WRITES
		     : (int64_t)w->to.n >= p->offset + p->size ? PASSES : SPOILS;
	if (w && w->known && code_is_own_memory(t, &w->to))
		return PASSES;
	return l && l->does <= DOES_DUPLICATE && !(p->text && t->f->insn.at[i].at == p->object.n) ? PASSES : SPOILS;
}
