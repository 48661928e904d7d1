#include "elf/scan.h"

#include <endian.h>
#include <stdlib.h>

enum { CHUNK = 1 << 20 };

struct interval {
	uint64_t begin, end;
};

struct scan {
	struct reader *r;
	const struct elf_object *o;
	const char *const *needle;
	unsigned n;
	scan_function *found;
	void *context;
	unsigned char *buffer; /* of CHUNK + 2 * SCAN_CONTEXT bytes */
};

static int by_begin(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The segments' bytes in the file, sorted, none twice. */
static size_t intervals_of(const struct elf_object *o, uint64_t size, struct interval *out)
{
	size_t i, n = 0, m = 0;

	for (i = 0; i < o->n_load; i++) {
		uint64_t begin = o->load[i].offset, end = begin + o->load[i].filesz;

		if (end > size)
			end = size;
		if (begin < end)
			out[n++] = (struct interval){begin, end};
	}
	qsort(out, n, sizeof(*out), by_begin);
	for (i = 0; i < n; i++)
		if (m && out[i].begin <= out[m - 1].end) {
			if (out[i].end > out[m - 1].end)
				out[m - 1].end = out[i].end;
		} else {
			out[m++] = out[i];
		}
	return m;
}

size_t scan_find_fatbin(const unsigned char *data, size_t n, size_t have, uint64_t offset, uint64_t left,
			uint64_t *length)
{
	static const unsigned char magic[] = {0x50, 0xed, 0x55, 0xba, 0x01, 0x00};
	const unsigned char *at = data;

	while ((at = memmem(at, have - (size_t)(at - data), magic, sizeof(magic))) && at < data + n) {
		size_t k = (size_t)(at - data);
		uint16_t header;
		uint64_t size;

		if (have - k >= 16 && (offset + k) % 8 == 0) {
			memcpy(&header, at + 6, sizeof(header));
			memcpy(&size, at + 8, sizeof(size));
			header = le16toh(header);
			size = le64toh(size);
			if (header >= 16 && size && size <= left - k && size + header <= left - k) {
				*length = size + header;
				return k;
			}
		}
		at++;
	}
	return n;
}

static size_t at_most(size_t n, size_t most)
{
	return n < most ? n : most;
}

static void report(struct scan *s, const unsigned char *from, size_t n, const unsigned char *limit, uint64_t offset)
{
	unsigned i;

	for (i = 0; i < s->n; i++) {
		const size_t length = strlen(s->needle[i]);
		const unsigned char *at = from;

		while (at < from + n &&
		       (at = memmem(at, (size_t)(limit - at), s->needle[i], length)) && at < from + n) {
			/* Who looks at a hit may well look at all of this; a file full
			 * of hits must not make that a matter of minutes. */
			struct scan_hit hit = {.needle = i, .at = at,
					       .before = at_most((size_t)(at - s->buffer), SCAN_CONTEXT),
					       .after = at_most((size_t)(limit - at), SCAN_CONTEXT),
					       .offset = offset + (uint64_t)(at - from)};

			if (hit.offset < s->o->strtab || hit.offset >= s->o->strtab + s->o->strtab_size)
				s->found(s->context, &hit);
			at += length;
		}
	}
}

/* What begins from FROM to STOP in the buffer of HAVE bytes, which stand at BASE
 * of the file; END is the end of the interval.  Returns where to go on. */
static uint64_t scan_buffer(struct scan *s, size_t from, size_t stop, size_t have, uint64_t base, uint64_t end)
{
	while (from < stop) {
		uint64_t length = 0;
		const unsigned char *data = s->buffer + from;
		size_t block = scan_find_fatbin(data, stop - from, have - from, base + from, end - (base + from), &length);

		report(s, data, block, length ? data + block : s->buffer + have, base + from);
		from += block;
		if (length >= stop - from)
			return base + from + length;
		from += (size_t)length; /* blocks may be small: no reading again for each */
	}
	return base + stop;
}

static int scan_interval(struct scan *s, struct interval iv)
{
	uint64_t at = iv.begin;

	while (at < iv.end) {
		uint64_t base = at - iv.begin < SCAN_CONTEXT ? iv.begin : at - SCAN_CONTEXT;
		uint64_t want = CHUNK + 2 * SCAN_CONTEXT, have = iv.end - base < want ? iv.end - base : want;

		if (!reader_at(s->r, base, s->buffer, have))
			return -1;
		/* A hit in the last bytes would lack its context: leave it to the
		 * next round, unless nothing follows. */
		at = scan_buffer(s, (size_t)(at - base), (size_t)have - (base + have < iv.end ? SCAN_CONTEXT : 0),
				 (size_t)have, base, iv.end);
		if (at < iv.end)
			at = reader_after_hole(s->r, at);
	}
	return 0;
}

int elf_scan(struct reader *r, const struct elf_object *o, const char *const *needle, unsigned n,
	     scan_function *found, void *context)
{
	struct scan s = {.r = r, .o = o, .needle = needle, .n = n, .found = found, .context = context};
	struct interval *iv = xmalloc((o->n_load + 1) * sizeof(*iv));
	size_t i, count = intervals_of(o, r->size, iv);
	int result = 0;

	s.buffer = xmalloc(CHUNK + 2 * SCAN_CONTEXT);
	for (i = 0; i < count && !result; i++)
		result = scan_interval(&s, iv[i]);
	free(s.buffer);
	free(iv);
	return result;
}
