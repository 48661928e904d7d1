/* The line of progress: not in the first second, not more often than the eye sees, gone at the end. */
#include "test.h"

#include "base/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds;

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	t->tv_sec = (time_t)seconds;
	t->tv_nsec = (long)((seconds - (double)t->tv_sec) * 1e9);
	return 0;
}

static FILE *kept;
static int stderr_before;

/* What has been written to standard error since begin(). */
static const char *written(void)
{
	static char text[4096];
	size_t n;

	fflush(stderr);
	rewind(kept);
	n = fread(text, 1, sizeof(text) - 1, kept);
	text[n] = '\0';
	dup2(stderr_before, STDERR_FILENO);
	return text;
}

static void begin(void)
{
	kept = tmpfile();
	assert_non_null(kept);
	stderr_before = dup(STDERR_FILENO);
	dup2(fileno(kept), STDERR_FILENO);
}

static void end(void)
{
	close(stderr_before);
	fclose(kept);
}

static void nothing_is_shown_unless_it_is_wanted(void **state)
{
	(void)state;
	begin();
	for (seconds = 100; seconds < 110; seconds += 0.05)
		progress_show("things", 1, 2);
	progress_end();
	assert_string_equal(written(), "");
	end();
}

static void short_work_leaves_no_trace(void **state)
{
	(void)state;
	progress_enable();
	begin();
	for (seconds = 200; seconds < 200.9; seconds += 0.05)
		progress_show("things", 1, 2);
	progress_end();
	assert_string_equal(written(), "");
	end();
}

static void long_work_is_shown_now_and_then_and_taken_away(void **state)
{
	const char *text, *at;
	int lines = 0;

	(void)state;
	progress_enable();
	begin();
	for (seconds = 300; seconds < 302; seconds += 0.01)
		progress_show("a name that is much longer than what a line of a terminal has room for, all in all", 17, 42);
	progress_end();
	text = written();
	for (at = text; (at = strstr(at, "\r\033[K17 of 42 a name")); at++)
		lines++;
	assert_in_range(lines, 8, 11);
	assert_null(strstr(text, "all in all"));
	assert_string_equal(text + strlen(text) - 4, "\r\033[K");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_shown_unless_it_is_wanted),
		cmocka_unit_test(short_work_leaves_no_trace),
		cmocka_unit_test(long_work_is_shown_now_and_then_and_taken_away),
	};

	return run_all(tests);
}
