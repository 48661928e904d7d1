/* How the Rust crate cudarc 0.19.10 (dynamic-loading, CUDA 13.0) reaches NCCL, in C, with the same
 * strings laid out as rustc lays them out: pieces run together without NULs, lengths kept
 * elsewhere. The name that is opened first is never a string of the file; it is composed at run time.
 */
#define _GNU_SOURCE /* RTLD_DEEPBIND */
#include "binding.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE "/root/.cargo/registry/src/index-1949cf8c6b5b557f/cudarc-0.19.10/src/nccl/sys/mod.rs"

/* What the linker makes of a crate's read-only data: every piece below is found in a longer run. */
#define UNABLE   "Unable to dynamically load the \""
#define SEARCHED "\" shared library - searched for library names: "
#define ENSURE                                                                                   \
	". Ensure that `LD_LIBRARY_PATH` has the correct path to the installed library. If the " \
	"shared library is present on the system under a different name than one of those "      \
	"listed above, please open a GitHub issue."
#define MISSING "Missing symbol "

static const char names[] =
	"ncclAllReducencclCommAbortncclCommInitRankncclGetVersionncclGetUniqueId";
static const char words[] = "for<u128mut boolnccl/kindtruemain" MISSING UNABLE SEARCHED ENSURE
			    "64130lib.soTryFromIntError";
static const char location[] = SOURCE;

struct piece {
	const char *text;
	int length;
};

/* The compiler must not see that the pieces make a name, or it puts that name into the file. */
static __attribute__((noinline)) struct piece piece_of(
	const char *run, const char *after, size_t skip, size_t length)
{
	const char *at = strstr(run, after);

	__asm__("" : "+r"(at));
	if (at == NULL)
		abort();
	return (struct piece){at + skip, (int)length};
}

static _Noreturn void panic(const char *format, ...)
{
	va_list list;

	fflush(stdout);
	fprintf(stderr, "thread 'main' panicked at %s:1385:9:\n", location);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(101);
}

/* As the crate opens it; a variant of the demo adds RTLD_DEEPBIND. */
#ifndef BINDING_FLAGS
#define BINDING_FLAGS (RTLD_LAZY | RTLD_LOCAL)
#endif

#define CANDIDATES 17
#define NAME_SIZE  64

/* get_lib_name_candidates() of the crate: the same 17 names in the same order. */
static void compose_candidates(char list[CANDIDATES][NAME_SIZE])
{
	struct piece width = piece_of(words, "64130lib", 0, 2);
	struct piece major = piece_of(words, "64130lib", 2, 2);
	struct piece minor = piece_of(words, "64130lib", 4, 1);
	struct piece lib = piece_of(words, "64130lib", 5, 3);
	struct piece so = piece_of(words, "64130lib", 8, 3);
	struct piece name = piece_of(words, "boolnccl", 4, 4);
	int n = 0;

#define P(x) x.length, x.text
#define ADD(format, ...) \
	snprintf(list[n++], NAME_SIZE, "%.*s%.*s" format, P(lib), P(name), __VA_ARGS__)
	ADD("%.*s", P(so));
	ADD("%.*s%.*s", P(width), P(so));
	ADD("%.*s_%.*s%.*s", P(width), P(major), P(so));
	ADD("%.*s_%.*s%.*s%.*s", P(width), P(major), P(minor), P(so));
	ADD("%.*s_%.*s%.*s_0%.*s", P(width), P(major), P(minor), P(so));
	ADD("%.*s_%.*s0_%.*s%.*s", P(width), P(major), P(minor), P(so));
	ADD("%.*s_10%.*s", P(width), P(so));
	ADD("%.*s_11%.*s", P(width), P(so));
	ADD("%.*s_12%.*s", P(width), P(so));
	ADD("%.*s_%.*s0_0%.*s", P(width), P(major), P(so));
	ADD("%.*s_9%.*s", P(width), P(so));
	ADD("%.*s.%.*s", P(so), P(major));
	ADD("%.*s.12", P(so));
	ADD("%.*s.11", P(so));
	ADD("%.*s.10", P(so));
	ADD("%.*s.9", P(so));
	ADD("%.*s.1", P(so));
}

void *binding_library(void)
{
	static void *library;
	char list[CANDIDATES][NAME_SIZE];
	struct piece unable, searched, ensure, name;

	if (library != NULL)
		return library;
	compose_candidates(list);
	for (int i = 0; i < CANDIDATES; i++) {
		library = dlopen(list[i], BINDING_FLAGS);
		if (library != NULL)
			return library;
	}
	unable = piece_of(words, UNABLE, 0, sizeof(UNABLE) - 1);
	searched = piece_of(words, SEARCHED, 0, sizeof(SEARCHED) - 1);
	ensure = piece_of(words, ENSURE, 0, sizeof(ENSURE) - 1);
	name = piece_of(words, "boolnccl", 4, 4);
	panic("%.*s%.*s%.*s%s, ...%.*s", P(unable), P(name), P(searched), list[0], P(ensure));
}

void *binding_symbol(size_t offset, size_t length)
{
	struct piece missing = piece_of(words, MISSING, 0, sizeof(MISSING) - 1);
	char name[NAME_SIZE];
	void *symbol;

	memcpy(name, names + offset, length);
	name[length] = '\0';
	symbol = dlsym(binding_library(), name);
	if (symbol == NULL)
		panic("%.*s%s", P(missing), name);
	return symbol;
}
