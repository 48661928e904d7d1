/* Texts that an argument may point to: constants, what the code puts together in
 * the frame, and what calls of the C library make of such: printf-like formats,
 * copies, values of variables.  A text is known or it is not: one of which some
 * part cannot be said is no text, and the answer is `computed`. */
#include "elf/code_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	TEXTS_MOST = 64, /* of one argument */
	NESTED_MOST = 6, /* calls whose text goes into that of another */
};

struct writing {
	struct code *c;
	struct function *f;
	unsigned depth;
};

static void texts_of(struct writing *w, uint32_t i, const struct operand *x, struct code_texts *out);

static void add(struct code_texts *out, struct code_text text)
{
	size_t i;

	for (i = 0; i < out->v.n; i++)
		if (out->v.at[i].before == text.before && out->v.at[i].after == text.after &&
		    out->v.at[i].hole == text.hole && out->v.at[i].reg == text.reg && out->v.at[i].entry == text.entry)
			return;
	if (out->v.n >= TEXTS_MOST)
		out->computed = true;
	else
		vec_push(&out->v, text);
}

static struct code_text constant(struct code *c, const char *s, size_t n)
{
	return (struct code_text){.before = names_add_n(c->names, s, n), .after = names_add(c->names, "")};
}

static const char *join(struct code *c, const char *a, const char *b)
{
	char *text = xprintf("%s%s", a, b);
	const char *result = strlen(text) < STRING_MOST ? names_add(c->names, text) : NULL;

	free(text);
	return result;
}

/* A brace of its own could not be told from a variable. */
static bool is_ambiguous(const struct code_text *t)
{
	return !t->env && (strchr(t->before, '{') || strchr(t->after, '{'));
}

bool code_text_join(struct code *c, const struct code_text *a, const struct code_text *b, struct code_text *out)
{
	struct code_text text;

	if ((a->hole && b->hole) || (a->env && is_ambiguous(b)) || (b->env && is_ambiguous(a)))
		return false;
	text = a->hole ? *a : *b;
	if (a->hole)
		text.after = join(c, a->after, b->before);
	else
		text.before = join(c, a->before, b->before);
	text.env = a->env || b->env;
	*out = text;
	return text.before && text.after;
}

/* Each of A followed by each of B.  Of two that vary, which goes with which is not
 * seen: all pairs would be names that no path makes. */
static void join_all(struct writing *w, const struct code_texts *a, const struct code_texts *b, struct code_texts *out)
{
	struct code_text text;
	size_t i, k;

	out->computed |= a->computed || b->computed;
	out->row |= a->row || b->row;
	if (a->v.n > 1 && b->v.n > 1) {
		out->computed = true;
		return;
	}
	for (i = 0; i < a->v.n; i++)
		for (k = 0; k < b->v.n; k++)
			if (code_text_join(w->c, &a->v.at[i], &b->v.at[k], &text))
				add(out, text);
			else
				out->computed = true;
}

/* ---- what a call writes */

/* The number that argument X is, if it is one. */
static bool number_of(struct writing *w, uint32_t i, const struct operand *x, uint64_t *out)
{
	struct values v = {0};
	bool result;

	code_trace(w->c, w->f, i, x, &v);
	result = values_single(&v) && v.v.at[0].kind == V_NUMBER;
	*out = result ? v.v.at[0].n : 0;
	values_free(&v);
	return result;
}

/* One conversion, without its '%'; its length, or 0 if it is not a plain one. */
static size_t conversion(struct writing *w, uint32_t i, const char *form, const struct operand *x, struct code_texts *out)
{
	size_t n = strspn(form, "lzjt");
	struct operand number = *x;
	char text[32];
	uint64_t value;

	if (*form == 's') {
		texts_of(w, i, x, out);
		return 1;
	}
	if (n > 2 || !form[n] || !strchr("diux", form[n]))
		return 0;
	number.size = n ? 8 : 4;
	if (!number_of(w, i, &number, &value)) {
		out->computed = true;
	} else {
		value = n ? value : (uint32_t)value;
		if (strchr("di", form[n]))
			snprintf(text, sizeof(text), "%lld", n ? (long long)value : (int32_t)value);
		else
			snprintf(text, sizeof(text), form[n] == 'x' ? "%llx" : "%llu", (unsigned long long)value);
		add(out, constant(w->c, text, strlen(text)));
	}
	return n + 1;
}

static void format_one(struct writing *w, uint32_t i, const char *form, unsigned argument, struct code_texts *out)
{
	struct code_texts text = {0}, next, piece;
	size_t n;

	add(&text, constant(w->c, "", 0));
	while (*form && text.v.n) {
		memset(&next, 0, sizeof(next));
		memset(&piece, 0, sizeof(piece));
		n = strcspn(form, "%");
		if (n) {
			add(&piece, constant(w->c, form, n));
		} else if (form[1] == '%') {
			add(&piece, constant(w->c, "%", n = 1));
			form++;
		} else {
			struct operand x = code_argument(w->c, argument++);

			n = conversion(w, i, form + 1, &x, &piece);
			piece.computed |= !n || piece.null;
			form++;
		}
		join_all(w, &text, &piece, &next);
		next.computed |= text.computed;
		vec_free(&text.v);
		vec_free(&piece.v);
		text = next;
		if (!n)
			break;
		form += n;
	}
	for (n = 0; n < text.v.n; n++)
		add(out, text.v.at[n]);
	out->computed |= text.computed;
	out->row |= text.row;
	vec_free(&text.v);
}

static void format(struct writing *w, uint32_t i, const struct library_function *l, struct code_texts *out)
{
	struct operand x = code_argument(w->c, l->from);
	struct code_texts form = {0};
	size_t k;

	texts_of(w, i, &x, &form);
	out->computed |= form.computed || form.null;
	for (k = 0; k < form.v.n; k++)
		if (form.v.at[k].hole || form.v.at[k].env)
			out->computed = true;
		else
			format_one(w, i, form.v.at[k].before, l->more, out);
	vec_free(&form.v);
}

/* Texts that a call may cut: with a constant that is too small, or by a number that
 * is not known where that is the length and not the room (DOES_COPY). */
static void add_cut(struct writing *w, uint32_t i, const struct library_function *l, const struct code_texts *text,
		    struct code_texts *out)
{
	struct operand size = code_argument(w->c, l->size);
	uint64_t most = 0;
	bool known = l->size && number_of(w, i, &size, &most);
	size_t k;

	out->computed |= text->computed || text->null;
	out->row |= text->row;
	for (k = 0; k < text->v.n; k++) {
		const struct code_text *t = &text->v.at[k];

		if (l->size && (known ? !t->hole && !t->env && strlen(t->before) >= most : l->does == DOES_COPY))
			out->computed = true;
		else
			add(out, *t);
	}
}

/* The text that the call leaves. */
static void written_by(struct writing *w, uint32_t i, struct code_texts *out)
{
	const struct library_function *l = code_library(code_callee_at(w->c, w->f, i));
	struct code_texts before = {0}, text = {0}, more = {0};
	struct operand to, from;

	if (!l || w->depth >= NESTED_MOST) {
		out->computed = true;
		return;
	}
	to = code_argument(w->c, l->to);
	from = code_argument(w->c, l->from);
	w->depth++;
	switch (l->does) {
	case DOES_FORMAT:
		format(w, i, l, &text);
		add_cut(w, i, l, &text, out);
		break;
	case DOES_COPY:
		texts_of(w, i, &from, &text);
		add_cut(w, i, l, &text, out);
		break;
	case DOES_APPEND:
		texts_of(w, i, &to, &before);
		texts_of(w, i, &from, &text);
		add_cut(w, i, l, &text, &more);
		join_all(w, &before, &more, out);
		break;
	default:
		out->computed = true;
	}
	w->depth--;
	vec_free(&before.v);
	vec_free(&text.v);
	vec_free(&more.v);
}

/* ---- what a pointer leads to */

/* Of the texts that calls have written, each; and whether there may be others. */
static bool written_texts(struct writing *w, const struct values *v, struct code_texts *out)
{
	bool any = false;
	size_t k;

	for (k = 0; k < v->v.n; k++)
		if (v->v.at[k].kind == V_WRITTEN) {
			long at = code_insn_at(w->f, v->v.at[k].n);

			any = true;
			if (at >= 0)
				written_by(w, (uint32_t)at, out);
			else
				out->computed = true;
		}
	return any;
}

/* Does nothing in the block write to the frame or hand it on before instruction I? */
static bool leaves_frame(struct writing *w, const struct block *b, uint32_t i)
{
	uint32_t k, e;

	for (k = b->first; k < i; k++) {
		const struct insn *in = &w->f->insn.at[k];
		const struct library_function *l = in->flow == F_CALL ? code_library(code_callee_at(w->c, w->f, k)) : NULL;

		if (in->junk || (in->flow == F_CALL && (!l || l->does > DOES_DUPLICATE)))
			return false;
		for (e = in->effect; e < in->effect + in->n_effect; e++)
			if (w->f->effect.at[e].to.kind == O_MEM)
				return false;
	}
	return true;
}

static void frame_text(struct writing *w, uint32_t b, uint32_t i, int64_t offset, struct code_texts *out);

static void ask_ways(struct writing *w, const struct block *b, int64_t offset, struct code_texts *out)
{
	uint32_t k;

	w->depth++;
	for (k = 0; k < b->n_pred; k++) {
		uint32_t before = w->f->pred.at[b->pred + k];

		frame_text(w, before, w->f->block.at[before].first + w->f->block.at[before].n, offset, out);
	}
	w->depth--;
}

/* What stands in the frame, byte by byte, until it ends or goes on as a call has
 * written it.  A byte may also be overwritten on some path by who knows what; but
 * bytes that are not written at all on some path would make texts that no path
 * makes.  Where the ways that lead here have different texts, each is asked. */
static void frame_text(struct writing *w, uint32_t b, uint32_t i, int64_t offset, struct code_texts *out)
{
	enum { MOST = 256 };
	const struct block *block = &w->f->block.at[b];
	struct code_texts begin = {0}, rest = {0};
	char text[MOST];
	unsigned n = 0;
	bool more = true, one = true, known = false, written = false;

	for (; n < MOST && more; n += more) {
		struct values v = {0};

		code_trace_byte(w->c, w->f, b, i, offset + n, &v);
		one = v.v.n <= 1;
		out->computed |= v.unknown;
		written = one && written_texts(w, &v, &rest);
		known = written || (v.v.n == 1 && !v.stride && !v.cycle && v.v.at[0].kind == V_NUMBER);
		text[n] = known && !written ? (char)v.v.at[0].n : 0;
		more = text[n] >= 0x20 && text[n] <= 0x7e;
		values_free(&v);
	}
	add(&begin, constant(w->c, text, n));
	if (written)
		join_all(w, &begin, &rest, out);
	else if (known && n && n < MOST && !text[n])
		add(out, begin.v.at[0]);
	else if (one || !block->n_pred || block->entry || w->depth >= NESTED_MOST || !leaves_frame(w, block, i))
		out->computed = true;
	else
		ask_ways(w, block, offset, out);
	vec_free(&begin.v);
	vec_free(&rest.v);
}

/* The text in memory that V leads to, as calls have written it; false if none has. */
static bool memory_text(struct writing *w, uint32_t i, const struct value *v, struct code_texts *out)
{
	struct values found = {0};
	bool any;
	size_t k;

	code_trace_text(w->c, w->f, i, v, &found);
	any = written_texts(w, &found, out);
	for (k = 0; k < found.v.n && any; k++)
		if (found.v.at[k].kind == V_ENTRY && v->kind == V_ENTRY)
			any = false; /* or what it was before */
		else
			out->computed |= found.v.at[k].kind != V_WRITTEN;
	out->computed |= any && found.unknown && v->kind != V_ENTRY;
	values_free(&found);
	return any;
}

static void constant_text(struct writing *w, uint32_t i, const struct value *v, struct code_texts *out)
{
	const char *text = code_string_at(w->c, v->n);
	bool stays = code_is_constant(w->c, v->n);

	if (!v->n) {
		out->null = true;
	} else if (stays || !memory_text(w, i, v, out)) {
		if (text)
			add(out, constant(w->c, text, strlen(text)));
		/* What stands in writable memory is what it starts with. */
		out->computed |= !text || !stays;
	}
}

static void variable_value(struct writing *w, uint32_t i, const struct library_function *l, struct code_texts *out)
{
	struct operand x = code_argument(w->c, l->from);
	struct code_texts name = {0};
	size_t k;

	texts_of(w, i, &x, &name);
	out->computed |= name.computed || name.null;
	for (k = 0; k < name.v.n; k++) {
		const struct code_text *t = &name.v.at[k];
		char *text = xprintf("{env:%s}", t->before);

		if (t->hole || t->env || is_ambiguous(t) || strchr(t->before, '}'))
			out->computed = true;
		else
			add(out, (struct code_text){.before = names_add(w->c->names, text), .after = names_add(w->c->names, ""), .env = true});
		free(text);
	}
	vec_free(&name.v);
}

static void result_text(struct writing *w, uint32_t i, const struct value *v, struct code_texts *out)
{
	long call = code_insn_at(w->f, v->n);
	const struct library_function *l = call < 0 ? NULL : code_library(code_callee_at(w->c, w->f, (uint32_t)call));
	struct operand x;

	if (!l || w->depth >= NESTED_MOST) {
		out->computed = true;
		return;
	}
	w->depth++;
	if (l->does == DOES_GETENV) {
		variable_value(w, (uint32_t)call, l, out);
	} else if (l->does == DOES_DUPLICATE) {
		x = code_argument(w->c, l->from);
		if (!memory_text(w, i, v, out))
			texts_of(w, (uint32_t)call, &x, out);
	} else if (l->returns) {
		written_by(w, (uint32_t)call, out);
	} else if (l->does != DOES_ALLOCATE || !memory_text(w, i, v, out)) {
		out->computed = true;
	}
	w->depth--;
}

static void texts_of(struct writing *w, uint32_t i, const struct operand *x, struct code_texts *out)
{
	struct values v = {0};
	size_t k;

	code_trace(w->c, w->f, i, x, &v);
	out->computed |= v.unknown || v.stride || !v.v.n;
	out->row |= v.row;
	for (k = 0; k < v.v.n && !v.stride; k++) {
		const struct value *y = &v.v.at[k];
		long call;

		switch (y->kind) {
		case V_NUMBER:
			constant_text(w, i, y, out);
			break;
		case V_STACK:
			frame_text(w, w->f->insn.at[i].block, i, (int64_t)y->n, out);
			break;
		case V_ENTRY:
			if (y->reg == REG_NONE)
				out->computed = true;
			else if (!memory_text(w, i, y, out))
				add(out, (struct code_text){.before = names_add(w->c->names, ""), .after = names_add(w->c->names, ""),
							    .hole = true, .reg = y->reg, .entry = y->n});
			break;
		case V_RESULT:
			result_text(w, i, y, out);
			break;
		case V_WRITTEN: /* a pointer, by asprintf and its like */
			call = code_insn_at(w->f, y->n);
			if (call >= 0)
				written_by(w, (uint32_t)call, out);
			else
				out->computed = true;
			break;
		default:
			out->computed = true;
		}
	}
	values_free(&v);
}

void code_texts(struct code *c, struct function *f, uint32_t i, const struct operand *x, struct code_texts *out)
{
	struct writing w = {.c = c, .f = f};

	texts_of(&w, i, x, out);
}
