/* What one ELF file says to the loader, read once and never changed.
 *
 * Only what ld.so itself looks at is read: header, program headers, dynamic
 * section, the strings these name, version needs and definitions.  Section
 * headers are not consulted.  Little-endian 64-bit files are read; every other
 * class or byte order is recognised and reported as the loader treats it.
 *
 * Faults of the file are data: `fault` says the first thing the loader would
 * stumble over, in the order in which it looks (glibc elf/dl-load.c,
 * open_verify then _dl_map_object_from_fd).  Strings are interned in the pool
 * given to elf_object_read(); everything else lives in its arena. */
#ifndef NCCLWHICH_ELF_OBJECT_H
#define NCCLWHICH_ELF_OBJECT_H

#include "base/memory.h"
#include "base/names.h"
#include "base/reader.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

enum elf_fault {
	ELF_FINE,
	/* seen while a candidate is opened */
	ELF_DIRECTORY,      /* "cannot read file data: Is a directory" */
	ELF_NOT_REGULAR,    /* a FIFO, socket or device: ld.so blocks or reads nonsense */
	ELF_UNREADABLE,     /* read error */
	ELF_SHORT,          /* "file too short" */
	ELF_NO_MAGIC,       /* "invalid ELF header" */
	ELF_OTHER_CLASS,    /* skipped, remembered for the message */
	ELF_BYTE_ORDER,
	ELF_IDENT_VERSION,
	ELF_OSABI,
	ELF_ABI_VERSION,
	ELF_PADDING,
	ELF_VERSION,
	ELF_OTHER_MACHINE,  /* skipped; decided by the reader of this enum, who knows the machine */
	ELF_TYPE,           /* neither ET_DYN nor ET_EXEC */
	ELF_PHENTSIZE,
	ELF_PHDRS_OUTSIDE,  /* "cannot read file data" */
	/* seen while it is mapped */
	ELF_LOAD_ALIGN,
	ELF_NO_LOAD,        /* "object file has no loadable segments" */
	ELF_NO_DYNAMIC,     /* "object file has no dynamic section" */
	/* no message: the process dies */
	ELF_TRUNCATED,      /* a table the loader reads lies beyond the end of the file: SIGBUS */
	ELF_DAMAGED         /* a table or string lies outside every segment: SIGSEGV, or worse */
};

enum elf_dependency_kind { ELF_NEEDED, ELF_FILTER, ELF_AUXILIARY };

struct elf_dependency {
	enum elf_dependency_kind kind;
	const char *name;
};

/* One version that a file wants from another (DT_VERNEED). */
struct elf_version_need {
	const char *file;    /* vn_file */
	const char *version; /* vna_name */
	uint16_t index;      /* vna_other: what the symbol table says for it */
	bool weak, hidden;
};

struct elf_version_def {
	const char *version;
	uint16_t index;
	bool base; /* VER_FLG_BASE: the file's own name, not a version */
};

struct elf_segment {
	uint64_t offset, vaddr, filesz, memsz;
	uint32_t flags;
};

struct elf_object {
	enum elf_fault fault;
	const char *detail; /* which table or string is at fault, or NULL */

	uint8_t class, byte_order, osabi;
	uint16_t type, machine;
	uint64_t size;  /* of the file */
	uint64_t entry; /* e_entry */

	struct elf_segment *load; /* PT_LOAD, in table order */
	size_t n_load;
	uint64_t note_offset[4], note_size[4]; /* PT_NOTE, the first four */
	size_t n_note;
	uint64_t eh_frame_hdr; /* vaddr, 0 = none */

	const char *interp; /* PT_INTERP, or NULL: static, or a library */
	bool bad_interp;    /* there is one that the kernel would refuse; ld.so never looks at it */
	bool has_dynamic;
	bool has_tls; /* PT_TLS with a size */

	/* PT_DYNAMIC.  Of a tag that stands twice the last one counts. */
	struct elf_dependency *dependency; /* in table order */
	size_t n_dependency;
	const char *soname, *rpath, *runpath, *audit, *depaudit; /* NULL = no such tag */
	uint64_t flags, flags_1;
	bool symbolic, bind_now;
	bool exec_stack;          /* PT_GNU_STACK asks for one, or there is none and the ABI does */

	/* Where the tables are, as file offsets; 0 = absent. */
	uint64_t strtab, strtab_size, symtab, hash, gnu_hash, versym;
	uint64_t jmprel, jmprel_size, rela, rela_size;
	uint64_t strtab_vaddr;

	struct elf_version_need *version_need;
	size_t n_version_need;
	struct elf_version_def *version_def;
	size_t n_version_def;
	bool has_version_def; /* DT_VERDEF is there, even if empty */
	uint32_t isa_needed;  /* GNU_PROPERTY_X86_ISA_1_NEEDED, bit 0 = baseline */
};

/* Reads the file behind READER.  Never fails: what is wrong is in the result. */
const struct elf_object *elf_object_read(struct reader *reader, struct names *names,
					 struct arena *arena) __attribute__((returns_nonnull));

/* An object that is no file to read: a directory, a FIFO. */
const struct elf_object *elf_object_unreadable(enum elf_fault fault, struct arena *arena)
	__attribute__((returns_nonnull));

/* The loader's own words for a fault. */
const char *elf_fault_text(enum elf_fault fault);

/* A short constant name for reports: "ELF_NO_MAGIC". */
const char *elf_fault_code(enum elf_fault fault);

/* File offset of LENGTH bytes mapped at VADDR, or 0 when no segment has them all. */
uint64_t elf_offset_of(const struct elf_object *o, uint64_t vaddr, uint64_t length);

const char *elf_machine_name(uint16_t machine);

#endif
