#include "base/reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void reader_open(struct reader *r, int fd, uint64_t size)
{
	r->fd = fd;
	r->size = size;
	r->window_at = 0;
	r->window_n = 0;
}

/* Up to N bytes; fewer only at the end of the file or on an error. */
static size_t read_some(int fd, uint64_t offset, unsigned char *to, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, to + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

/* Makes the window cover OFFSET; returns the bytes available from there on. */
static size_t window_to(struct reader *r, uint64_t offset)
{
	if (offset >= r->window_at && offset - r->window_at < r->window_n)
		return r->window_n - (size_t)(offset - r->window_at);
	if (offset >= r->size)
		return 0;
	/* Tables grow towards higher addresses, so look ahead, but keep a little
	 * of what lies before: the next string is often just behind. */
	r->window_at = offset & ~(uint64_t)1023;
	r->window_n = read_some(r->fd, r->window_at, r->window, sizeof(r->window));
	if (offset - r->window_at >= r->window_n)
		return 0;
	return r->window_n - (size_t)(offset - r->window_at);
}

bool reader_at(struct reader *r, uint64_t offset, void *to, size_t n)
{
	uint64_t end;

	if (__builtin_add_overflow(offset, n, &end) || end > r->size)
		return false;
	if (n > sizeof(r->window) / 2)
		return read_some(r->fd, offset, to, n) == n;
	if (window_to(r, offset) < n) {
		/* The wanted bytes straddle the window's end: start a new one there. */
		r->window_n = 0;
		if (window_to(r, offset) < n)
			return false;
	}
	memcpy(to, r->window + (offset - r->window_at), n);
	return true;
}

long reader_string(struct reader *r, uint64_t offset, char *to, size_t limit)
{
	size_t n = 0;

	while (n < limit) {
		size_t have = window_to(r, offset + n), want = limit - n;
		const unsigned char *from = r->window + (offset + n - r->window_at);
		const unsigned char *nul;

		if (!have)
			return -1;
		if (have > want)
			have = want;
		nul = memchr(from, 0, have);
		if (nul) {
			memcpy(to + n, from, (size_t)(nul - from) + 1);
			return (long)(n + (size_t)(nul - from));
		}
		memcpy(to + n, from, have);
		n += have;
	}
	return -1;
}
