/* A libc in miniature, for what the compiler inserts into the libraries that have
 * none: the replay library and the audit library. */
#include <stddef.h>

void *memset(void *to, int value, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n);

void *memset(void *to, int value, size_t n)
{
	volatile unsigned char *p = to;

	while (n--)
		*p++ = (unsigned char)value;
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	volatile unsigned char *p = to;
	const unsigned char *q = from;

	while (n--)
		*p++ = *q++;
	return to;
}
