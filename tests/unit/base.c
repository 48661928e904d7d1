/* Interned names, the arena, vectors, errors. */
#include "test.h"

#include "base/error.h"
#include "base/names.h"

#include <stdio.h>

static void equal_names_are_one_pointer(void **state)
{
	struct names pool = {0};
	const char *first = names_add(&pool, "libc.so.6");
	char text[32];
	int i;

	(void)state;
	for (i = 0; i < 5000; i++) { /* more than the table has room for at first */
		snprintf(text, sizeof(text), "lib%d.so", i);
		names_add(&pool, text);
	}
	assert_ptr_equal(names_add(&pool, "libc.so.6"), first);
	assert_ptr_equal(names_add_n(&pool, "libc.so.6.1", 9), first);
	assert_ptr_not_equal(names_add(&pool, "libc.so.61"), first);
	assert_ptr_equal(names_add_n(&pool, "x", 0), names_add(&pool, ""));
	assert_int_equal(pool.n, 5003);
	names_free(&pool);
}

static void name_map_keeps_the_last_value(void **state)
{
	struct names pool = {0};
	struct name_map map = {0};
	char text[32];
	uintptr_t i;

	(void)state;
	assert_null(name_map_get(&map, names_add(&pool, "unknown")));
	for (i = 1; i <= 1000; i++) {
		snprintf(text, sizeof(text), "%d", (int)i);
		name_map_put(&map, names_add(&pool, text), (void *)i);
	}
	name_map_put(&map, names_add(&pool, "7"), (void *)70);
	assert_int_equal(map.n, 1000);
	assert_ptr_equal(name_map_get(&map, names_add(&pool, "7")), (void *)70);
	assert_ptr_equal(name_map_get(&map, names_add(&pool, "1000")), (void *)1000);
	assert_null(name_map_get(&map, names_add(&pool, "1001")));
	name_map_free(&map);
	names_free(&pool);
}

static void arena_memory_is_zeroed_and_stays(void **state)
{
	struct arena a = {0};
	char *small = arena_strdup(&a, "small"), *large;
	size_t i;

	(void)state;
	large = arena_alloc(&a, 1 << 20); /* larger than a block */
	for (i = 0; i < 1 << 20; i++)
		assert_int_equal(large[i], 0);
	memset(large, 0xff, 1 << 20);
	for (i = 0; i < 10000; i++)
		assert_int_equal((uintptr_t)arena_alloc(&a, i % 40) % _Alignof(max_align_t), 0);
	assert_string_equal(small, "small");
	assert_string_equal(arena_printf(&a, "%s-%d", small, 7), "small-7");
	assert_string_equal(arena_strndup(&a, "abc", 2), "ab");
	arena_free(&a);
	assert_null(a.last);
}

static void vector_grows(void **state)
{
	VEC(int) v = {0};
	int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		vec_push(&v, i);
	assert_int_equal(v.n, 1000);
	assert_int_equal(v.at[0], 0);
	assert_int_equal(v.at[999], 999);
	vec_free(&v);
	assert_int_equal(v.n + v.room, 0);
}

static void errors_are_wrapped(void **state)
{
	struct error e = {0};

	(void)state;
	assert_int_equal(error_set(&e, "%s: no such file", "/x"), -1);
	assert_int_equal(error_wrap(&e, "reading the %s", "cache"), -1);
	assert_string_equal(e.text, "reading the cache: /x: no such file");
	error_clear(&e);
	assert_null(e.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_names_are_one_pointer), cmocka_unit_test(name_map_keeps_the_last_value),
		cmocka_unit_test(arena_memory_is_zeroed_and_stays), cmocka_unit_test(vector_grows),
		cmocka_unit_test(errors_are_wrapped),
	};

	return run_all(tests);
}
