#include "loader/cpu.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

static void set_name(struct cpu *c)
{
	if (c->machine != EM_X86_64)
		snprintf(c->name, sizeof(c->name), "%s", c->platform);
	else if (c->bare)
		snprintf(c->name, sizeof(c->name), "none");
	else
		snprintf(c->name, sizeof(c->name), "x86-64-v%d%s%s%s", c->level,
			 strcmp(c->platform, "x86_64") ? " (" : "",
			 strcmp(c->platform, "x86_64") ? c->platform : "",
			 strcmp(c->platform, "x86_64") ? ")" : "");
}

static struct cpu cpu_plain(uint16_t machine, int level)
{
	struct cpu c = {.machine = machine, .level = machine == EM_X86_64 ? level : 0};

	c.platform = machine == EM_AARCH64 ? "aarch64" : "x86_64";
	c.atomics = machine == EM_AARCH64;
	set_name(&c);
	return c;
}

#ifdef __x86_64__
struct leaves {
	unsigned ecx1, edx1, ebx7, ecx81;
	bool ymm, zmm, intel;
};

static struct leaves read_leaves(void)
{
	struct leaves l = {0};
	unsigned a, b, c, d, lo = 0, hi;

	if (__get_cpuid(0, &a, &b, &c, &d))
		l.intel = b == signature_INTEL_ebx && d == signature_INTEL_edx && c == signature_INTEL_ecx;
	if (__get_cpuid(1, &a, &b, &c, &d)) {
		l.ecx1 = c;
		l.edx1 = d;
	}
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
		l.ebx7 = b;
	if (__get_cpuid(0x80000001, &a, &b, &c, &d))
		l.ecx81 = c;
	if (l.ecx1 & bit_OSXSAVE) {
		__asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
		l.ymm = (lo & 6) == 6;
		l.zmm = l.ymm && (lo & 0xe0) == 0xe0;
	}
	return l;
}

static bool all_of(unsigned word, unsigned bits)
{
	return (word & bits) == bits;
}

static int level_of(const struct leaves *l)
{
	const unsigned lahf = 1, lzcnt = 1u << 5;

	if (!all_of(l->ecx1, bit_CMPXCHG16B | bit_POPCNT | bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2) ||
	    !(l->ecx81 & lahf))
		return 1;
	if (!l->ymm || !all_of(l->ecx1, bit_AVX | bit_F16C | bit_FMA | bit_MOVBE) ||
	    !all_of(l->ebx7, bit_AVX2 | bit_BMI | bit_BMI2) || !(l->ecx81 & lzcnt))
		return 2;
	if (!l->zmm || !all_of(l->ebx7, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL))
		return 3;
	return 4;
}

/* glibc sysdeps/x86/cpu-features.c: platforms and avx512_1 are Intel's alone. */
static void detect_platform(struct cpu *c, const struct leaves *l)
{
	const unsigned avx512er = 1u << 27, avx512pf = 1u << 26;

	if (!l->intel)
		return;
	if (l->zmm && (l->ebx7 & bit_AVX512CD)) {
		if (l->ebx7 & avx512er)
			c->platform = l->ebx7 & avx512pf ? "xeon_phi" : c->platform;
		else
			c->avx512_1 = all_of(l->ebx7, bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
	}
	if (c->level >= 3 && strcmp(c->platform, "xeon_phi"))
		c->platform = "haswell";
}
#endif

struct cpu cpu_here(uint16_t machine)
{
	struct cpu c = cpu_plain(machine, 1);

#ifdef __x86_64__
	if (machine == EM_X86_64) {
		struct leaves l = read_leaves();

		c.level = level_of(&l);
		detect_platform(&c, &l);
		set_name(&c);
	}
#endif
#ifdef __aarch64__
	if (machine == EM_AARCH64)
		c.atomics = getauxval(AT_HWCAP) & (1 << 8);
#endif
	return c;
}

bool cpu_named(const char *name, uint16_t machine, struct cpu *out)
{
	int level = 0;

	if (!strcmp(name, "none")) {
		*out = cpu_plain(machine, 1);
		out->bare = true;
		set_name(out);
		return true;
	}
	if (!strcmp(name, "haswell")) {
		*out = cpu_plain(machine, 3);
		out->platform = "haswell";
		set_name(out);
		return machine == EM_X86_64;
	}
	if (sscanf(name, "x86-64-v%d", &level) != 1 || level < 1 || level > 4 || machine != EM_X86_64)
		return false;
	*out = cpu_plain(machine, level);
	return true;
}

/* The level below the one that a feature belongs to; 4 for any other word. */
static int level_without(const char *feature, size_t n)
{
	static const struct {
		const char *name;
		int level;
	} known[] = {
		{"CMPXCHG16B", 1}, {"LAHF64_SAHF64", 1}, {"POPCNT", 1}, {"SSE3", 1}, {"SSSE3", 1}, {"SSE4_1", 1},
		{"SSE4_2", 1}, {"AVX", 2}, {"AVX2", 2}, {"BMI1", 2}, {"BMI2", 2}, {"F16C", 2}, {"FMA", 2},
		{"LZCNT", 2}, {"MOVBE", 2}, {"AVX512F", 3}, {"AVX512BW", 3}, {"AVX512CD", 3}, {"AVX512DQ", 3},
		{"AVX512VL", 3},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].name) == n && !strncmp(known[i].name, feature, n))
			return known[i].level;
	return 4;
}

void cpu_mask(struct cpu *cpu, const char *tunables)
{
	static const char key[] = "glibc.cpu.hwcaps=";
	const char *at = tunables ? strstr(tunables, key) : NULL;
	size_t n;

	if (!at || !cpu->level || (at != tunables && at[-1] != ':'))
		return;
	for (at += sizeof(key) - 1; *at && *at != ':'; at += n + (at[n] == ',')) {
		n = strcspn(at, ",:");
		if (*at == '-' && level_without(at + 1, n - 1) < cpu->level)
			cpu->level = level_without(at + 1, n - 1);
	}
	if (cpu->level < 3 && !strcmp(cpu->platform, "haswell"))
		cpu->platform = "x86_64";
	cpu->avx512_1 &= cpu->level >= 4;
	set_name(cpu);
}

size_t cpu_all(uint16_t machine, bool legacy, struct cpu *out, size_t most)
{
	size_t n = 0;
	int level;

	if (machine != EM_X86_64) {
		if (most)
			out[n++] = cpu_plain(machine, 1);
		return n;
	}
	for (level = 4; level >= 1 && n < most; level--) {
		out[n++] = cpu_plain(machine, level);
		if (legacy && level >= 3 && n < most) {
			out[n] = cpu_plain(machine, level);
			out[n].platform = "haswell";
			out[n].avx512_1 = level == 4;
			set_name(&out[n++]);
		}
	}
	return n;
}

uint32_t cpu_isa(const struct cpu *cpu)
{
	return cpu->level ? (1u << cpu->level) - 1 : 1;
}

/* Before 2.37: every subset of the capabilities, as a binary counter that runs
 * down from all to none, the last capability being its highest bit; within a
 * name the parts stand from last to first. */
static void add_legacy(const struct cpu *cpu, struct names *names, const char **suffix, size_t *n)
{
	const char *part[4];
	unsigned parts = 0, mask, i;

	if (cpu->machine == EM_X86_64) {
		part[parts++] = "x86_64";
		if (cpu->avx512_1)
			part[parts++] = "avx512_1";
	} else if (cpu->atomics) {
		part[parts++] = "atomics";
	}
	part[parts++] = cpu->platform;
	part[parts++] = "tls";
	for (mask = (1u << parts) - 1; mask; mask--) {
		char text[128] = "";

		for (i = parts; i-- > 0;)
			if (mask & (1u << i)) {
				strcat(text, part[i]);
				strcat(text, "/");
			}
		suffix[(*n)++] = names_add(names, text);
	}
}

void hwcaps_of(const struct cpu *cpu, const struct ld_facts *facts, struct names *names,
	       struct arena *arena, struct hwcaps *out)
{
	int level;

	memset(out, 0, sizeof(*out));
	out->isa = cpu_isa(cpu);
	out->suffix = arena_alloc(arena, 32 * sizeof(*out->suffix));
	out->subdir = arena_alloc(arena, 4 * sizeof(*out->subdir));
	out->platform = ~0ull;
	if (!cpu->bare && facts->glibc_hwcaps)
		for (level = cpu->level; level >= 2; level--) {
			char name[48];

			snprintf(name, sizeof(name), "x86-64-v%d", level);
			out->subdir[out->n_subdir++] = names_add(names, name);
			snprintf(name, sizeof(name), "glibc-hwcaps/x86-64-v%d/", level);
			out->suffix[out->n_suffix++] = names_add(names, name);
		}
	if (!cpu->bare && facts->legacy_hwcaps)
		add_legacy(cpu, names, out->suffix, &out->n_suffix);
	out->suffix[out->n_suffix++] = names_add(names, "");
	/* _DL_HWCAP_TLS_MASK is bit 63; x86 platforms i586, i686, haswell and
	 * xeon_phi are bits 48 to 51. */
	out->legacy_mask = 1ull << 63 | 0xfull << 48;
	if (cpu->machine == EM_X86_64)
		out->legacy_mask |= 2 | (cpu->avx512_1 ? 4 : 0);
	if (!strcmp(cpu->platform, "haswell"))
		out->platform = 1ull << 50;
	else if (!strcmp(cpu->platform, "xeon_phi"))
		out->platform = 1ull << 51;
}
