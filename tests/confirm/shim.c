/* A shim that is opened at run time.  OPENS: its constructor opens that name, which it composes so that
 * no analysis of the file can see it.  SLEEPS: its constructor never ends.  CRASHES: it does not end well. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int ncclGetVersion(int *);

int shim_version(void)
{
	int version = 0;

	ncclGetVersion(&version);
	return version;
}

__attribute__((constructor)) static void at_load(void)
{
#ifdef OPENS
	const char *directory = getenv("SURPRISE");
	char name[4096];

	snprintf(name, sizeof(name), "%s/lib%s.%s", directory, OPENS, "so");
	dlopen(name, RTLD_LAZY | RTLD_GLOBAL);
#endif
#ifdef SLEEPS
	for (;;)
		pause();
#endif
#ifdef CRASHES
	abort();
#endif
}
