/* The process of a cell: opens libraries and calls functions as its arguments say.
 *
 *   open FLAGS PATH       FLAGS: letters n (now) l (lazy) g (global) d (deepbind) o (noload)
 *   mint N NAME           call NAME of the Nth library opened: make an id
 *   make N NAME           make a communicator from the id
 *   use N NAME            run one collective on the communicator
 *
 * Every step writes one line before it starts and one with the result.  A result other than 0 ends
 * the steps.  The process then ends as a program does, by returning from main.  All names come from
 * the arguments: nothing in this file names the library that it loads. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct id {
	char internal[128];
};

typedef int mint_fn(struct id *);
typedef int make_fn(void **, int, struct id, int);
typedef int use_fn(const void *, void *, size_t, int, int, void *, void *);

static void say(const char *what, const char *step, int result)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %s %d\n", what, step, result);

	if (write(1, line, n) != n)
		_exit(90);
}

static int flags_of(const char *letters)
{
	int flags = 0;

	for (; *letters; letters++)
		flags |= *letters == 'n'   ? RTLD_NOW
			 : *letters == 'l' ? RTLD_LAZY
			 : *letters == 'g' ? RTLD_GLOBAL
			 : *letters == 'd' ? RTLD_DEEPBIND
			 : *letters == 'o' ? RTLD_NOLOAD
					   : 0;
	return flags;
}

int main(int argc, char **argv)
{
	static void *handles[8], *comm;
	static struct id id;
	float send = 7, receive = 0;
	int opened = 0, result = 0;

	for (int i = 1; i + 2 < argc && result == 0; i += 3) {
		const char *step = argv[i];
		void *function;

		say("begin", step, 0);
		if (strcmp(step, "open") == 0) {
			handles[opened] = dlopen(argv[i + 2], flags_of(argv[i + 1]));
			if (handles[opened++] == NULL) {
				fprintf(stderr, "%s\n", dlerror());
				return 91;
			}
			say("end", step, 0);
			continue;
		}
		function = dlsym(handles[atoi(argv[i + 1])], argv[i + 2]);
		if (function == NULL) {
			fprintf(stderr, "%s\n", dlerror());
			return 92;
		}
		if (strcmp(step, "mint") == 0)
			result = ((mint_fn *)function)(&id);
		else if (strcmp(step, "make") == 0)
			result = ((make_fn *)function)(&comm, 1, id, 0);
		else
			result = ((use_fn *)function)(&send, &receive, 1, 7, 0, comm, NULL);
		say("end", step, result);
		if (result == 0 && strcmp(step, "use") == 0 && receive != send)
			return 93;
	}
	say("begin", "exit", 0);
	return 0;
}
