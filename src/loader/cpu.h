/* The processor the prediction is for, and the subdirectories it makes the
 * loader look into.
 *
 * An x86-64 level (1 to 4) decides glibc-hwcaps; before glibc 2.37 the vendor
 * matters too, because only Intel processors have the platforms haswell and
 * xeon_phi and the capability avx512_1. */
#ifndef NCCLWHICH_LOADER_CPU_H
#define NCCLWHICH_LOADER_CPU_H

#include "base/error.h"
#include "loader/facts.h"

struct cpu {
	uint16_t machine;
	int level;            /* x86-64: 1 to 4; 0 = not x86-64 */
	const char *platform; /* $PLATFORM and the legacy directory: "x86_64", "haswell", "aarch64" */
	bool avx512_1, atomics;
	bool bare;            /* no subdirectories at all (--hwcaps none) */
	char name[32];        /* for reports: "x86-64-v3 (haswell)" */
};

/* The processor we run on, as seen by objects of MACHINE. */
struct cpu cpu_here(uint16_t machine);

/* A processor by its level: "x86-64-v3"; false if the name is unknown. */
bool cpu_named(const char *name, uint16_t machine, struct cpu *out);

/* GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,…: features taken away lower the level. */
void cpu_mask(struct cpu *cpu, const char *tunables);

/* Every processor on which the answer might differ: at most MOST of them. */
size_t cpu_all(uint16_t machine, bool legacy, struct cpu *out, size_t most);

/* Bits as in GNU_PROPERTY_X86_ISA_1_NEEDED. */
uint32_t cpu_isa(const struct cpu *cpu);

struct hwcaps {
	const char **suffix;  /* what goes between directory and name, "" last */
	size_t n_suffix;
	const char **subdir;  /* glibc-hwcaps names, best first */
	size_t n_subdir;
	uint64_t legacy_mask; /* bits an old cache entry may have */
	uint64_t platform;    /* its platform bit, or all ones */
	uint32_t isa;
};

void hwcaps_of(const struct cpu *cpu, const struct ld_facts *facts, struct names *names,
	       struct arena *arena, struct hwcaps *out);

#endif
