#include "base/reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void reader_open(struct reader *r, int fd, uint64_t size)
{
	r->fd = fd;
	r->size = size;
	r->last = 0;
	r->window[0].n = r->window[1].n = 0;
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

static bool covers(const struct reader_window *w, uint64_t offset)
{
	return offset >= w->at && offset - w->at < w->n;
}

/* Bytes readable at OFFSET, and where; 0 beyond the end or after an error.  At
 * least WANT of them if the file has them and WANT is at most half a window. */
static size_t window_at(struct reader *r, uint64_t offset, size_t want, const unsigned char **at)
{
	struct reader_window *w = &r->window[r->last];

	if (!covers(w, offset) || w->n - (size_t)(offset - w->at) < want) {
		w = &r->window[r->last ^= 1];
		if (!covers(w, offset) || w->n - (size_t)(offset - w->at) < want) {
			if (offset >= r->size)
				return 0;
			/* Tables grow towards higher addresses, so look ahead; but the
			 * next string is often just behind. */
			w->at = offset & ~(uint64_t)1023;
			w->n = read_some(r->fd, w->at, w->data, sizeof(w->data));
			if (!covers(w, offset))
				return 0;
		}
	}
	*at = w->data + (offset - w->at);
	return w->n - (size_t)(offset - w->at);
}

bool reader_at(struct reader *r, uint64_t offset, void *to, size_t n)
{
	const unsigned char *at;
	uint64_t end;

	if (__builtin_add_overflow(offset, n, &end) || end > r->size)
		return false;
	if (n > READER_WINDOW / 2)
		return read_some(r->fd, offset, to, n) == n;
	if (!n)
		return true;
	if (window_at(r, offset, n, &at) < n)
		return false;
	memcpy(to, at, n);
	return true;
}

long reader_string(struct reader *r, uint64_t offset, char *to, size_t limit)
{
	size_t n = 0;

	while (n < limit) {
		const unsigned char *at, *nul;
		size_t have = window_at(r, offset + n, 1, &at), want = limit - n;

		if (!have)
			return -1;
		if (have > want)
			have = want;
		nul = memchr(at, 0, have);
		if (nul) {
			memcpy(to + n, at, (size_t)(nul - at) + 1);
			return (long)(n + (size_t)(nul - at));
		}
		memcpy(to + n, at, have);
		n += have;
	}
	return -1;
}

uint64_t reader_after_hole(const struct reader *r, uint64_t offset)
{
	off_t data = offset < r->size ? lseek(r->fd, (off_t)offset, SEEK_DATA) : -1;

	if (data >= 0)
		return (uint64_t)data;
	return offset >= r->size || errno == ENXIO ? r->size : offset; /* not every file system knows its holes */
}
