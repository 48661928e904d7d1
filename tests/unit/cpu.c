/* The subdirectories that a processor makes the loader look into, by version. */
#include "test.h"

#include "loader/cpu.h"

#include <elf.h>

static struct names names;
static struct arena arena;

static void assert_suffixes(const char *cpu_name, uint16_t machine, bool avx512, bool glibc_hwcaps, bool legacy,
			    const char *const *wanted)
{
	struct ld_facts facts = {.machine = machine, .glibc_hwcaps = glibc_hwcaps, .legacy_hwcaps = legacy};
	struct hwcaps hw;
	struct cpu cpu;
	size_t i;

	if (cpu_name) {
		assert_true(cpu_named(cpu_name, machine, &cpu));
	} else {
		assert_int_equal(cpu_all(machine, legacy, &cpu, 1), 1);
	}
	cpu.avx512_1 = avx512;
	hwcaps_of(&cpu, &facts, &names, &arena, &hw);
	for (i = 0; wanted[i]; i++) {
		assert_true(i < hw.n_suffix);
		assert_string_equal(hw.suffix[i], wanted[i]);
	}
	assert_int_equal(hw.n_suffix, i);
}

static void levels_go_from_the_best_down(void **state)
{
	static const char *const v3[] = {"glibc-hwcaps/x86-64-v3/", "glibc-hwcaps/x86-64-v2/", "", NULL};
	static const char *const v1[] = {"", NULL};
	static const char *const v4[] = {"glibc-hwcaps/x86-64-v4/", "glibc-hwcaps/x86-64-v3/", "glibc-hwcaps/x86-64-v2/",
					 "", NULL};

	(void)state;
	assert_suffixes("x86-64-v3", EM_X86_64, false, true, false, v3); /* 2.37 and later */
	assert_suffixes("x86-64-v4", EM_X86_64, false, true, false, v4);
	assert_suffixes("x86-64-v1", EM_X86_64, false, true, false, v1);
	assert_suffixes("none", EM_X86_64, false, true, true, v1);
	assert_suffixes(NULL, EM_AARCH64, false, true, false, v1);
}

/* As seen on an AMD processor, with all its repetitions. */
static void legacy_names_count_down_in_binary(void **state)
{
	static const char *const amd[] = {"tls/x86_64/x86_64/", "tls/x86_64/", "tls/x86_64/", "tls/",
					  "x86_64/x86_64/", "x86_64/", "x86_64/", "", NULL};
	static const char *const both[] = {"glibc-hwcaps/x86-64-v2/", "tls/x86_64/x86_64/", "tls/x86_64/", "tls/x86_64/",
					   "tls/", "x86_64/x86_64/", "x86_64/", "x86_64/", "", NULL};

	(void)state;
	assert_suffixes("x86-64-v3", EM_X86_64, false, false, true, amd); /* before 2.33 */
	assert_suffixes("x86-64-v2", EM_X86_64, false, true, true, both); /* 2.33 to 2.36 */
}

static void intel_and_arm_have_names_of_their_own(void **state)
{
	static const char *const intel[] = {
		"tls/haswell/avx512_1/x86_64/", "tls/haswell/avx512_1/", "tls/haswell/x86_64/", "tls/haswell/",
		"tls/avx512_1/x86_64/", "tls/avx512_1/", "tls/x86_64/", "tls/", "haswell/avx512_1/x86_64/",
		"haswell/avx512_1/", "haswell/x86_64/", "haswell/", "avx512_1/x86_64/", "avx512_1/", "x86_64/", "", NULL};
	static const char *const arm[] = {"tls/aarch64/atomics/", "tls/aarch64/", "tls/atomics/", "tls/",
					  "aarch64/atomics/", "aarch64/", "atomics/", "", NULL};

	(void)state;
	assert_suffixes("haswell", EM_X86_64, true, false, true, intel);
	assert_suffixes(NULL, EM_AARCH64, false, false, true, arm);
}

static void masked_features_lower_the_level(void **state)
{
	struct cpu cpu;

	(void)state;
	assert_true(cpu_named("haswell", EM_X86_64, &cpu));
	cpu_mask(&cpu, "glibc.malloc.check=3:glibc.cpu.hwcaps=-ERMS,AVX512F");
	assert_int_equal(cpu.level, 3);
	cpu_mask(&cpu, "glibc.cpu.hwcaps=-AVX2");
	assert_int_equal(cpu.level, 2);
	assert_string_equal(cpu.platform, "x86_64");
	cpu_mask(&cpu, "xglibc.cpu.hwcaps=-SSE3");
	assert_int_equal(cpu.level, 2);
	cpu_mask(&cpu, NULL);
	assert_int_equal(cpu.level, 2);
}

static void levels_are_bits(void **state)
{
	struct cpu cpu, all[8];
	size_t n, i;

	(void)state;
	assert_true(cpu_named("x86-64-v3", EM_X86_64, &cpu));
	assert_int_equal(cpu_isa(&cpu), 7);
	assert_false(cpu_named("x86-64-v5", EM_X86_64, &cpu));
	assert_false(cpu_named("x86-64-v0", EM_X86_64, &cpu));
	assert_false(cpu_named("x86-64-v2", EM_AARCH64, &cpu));
	assert_false(cpu_named("pentium", EM_X86_64, &cpu));
	n = cpu_all(EM_X86_64, true, all, 8);
	assert_int_equal(n, 6); /* four levels, two of them Intel's too */
	for (i = 1; i < n; i++)
		assert_true(all[i].level <= all[i - 1].level);
	assert_int_equal(cpu_all(EM_X86_64, true, all, 2), 2);
	assert_int_equal(cpu_all(EM_AARCH64, true, all, 8), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_go_from_the_best_down), cmocka_unit_test(legacy_names_count_down_in_binary),
		cmocka_unit_test(intel_and_arm_have_names_of_their_own), cmocka_unit_test(masked_features_lower_the_level),
		cmocka_unit_test(levels_are_bits),
	};
	int failed = run_all(tests);

	names_free(&names);
	arena_free(&arena);
	return failed;
}
