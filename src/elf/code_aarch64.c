/* AArch64 has 32-bit words and few forms that move values, so that these are read
 * straight from the Arm Architecture Reference Manual, C4.1; the names of the
 * disassembler's constants have changed with each of its releases.  Words that
 * are not understood lose whatever register their form can write. */
#include "elf/code_internal.h"

#include <endian.h>

enum { ZR = 31 };

struct lower {
	struct function *f;
	struct insn *i;
	uint32_t w;
	uint64_t at;
};

static uint32_t bits(uint32_t w, unsigned high, unsigned low)
{
	return w >> low & (0xffffffffu >> (31 - (high - low)));
}

static int64_t sign(uint32_t value, unsigned width)
{
	return (int64_t)((uint64_t)value << (64 - width)) >> (64 - width);
}

/* Register 31 as an operand of arithmetic: zero. */
static struct operand zr(uint32_t n, uint8_t size)
{
	return n == ZR ? code_imm(0, size) : code_reg((uint8_t)n, size);
}

static void effect(struct lower *l, enum effect_op op, struct operand to, struct operand a, struct operand b)
{
	struct effect *e = code_effect_add(l->f, op, to);

	e->a = a;
	e->b = b;
}

static void unknown(struct lower *l, uint32_t n)
{
	if (n != ZR)
		code_effect_add(l->f, E_UNKNOWN, code_reg((uint8_t)n, 8));
}

static void unknown_vector(struct lower *l, uint32_t n)
{
	code_effect_add(l->f, E_UNKNOWN, code_reg((uint8_t)(ARM_VECTOR_LOW + n), 8));
	code_effect_add(l->f, E_UNKNOWN, code_reg((uint8_t)(ARM_VECTOR_HIGH + n), 8));
}

static void set(struct lower *l, uint32_t n, uint8_t size, struct operand a)
{
	if (n != ZR)
		effect(l, E_MOVE, code_reg((uint8_t)n, size), a, code_imm(0, 8));
}

/* DecodeBitMasks of the manual, for the immediates of logical instructions. */
static bool bit_mask(uint32_t n, uint32_t imms, uint32_t immr, uint64_t *out)
{
	uint32_t combined = n << 6 | (~imms & 0x3f), size, s, r;
	uint64_t element, mask;
	int length = combined ? 31 - __builtin_clz(combined) : 0;

	if (length < 1)
		return false;
	size = 1u << length;
	s = imms & (size - 1);
	r = immr & (size - 1);
	if (s == size - 1)
		return false;
	mask = size == 64 ? ~0ull : (1ull << size) - 1;
	element = (1ull << (s + 1)) - 1;
	if (r)
		element = (element >> r | element << (size - r)) & mask;
	for (*out = 0; size < 64; size *= 2)
		element |= element << size;
	*out = element;
	return true;
}

static void lower_add_immediate(struct lower *l)
{
	uint32_t w = l->w, d = bits(w, 4, 0), n = bits(w, 9, 5);
	uint8_t size = w >> 31 ? 8 : 4;
	struct operand b = code_imm((int64_t)bits(w, 21, 10) << (w >> 22 & 1 ? 12 : 0), size);
	struct operand a = code_reg((uint8_t)n, size); /* 31 is the stack pointer here */

	if (w >> 29 & 1)
		effect(l, E_COMPARE, (struct operand){.kind = O_NONE}, a, b);
	if (!(w >> 29 & 1) || d != ZR)
		effect(l, w >> 30 & 1 ? E_SUB : E_ADD, code_reg((uint8_t)d, size), a, b);
}

static void lower_immediate(struct lower *l)
{
	uint32_t w = l->w, d = bits(w, 4, 0), n = bits(w, 9, 5), opc = bits(w, 30, 29);
	uint8_t size = w >> 31 ? 8 : 4;
	int64_t value;
	uint64_t mask;

	if ((w & 0x1f000000) == 0x10000000) { /* adr, adrp */
		value = sign(bits(w, 23, 5), 19) * 4 + (int64_t)bits(w, 30, 29);
		value = w >> 31 ? (int64_t)(l->at & ~4095ull) + value * 4096 : (int64_t)l->at + value;
		set(l, d, 8, code_imm(value, 8));
	} else if ((w & 0x1f800000) == 0x11000000) {
		lower_add_immediate(l);
	} else if ((w & 0x1f800000) == 0x12000000) { /* and, orr, eor, ands */
		if (!bit_mask(w >> 22 & 1, bits(w, 15, 10), bits(w, 21, 16), &mask) || opc == 2)
			unknown(l, d);
		else if (opc != 3 || d != ZR)
			effect(l, opc == 1 ? E_OR : E_AND, code_reg((uint8_t)d, size), zr(n, size),
			       code_imm((int64_t)mask, 8));
	} else if ((w & 0x1f800000) == 0x12800000) { /* movn, movz, movk */
		value = (int64_t)((uint64_t)bits(w, 20, 5) << (bits(w, 22, 21) * 16));
		if (opc == 3 && d != ZR) {
			struct operand b = code_imm(value, 8);

			b.shift = (uint8_t)(bits(w, 22, 21) * 16);
			effect(l, E_INSERT, code_reg((uint8_t)d, size), code_reg((uint8_t)d, size), b);
		} else if (opc != 3) {
			set(l, d, size, code_imm(opc == 0 ? ~value : value, 8));
		}
	} else if ((w & 0x7f800000) == 0x53000000 && bits(w, 15, 10) + 1 == bits(w, 21, 16)) { /* lsl */
		effect(l, E_SHIFT, code_reg((uint8_t)d, size), zr(n, size),
		       code_imm((size * 8 - 1) - bits(w, 15, 10), 8));
	} else if ((w & 0x7f800000) == 0x53000000 && !bits(w, 21, 16) && bits(w, 15, 10) == 31) {
		set(l, d, 8, zr(n, 4));
	} else if ((w & 0xfffffc00) == 0x93407c00) { /* sxtw */
		effect(l, E_SIGN, code_reg((uint8_t)d, 8), zr(n, 4), code_imm(0, 8));
	} else if ((w & 0xff800000) == 0xd3000000 || (w & 0xff800000) == 0x93000000) {
		/* ubfiz and sbfiz: an index, scaled */
		uint32_t shift = (64 - bits(w, 21, 16)) & 63;

		if (bits(w, 15, 10) < bits(w, 21, 16))
			effect(l, E_SHIFT, code_reg((uint8_t)d, 8), zr(n, 4), code_imm(shift, 8));
		else
			unknown(l, d);
	} else {
		unknown(l, d);
	}
}

/* hi, ls, gt, le */
static bool inclusive_condition(uint32_t condition)
{
	return condition == 8 || condition == 9 || condition == 12 || condition == 13;
}

static void lower_branch(struct lower *l)
{
	uint32_t w = l->w;
	struct insn *i = l->i;

	if ((w & 0x7c000000) == 0x14000000) {
		i->flow = w >> 31 ? F_CALL : F_JUMP;
		i->target = l->at + (uint64_t)(sign(bits(w, 25, 0), 26) * 4);
	} else if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000) {
		i->flow = F_BRANCH;
		i->target = l->at + (uint64_t)(sign(bits(w, 23, 5), 19) * 4);
		i->inclusive = w >> 25 == 0x2a && inclusive_condition(bits(w, 3, 0));
	} else if ((w & 0x7e000000) == 0x36000000) {
		i->flow = F_BRANCH;
		i->target = l->at + (uint64_t)(sign(bits(w, 18, 5), 14) * 4);
	} else if ((w & 0xfe000000) == 0xd6000000) { /* br, blr, ret, and those with authentication */
		uint32_t opc = bits(w, 24, 21) & 7;

		i->flow = opc == 0 ? F_JUMP : opc == 1 ? F_CALL : F_END;
		if (i->flow != F_END)
			i->through = code_reg((uint8_t)bits(w, 9, 5), 8);
	} else if ((w & 0xffe0001f) == 0xd4200000 || (w & 0xffe0001f) == 0xd4400000) { /* brk, hlt */
		i->flow = F_END;
	} else if ((w & 0xffe00000) == 0xd5200000 || (w & 0xfff00000) == 0xd5300000) { /* sysl, mrs */
		unknown(l, bits(w, 4, 0));
	} else if ((w & 0xffe0001f) == 0xd4000001) { /* svc */
		unknown(l, 0);
	} else if ((w & 0xffffff3f) == 0xd503241f || w == 0xd503233f || w == 0xd503237f) { /* bti, paciasp, pacibsp */
		i->landing = true;
	}
}

/* One register to or from memory. */
static void transfer(struct lower *l, bool load, bool vector, uint32_t t, unsigned log, int extend, struct operand m)
{
	uint8_t size = (uint8_t)(1u << log);

	m.size = size > 8 ? 8 : size;
	if (vector) {
		struct operand low = code_reg((uint8_t)(ARM_VECTOR_LOW + t), 8);
		struct operand high = code_reg((uint8_t)(ARM_VECTOR_HIGH + t), 8);
		struct operand next = m, zero = code_imm(0, 8);

		next.value += 8;
		if (load) {
			effect(l, E_MOVE, low, m, zero);
			effect(l, E_MOVE, high, log == 4 ? next : zero, zero);
		} else {
			effect(l, E_MOVE, m, low, zero);
			if (log == 4)
				effect(l, E_MOVE, next, high, zero);
		}
	} else if (!load) {
		effect(l, E_MOVE, m, zr(t, m.size), code_imm(0, 8));
	} else if (t != ZR) {
		/* extend: to 4 or 8 bytes with the sign, or 0 */
		uint8_t width = extend == 4 || (!extend && size < 8) ? 4 : 8;

		effect(l, extend ? E_SIGN : E_MOVE, code_reg((uint8_t)t, width), m, code_imm(0, 8));
	}
}

static void write_back(struct lower *l, uint32_t n, int64_t by)
{
	effect(l, E_ADD, code_reg((uint8_t)n, 8), code_reg((uint8_t)n, 8), code_imm(by, 8));
}

static void lower_pair(struct lower *l)
{
	uint32_t w = l->w, opc = bits(w, 31, 30), mode = bits(w, 24, 23), n = bits(w, 9, 5);
	bool vector = w >> 26 & 1, load = w >> 22 & 1;
	unsigned log = vector ? opc + 2 : opc == 2 ? 3 : 2;
	int64_t offset = sign(bits(w, 21, 15), 7) * (1 << log);
	struct operand m = code_mem((uint8_t)n, mode == 1 ? 0 : offset, 8);
	int extend = !vector && opc == 1 ? 8 : 0;

	if (opc == 3 || (!vector && opc == 1 && !load)) { /* stgp and nothing */
		code_effect_add(l->f, E_UNKNOWN, m);
		return;
	}
	transfer(l, load, vector, bits(w, 4, 0), log, extend, m);
	m.value += 1 << log;
	transfer(l, load, vector, bits(w, 14, 10), log, extend, m);
	if (mode & 1)
		write_back(l, n, offset);
}

static void lower_single(struct lower *l)
{
	uint32_t w = l->w, size = bits(w, 31, 30), opc = bits(w, 23, 22), n = bits(w, 9, 5), t = bits(w, 4, 0);
	bool vector = w >> 26 & 1, load = vector ? opc & 1 : opc != 0;
	unsigned log = vector && opc >> 1 ? 4 : size;
	int extend = vector ? 0 : opc == 2 ? 8 : opc == 3 ? 4 : 0;
	struct operand m = code_mem((uint8_t)n, 0, 8);

	if (!vector && size == 3 && opc >= 2) /* prefetch */
		return;
	if (w >> 24 & 1) {
		m.value = (int64_t)bits(w, 21, 10) << log;
		transfer(l, load, vector, t, log, extend, m);
	} else if (!(w >> 21 & 1)) {
		int64_t offset = sign(bits(w, 20, 12), 9);

		if (bits(w, 11, 10) != 1)
			m.value = offset;
		transfer(l, load, vector, t, log, extend, m);
		if (bits(w, 11, 10) & 1)
			write_back(l, n, offset);
	} else if (bits(w, 11, 10) == 2) {
		m.index = bits(w, 20, 16) == ZR ? REG_NONE : (uint8_t)bits(w, 20, 16);
		m.shift = w >> 12 & 1 ? (uint8_t)log : 0;
		transfer(l, load, vector, t, log, extend, m);
	} else { /* atomics, loads with authentication */
		unknown(l, t);
		code_effect_add(l->f, E_UNKNOWN, m);
		if (bits(w, 11, 10) == 3)
			unknown(l, n);
	}
}

static void lower_memory(struct lower *l)
{
	uint32_t w = l->w, k;
	bool vector = w >> 26 & 1;

	if ((w & 0x3b000000) == 0x18000000) { /* a literal */
		struct operand m = code_mem(REG_NONE, (int64_t)l->at + sign(bits(w, 23, 5), 19) * 4, 8);

		if (vector)
			transfer(l, true, true, bits(w, 4, 0), bits(w, 31, 30) + 2, 0, m);
		else if (bits(w, 31, 30) != 3)
			transfer(l, true, false, bits(w, 4, 0), bits(w, 31, 30) == 1 ? 3 : 2,
				 bits(w, 31, 30) == 2 ? 8 : 0, m);
	} else if ((w & 0x3a000000) == 0x28000000) {
		lower_pair(l);
	} else if ((w & 0x3a000000) == 0x38000000) {
		lower_single(l);
	} else if ((w & 0xbe000000) == 0x0c000000) { /* structures of vectors */
		for (k = 0; k < 4; k++)
			unknown_vector(l, (bits(w, 4, 0) + k) & 31);
		code_effect_add(l->f, E_UNKNOWN, code_mem((uint8_t)bits(w, 9, 5), 0, 64));
		if (w >> 23 & 1)
			code_effect_add(l->f, E_UNKNOWN, code_reg((uint8_t)bits(w, 9, 5), 8));
	} else { /* exclusive, ordered, tagged, copying */
		unknown(l, bits(w, 4, 0));
		unknown(l, bits(w, 14, 10));
		unknown(l, bits(w, 20, 16));
		code_effect_add(l->f, E_UNKNOWN, code_mem((uint8_t)bits(w, 9, 5), 0, 16));
	}
}

static void lower_register(struct lower *l)
{
	uint32_t w = l->w, d = bits(w, 4, 0), n = bits(w, 9, 5), m = bits(w, 20, 16), opc = bits(w, 30, 29);
	uint8_t size = w >> 31 ? 8 : 4;
	bool extended = (w & 0x1f200000) == 0x0b200000;

	if ((w & 0x1f000000) == 0x0a000000) { /* and, orr, eor, ands, and their complements */
		if (opc == 3 && d == ZR)
			return;
		if ((w >> 21 & 1) || bits(w, 15, 10) || opc == 2)
			unknown(l, d);
		else if (opc == 1 && n == ZR)
			set(l, d, size, zr(m, size));
		else
			effect(l, opc == 1 ? E_OR : E_AND, code_reg((uint8_t)d, size), zr(n, size), zr(m, size));
	} else if ((w & 0x1f000000) == 0x0b000000) { /* add, sub */
		struct operand address = code_mem((uint8_t)n, 0, size);

		if (opc & 1)
			effect(l, E_COMPARE, (struct operand){.kind = O_NONE},
			       extended ? code_reg((uint8_t)n, size) : zr(n, size), zr(m, size));
		if ((opc & 1) && d == ZR)
			return;
		address.kind = O_ADDR;
		address.index = m == ZR ? REG_NONE : (uint8_t)m;
		address.shift = (uint8_t)(extended ? bits(w, 12, 10) : bits(w, 15, 10));
		if (!extended && n == ZR)
			address.reg = REG_NONE;
		if (!(opc & 2) && (extended || !bits(w, 23, 22)))
			effect(l, E_MOVE, code_reg((uint8_t)d, size), address, code_imm(0, 8));
		else if (extended && bits(w, 15, 10) == 0x18) /* uxtx: as it is */
			effect(l, E_SUB, code_reg((uint8_t)d, size), code_reg((uint8_t)n, size), zr(m, size));
		else if (!extended && !bits(w, 15, 10))
			effect(l, E_SUB, code_reg((uint8_t)d, size), zr(n, size), zr(m, size));
		else
			code_effect_add(l->f, E_UNKNOWN, code_reg((uint8_t)d, 8));
	} else if ((w & 0x1fe00000) == 0x1a800000 && (w & 0x40000c00)) { /* cset and the like */
		l->i->inclusive = inclusive_condition(bits(w, 15, 12) ^ (w >> 10 & 1));
		unknown(l, d);
	} else if ((w & 0x7fe00c00) == 0x1a800000) { /* csel */
		if (d != ZR)
			effect(l, E_SELECT, code_reg((uint8_t)d, size), zr(n, size), zr(m, size));
	} else if ((w & 0x7fe0fc00) == 0x1b007c00) { /* mul */
		if (d != ZR)
			effect(l, E_MUL, code_reg((uint8_t)d, size), zr(n, size), zr(m, size));
	} else if ((w & 0x1fe00000) != 0x1a400000) { /* ccmp writes nothing */
		unknown(l, d);
	}
}

static void lower_vector(struct lower *l)
{
	uint32_t w = l->w, d = bits(w, 4, 0), n = bits(w, 9, 5), m = bits(w, 20, 16);
	struct operand low = code_reg((uint8_t)(ARM_VECTOR_LOW + d), 8);
	struct operand high = code_reg((uint8_t)(ARM_VECTOR_HIGH + d), 8);
	struct operand from = code_reg((uint8_t)(ARM_VECTOR_LOW + n), 8), zero = code_imm(0, 8);

	if ((w & 0xfffffc00) == 0x9e660000) { /* fmov x, d */
		set(l, d, 8, from);
	} else if ((w & 0xfffffc00) == 0x9e670000) { /* fmov d, x */
		effect(l, E_MOVE, low, zr(n, 8), zero);
		effect(l, E_MOVE, high, zero, zero);
	} else if ((w & 0xfffffc00) == 0x4e080c00) { /* dup v.2d, x */
		effect(l, E_MOVE, low, zr(n, 8), zero);
		effect(l, E_MOVE, high, zr(n, 8), zero);
	} else if ((w & 0xffeffc00) == 0x4e081c00) { /* ins v.d[], x */
		effect(l, E_MOVE, w >> 20 & 1 ? high : low, zr(n, 8), zero);
	} else if ((w & 0xfffffc00) == 0x6e180400) { /* ins v.d[1], v.d[0] */
		effect(l, E_MOVE, high, from, zero);
	} else if ((w & 0xffe0fc00) == 0x4ec03800) { /* zip1 v.2d */
		effect(l, E_MOVE, low, from, zero);
		effect(l, E_MOVE, high, code_reg((uint8_t)(ARM_VECTOR_LOW + m), 8), zero);
	} else if ((w & 0xffe0fc00) == 0x4ea01c00 && n == m) { /* mov v.16b */
		effect(l, E_MOVE, low, from, zero);
		effect(l, E_MOVE, high, code_reg((uint8_t)(ARM_VECTOR_HIGH + n), 8), zero);
	} else if ((w & 0xffffffe0) == 0x4f000400 || (w & 0xffffffe0) == 0x6f00e400) { /* movi v, 0 */
		effect(l, E_MOVE, low, zero, zero);
		effect(l, E_MOVE, high, zero, zero);
	} else if ((w & 0xbfe08400) == 0x0e000400 && (bits(w, 14, 11) == 5 || bits(w, 14, 11) == 7)) {
		unknown(l, d); /* smov, umov */
	} else if ((w & 0x7f20fc00) == 0x1e200000 && bits(w, 18, 16) != 2 && bits(w, 18, 16) != 3 &&
		   bits(w, 18, 16) != 7) {
		unknown(l, d); /* a number out of a floating point register */
	} else {
		unknown_vector(l, d);
	}
}

void code_decode_aarch64(struct code *c, struct function *f, const unsigned char *bytes, size_t n, uint64_t at)
{
	size_t k;

	for (k = 0; k + 4 <= n && f->insn.n < FUNCTION_INSNS_MOST && c->n_insns < INSNS_MOST; k += 4) {
		struct lower l = {.f = f, .at = at + k};

		memcpy(&l.w, bytes + k, 4);
		l.w = le32toh(l.w);
		l.i = code_insn_add(f, l.at, 4);
		c->n_insns++;
		switch (bits(l.w, 28, 25)) {
		case 8: case 9: lower_immediate(&l); break;
		case 10: case 11: lower_branch(&l); break;
		case 4: case 6: case 12: case 14: lower_memory(&l); break;
		case 5: case 13: lower_register(&l); break;
		case 7: case 15: lower_vector(&l); break;
		default: /* undefined, or an extension: it may do anything */
			if (l.w >> 16)
				l.i->junk = true;
			else
				l.i->flow = F_END; /* udf */
		}
	}
}
