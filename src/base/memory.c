#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_SIZE = 64 * 1024 };

struct arena_block {
	struct arena_block *before;
	size_t used, size;
	_Alignas(max_align_t) unsigned char data[];
};

static _Noreturn void out_of_memory(void)
{
	fputs("ncclwhich: out of memory\n", stderr);
	exit(2);
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *xrealloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

char *xstrdup(const char *s)
{
	char *copy = strdup(s);

	if (!copy)
		out_of_memory();
	return copy;
}

char *xvprintf(const char *format, va_list ap)
{
	char *text;

	if (vasprintf(&text, format, ap) < 0)
		out_of_memory();
	return text;
}

char *xprintf(const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	text = xvprintf(format, ap);
	va_end(ap);
	return text;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	struct arena_block *b = a->last;
	void *p;

	if (size > SIZE_MAX - sizeof(*b) - align)
		out_of_memory();
	size = (size + align - 1) & ~(align - 1);
	if (!b || b->size - b->used < size) {
		size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;

		b = xmalloc(sizeof(*b) + room);
		b->used = 0;
		b->size = room;
		b->before = a->last;
		a->last = b;
	}
	p = b->data + b->used;
	b->used += size;
	return memset(p, 0, size);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *copy = arena_alloc(a, n + 1);

	memcpy(copy, s, n);
	return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *format, va_list ap)
{
	char *text = xvprintf(format, ap);
	char *copy = arena_strdup(a, text);

	free(text);
	return copy;
}

char *arena_printf(struct arena *a, const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	text = arena_vprintf(a, format, ap);
	va_end(ap);
	return text;
}

void arena_free(struct arena *a)
{
	struct arena_block *b, *before;

	for (b = a->last; b; b = before) {
		before = b->before;
		free(b);
	}
	a->last = NULL;
}

void *vec_grow(void *at, size_t *room, size_t n, size_t size)
{
	size_t more = n ? n * 2 : 8;

	if (more < n || more > SIZE_MAX / size)
		out_of_memory();
	*room = more;
	return xrealloc(at, more * size);
}
