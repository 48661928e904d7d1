/* What every unit test includes: cmocka with what it wants before it, and a file in memory. */
#ifndef NCCLWHICH_TESTS_UNIT_TEST_H
#define NCCLWHICH_TESTS_UNIT_TEST_H

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* A file of SIZE bytes that only its descriptor names. */
static inline int file_of(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	return fd;
}

#define run_all(tests) cmocka_run_group_tests((tests), NULL, NULL)

#endif
