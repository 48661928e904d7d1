/* ld.so.cache: the order of its keys, capabilities, the two layouts, damage. */
#include "test.h"

#include "loader/cache.h"

#include <elf.h>
#include <stdio.h>

enum { X86 = 0x303, EXTENSION_MAGIC = 0xeaa42174 };
#define NAMED(level, index) (1ull << 62 | (uint64_t)(level) << 32 | (index))

struct entry {
	const char *key, *path;
	int flags;
	uint64_t hwcap;
};

/* A cache in the making; what is put must be in the order of the loader. */
struct maker {
	unsigned char data[4096];
	size_t n;
};

static void put(struct maker *m, const void *data, size_t n)
{
	assert_true(m->n + n < sizeof(m->data));
	memcpy(m->data + m->n, data, n);
	m->n += n;
}

static void put32(struct maker *m, uint32_t value)
{
	put(m, &value, sizeof(value));
}

static void new_layout(struct maker *m, const struct entry *e, size_t n)
{
	static const char levels[] = "x86-64-v2\0x86-64-v3";
	size_t start = m->n, strings = 48 + 24 * n, i, used = strings, extension;
	uint32_t level_at;

	for (i = 0; i < n; i++)
		used += strlen(e[i].key) + strlen(e[i].path) + 2;
	level_at = (uint32_t)(start + used);
	extension = (start + used + sizeof(levels) + 3) & ~(size_t)3;
	put(m, "glibc-ld.so.cache1.1", 20);
	put32(m, (uint32_t)n);
	put32(m, (uint32_t)(used - strings));
	put32(m, 2); /* little-endian */
	put32(m, (uint32_t)extension);
	put(m, "\0\0\0\0\0\0\0\0\0\0\0", 12);
	for (i = 0; i < n; i++) {
		put32(m, (uint32_t)e[i].flags);
		put32(m, (uint32_t)strings);
		strings += strlen(e[i].key) + 1;
		put32(m, (uint32_t)strings);
		strings += strlen(e[i].path) + 1;
		put32(m, 0);
		put(m, &e[i].hwcap, 8);
	}
	for (i = 0; i < n; i++) {
		put(m, e[i].key, strlen(e[i].key) + 1);
		put(m, e[i].path, strlen(e[i].path) + 1);
	}
	put(m, levels, sizeof(levels));
	m->n = extension;
	put32(m, EXTENSION_MAGIC);
	put32(m, 2);
	put32(m, 0), put32(m, 0), put32(m, (uint32_t)extension + 48), put32(m, 4);
	put32(m, 1), put32(m, 0), put32(m, (uint32_t)extension + 40), put32(m, 8);
	put32(m, level_at), put32(m, level_at + 10);
	put(m, "test", 4);
}

static void old_layout(struct maker *m, const struct entry *e, size_t n)
{
	uint32_t at = 0;
	size_t i;

	put(m, "ld.so-1.7.0", 12);
	put32(m, (uint32_t)n);
	for (i = 0; i < n; i++) {
		put32(m, (uint32_t)e[i].flags);
		put32(m, at);
		at += (uint32_t)strlen(e[i].key) + 1;
		put32(m, at);
		at += (uint32_t)strlen(e[i].path) + 1;
	}
	for (i = 0; i < n; i++) {
		put(m, e[i].key, strlen(e[i].key) + 1);
		put(m, e[i].path, strlen(e[i].path) + 1);
	}
}

static struct ld_cache *parse(struct maker *m, struct arena *arena)
{
	const char *why = NULL;

	return ld_cache_parse(m->data, m->n, arena, &why);
}

static const char *find_for(struct ld_cache *c, const char *name, int level, int version)
{
	static const char *subdir[] = {"x86-64-v3", "x86-64-v2"};
	struct ld_facts facts = {.machine = EM_X86_64, .version = version, .glibc_hwcaps = version >= 233};
	struct hwcaps hw = {.subdir = (const char **)subdir + (level >= 3 ? 0 : 1), .n_subdir = level >= 3 ? 2 : level == 2,
			    .isa = (1u << level) - 1, .legacy_mask = 1ull << 63 | 0xfull << 48 | 2, .platform = 1ull << 50};

	return ld_cache_lookup(c, name, &facts, &hw).path;
}

static const char *find(struct ld_cache *c, const char *name)
{
	return find_for(c, name, 3, 236);
}

static const struct entry plain[] = {
	{"libx.so.10", "/a/libx.so.10", X86, 0}, {"libx.so.9", "/a/libx.so.9", X86, 0},
	{"libx.so.9", "/b/libx.so.9", X86, 0},   {"libx.so.2", "/32/libx.so.2", 3, 0},
	{"libx.so.2", "/a/libx.so.2", X86, 0},   {"libc.so.6", "/lib/libc.so.6", X86, 0},
};
enum { PLAIN = sizeof(plain) / sizeof(plain[0]) };

static void assert_plain(struct ld_cache *c)
{
	assert_non_null(c);
	assert_string_equal(find(c, "libx.so.10"), "/a/libx.so.10");
	assert_string_equal(find(c, "libx.so.9"), "/a/libx.so.9");   /* the first of equals */
	assert_string_equal(find(c, "libx.so.2"), "/a/libx.so.2");   /* of this ABI */
	assert_string_equal(find(c, "libx.so.0009"), "/a/libx.so.9"); /* digits are numbers */
	assert_string_equal(find(c, "libc.so.6"), "/lib/libc.so.6");
	assert_null(find(c, "libx.so.1"));
	assert_null(find(c, "libx.so"));
	assert_null(find(c, ""));
	assert_null(find(c, "zzz"));
}

static void both_layouts_are_read(void **state)
{
	struct maker m = {.n = 0};
	struct arena arena = {0};

	(void)state;
	new_layout(&m, plain, PLAIN);
	assert_plain(parse(&m, &arena));
	assert_string_equal(ld_cache_generator(parse(&m, &arena)), "test");
	m.n = 0;
	old_layout(&m, plain, PLAIN);
	assert_plain(parse(&m, &arena));
	assert_null(ld_cache_generator(parse(&m, &arena)));
	arena_free(&arena);
}

/* In a file of both layouts the new part counts; it stands behind the old entries. */
static void new_part_of_a_combined_file_is_read(void **state)
{
	static const struct entry other[] = {{"libold.so", "/old/libold.so", X86, 0}};
	struct maker m = {.n = 0};
	struct arena arena = {0};
	struct ld_cache *c;

	(void)state;
	old_layout(&m, other, 1);
	m.n = 32; /* header and one entry, aligned */
	memset(m.data + 28, 0, 4);
	new_layout(&m, plain, PLAIN);
	c = parse(&m, &arena);
	assert_plain(c);
	assert_null(find(c, "libold.so"));
	arena_free(&arena);
}

static void best_level_that_the_processor_has_wins(void **state)
{
	static const struct entry e[] = {
		{"liby.so", "/v2/liby.so", X86, NAMED(1, 0)}, {"liby.so", "/v3/liby.so", X86, NAMED(2, 1)},
		{"liby.so", "/unknown/liby.so", X86, NAMED(0, 99)}, {"liby.so", "/plain/liby.so", X86, 0},
	};
	struct maker m = {.n = 0};
	struct arena arena = {0};
	struct ld_cache *c;

	(void)state;
	new_layout(&m, e, 4);
	c = parse(&m, &arena);
	assert_string_equal(find_for(c, "liby.so", 3, 236), "/v3/liby.so");
	assert_string_equal(find_for(c, "liby.so", 2, 236), "/v2/liby.so");
	assert_string_equal(find_for(c, "liby.so", 1, 236), "/plain/liby.so");
	arena_free(&arena);
}

static void legacy_capabilities_end_with_2_39(void **state)
{
	static const struct entry e[] = {
		{"libz.so", "/xeon/libz.so", X86, 1ull << 51}, {"libz.so", "/unknown/libz.so", X86, 1ull << 40},
		{"libz.so", "/haswell/libz.so", X86, 1ull << 50}, {"libz.so", "/plain/libz.so", X86, 0},
	};
	struct maker m = {.n = 0};
	struct arena arena = {0};
	struct ld_cache *c;

	(void)state;
	new_layout(&m, e, 4);
	c = parse(&m, &arena);
	assert_string_equal(find_for(c, "libz.so", 3, 231), "/haswell/libz.so");
	assert_string_equal(find_for(c, "libz.so", 3, 239), "/haswell/libz.so");
	assert_string_equal(find_for(c, "libz.so", 3, 240), "/plain/libz.so");
	arena_free(&arena);
}

static void cut_files_are_no_cache_or_lose_entries(void **state)
{
	struct maker whole = {.n = 0};
	struct arena arena = {0};
	size_t n;

	(void)state;
	new_layout(&whole, plain, PLAIN);
	for (n = 0; n < whole.n; n++) {
		struct maker m = whole;
		struct ld_cache *c;
		const char *path;

		m.n = n;
		memset(m.data + n, 0, sizeof(m.data) - n);
		c = parse(&m, &arena);
		if (n < 48 + 24 * PLAIN)
			assert_null(c);
		path = c ? find(c, "libx.so.9") : NULL;
		if (path) /* what is left of the right answer */
			assert_int_equal(strncmp(path, "/a/libx.so.9", strlen(path)), 0);
	}
	arena_free(&arena);
}

static void damage_has_a_reason(void **state)
{
	struct maker m = {.n = 0};
	struct arena arena = {0};
	const char *why = NULL;

	(void)state;
	assert_null(ld_cache_parse((const unsigned char *)"text", 4, &arena, &why));
	assert_string_equal(why, "no cache of a known format");
	new_layout(&m, plain, PLAIN);
	m.data[28] = 3;
	assert_null(ld_cache_parse(m.data, m.n, &arena, &why));
	assert_string_equal(why, "another byte order");
	m.data[28] = 2;
	m.data[23] = 0x7f;
	assert_null(ld_cache_parse(m.data, m.n, &arena, &why));
	assert_string_equal(why, "more entries than the file can hold");
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_layouts_are_read), cmocka_unit_test(new_part_of_a_combined_file_is_read),
		cmocka_unit_test(best_level_that_the_processor_has_wins),
		cmocka_unit_test(legacy_capabilities_end_with_2_39),
		cmocka_unit_test(cut_files_are_no_cache_or_lose_entries), cmocka_unit_test(damage_has_a_reason),
	};

	return run_all(tests);
}
