/* Bounded reads: windows, strings that lie across their borders, the end of the file. */
#include "test.h"

#include "base/reader.h"

enum { SIZE = 5 * READER_WINDOW + 100 };

static unsigned char data[SIZE];

static int open_reader(struct reader *r)
{
	int fd;
	size_t i;

	for (i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i % 251 + 1); /* no zero among them */
	fd = file_of(data, SIZE);
	reader_open(r, fd, SIZE);
	return fd;
}

static void every_read_gives_the_bytes_of_the_file(void **state)
{
	static const uint64_t offsets[] = {0, READER_WINDOW - 3, 1, 3 * READER_WINDOW + 7, READER_WINDOW, SIZE - 5000,
					   2, SIZE - 1, 2 * READER_WINDOW - 1, 1023, 1024, 1025};
	static const size_t sizes[] = {1, 7, 24, 1024, READER_WINDOW / 2, READER_WINDOW / 2 + 1, 3 * READER_WINDOW};
	unsigned char to[3 * READER_WINDOW];
	struct reader r;
	size_t i, k;
	int fd = open_reader(&r);

	(void)state;
	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
			bool inside = offsets[i] + sizes[k] <= SIZE;

			assert_int_equal(reader_at(&r, offsets[i], to, sizes[k]), inside);
			if (inside)
				assert_memory_equal(to, data + offsets[i], sizes[k]);
		}
	close(fd);
}

static void nothing_is_read_beyond_the_end(void **state)
{
	char to[32];
	struct reader r;
	int fd = open_reader(&r);

	(void)state;
	assert_true(reader_at(&r, SIZE, to, 0));
	assert_false(reader_at(&r, SIZE, to, 1));
	assert_false(reader_at(&r, SIZE - 1, to, 2));
	assert_false(reader_at(&r, UINT64_MAX, to, 1));
	assert_false(reader_at(&r, UINT64_MAX - 3, to, 32));
	close(fd);
}

static void strings_cross_the_borders_of_windows(void **state)
{
	static const size_t at[] = {0, READER_WINDOW - 5, READER_WINDOW - 1, 2 * READER_WINDOW - 10, 4 * READER_WINDOW};
	char to[3 * READER_WINDOW];
	struct reader r;
	size_t i;
	int fd = open_reader(&r);

	(void)state;
	assert_int_equal(pwrite(fd, "", 1, 4 * READER_WINDOW + 50), 1);
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		size_t length = 4 * READER_WINDOW + 50 - at[i];

		reader_open(&r, fd, SIZE);
		if (length < sizeof(to)) {
			assert_int_equal(reader_string(&r, at[i], to, sizeof(to)), length);
			assert_int_equal(strlen(to), length);
			assert_memory_equal(to, data + at[i], length);
			assert_int_equal(reader_string(&r, at[i], to, length + 1), length);
			assert_int_equal(reader_string(&r, at[i], to, length), -1); /* no room for the NUL */
		} else {
			assert_int_equal(reader_string(&r, at[i], to, sizeof(to)), -1);
		}
	}
	assert_int_equal(reader_string(&r, SIZE - 10, to, sizeof(to)), -1); /* the file ends first */
	assert_int_equal(reader_string(&r, SIZE, to, sizeof(to)), -1);
	assert_int_equal(reader_string(&r, UINT64_MAX, to, sizeof(to)), -1);
	close(fd);
}

static void file_that_shrinks_is_a_failure(void **state)
{
	char to[16];
	struct reader r;
	int fd = open_reader(&r);

	(void)state;
	assert_int_equal(ftruncate(fd, READER_WINDOW), 0);
	assert_true(reader_at(&r, READER_WINDOW - 16, to, 16));
	assert_false(reader_at(&r, READER_WINDOW - 8, to, 16));
	assert_false(reader_at(&r, 2 * READER_WINDOW, to, 16));
	assert_int_equal(reader_string(&r, READER_WINDOW - 8, to, 16), -1);
	close(fd);
}

static void holes_are_stepped_over(void **state)
{
	struct reader r;
	int fd = file_of("head", 4);
	uint64_t after;

	(void)state;
	assert_int_equal(pwrite(fd, "tail", 4, 1 << 30), 4);
	reader_open(&r, fd, (1 << 30) + 4);
	assert_int_equal(reader_after_hole(&r, 0), 0);
	after = reader_after_hole(&r, 1 << 20);
	assert_true(after > 1 << 20 && after <= 1 << 30);
	assert_int_equal(reader_after_hole(&r, r.size), r.size);
	assert_int_equal(reader_after_hole(&r, UINT64_MAX), r.size);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_read_gives_the_bytes_of_the_file), cmocka_unit_test(nothing_is_read_beyond_the_end),
		cmocka_unit_test(strings_cross_the_borders_of_windows), cmocka_unit_test(file_that_shrinks_is_a_failure),
		cmocka_unit_test(holes_are_stepped_over),
	};

	return run_all(tests);
}
