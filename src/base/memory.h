/* Memory that dies with its owner: an arena, growing vectors, checked malloc.
 *
 * Whatever a simulation makes lives in one arena and is freed with it, so no
 * object of the link map has a life of its own to get wrong.  Pointers into an
 * arena stay valid until arena_free(); a vector's elements move when it grows,
 * so keep indices, or pointers to arena objects, never pointers to elements.
 * Out of memory is not survivable: the x-functions say so and exit 2. */
#ifndef NCCLWHICH_BASE_MEMORY_H
#define NCCLWHICH_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

void *xmalloc(size_t size) __attribute__((returns_nonnull, malloc));
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((returns_nonnull));
char *xprintf(const char *format, ...)
	__attribute__((format(printf, 1, 2), returns_nonnull));
char *xvprintf(const char *format, va_list ap)
	__attribute__((format(printf, 1, 0), returns_nonnull));

struct arena {
	struct arena_block *last;
};

/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *a, size_t size) __attribute__((returns_nonnull));
char *arena_strndup(struct arena *a, const char *s, size_t n)
	__attribute__((returns_nonnull));
char *arena_strdup(struct arena *a, const char *s) __attribute__((returns_nonnull));
char *arena_vprintf(struct arena *a, const char *format, va_list ap)
	__attribute__((format(printf, 2, 0), returns_nonnull));
char *arena_printf(struct arena *a, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));
void arena_free(struct arena *a);

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))

/* A growing array: VEC(int) numbers = {0}; vec_push(&numbers, 3); numbers.at[0]. */
#define VEC(type)             \
	struct {              \
		type *at;     \
		size_t n;     \
		size_t room;  \
	}

void *vec_grow(void *at, size_t *room, size_t n, size_t size) __attribute__((returns_nonnull));

#define vec_push(v, value)                                                                \
	do {                                                                              \
		if ((v)->n == (v)->room)                                                  \
			(v)->at = vec_grow((v)->at, &(v)->room, (v)->n, sizeof(*(v)->at)); \
		(v)->at[(v)->n++] = (value);                                              \
	} while (0)

#define vec_free(v)           \
	do {                  \
		free((v)->at);  \
		(v)->at = NULL; \
		(v)->n = (v)->room = 0; \
	} while (0)

#endif
