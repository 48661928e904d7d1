#include "base/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static bool enabled, shown;
static double began, last;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void progress_enable(void)
{
	enabled = true;
}

void progress_show(const char *what, size_t done, size_t total)
{
	double time;

	if (!enabled)
		return;
	time = now();
	if (!began)
		began = time;
	if (time - began < 1 || time - last < 0.1)
		return;
	last = time;
	shown = true;
	fprintf(stderr, "\r\033[K%zu of %zu %.60s", done, total, what);
	fflush(stderr);
}

void progress_end(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
	began = last = 0;
}
