/* Declares, in the object that this is compiled into, what the object opens at
 * run time (UAPI ELF dlopen metadata, .note.dlopen).  Packagers' tools and
 * ncclwhich read it; nothing happens at run time.
 *
 *   NCCLWHICH_DLOPEN_NOTE("nccl", "collectives", "required", "libnccl.so.2", "libnccl.so")
 *
 * The names are alternatives, tried in this order.  At file scope, in C or
 * C++, once a feature; up to four names, all string literals.  Priorities:
 * required, recommended, suggested.
 *
 * Assembly and not a variable, because compilers align a variable of this size
 * to 32 bytes, and then a second note cannot be found behind the first. */
#ifndef NCCLWHICH_DLOPEN_NOTE_H
#define NCCLWHICH_DLOPEN_NOTE_H

#define NCCLWHICH_NOTE_TEXT(literal) " .ascii " #literal "\n"
#define NCCLWHICH_NOTE_NAME(literal) " .ascii \"\\\"\"\n" NCCLWHICH_NOTE_TEXT(literal) " .ascii \"\\\"\"\n"
#define NCCLWHICH_NOTE_COMMA " .ascii \",\"\n"

#define NCCLWHICH_NOTE_LIST1(a) NCCLWHICH_NOTE_NAME(a)
#define NCCLWHICH_NOTE_LIST2(a, b) NCCLWHICH_NOTE_LIST1(a) NCCLWHICH_NOTE_COMMA NCCLWHICH_NOTE_NAME(b)
#define NCCLWHICH_NOTE_LIST3(a, b, c) NCCLWHICH_NOTE_LIST2(a, b) NCCLWHICH_NOTE_COMMA NCCLWHICH_NOTE_NAME(c)
#define NCCLWHICH_NOTE_LIST4(a, b, c, d) NCCLWHICH_NOTE_LIST3(a, b, c) NCCLWHICH_NOTE_COMMA NCCLWHICH_NOTE_NAME(d)
#define NCCLWHICH_NOTE_PICK(a, b, c, d, which, ...) which
#define NCCLWHICH_NOTE_LIST(...)                                                         \
	NCCLWHICH_NOTE_PICK(__VA_ARGS__, NCCLWHICH_NOTE_LIST4, NCCLWHICH_NOTE_LIST3,     \
			    NCCLWHICH_NOTE_LIST2, NCCLWHICH_NOTE_LIST1, unused)(__VA_ARGS__)

/* 0x407c0c0a is the note's type; its owner is "FDO". */
#define NCCLWHICH_DLOPEN_NOTE(feature, description, priority, ...)                       \
	__asm__(" .pushsection .note.dlopen,\"a\",%note\n"                               \
		" .balign 4\n"                                                           \
		" .long 4, 92f-91f, 0x407c0c0a\n"                                        \
		" .asciz \"FDO\"\n"                                                      \
		"91:\n"                                                                  \
		" .ascii \"[{\\\"feature\\\":\\\"\"\n" NCCLWHICH_NOTE_TEXT(feature)      \
		" .ascii \"\\\",\\\"description\\\":\\\"\"\n" NCCLWHICH_NOTE_TEXT(description) \
		" .ascii \"\\\",\\\"priority\\\":\\\"\"\n" NCCLWHICH_NOTE_TEXT(priority) \
		" .ascii \"\\\",\\\"soname\\\":[\"\n" NCCLWHICH_NOTE_LIST(__VA_ARGS__)   \
		" .asciz \"]}]\"\n"                                                      \
		"92:\n"                                                                  \
		" .balign 4\n"                                                           \
		" .popsection\n");

#endif
