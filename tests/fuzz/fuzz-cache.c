/* ld.so.cache: the input is the file. */
#include "loader/cache.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct ld_cache *c, const char *name)
{
	static const char *const levels[] = {"x86-64-v3", "x86-64-v2"};
	struct ld_facts facts = {.machine = EM_X86_64, .version = 236, .glibc_hwcaps = true};
	struct hwcaps hw = {.subdir = (const char **)levels, .n_subdir = 2, .isa = 7,
			    .legacy_mask = 1ull << 63 | 2, .platform = 1ull << 50};
	struct ld_cache_hit hit;

	for (; facts.version <= 240; facts.version += 4) {
		hit = ld_cache_lookup(c, name, &facts, &hw);
		if (hit.path && strlen(hit.path) == SIZE_MAX)
			abort();
		if (hit.named && !hit.path)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"", "libc.so.6", "libx.so.9", "libx.so.10", "libnccl.so.2"};
	unsigned char *copy = xmalloc(size + 1);
	struct arena arena = {0};
	const char *why = NULL;
	struct ld_cache *c;
	size_t i;

	memcpy(copy, data, size);
	copy[size] = 0; /* as store_slurp() leaves it */
	c = ld_cache_parse(copy, size, &arena, &why);
	if (!c && !why)
		abort();
	for (i = 0; c && i < sizeof(names) / sizeof(names[0]); i++)
		look_up(c, names[i]);
	if (c && ld_cache_generator(c) && strlen(ld_cache_generator(c)) > size)
		abort();
	arena_free(&arena);
	free(copy);
	return 0;
}
