#include "elf/code_internal.h"

#include <capstone/capstone.h>

/* Register numbers of the encoding, plus one; zero for those that are not traced. */
static const struct {
	uint8_t number, size;
} registers[X86_REG_ENDING] = {
#define GPR(n, q, d, w, b) \
	[X86_REG_##q] = {n + 1, 8}, [X86_REG_##d] = {n + 1, 4}, [X86_REG_##w] = {n + 1, 2}, [X86_REG_##b] = {n + 1, 1}
	GPR(0, RAX, EAX, AX, AL), GPR(1, RCX, ECX, CX, CL), GPR(2, RDX, EDX, DX, DL), GPR(3, RBX, EBX, BX, BL),
	GPR(4, RSP, ESP, SP, SPL), GPR(5, RBP, EBP, BP, BPL), GPR(6, RSI, ESI, SI, SIL), GPR(7, RDI, EDI, DI, DIL),
	GPR(8, R8, R8D, R8W, R8B), GPR(9, R9, R9D, R9W, R9B), GPR(10, R10, R10D, R10W, R10B),
	GPR(11, R11, R11D, R11W, R11B), GPR(12, R12, R12D, R12W, R12B), GPR(13, R13, R13D, R13W, R13B),
	GPR(14, R14, R14D, R14W, R14B), GPR(15, R15, R15D, R15W, R15B),
	[X86_REG_AH] = {1, 1}, [X86_REG_CH] = {2, 1}, [X86_REG_DH] = {3, 1}, [X86_REG_BH] = {4, 1},
#undef GPR
#define VECTOR(n) [X86_REG_XMM##n] = {X86_VECTOR_LOW + n + 1, 16}, [X86_REG_YMM##n] = {X86_VECTOR_LOW + n + 1, 32}, \
		  [X86_REG_ZMM##n] = {X86_VECTOR_LOW + n + 1, 64}
	VECTOR(0), VECTOR(1), VECTOR(2), VECTOR(3), VECTOR(4), VECTOR(5), VECTOR(6), VECTOR(7), VECTOR(8),
	VECTOR(9), VECTOR(10), VECTOR(11), VECTOR(12), VECTOR(13), VECTOR(14), VECTOR(15),
#undef VECTOR
};

enum { HALF = X86_VECTOR_HIGH - X86_VECTOR_LOW };

struct lower {
	struct function *f;
	const cs_insn *in;
	const cs_x86_op *op;
	unsigned n;
};

static uint8_t number_of(unsigned reg)
{
	return reg < X86_REG_ENDING && registers[reg].number ? (uint8_t)(registers[reg].number - 1) : REG_OPAQUE;
}

static struct operand operand_of(const struct lower *l, unsigned k)
{
	struct operand x = {.kind = O_NONE, .reg = REG_NONE, .index = REG_NONE};
	const cs_x86_op *op = &l->op[k];

	if (k >= l->n)
		return x;
	x.size = op->size;
	switch (op->type) {
	case X86_OP_REG:
		x = code_reg(number_of(op->reg), op->size);
		if (op->reg == X86_REG_AH || op->reg == X86_REG_CH || op->reg == X86_REG_DH || op->reg == X86_REG_BH)
			x.reg = REG_OPAQUE;
		break;
	case X86_OP_IMM:
		x = code_imm(op->imm, op->size);
		break;
	case X86_OP_MEM:
		x.kind = O_MEM;
		x.value = op->mem.disp;
		if (op->mem.base == X86_REG_RIP)
			x.value += (int64_t)(l->in->address + l->in->size);
		else if (op->mem.base)
			x.reg = number_of(op->mem.base);
		if (op->mem.index)
			x.index = number_of(op->mem.index);
		x.shift = op->mem.scale > 4 ? 3 : op->mem.scale > 2 ? 2 : op->mem.scale > 1;
		if (op->mem.segment == X86_REG_FS || op->mem.segment == X86_REG_GS)
			x.reg = REG_OPAQUE;
		break;
	default:
		break;
	}
	return x;
}

static struct operand shifted(struct operand x, int64_t by, uint8_t size)
{
	x.value += by;
	x.size = size;
	return x;
}

static void effect(struct lower *l, enum effect_op op, struct operand to, struct operand a, struct operand b)
{
	struct effect *e = code_effect_add(l->f, op, to);

	e->a = a;
	e->b = b;
}

static void unknown(struct lower *l, struct operand to)
{
	if (to.kind == O_REG && to.reg >= X86_VECTOR_LOW && to.reg < X86_VECTOR_HIGH)
		code_effect_add(l->f, E_UNKNOWN, code_reg(to.reg + HALF, 8));
	if (to.kind == O_MEM || to.kind == O_REG)
		code_effect_add(l->f, E_UNKNOWN, to);
}

/* Whatever it is: what it writes is unknown afterwards. */
static void lower_other(struct code *c, struct lower *l)
{
	cs_regs read, written;
	uint8_t n_read, n_written, k;

	if (!cs_regs_access((csh)c->capstone, l->in, read, &n_read, written, &n_written))
		for (k = 0; k < n_written; k++)
			if (number_of(written[k]) != REG_OPAQUE)
				unknown(l, code_reg(number_of(written[k]), 8));
	for (k = 0; k < l->n; k++)
		if (l->op[k].type == X86_OP_MEM && (l->op[k].access & CS_AC_WRITE))
			unknown(l, operand_of(l, k));
	/* With a count the destination is as long as you like. */
	if (l->in->detail->x86.prefix[0] && l->n && l->op[0].type == X86_OP_MEM && l->op[0].mem.base == X86_REG_RDI)
		unknown(l, code_mem(7, 0, 255));
}

static void lower_binary(struct code *c, struct lower *l, enum effect_op op)
{
	struct operand a = operand_of(l, 0), b = operand_of(l, 1);

	if ((a.kind == O_REG || a.kind == O_MEM) && a.size >= 4)
		effect(l, op, a, a, b);
	else
		lower_other(c, l);
}

/* Sixteen bytes between vector registers and memory, or eight of them. */
static void lower_vector_move(struct code *c, struct lower *l, bool whole)
{
	struct operand to = operand_of(l, 0), from = operand_of(l, 1), zero = code_imm(0, 8);
	bool to_vector = to.kind == O_REG && to.reg >= X86_VECTOR_LOW && to.reg < X86_VECTOR_HIGH;
	bool from_vector = from.kind == O_REG && from.reg >= X86_VECTOR_LOW && from.reg < X86_VECTOR_HIGH;

	if (l->n != 2 || to.size > 16 || from.size > 16 || to.reg == REG_OPAQUE) {
		lower_other(c, l);
	} else if (to_vector) {
		effect(l, E_MOVE, code_reg(to.reg, 8), from_vector ? code_reg(from.reg, 8) : shifted(from, 0, 8), zero);
		effect(l, E_MOVE, code_reg(to.reg + HALF, 8),
		       !whole ? zero : from_vector ? code_reg(from.reg + HALF, 8) : shifted(from, 8, 8), zero);
	} else if (from_vector) {
		effect(l, E_MOVE, shifted(to, 0, 8), code_reg(from.reg, 8), zero);
		if (whole && to.kind == O_MEM)
			effect(l, E_MOVE, shifted(to, 8, 8), code_reg(from.reg + HALF, 8), zero);
	} else {
		lower_other(c, l);
	}
}

/* Makes one vector of two halves: A and B of the operands, as the instruction has it. */
static void lower_vector_pair(struct code *c, struct lower *l)
{
	struct operand to = operand_of(l, 0), b = operand_of(l, l->n >= 3 ? 2 : 1);
	struct operand a = operand_of(l, l->n >= 3 ? 1 : 0);
	bool insert = l->in->id == X86_INS_PINSRQ || l->in->id == X86_INS_VPINSRQ;

	if (insert) {
		b = operand_of(l, l->n >= 4 ? 2 : 1);
		a = operand_of(l, l->n >= 4 ? 1 : 0);
	}
	if (to.kind != O_REG || to.size != 16 || to.reg == REG_OPAQUE || a.kind != O_REG ||
	    (insert && (l->op[l->n - 1].type != X86_OP_IMM || !(l->op[l->n - 1].imm & 1)))) {
		lower_other(c, l);
		return;
	}
	b.size = 8;
	if (l->n >= 3)
		effect(l, E_MOVE, code_reg(to.reg, 8), code_reg(a.reg, 8), code_imm(0, 8));
	effect(l, E_MOVE, code_reg(to.reg + HALF, 8), b, code_imm(0, 8));
}

static void lower_stack(struct code *c, struct lower *l)
{
	struct operand x = operand_of(l, 0), sp = code_reg(X86_SP, 8), fp = code_reg(X86_FP, 8), zero = code_imm(0, 8);

	switch (l->in->id) {
	case X86_INS_PUSH:
		effect(l, E_MOVE, code_mem(X86_SP, -8, 8), x, zero);
		effect(l, E_ADD, sp, sp, code_imm(-8, 8));
		break;
	case X86_INS_POP:
		effect(l, E_MOVE, x, code_mem(X86_SP, 0, 8), zero);
		effect(l, E_ADD, sp, sp, code_imm(8, 8));
		break;
	case X86_INS_LEAVE:
		effect(l, E_ADD, sp, fp, code_imm(8, 8));
		effect(l, E_MOVE, fp, code_mem(X86_FP, 0, 8), zero);
		break;
	default:
		lower_other(c, l);
	}
}

static void lower_move(struct code *c, struct lower *l)
{
	struct operand to = operand_of(l, 0), from = operand_of(l, 1), zero = code_imm(0, 8);

	if (to.kind == O_REG && (to.size < 4 || to.reg == REG_OPAQUE)) {
		lower_other(c, l);
		return;
	}
	switch (l->in->id) {
	case X86_INS_LEA:
		from.kind = O_ADDR;
		effect(l, E_MOVE, to, from, zero);
		break;
	case X86_INS_MOVSX: case X86_INS_MOVSXD:
		effect(l, E_SIGN, to, from, zero);
		break;
	default:
		effect(l, E_MOVE, to, from, zero);
	}
}

static void lower_arithmetic(struct code *c, struct lower *l)
{
	struct operand a = operand_of(l, 0), b = operand_of(l, 1), one = code_imm(1, 8);
	bool same = l->n == 2 && a.kind == O_REG && b.kind == O_REG && a.reg == b.reg && a.reg != REG_OPAQUE &&
		    a.size >= 4;

	switch (l->in->id) {
	case X86_INS_XOR: case X86_INS_SUB:
		if (same)
			effect(l, E_MOVE, a, code_imm(0, 8), one);
		else if (l->in->id == X86_INS_SUB)
			lower_binary(c, l, E_SUB);
		else
			lower_other(c, l);
		break;
	case X86_INS_ADD: lower_binary(c, l, E_ADD); break;
	case X86_INS_OR: lower_binary(c, l, E_OR); break;
	case X86_INS_AND: lower_binary(c, l, E_AND); break;
	case X86_INS_SHL: case X86_INS_SAL:
		if (l->n == 2 && b.kind == O_IMM)
			lower_binary(c, l, E_SHIFT);
		else
			lower_other(c, l);
		break;
	case X86_INS_INC: case X86_INS_DEC:
		if ((a.kind == O_REG || a.kind == O_MEM) && a.size >= 4)
			effect(l, l->in->id == X86_INS_INC ? E_ADD : E_SUB, a, a, one);
		else
			lower_other(c, l);
		break;
	case X86_INS_IMUL:
		if (l->n == 3 && a.size >= 4)
			effect(l, E_MUL, a, b, operand_of(l, 2));
		else if (l->n == 2)
			lower_binary(c, l, E_MUL);
		else
			lower_other(c, l);
		break;
	case X86_INS_CDQE:
		effect(l, E_SIGN, code_reg(0, 8), code_reg(0, 4), one);
		break;
	case X86_INS_XCHG:
		if (a.kind == O_REG && b.kind == O_REG && a.size == 8) {
			effect(l, E_MOVE, a, b, one);
			effect(l, E_MOVE, b, a, one);
		} else {
			unknown(l, a);
			unknown(l, b);
		}
		break;
	default:
		lower_other(c, l);
	}
}

static bool lower_flow(struct lower *l, struct insn *i)
{
	struct operand x = operand_of(l, 0);

	switch (l->in->id) {
	case X86_INS_CALL: i->flow = F_CALL; break;
	case X86_INS_JMP: i->flow = F_JUMP; break;
	case X86_INS_JBE: case X86_INS_JLE: case X86_INS_JA: case X86_INS_JG:
		i->inclusive = true;
		i->flow = F_BRANCH;
		break;
	case X86_INS_JAE: case X86_INS_JB: case X86_INS_JE: case X86_INS_JGE: case X86_INS_JL: case X86_INS_JNE:
	case X86_INS_JNO: case X86_INS_JNP: case X86_INS_JNS: case X86_INS_JO: case X86_INS_JP: case X86_INS_JS:
	case X86_INS_JRCXZ: case X86_INS_JECXZ: case X86_INS_LOOP: case X86_INS_LOOPE: case X86_INS_LOOPNE:
		i->flow = F_BRANCH;
		break;
	case X86_INS_RET: case X86_INS_RETF: case X86_INS_UD2: case X86_INS_HLT: case X86_INS_INT3:
		i->flow = F_END;
		return true;
	default:
		return false;
	}
	if (x.kind == O_IMM)
		i->target = (uint64_t)x.value;
	else
		i->through = x;
	return true;
}

static void lower(struct code *c, struct lower *l, struct insn *i)
{
	if (lower_flow(l, i))
		return;
	switch (l->in->id) {
	case X86_INS_ENDBR64:
		i->landing = true;
		break;
	case X86_INS_SETA: case X86_INS_SETBE: case X86_INS_SETG: case X86_INS_SETLE:
		i->inclusive = true;
		lower_other(c, l);
		break;
	case X86_INS_MOV: case X86_INS_MOVABS: case X86_INS_MOVZX: case X86_INS_MOVSX: case X86_INS_MOVSXD:
	case X86_INS_LEA:
		lower_move(c, l);
		break;
	case X86_INS_PUSH: case X86_INS_POP: case X86_INS_LEAVE:
		lower_stack(c, l);
		break;
	case X86_INS_CMP: case X86_INS_TEST:
		effect(l, E_COMPARE, (struct operand){.kind = O_NONE}, operand_of(l, 0), operand_of(l, 1));
		break;
	case X86_INS_CMOVA: case X86_INS_CMOVAE: case X86_INS_CMOVB: case X86_INS_CMOVBE: case X86_INS_CMOVE:
	case X86_INS_CMOVG: case X86_INS_CMOVGE: case X86_INS_CMOVL: case X86_INS_CMOVLE: case X86_INS_CMOVNE:
	case X86_INS_CMOVNO: case X86_INS_CMOVNP: case X86_INS_CMOVNS: case X86_INS_CMOVO: case X86_INS_CMOVP:
	case X86_INS_CMOVS:
		lower_binary(c, l, E_SELECT);
		break;
	case X86_INS_MOVAPS: case X86_INS_MOVUPS: case X86_INS_MOVAPD: case X86_INS_MOVUPD: case X86_INS_MOVDQA:
	case X86_INS_MOVDQU: case X86_INS_VMOVAPS: case X86_INS_VMOVUPS: case X86_INS_VMOVAPD: case X86_INS_VMOVUPD:
	case X86_INS_VMOVDQA: case X86_INS_VMOVDQU:
		lower_vector_move(c, l, true);
		break;
	case X86_INS_MOVQ: case X86_INS_VMOVQ:
		lower_vector_move(c, l, false);
		break;
	case X86_INS_PUNPCKLQDQ: case X86_INS_MOVHPS: case X86_INS_MOVHPD: case X86_INS_MOVLHPS: case X86_INS_PINSRQ:
	case X86_INS_VPUNPCKLQDQ: case X86_INS_VPINSRQ:
		lower_vector_pair(c, l);
		break;
	case X86_INS_PXOR: case X86_INS_XORPS:
		if (l->n == 2 && l->op[0].type == X86_OP_REG && l->op[1].type == X86_OP_REG &&
		    l->op[0].reg == l->op[1].reg) {
			uint8_t reg = number_of(l->op[0].reg);

			effect(l, E_MOVE, code_reg(reg, 8), code_imm(0, 8), code_imm(0, 8));
			effect(l, E_MOVE, code_reg(reg + HALF, 8), code_imm(0, 8), code_imm(0, 8));
			break;
		}
		lower_other(c, l);
		break;
	default:
		lower_arithmetic(c, l);
	}
}

/* A byte that is no instruction, or the rest before one that is known. */
static void add_junk(struct function *f, uint64_t at, unsigned size)
{
	code_insn_add(f, at, size)->junk = true;
}

void code_decode_x86(struct code *c, struct function *f, const unsigned char *bytes, size_t n, uint64_t at)
{
	uint64_t end = at + n;
	size_t k = 0;
	cs_insn *in = c->decoded;

	while (k < c->fixed.n && c->fixed.at[k] <= at)
		k++;
	while (at < end && f->insn.n < FUNCTION_INSNS_MOST && c->n_insns < INSNS_MOST) {
		const uint8_t *p = bytes + (n - (size_t)(end - at));
		uint64_t next = at;
		size_t left = (size_t)(end - at);

		while (k < c->fixed.n && c->fixed.at[k] <= at)
			k++;
		/* 16 bytes at a time: capstone looks no further, and knows no bounds of ours. */
		if (left > 16)
			left = 16;
		c->n_insns++;
		if (!cs_disasm_iter((csh)c->capstone, &p, &left, &next, in) || !in->id) {
			add_junk(f, at, 1);
			at++;
			continue;
		}
		if (k < c->fixed.n && next > c->fixed.at[k] && c->fixed.at[k] < end) {
			add_junk(f, at, (unsigned)(c->fixed.at[k] - at));
			at = c->fixed.at[k];
			continue;
		}
		struct insn *i = code_insn_add(f, at, in->size);
		struct lower l = {f, in, in->detail->x86.operands, in->detail->x86.op_count};

		lower(c, &l, i);
		at = next;
	}
}
