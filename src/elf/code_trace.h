/* Inside the tracing of values: where a walk looks, and what it asks on its way. */
#ifndef NCCLWHICH_ELF_CODE_TRACE_H
#define NCCLWHICH_ELF_CODE_TRACE_H

#include "elf/code_internal.h"

struct place {
	bool stack;    /* bytes of the frame at OFFSET, else register REG */
	bool text;     /* neither: the text that a pointer of value OBJECT leads to */
	uint8_t reg, size;
	int64_t offset;
	struct value object;
};

struct active { /* being evaluated, up the call chain */
	const struct active *up;
	uint32_t effect;
	unsigned depth;
};

struct behind { /* a store behind a byte of the frame: into its text, if that is long enough */
	int64_t offset;
	uint8_t size;
	bool indexed;
};

struct trace {
	struct code *c;
	struct function *f;
	const struct active *active;
	unsigned depth;
	bool bounding; /* already looking for the bound of a table */
	struct behinds {
		VEC(struct behind) at;
	} *behind;     /* those met while a text is looked for; NULL = nobody asks */
};

/* ---- evaluation (code_trace.c) */

void code_trace_operand(struct trace *t, uint32_t i, const struct operand *x, struct values *out);
void code_trace_place(struct trace *t, uint32_t i, const struct place *p, struct values *out);

/* ---- memory in the frame, and calls that write texts (code_frame.c) */

/* The frame offset that a memory operand has by itself, or false. */
bool code_frame_offset(const struct trace *t, uint32_t i, const struct operand *x, int64_t *out);
/* The same through a register that was set to a frame address in this block, be it
 * by way of others. */
bool code_alias_offset(const struct trace *t, uint32_t i, const struct operand *x, int64_t *out);
/* Is the slot, or something just below it that may include it, addressed?  ESCAPING:
 * by an address that others may have. */
bool code_is_addressed(const struct trace *t, int64_t offset, bool escaping);

/* Where calls that write a text write to is found out before a walk and not in its
 * midst: walks mark the blocks that they have come by. */
void code_find_writers(struct trace *t);
bool code_same_value(const struct value *a, const struct value *b);
/* Memory that nothing but pointers of this value leads to. */
bool code_is_own_memory(const struct trace *t, const struct value *v);
/* What a call does to a text, or to bytes of the frame. */
enum meeting { PASSES, WRITES, SPOILS };
enum meeting code_call_meets(const struct trace *t, uint32_t i, const struct place *p);

/* ---- rows (code_rows.c) */

/* What instruction I may load from a row of BASE, BASE + STRIDE and so on: pointers
 * in memory, 32-bit distances, words in the frame. */
void code_load_row(struct trace *t, uint32_t i, uint64_t base, uint64_t stride, struct values *out);
void code_load_offset_row(struct trace *t, uint32_t i, uint64_t base, uint64_t stride, struct values *out);
void code_load_stack_row(struct trace *t, uint32_t i, int64_t base, uint64_t stride, struct values *out);

#endif
