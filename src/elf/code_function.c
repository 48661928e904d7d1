/* A function: its bounds, its instructions, what can come before what, and where
 * the stack pointer is.  A predecessor that is missed would be a name that is
 * missed, so jumps that cannot be followed make a function `opaque`. */
#include "elf/code_internal.h"

#include <endian.h>
#include <stdlib.h>

struct edge {
	uint32_t from, to;
};

struct shape {
	struct code *c;
	struct function *f;
	bool *leader, *called;
	VEC(struct edge) edge; /* of instructions first, then of blocks */
	VEC(uint32_t) lost;    /* indirect jumps without a table */
};

struct insn *code_insn_add(struct function *f, uint64_t at, unsigned size)
{
	struct insn i = {.at = at, .size = (uint8_t)(size > 255 ? 255 : size), .effect = (uint32_t)f->effect.n,
			 .sp = NOT_KNOWN, .fp = NOT_KNOWN};

	vec_push(&f->insn, i);
	return &f->insn.at[f->insn.n - 1];
}

struct effect *code_effect_add(struct function *f, enum effect_op op, struct operand to)
{
	struct effect e = {.op = (uint8_t)op, .to = to};

	vec_push(&f->effect, e);
	f->insn.at[f->insn.n - 1].n_effect++;
	return &f->effect.at[f->effect.n - 1];
}

long code_insn_at(const struct function *f, uint64_t vaddr)
{
	size_t low = 0, high = f->insn.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->insn.at[mid].at == vaddr)
			return (long)mid;
		if (f->insn.at[mid].at < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return -1;
}

static bool contains(const struct function *f, uint64_t vaddr)
{
	unsigned k;

	for (k = 0; k < f->n_range; k++)
		if (vaddr >= f->range[k].begin && vaddr < f->range[k].end)
			return true;
	return false;
}

/* ---- callees */

/* The slot that the stub at VADDR jumps through, or 0. */
static uint64_t stub_slot_x86(const unsigned char *b, uint64_t vaddr)
{
	size_t k = !memcmp(b, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;
	uint32_t displacement;

	k += b[k] == 0xf2;
	memcpy(&displacement, b + k + 2, 4);
	if (b[k] != 0xff || b[k + 1] != 0x25)
		return 0;
	return vaddr + k + 6 + (uint64_t)(int64_t)(int32_t)le32toh(displacement);
}

static uint64_t stub_slot_aarch64(const unsigned char *b, uint64_t vaddr)
{
	uint32_t w[2];
	uint64_t pages;

	memcpy(w, b, 4);
	if ((le32toh(w[0]) & 0xffffff3f) == 0xd503241f) { /* bti */
		b += 4;
		vaddr += 4;
	}
	memcpy(w, b, 8);
	w[0] = le32toh(w[0]);
	w[1] = le32toh(w[1]);
	if ((w[0] & 0x9f00001f) != 0x90000010 || (w[1] & 0xffc003ff) != 0xf9400211)
		return 0;
	pages = (uint64_t)((int64_t)((uint64_t)(w[0] >> 5 & 0x7ffff) << 45) >> 43) | (w[0] >> 29 & 3);
	return (vaddr & ~4095ull) + (pages << 12) + (w[1] >> 10 & 0xfff) * 8;
}

const char *code_callee(struct code *c, const struct insn *i)
{
	unsigned char b[16] = {0};
	uint32_t symbol = 0;

	if (i->through.kind == O_MEM && i->through.reg == REG_NONE && i->through.index == REG_NONE)
		symbol = code_slot_symbol(c, (uint64_t)i->through.value);
	else if (i->target && code_read(c, i->target, b, sizeof(b)))
		symbol = code_slot_symbol(c, c->arm ? stub_slot_aarch64(b, i->target) : stub_slot_x86(b, i->target));
	return symbol && symbol < c->s->n ? elf_symbol_name(c->s, symbol) : "";
}

/* The effect before instruction I, in its block, that sets the register, or NULL. */
static const struct effect *set_before(const struct function *f, uint32_t *i, uint8_t reg)
{
	uint32_t first = f->block.at[f->insn.at[*i].block].first, e;

	while ((*i)-- > first)
		for (e = f->insn.at[*i].effect; e < f->insn.at[*i].effect + f->insn.at[*i].n_effect; e++)
			if (f->effect.at[e].to.kind == O_REG && f->effect.at[e].to.reg == reg)
				return &f->effect.at[e];
	return NULL;
}

const char *code_callee_at(struct code *c, const struct function *f, uint32_t i)
{
	const struct operand *through = &f->insn.at[i].through;
	const struct effect *load, *page;
	uint64_t slot;
	uint32_t symbol;
	size_t k;

	if (through->kind != O_REG)
		return code_callee(c, &f->insn.at[i]);
	for (k = 0; k < f->far_call.n; k++)
		if (f->far_call.at[k].insn == i)
			return elf_symbol_name(c->s, f->far_call.at[k].symbol);
	load = set_before(f, &i, through->reg);
	if (!load || load->op != E_MOVE || load->a.kind != O_MEM || load->a.index != REG_NONE)
		return "";
	slot = (uint64_t)load->a.value;
	if (load->a.reg != REG_NONE) {
		page = set_before(f, &i, load->a.reg);
		if (!page || page->op != E_MOVE || page->a.kind != O_IMM)
			return "";
		slot += (uint64_t)page->a.value;
	}
	symbol = code_slot_symbol(c, slot);
	return symbol && symbol < c->s->n ? elf_symbol_name(c->s, symbol) : "";
}

bool code_never_returns(const char *callee)
{
	static const char *const name[] = {
		"abort", "exit", "_exit", "_Exit", "quick_exit", "__stack_chk_fail", "__assert_fail", "__chk_fail",
		"__fortify_fail", "longjmp", "siglongjmp", "__longjmp_chk", "pthread_exit", "err", "errx",
		"__cxa_throw", "__cxa_rethrow", "__cxa_bad_cast", "_Unwind_Resume", "_ZSt9terminatev",
		"__cxa_throw_bad_array_new_length", "g_assertion_message_expr", "g_assertion_message",
	};
	size_t k;

	if (!strncmp(callee, "_ZSt", 4) && strstr(callee, "__throw_"))
		return true;
	for (k = 0; k < sizeof(name) / sizeof(name[0]); k++)
		if (!strcmp(callee, name[k]))
			return true;
	return false;
}

/* ---- bounds and bytes */

static void decode(struct code *c, struct function *f, struct range r)
{
	size_t n = r.end - r.begin;
	unsigned char *bytes = xmalloc(n + 1);

	if (code_read(c, r.begin, bytes, n)) {
		if (c->arm)
			code_decode_aarch64(c, f, bytes, n, r.begin);
		else
			code_decode_x86(c, f, bytes, n, r.begin);
	}
	free(bytes);
}

/* Does a part of the code jump back into the middle of the function?  Read from
 * the bytes: most candidates are functions of their own, not worth decoding. */
static bool jumps_back(struct code *c, struct range part, struct range whole)
{
	size_t n = part.end - part.begin, k;
	unsigned char *b = xmalloc(n + 1);
	bool result = false;
	int32_t d;

	for (k = 0; code_read(c, part.begin, b, n) && k + 4 <= n && !result; k += c->arm ? 4 : 1) {
		uint64_t to;

		memcpy(&d, b + k, 4);
		d = (int32_t)le32toh((uint32_t)d);
		if (c->arm) {
			uint32_t w = (uint32_t)d;

			if ((w & 0xfc000000) != 0x14000000)
				continue;
			to = part.begin + k + (uint64_t)((int64_t)((uint64_t)(w & 0x3ffffff) << 38) >> 36);
		} else {
			if (!(k >= 1 && b[k - 1] == 0xe9) && !(k >= 2 && b[k - 2] == 0x0f && (b[k - 1] & 0xf0) == 0x80))
				continue;
			to = part.begin + k + 4 + (uint64_t)(int64_t)d;
		}
		result = to > whole.begin && to < whole.end;
	}
	free(b);
	return result;
}

static int by_place(const void *a, const void *b)
{
	const struct insn *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Compilers move what is unlikely to a place of its own, with an unwind entry of
 * its own; the two parts jump into each other. */
static void add_parts(struct code *c, struct function *f)
{
	size_t k;
	unsigned tries = 16;

	for (k = 0; k < f->insn.n && f->n_range < sizeof(f->range) / sizeof(f->range[0]) && tries; k++) {
		const struct insn *i = &f->insn.at[k];
		struct range r;

		if ((i->flow != F_JUMP && i->flow != F_BRANCH) || !i->target || contains(f, i->target) ||
		    *code_callee(c, i) || !code_function_range(c, i->target, &r) || r.end - r.begin > 64 * 1024)
			continue;
		tries--;
		if (i->target == r.begin && !jumps_back(c, r, f->range[0]))
			continue;
		f->range[f->n_range++] = r;
		decode(c, f, r);
	}
	if (f->n_range > 1)
		qsort(f->insn.at, f->insn.n, sizeof(*f->insn.at), by_place);
}

/* ---- jump tables */

static void add_edge(struct shape *s, size_t from, uint64_t to)
{
	long k = code_insn_at(s->f, to);

	if (k >= 0) {
		s->leader[k] = true;
		vec_push(&s->edge, ((struct edge){(uint32_t)from, (uint32_t)k}));
	}
}

/* How many entries a table can have: what the index was compared with last. */
static uint64_t table_entries(const struct function *f, size_t jump)
{
	size_t k, e;

	for (k = jump; k-- && jump - k < 48;)
		for (e = f->insn.at[k].effect; e < f->insn.at[k].effect + f->insn.at[k].n_effect; e++)
			if (f->effect.at[e].op == E_COMPARE && f->effect.at[e].b.kind == O_IMM &&
			    f->effect.at[e].b.value > 0 && f->effect.at[e].b.value < TABLE_MOST)
				return (uint64_t)f->effect.at[e].b.value + 1;
	return TABLE_MOST;
}

/* Entries of WIDTH bytes, SCALE times each from BASE, as long as they lead to
 * instructions of this function. */
static bool read_offsets(struct shape *s, size_t jump, uint64_t table, uint64_t base, unsigned width, int scale)
{
	uint64_t k, most = table_entries(s->f, jump);

	for (k = 0; k < most; k++) {
		uint64_t word = 0, to;

		if (!code_read(s->c, table + k * width, &word, width))
			break;
		word = le64toh(word);
		to = base + (uint64_t)(((int64_t)(word << (64 - 8 * width)) >> (64 - 8 * width)) * scale);
		if (scale == 4 && width < 4 && code_insn_at(s->f, to) < 0)
			to = base + word * (uint64_t)scale; /* unsigned entries, as clang has them */
		if (!contains(s->f, to) || code_insn_at(s->f, to) < 0)
			break;
		add_edge(s, jump, to);
	}
	return k > 0;
}

static bool read_addresses(struct shape *s, size_t jump, uint64_t table)
{
	uint64_t k, to, most = table_entries(s->f, jump);

	for (k = 0; k < most; k++) {
		if (!code_pointer_at(s->c, table + k * 8, &to) || !contains(s->f, to) || code_insn_at(s->f, to) < 0)
			break;
		add_edge(s, jump, to);
	}
	return k > 0;
}

static bool is_absolute(const struct operand *x, enum operand_kind kind)
{
	return x->kind == kind && x->reg == REG_NONE;
}

/* Constants that the last instructions before the jump have formed serve as
 * tables, and on AArch64 as the place that offsets count from. */
static bool follow_table(struct shape *s, size_t jump)
{
	const struct function *f = s->f;
	struct { uint64_t at; bool is; } known[REGS] = {{0}};
	uint64_t address[16];
	size_t k, e, n = 0, i, from = jump > 48 ? jump - 48 : 0;
	unsigned width = 4, scale = 1;
	bool done = false;

	if (is_absolute(&f->insn.at[jump].through, O_MEM))
		return read_addresses(s, jump, (uint64_t)f->insn.at[jump].through.value);
	for (k = from; k < jump; k++)
		for (e = f->insn.at[k].effect; e < f->insn.at[k].effect + f->insn.at[k].n_effect; e++) {
			const struct effect *x = &f->effect.at[e];
			uint64_t value = 0;
			bool is = true;

			if (x->to.kind != O_REG || x->to.reg >= REGS)
				continue;
			if (x->op == E_MOVE && is_absolute(&x->a, O_ADDR) && x->a.index == REG_NONE)
				value = (uint64_t)x->a.value;
			else if (x->op == E_MOVE && x->a.kind == O_IMM && s->c->arm)
				value = (uint64_t)x->a.value;
			else if (x->op == E_ADD && x->a.kind == O_REG && x->a.reg < REGS && known[x->a.reg].is &&
				 x->b.kind == O_IMM)
				value = known[x->a.reg].at + (uint64_t)x->b.value;
			else
				is = false;
			if (x->a.kind == O_MEM && x->a.index != REG_NONE)
				width = x->a.size;
			if (x->a.kind == O_ADDR && x->a.index != REG_NONE)
				scale = 1u << (x->a.shift & 7);
			known[x->to.reg].at = value;
			known[x->to.reg].is = is;
			if (is && code_segment(s->c, value))
				address[n++ % 16] = value;
			if (x->op == E_MOVE && is_absolute(&x->a, O_MEM) && x->a.index != REG_NONE)
				done |= read_addresses(s, jump, (uint64_t)x->a.value);
		}
	for (k = n > 16 ? 16 : n; k-- && !done;)
		for (i = n > 16 ? 16 : n; s->c->arm && i-- && !done;)
			if (contains(f, address[i]) && width <= 4 && k != i)
				done = read_offsets(s, jump, address[k], address[i], width, (int)scale);
	for (k = n > 16 ? 16 : n; k-- && !done;)
		done = read_offsets(s, jump, address[k], address[k], 4, 1) || read_addresses(s, jump, address[k]);
	return done;
}

static bool is_slot(const struct code *c, const struct operand *x)
{
	return is_absolute(x, O_MEM) && x->index == REG_NONE && code_slot_symbol(c, (uint64_t)x->value);
}

/* ---- blocks */

static bool falls_through(struct code *c, const struct function *f, size_t i)
{
	const struct insn *x = &f->insn.at[i];

	if (i + 1 >= f->insn.n || x->flow == F_JUMP || x->flow == F_END || x->at + x->size != f->insn.at[i + 1].at)
		return false;
	return x->flow != F_CALL || !code_never_returns(code_callee(c, x));
}

static bool does_nothing(const struct insn *i)
{
	return !i->n_effect && i->flow == F_NEXT && !i->junk && !i->landing;
}

/* Without an unwind table functions have to be found: behind padding, at marks
 * of the compiler, where something is called. */
static void find_entries(struct shape *s)
{
	const struct function *f = s->f;
	bool padding = true;
	size_t i;
	long k;

	for (i = 0; i < f->insn.n; i++) {
		const struct insn *x = &f->insn.at[i];

		s->leader[i] |= x->landing || (padding && !does_nothing(x));
		padding = (padding && does_nothing(x)) || x->flow == F_END || x->flow == F_JUMP;
		if (x->flow == F_CALL && x->target && (k = code_insn_at(f, x->target)) >= 0)
			s->leader[k] = s->called[k] = true;
	}
}

static void find_edges(struct shape *s)
{
	const struct function *f = s->f;
	size_t i;

	for (i = 0; i < f->insn.n; i++) {
		const struct insn *x = &f->insn.at[i];

		if (!i || f->insn.at[i - 1].at + f->insn.at[i - 1].size != x->at)
			s->leader[i] = true;
		if (x->flow == F_NEXT || (x->flow == F_CALL && falls_through(s->c, f, i)))
			continue;
		if (i + 1 < f->insn.n)
			s->leader[i + 1] = true;
		if (x->flow != F_JUMP && x->flow != F_BRANCH)
			continue;
		if (x->target)
			add_edge(s, i, x->target);
		else if (!is_slot(s->c, &x->through) && !follow_table(s, i) &&
			 !(s->c->arm && (x->through.reg == 16 || x->through.reg == 17))) /* the PLT's own */
			vec_push(&s->lost, (uint32_t)i);
	}
}

static void note_writes(struct code *c, struct function *f, struct block *b, const struct insn *i)
{
	size_t e;
	unsigned reg;

	b->junk |= i->junk;
	if (i->flow == F_CALL) {
		b->calls = true;
		for (reg = 0; reg < REGS; reg++)
			if (code_clobbered_by_call(c, (uint8_t)reg))
				b->writes[reg / 64] |= 1ull << reg % 64;
	}
	for (e = i->effect; e < i->effect + i->n_effect; e++) {
		const struct operand *to = &f->effect.at[e].to;

		if (to->kind == O_MEM)
			b->stores = true;
		else if (to->kind == O_REG && to->reg < REGS)
			b->writes[to->reg / 64] |= 1ull << to->reg % 64;
	}
}

static void make_blocks(struct shape *s)
{
	struct function *f = s->f;
	size_t i;

	for (i = 0; i < f->insn.n; i++) {
		if (s->leader[i])
			vec_push(&f->block, ((struct block){
				.first = (uint32_t)i,
				.entry = s->called[i] || (f->bounded && f->insn.at[i].at == f->range[0].begin)}));
		f->insn.at[i].block = (uint32_t)f->block.n - 1;
		f->block.at[f->block.n - 1].n++;
		note_writes(s->c, f, &f->block.at[f->block.n - 1], &f->insn.at[i]);
	}
}

static int by_end(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Nothing but padding that nobody jumps to does not lead anywhere. */
static bool is_padding(const struct function *f, const struct block *b, bool entered)
{
	size_t k;

	if (entered || !b->first)
		return false;
	for (k = b->first; k < b->first + b->n; k++)
		if (!does_nothing(&f->insn.at[k]))
			return false;
	return true;
}

static void link_blocks(struct shape *s)
{
	struct function *f = s->f;
	size_t k, n = 0;
	bool *entered = xmalloc(f->block.n + 1);

	memset(entered, 0, f->block.n + 1);
	for (k = 0; k < s->edge.n; k++) {
		s->edge.at[k].from = f->insn.at[s->edge.at[k].from].block;
		s->edge.at[k].to = f->insn.at[s->edge.at[k].to].block;
		entered[s->edge.at[k].to] = true;
	}
	for (k = 0; k + 1 < f->block.n; k++) {
		size_t last = f->block.at[k].first + f->block.at[k].n - 1;

		if (!falls_through(s->c, f, last) || is_padding(f, &f->block.at[k], entered[k]))
			continue;
		vec_push(&s->edge, ((struct edge){(uint32_t)k, (uint32_t)k + 1}));
		entered[k + 1] = true;
	}
	free(entered);
	if (s->edge.n)
		qsort(s->edge.at, s->edge.n, sizeof(*s->edge.at), by_end);
	for (k = 0; k < s->edge.n; k++)
		if (!n || by_end(&s->edge.at[n - 1], &s->edge.at[k]))
			s->edge.at[n++] = s->edge.at[k];
	s->edge.n = n;
	for (k = 0; k < n; k++) {
		struct block *b = &f->block.at[s->edge.at[k].to];

		if (!b->n_pred++)
			b->pred = (uint32_t)f->pred.n;
		vec_push(&f->pred, s->edge.at[k].from);
	}
}

/* ---- where the stack pointer is */

static int32_t plus(int32_t offset, int64_t by)
{
	int64_t sum = (int64_t)offset + by;

	return offset == NOT_KNOWN || by > 1 << 28 || by < -(1 << 28) || sum > 1 << 28 || sum < -(1 << 28) ? NOT_KNOWN
													: (int32_t)sum;
}

/* The constant that the block has put into the register before instruction I:
 * large frames are more than an immediate of AArch64 can say. */
static bool constant_before(const struct function *f, uint32_t i, uint8_t reg, int64_t *out)
{
	const struct effect *x = set_before(f, &i, reg);

	if (x && x->op == E_MOVE && x->a.kind == O_IMM) {
		*out = x->a.value;
		return true;
	}
	if (!x || x->op != E_INSERT || !constant_before(f, i, reg, out))
		return false;
	*out = (int64_t)(((uint64_t)*out & ~(0xffffull << x->b.shift)) | (uint64_t)x->b.value);
	return true;
}

static int32_t offset_of(const struct code *c, const struct function *f, uint32_t i, const struct operand *x, int32_t sp,
			 int32_t fp)
{
	int64_t by = 0;

	if ((x->kind != O_REG && x->kind != O_ADDR) ||
	    (x->kind == O_ADDR && x->index != REG_NONE && (x->shift || !constant_before(f, i, x->index, &by))))
		return NOT_KNOWN;
	return plus(x->reg == c->sp ? sp : x->reg == c->fp ? fp : NOT_KNOWN, x->kind == O_ADDR ? x->value + by : 0);
}

static void step(const struct code *c, const struct function *f, uint32_t k, int32_t *sp, int32_t *fp)
{
	const struct insn *i = &f->insn.at[k];
	int32_t old_sp = *sp, old_fp = *fp;
	int64_t by;
	size_t e;

	for (e = i->effect; e < i->effect + i->n_effect; e++) {
		const struct effect *x = &f->effect.at[e];
		int32_t value = NOT_KNOWN;

		if (x->to.kind != O_REG || (x->to.reg != c->sp && x->to.reg != c->fp))
			continue;
		if (x->op == E_MOVE)
			value = offset_of(c, f, k, &x->a, old_sp, old_fp);
		else if ((x->op == E_ADD || x->op == E_SUB) &&
			 (x->b.kind == O_IMM ? (by = x->b.value, true)
					     : x->b.kind == O_REG && constant_before(f, k, x->b.reg, &by)))
			value = plus(offset_of(c, f, k, &x->a, old_sp, old_fp), x->op == E_ADD ? by : -by);
		else if (x->op == E_AND && x->to.reg == c->sp)
			value = old_sp; /* alignment: as if the caller's had been aligned so */
		*(x->to.reg == c->sp ? sp : fp) = value;
	}
	if (i->junk)
		*sp = *fp = NOT_KNOWN;
}

struct frame {
	int32_t sp, fp;
	bool known;
};

static void enter(struct frame *at, size_t to, int32_t sp, int32_t fp, bool *again)
{
	struct frame *x = &at[to], old = *x;

	if (!x->known) {
		*x = (struct frame){sp, fp, true};
	} else {
		x->sp = x->sp == sp ? sp : NOT_KNOWN;
		x->fp = x->fp == fp ? fp : NOT_KNOWN;
	}
	*again |= memcmp(&old.sp, &x->sp, sizeof(old.sp)) || old.fp != x->fp || old.known != x->known;
}

/* Predecessors come first mostly, so a few passes settle it; NOT_KNOWN is final,
 * so the passes end. */
static void find_frames(struct code *c, struct function *f)
{
	struct frame *in = xmalloc((f->block.n + 1) * sizeof(*in)), *out = xmalloc((f->block.n + 1) * sizeof(*out));
	unsigned pass;
	size_t b, k;
	bool again = true;

	memset(in, 0, (f->block.n + 1) * sizeof(*in));
	memset(out, 0, (f->block.n + 1) * sizeof(*out));
	for (pass = 0; pass < 32 && again; pass++) {
		again = false;
		for (b = 0; b < f->block.n; b++) {
			const struct block *x = &f->block.at[b];
			int32_t sp, fp;

			if (x->entry || (!f->bounded && !x->n_pred))
				enter(in, b, 0, NOT_KNOWN, &again);
			else if (!x->n_pred)
				enter(in, b, NOT_KNOWN, NOT_KNOWN, &again);
			for (k = 0; k < x->n_pred; k++) {
				const struct frame *before = &out[f->pred.at[x->pred + k]];

				if (before->known)
					enter(in, b, before->sp, before->fp, &again);
			}
			if (!in[b].known)
				continue;
			sp = in[b].sp;
			fp = in[b].fp;
			for (k = x->first; k < x->first + x->n; k++) {
				f->insn.at[k].sp = sp;
				f->insn.at[k].fp = fp;
				step(c, f, (uint32_t)k, &sp, &fp);
			}
			out[b] = (struct frame){sp, fp, true};
		}
	}
	for (k = 0; again && k < f->insn.n; k++)
		f->insn.at[k].sp = f->insn.at[k].fp = NOT_KNOWN;
	free(in);
	free(out);
}

static void shape_function(struct code *c, struct function *f)
{
	struct shape s = {.c = c, .f = f};
	size_t k;

	s.leader = xmalloc((f->insn.n + 1) * sizeof(*s.leader));
	memset(s.leader, 0, (f->insn.n + 1) * sizeof(*s.leader));
	s.called = xmalloc((f->insn.n + 1) * sizeof(*s.called));
	memset(s.called, 0, (f->insn.n + 1) * sizeof(*s.called));
	if (!f->bounded)
		find_entries(&s);
	find_edges(&s);
	make_blocks(&s);
	link_blocks(&s);
	find_frames(c, f);
	/* A jump that goes anywhere with the caller's stack pointer is a tail call. */
	for (k = 0; k < s.lost.n; k++)
		f->opaque |= f->insn.at[s.lost.at[k]].sp != 0;
	free(s.leader);
	free(s.called);
	vec_free(&s.edge);
	vec_free(&s.lost);
}

/* Nothing says where a function begins: a piece of the code around the address. */
static bool window(struct code *c, uint64_t vaddr, struct range *out)
{
	size_t i;

	for (i = 0; i < c->span.n; i++) {
		const struct code_span *s = &c->span.at[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->size)
			continue;
		out->begin = vaddr - s->vaddr > WINDOW_BEFORE ? (vaddr - WINDOW_BEFORE) & ~15ull : s->vaddr;
		out->end = s->vaddr + s->size - vaddr > WINDOW_AFTER ? vaddr + WINDOW_AFTER : s->vaddr + s->size;
		return true;
	}
	return false;
}

struct function *code_function(struct code *c, uint64_t vaddr)
{
	struct function *f;
	struct range r;
	bool bounded;

	for (f = c->function; f; f = f->next)
		if (contains(f, vaddr) && (f->bounded || (code_insn_at(f, vaddr) >= 0 &&
							  vaddr - f->range[0].begin >= WINDOW_BEFORE / 2)))
			return f;
	bounded = code_function_range(c, vaddr, &r) && r.end - r.begin <= FUNCTION_BYTES_MOST;
	if (!bounded && !window(c, vaddr, &r))
		return NULL;
	if (c->n_functions >= FUNCTIONS_MOST || c->n_insns >= INSNS_MOST) {
		code_note(c, "too many functions call dlopen and its like: not all were looked at");
		return NULL;
	}
	f = xmalloc(sizeof(*f));
	memset(f, 0, sizeof(*f));
	f->range[f->n_range++] = r;
	f->bounded = bounded;
	f->next = c->function;
	c->function = f;
	c->n_functions++;
	decode(c, f, r);
	if (bounded)
		add_parts(c, f);
	if (f->insn.n)
		shape_function(c, f);
	return f;
}

void code_functions_free(struct code *c)
{
	struct function *f, *next;

	for (f = c->function; f; f = next) {
		next = f->next;
		vec_free(&f->insn);
		vec_free(&f->effect);
		vec_free(&f->block);
		vec_free(&f->pred);
		vec_free(&f->area);
		vec_free(&f->writer);
		vec_free(&f->far_call);
		free(f);
	}
	c->function = NULL;
}

bool code_reaches(struct function *f, uint32_t from, uint32_t to)
{
	uint32_t stamp = ++f->stamp, target = f->insn.at[from].block, b = f->insn.at[to].block, k;
	VEC(uint32_t) todo = {0};
	bool found = f->opaque || (b == target && from < to);

	vec_push(&todo, b);
	while (todo.n && !found) {
		b = todo.at[--todo.n];
		for (k = 0; k < f->block.at[b].n_pred && !found; k++) {
			uint32_t before = f->pred.at[f->block.at[b].pred + k];

			found = before == target;
			if (f->block.at[before].stamp != stamp) {
				f->block.at[before].stamp = stamp;
				vec_push(&todo, before);
			}
		}
	}
	vec_free(&todo);
	return found;
}
