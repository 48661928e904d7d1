/* An engine that must never run: its constructor and its main leave a file behind that says so. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int ncclCommInitRank(void);
int ncclGetUniqueId(void);
int ncclAllReduce(void);

static void tell(const char *variable)
{
	const char *path = getenv(variable);

	if (path != NULL)
		close(open(path, O_WRONLY | O_CREAT, 0644));
}

__attribute__((constructor)) static void before_main(void)
{
	tell("MARKER_CONSTRUCTOR");
}

int main(int argc, char **argv)
{
	tell("MARKER_MAIN");
	if (argc > 1)
		return dlopen(argv[1], RTLD_NOW) == NULL;
	if (argc < 0)
		return ncclCommInitRank() + ncclGetUniqueId() + ncclAllReduce();
	return 0;
}
