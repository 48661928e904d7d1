/* Opens a shared object and calls functions of it, for check-corpus.sh.
 *
 * usage: call FILE [FUNCTION...]
 *
 * Every function gets six pointers to zeroed memory, as many as it takes; what it answers is printed.  The process ends
 * with _exit. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	typedef long function(void *, void *, void *, void *, void *, void *);
	void *handle, *memory = calloc(1, 1 << 20);
	function *f;
	int i;

	if (argc < 2 || !memory)
		return 2;
	handle = dlopen(argv[1], RTLD_NOW);
	if (!handle) {
		fprintf(stderr, "call: %s\n", dlerror());
		return 3;
	}
	for (i = 2; i < argc; i++) {
		f = (function *)dlsym(handle, argv[i]);
		if (!f) {
			fprintf(stderr, "call: %s\n", dlerror());
			return 4;
		}
		printf("%s %d\n", argv[i], (int)f(memory, memory, memory, memory, memory, memory));
		fflush(stdout);
	}
	_exit(0);
}
