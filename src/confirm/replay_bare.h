/* The ground that the replay library stands on: system calls, strings, lines.
 *
 * The library is linked with nothing, so that it maps beside any glibc and
 * adds no dependency to the engine's link map; what it wants of libc (dlopen
 * and its family) it references weakly and without a version, which the loader
 * binds to the oldest one.  No errno: a system call returns -errno. */
#ifndef NCCLWHICH_CONFIRM_REPLAY_BARE_H
#define NCCLWHICH_CONFIRM_REPLAY_BARE_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static inline long bare_call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory", "cc");
	return x0;
#else
#error "the replay library knows x86-64 and AArch64"
#endif
}

static inline void __attribute__((noreturn)) bare_exit(int status)
{
	for (;;)
		bare_call(SYS_exit_group, status, 0, 0, 0);
}

static inline long bare_read(int fd, void *to, size_t n)
{
	return bare_call(SYS_read, fd, (long)to, (long)n, 0);
}

static inline int bare_stat(const char *path, struct stat *st)
{
	return (int)bare_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)st, 0);
}

static inline void bare_sleep(long milliseconds)
{
	struct {
		long seconds, nanoseconds;
	} t = {milliseconds / 1000, milliseconds % 1000 * 1000000};

	bare_call(SYS_nanosleep, (long)&t, 0, 0, 0);
}

/* Ours, also for what the compiler inserts: hidden, so never the engine's. */
void *memset(void *to, int value, size_t n) __attribute__((visibility("hidden")));
void *memcpy(void *restrict to, const void *restrict from, size_t n) __attribute__((visibility("hidden")));

static inline int bare_equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static inline int bare_starts(const char *s, const char *prefix)
{
	while (*prefix && *s == *prefix)
		s++, prefix++;
	return !*prefix;
}

static inline long bare_number(const char *s)
{
	long n = 0;
	int minus = *s == '-';

	for (s += minus; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (*s - '0');
	return minus ? -n : n;
}

/* One record in the making.  Ranks write at the same time, so each has its own
 * and a line leaves in one write. */
#ifndef LINE_ROOM_GIVEN
#define LINE_ROOM_GIVEN (20 * 1024)
#endif
#ifndef LINE_FAILED
#define LINE_FAILED() bare_exit(99)
#endif

enum { LINE_ROOM = LINE_ROOM_GIVEN };

struct line {
	size_t n;
	char text[LINE_ROOM];
};

extern int replay_records; /* the descriptor */

static inline void line_put(struct line *l, const char *s)
{
	for (; *s && l->n < LINE_ROOM - 2; s++)
		l->text[l->n++] = *s;
}

static inline void line_field(struct line *l, const char *s)
{
	if (l->n)
		line_put(l, "\t");
	for (; *s && l->n < LINE_ROOM - 3; s++) {
		if (*s == '\\' || *s == '\t' || *s == '\n') {
			l->text[l->n++] = '\\';
			l->text[l->n++] = *s == '\\' ? '\\' : *s == '\t' ? 't' : 'n';
		} else {
			l->text[l->n++] = *s;
		}
	}
}

static inline void line_number(struct line *l, long number)
{
	char text[24], *at = text + sizeof(text) - 1;
	unsigned long n = number < 0 ? 0 - (unsigned long)number : (unsigned long)number;

	*at = '\0';
	do
		*--at = (char)('0' + n % 10);
	while (n /= 10);
	if (number < 0)
		*--at = '-';
	line_field(l, at);
}

static inline void line_end(struct line *l)
{
	size_t done = 0;

	l->text[l->n++] = '\n';
	while (done < l->n) {
		long n = bare_call(SYS_write, replay_records, (long)(l->text + done), (long)(l->n - done), 0);

		if (n <= 0)
			LINE_FAILED();
		done += (size_t)n;
	}
	l->n = 0;
}

/* A record of one word, and a last one. */
static inline void line_say(const char *what, const char *argument)
{
	struct line l;

	l.n = 0;
	line_field(&l, what);
	if (argument)
		line_field(&l, argument);
	line_end(&l);
}

static inline void __attribute__((noreturn)) replay_give_up(const char *why)
{
	line_say("trouble", why);
	bare_exit(98);
}

#endif
