/* Records what a process really opens, for check-corpus.sh: preloaded, it writes a line for every call of dlopen and
 * dlmopen to the file that the variable RECORD names, and goes on in the real function by a tail call, so that the
 * loader still sees who asked (whose RPATH and $ORIGIN count).
 *
 * A line: FLAGS <tab> OBJECT <tab> OFFSET <tab> NAME.  OFFSET is that of the return address in OBJECT, in hexadecimal
 * like FLAGS; OBJECT is "(program)" for the executable.  A null name opens nothing and is left out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int record = -1;

static __attribute__((constructor)) void start(void)
{
	const char *file = getenv("RECORD");

	if (file)
		record = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static __attribute__((noinline)) void note(const char *name, int flags, void *from)
{
	struct link_map *map = NULL;
	Dl_info info;
	char line[8192];
	int n;

	if (!name || record < 0)
		return;
	if (!dladdr1(from, &info, (void **)&map, RTLD_DL_LINKMAP))
		map = NULL;
	n = snprintf(line, sizeof(line), "%x\t%s\t%lx\t%s\n", (unsigned)flags,
		map && *map->l_name ? map->l_name : "(program)",
		map ? (unsigned long)((char *)from - (char *)map->l_addr) : 0UL, name);
	if (n > 0 && (size_t)n < sizeof(line) && write(record, line, (size_t)n) < 0)
		record = -1;
}

void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	note(name, flags, __builtin_return_address(0));
	return real(name, flags);
}

void *dlmopen(Lmid_t space, const char *name, int flags)
{
	void *(*real)(Lmid_t, const char *, int) =
		(void *(*)(Lmid_t, const char *, int))dlsym(RTLD_NEXT, "dlmopen");

	note(name, flags, __builtin_return_address(0));
	return real(space, name, flags);
}
