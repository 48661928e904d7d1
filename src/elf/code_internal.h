/* Inside elf/code: instructions reduced to what tracing a value needs.
 *
 * An instruction has effects, each `to = op(a, b)` on registers and memory, all
 * of them reading the state before the instruction; what is not understood but
 * written is an E_UNKNOWN effect, so that ignorance ends a trace instead of
 * being stepped over.  Vector registers are two halves of eight bytes.
 * Everything here lives in struct code and is freed with it. */
#ifndef NCCLWHICH_ELF_CODE_INTERNAL_H
#define NCCLWHICH_ELF_CODE_INTERNAL_H

#include "elf/code.h"

#include <limits.h>

/* Bounds, so that no file costs more than it is worth.  The largest real
 * consumers stay below a tenth of each. */
enum {
	FUNCTION_BYTES_MOST = 512 * 1024,
	FUNCTION_INSNS_MOST = 100000,
	INSNS_MOST = 1 << 20,     /* a file */
	FUNCTIONS_MOST = 4096,    /* a file */
	SITES_MOST = 8192,        /* a file */
	OPENS_MOST = 16384,       /* entries of a file */
	VALUES_MOST = 1024,       /* of one argument */
	TABLE_MOST = 1024,        /* entries of one table */
	STRING_MOST = 4096,       /* as PATH_MAX */
	STEPS_MOST = 200000,      /* of one argument: instructions looked at */
	BUDGET = 10000000,        /* the same for all of a file */
	AREAS_MOST = 256,         /* addresses in the frame of one function */
	SEGMENTS_MOST = 64,
	DEPTH_MOST = 48,          /* of one argument: nested expressions */
	LEVELS_MOST = 3,          /* wrappers around wrappers */
	WINDOW_BEFORE = 8192,     /* bytes, where nothing says where a function begins */
	WINDOW_AFTER = 4096,
	NOT_KNOWN = INT_MIN,      /* stack offsets */
};

enum { REG_NONE = 0xff, REG_OPAQUE = 0xfe }; /* no register; one that is not traced */

/* Register numbers: as the machine encodes them, then the vector halves. */
enum {
	X86_SP = 4, X86_FP = 5, X86_VECTOR_LOW = 16, X86_VECTOR_HIGH = 32,
	ARM_FP = 29, ARM_SP = 31, ARM_VECTOR_LOW = 32, ARM_VECTOR_HIGH = 64,
	REGS = 96,
};

enum operand_kind { O_NONE, O_REG, O_IMM, O_MEM, O_ADDR /* of a memory operand */ };

struct operand {
	uint8_t kind, size;   /* bytes */
	uint8_t reg;          /* O_REG; base of O_MEM and O_ADDR */
	uint8_t index, shift; /* index << shift */
	int64_t value;        /* O_IMM; displacement */
};

enum effect_op {
	E_UNKNOWN, E_MOVE, E_SIGN /* extend from a.size */, E_ADD, E_SUB, E_OR, E_AND, E_SHIFT /* left */,
	E_MUL, E_SELECT /* a or b */, E_INSERT /* a with 16 bits replaced: b.value at bit b.shift */,
	E_COMPARE /* writes nothing */,
};

struct effect {
	uint8_t op;
	struct operand to, a, b;
};

enum flow { F_NEXT, F_CALL, F_JUMP, F_BRANCH /* or not */, F_END /* returns or traps */ };

struct insn {
	uint64_t at;
	uint64_t target; /* of a direct call or jump, else 0 */
	uint32_t effect; /* index of the first */
	uint32_t block;
	struct operand through; /* what an indirect call or jump goes through, else O_NONE */
	int32_t sp, fp;  /* offsets from the stack pointer at the entry, or NOT_KNOWN */
	uint8_t size, n_effect, flow;
	bool inclusive;  /* a branch on <= or > */
	bool junk;       /* not decoded: nothing is known after it */
	bool landing;    /* marks a place that indirect branches may go to */
};

struct block {
	uint32_t first, n;
	uint32_t pred, n_pred;  /* in function.pred */
	uint64_t writes[2];     /* registers */
	bool stores, calls, junk;
	bool entry;             /* is called from somewhere */
	uint32_t stamp;         /* of the last walk that came by */
};

struct range {
	uint64_t begin, end;
};

struct stack_area {
	int32_t offset; /* an address in the frame that is formed in code */
	bool escapes;   /* and goes elsewhere than into a load or a store */
};

enum value_kind {
	V_NUMBER, V_STACK, V_ENTRY, V_FUNCTION,
	V_RESULT,  /* what a call returned */
	V_WRITTEN, /* a text, or the pointer to one, that a call has written there */
};

struct value {
	uint8_t kind, reg; /* V_ENTRY: register REG, or memory, as control comes from outside to the address N */
	uint64_t n;        /* number or address; offset in the frame; symbol of a V_FUNCTION; address of the call */
};

struct writer {
	uint32_t insn;   /* a call of a function that writes a text */
	bool known;      /* and where to, namely TO */
	struct value to;
};

struct far_call {
	uint32_t insn, symbol; /* a call through a register that another block has set */
};

struct function {
	struct function *next;
	struct range range[4];    /* the first has the entry; then parts split off by the compiler */
	unsigned n_range;
	bool bounded;             /* the entry is known; else a window into the code */
	bool opaque;              /* jumps that could not be followed: predecessors may be missing */
	VEC(struct insn) insn;    /* by address */
	VEC(struct effect) effect;
	VEC(struct block) block;
	VEC(uint32_t) pred;
	VEC(struct stack_area) area;
	bool areas_known, areas_many; /* more than are kept: everything may be addressed */
	VEC(struct writer) writer;    /* by instruction */
	VEC(struct far_call) far_call;
	bool writers_known;
	uint8_t answered;             /* per opener: calls through registers have been looked at */
	uint32_t stamp;
};

/* ---- the file as the process will see it (code_image.c) */

struct code_pointer {
	uint64_t at, value;
};

struct code_slot {
	uint64_t at;
	uint32_t symbol;
};

struct code_span { /* executable bytes that are not device code */
	uint64_t offset, vaddr, size;
};

struct code {
	struct reader *r;
	const struct elf_object *o;
	const struct elf_symbols *s;
	struct names *names;
	struct arena *arena;
	const char *note;
	bool arm;
	uint8_t sp, fp;

	VEC(struct code_slot) slot; /* GOT and PLT slots of all symbols, by address */
	VEC(struct code_slot) stored; /* words of data that take the address of a symbol that matters */
	VEC(struct code_pointer) pointer; /* relocated words, by address; read when first asked for */
	bool pointers_known;
	struct range relro;
	uint64_t relr, relr_size; /* file offset */
	uint64_t unwind, unwind_table, unwind_entries; /* vaddrs of .eh_frame_hdr and its table */
	VEC(struct code_span) span;
	bool spans_known;
	uint64_t scanned; /* bytes, over all scans */

	size_t capstone; /* csh, 0 = not open */
	void *decoded;   /* cs_insn */
	VEC(uint64_t) fixed; /* addresses where an instruction is known to begin, sorted */
	struct function *function; /* decoded so far, newest first */
	unsigned n_functions;
	size_t n_insns;
	long steps;  /* left for this argument */
	long budget; /* left for the file */
};

void code_note(struct code *c, const char *note);
int code_image_open(struct code *c, const bool *wanted); /* WANTED: per symbol, whose stored addresses count */
bool code_read(struct code *c, uint64_t vaddr, void *to, size_t n);
/* The segment that has VADDR in the file, or NULL. */
const struct elf_segment *code_segment(const struct code *c, uint64_t vaddr);
bool code_is_constant(const struct code *c, uint64_t vaddr); /* nobody writes there after relocation */
/* The symbol whose address the slot holds, or 0. */
uint32_t code_slot_symbol(const struct code *c, uint64_t vaddr);
/* The pointer that the loader leaves at VADDR. */
bool code_pointer_at(struct code *c, uint64_t vaddr, uint64_t *value);
/* An integer that the file has at VADDR and that stays. */
bool code_constant_at(struct code *c, uint64_t vaddr, unsigned size, uint64_t *value);
/* The printable text at VADDR, interned, or NULL. */
const char *code_string_at(struct code *c, uint64_t vaddr);
/* Fills C->pointer. */
void code_read_pointers(struct code *c);
/* What the unwind table says of the function around VADDR. */
bool code_function_range(struct code *c, uint64_t vaddr, struct range *out);

/* ---- where in the code something is referred to (code_find.c) */

enum reference_kind { REF_CALL, REF_JUMP, REF_LOAD /* of a slot */, REF_ADDRESS };

struct code_target {
	uint64_t at;
	uint32_t id;
	bool slot; /* a word that holds the address, not the address */
};

struct code_reference {
	uint64_t at; /* of the instruction */
	uint32_t id;
	uint8_t kind;
};

struct code_references {
	VEC(struct code_reference) ref;
	VEC(struct code_target) target;
};

/* Fills F->ref from F->target, PLT stubs seen through; sorted by address. */
int code_find(struct code *c, struct code_references *f);
void code_references_free(struct code_references *f);

/* ---- functions (code_function.c), and their instructions (code_x86.c, code_aarch64.c) */

/* The function around VADDR, or NULL when a bound was met. */
struct function *code_function(struct code *c, uint64_t vaddr);
void code_functions_free(struct code *c);
/* Index of the instruction that begins at VADDR, or -1. */
long code_insn_at(const struct function *f, uint64_t vaddr);
/* May instruction TO come after instruction FROM? */
bool code_reaches(struct function *f, uint32_t from, uint32_t to);
/* The name of the imported function that a call goes to, or "". */
const char *code_callee(struct code *c, const struct insn *i);
/* The same for instruction I, seeing through a register that was loaded in its
 * block, or further away once code_trace.c has found that out. */
const char *code_callee_at(struct code *c, const struct function *f, uint32_t i);
bool code_never_returns(const char *callee);

struct insn *code_insn_add(struct function *f, uint64_t at, unsigned size);
/* The effect is added to the newest instruction. */
struct effect *code_effect_add(struct function *f, enum effect_op op, struct operand to);
void code_decode_x86(struct code *c, struct function *f, const unsigned char *bytes, size_t n, uint64_t at);
void code_decode_aarch64(struct code *c, struct function *f, const unsigned char *bytes, size_t n, uint64_t at);

static inline struct operand code_reg(uint8_t reg, uint8_t size)
{
	return (struct operand){.kind = O_REG, .size = size, .reg = reg, .index = REG_NONE};
}

static inline struct operand code_imm(int64_t value, uint8_t size)
{
	return (struct operand){.kind = O_IMM, .size = size, .reg = REG_NONE, .index = REG_NONE, .value = value};
}

static inline struct operand code_mem(uint8_t base, int64_t displacement, uint8_t size)
{
	return (struct operand){.kind = O_MEM, .size = size, .reg = base, .index = REG_NONE, .value = displacement};
}

static inline bool code_is_vector(const struct code *c, uint8_t reg)
{
	return reg >= (c->arm ? ARM_VECTOR_LOW : X86_VECTOR_LOW) && reg < REGS;
}

/* May a call change it?  SysV psABI 3.2.1; AAPCS64 6.1. */
bool code_clobbered_by_call(const struct code *c, uint8_t reg);

/* ---- values (code_trace.c, code_values.c) */

struct values {
	VEC(struct value) v;
	bool unknown;      /* and others */
	bool row;          /* entries of one table, in its order, among others */
	uint64_t multiple; /* those are multiples of this; 0 = no others */
	uint64_t stride;   /* each number is the first of a row with this distance; 0 = no rows */
	uint32_t source;   /* the effect that steps along the rows, plus one; 0 = several */
	uint64_t cycle;    /* and itself, while it is being found out: a bit for each depth */
};

void values_free(struct values *s);
void values_add(struct values *s, uint8_t kind, uint64_t n, uint8_t reg);
void values_add_unknown(struct values *s, uint64_t multiple);
void values_merge(struct values *s, const struct values *other);
void values_combine(enum effect_op op, const struct values *a, const struct values *b, struct values *out);
bool values_single(const struct values *s); /* exactly one value */
void values_resize(struct values *s, unsigned size, bool is_signed);

/* What operand X is just before instruction I. */
void code_trace(struct code *c, struct function *f, uint32_t i, const struct operand *x, struct values *out);
/* What stands in the frame at OFFSET before instruction I, or at the end, of block
 * B: a byte; or a V_WRITTEN where a text begins. */
void code_trace_byte(struct code *c, struct function *f, uint32_t b, uint32_t i, int64_t offset, struct values *out);
/* The V_WRITTEN of calls that have put a text where a pointer of value V leads. */
void code_trace_text(struct code *c, struct function *f, uint32_t i, const struct value *v, struct values *out);

/* ---- texts (code_text.c, code_library.c) */

/* What a function of a library does with texts. */
enum library_does {
	DOES_READ,      /* writes to nothing that it is given */
	DOES_ALLOCATE,  /* returns memory of its own */
	DOES_GETENV,    /* returns the value of the variable that argument `from` names */
	DOES_DUPLICATE, /* returns a copy of `from` */
	DOES_COPY, DOES_APPEND, DOES_FORMAT, /* argument `from`, to `to` */
};

struct library_function {
	const char *name;
	uint8_t does, to, from; /* enum library_does; arguments, from 0 */
	uint8_t size;  /* the argument that says how much is copied, or how much room there is; 0 = none does */
	uint8_t more;  /* DOES_FORMAT: the first of the arguments that go into the text */
	bool pointer;  /* a pointer to the text goes to `to` */
	bool returns;  /* returns `to` */
};

/* NULL: nothing is known of it. */
const struct library_function *code_library(const char *name);

/* Argument K, just before the call. */
struct operand code_argument(const struct code *c, unsigned k);

/* One text: BEFORE, and if it has a hole, then whatever register REG holds when
 * control comes from outside to ENTRY, then AFTER.  {env:NAME} in it stands for the
 * value of a variable. */
struct code_text {
	const char *before, *after;
	bool hole, env;
	uint8_t reg;
	uint64_t entry;
};

struct code_texts {
	VEC(struct code_text) v;
	bool computed; /* and others */
	bool null;     /* and a null pointer */
	bool row;      /* entries of one table, in its order */
};

/* The texts that operand X may point to just before instruction I; V is the caller's. */
void code_texts(struct code *c, struct function *f, uint32_t i, const struct operand *x, struct code_texts *out);
/* A text in another, both interned; false if that cannot be said. */
bool code_text_join(struct code *c, const struct code_text *a, const struct code_text *b, struct code_text *out);

#endif
