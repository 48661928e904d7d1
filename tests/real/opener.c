/* Opens files in order and ends, for check-wheels.sh.
 *
 * usage: opener _exit|return FLAG[,FLAG...]:FILE...      FLAG: now lazy global local deepbind
 *
 * How it ends decides whether destructors run.  The program knows no file and
 * no function of any library by name: everything comes from the command line. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int flag_of(const char *word, size_t length)
{
	static const struct {
		const char *word;
		int flag;
	} flags[] = {
		{"now", RTLD_NOW},
		{"lazy", RTLD_LAZY},
		{"global", RTLD_GLOBAL},
		{"local", RTLD_LOCAL},
		{"deepbind", RTLD_DEEPBIND},
	};
	size_t i;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strlen(flags[i].word) == length && !memcmp(flags[i].word, word, length))
			return flags[i].flag;
	return -1;
}

static int open_one(const char *argument)
{
	int all = 0;

	for (;;) {
		size_t length = strcspn(argument, ",:");
		int flag = flag_of(argument, length);

		if (flag < 0 || !argument[length]) {
			fprintf(stderr, "opener: cannot read '%s'\n", argument);
			return -1;
		}
		all |= flag;
		argument += length + 1;
		if (argument[-1] == ':')
			break;
	}
	if (!dlopen(argument, all)) {
		fprintf(stderr, "opener: %s\n", dlerror());
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 2 || (strcmp(argv[1], "_exit") && strcmp(argv[1], "return"))) {
		fprintf(stderr, "usage: opener _exit|return FLAG[,FLAG...]:FILE...\n");
		return 2;
	}
	for (i = 2; i < argc; i++)
		if (open_one(argv[i]) < 0)
			return 3;
	if (argv[1][0] == '_')
		_exit(0);
	return 0;
}
