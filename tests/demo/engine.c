/* The engine of the demo: one program with two ways to NCCL. Its decode role uses the shim (linked),
 * its prefill role uses the binding (opened at run time). It does what such an engine does first: log
 * both versions, make the prefill role's communicator, reduce once. */
#define _GNU_SOURCE
#include "binding.h"
#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct {
	char internal[128];
} unique_id;

static const char *file_of(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) != 0 ? info.dli_fname : "?";
}

static const char *name_of(int result)
{
	return result == 0 ? "ncclSuccess" : result == 4 ? "ncclInvalidArgument" : "an error";
}

static int prefill(void)
{
	int (*get_unique_id)(unique_id *) = binding_symbol(BINDING_GET_UNIQUE_ID);
	int (*init_rank)(void **, int, unique_id, int) = binding_symbol(BINDING_COMM_INIT_RANK);
	int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *) =
		binding_symbol(BINDING_ALL_REDUCE);
	float send[4] = {1, 2, 3, 4}, receive[4] = {0};
	void *comm = NULL;
	unique_id id;
	int result;

	result = get_unique_id(&id);
	if (result == 0)
		result = init_rank(&comm, 1, id, 0);
	printf("  init:       %d (%s)\n", result, name_of(result));
	if (result != 0)
		return result;
	result = all_reduce(send, receive, 4, 7, 0, comm, NULL);
	printf("  all-reduce: %d (%s)\n", result, name_of(result));
	if (result == 0 && memcmp(send, receive, sizeof(send)) != 0) {
		printf("  the sum is wrong\n");
		result = 3;
	}
	return result;
}

int main(int argc, char **argv)
{
	int (*get_version)(int *);
	int linked = 0, opened = 0, result;
	void *context = NULL;

	if (argc > 1 && strcmp(argv[1], "decode") == 0) {
		result = shim_context_create(&context, 1, 0);
		printf("  init:       %d (%s)\n", result, name_of(result));
		return result != 0;
	}
	shim_version(&linked);
	printf("  shim:       NCCL %d from %s\n", linked, file_of(shim_library()));
	get_version = (int (*)(int *))binding_symbol(BINDING_GET_VERSION);
	get_version(&opened);
	printf("  binding:    NCCL %d from %s\n", opened, file_of((const void *)get_version));
	result = prefill();
	if (result != 0)
		printf("  failed to start the engine: NCCL all-reduce failed: %s\n",
			name_of(result));
	return result != 0;
}
