/* The engine's communication shim: NCCL as a linked library. It becomes an archive that is linked
 * statically into the engine, so the engine itself gets DT_NEEDED libnccl.so.2. */
#include "shim.h"

typedef struct {
	char internal[128];
} ncclUniqueId;

int ncclGetVersion(int *version);
int ncclGetUniqueId(ncclUniqueId *id);
int ncclCommInitRank(void **comm, int ranks, ncclUniqueId id, int rank);

int shim_version(int *version)
{
	return ncclGetVersion(version);
}

const void *shim_library(void)
{
	return (const void *)ncclGetVersion;
}

int shim_context_create(void **context, int ranks, int rank)
{
	ncclUniqueId id;
	int result = ncclGetUniqueId(&id);

	return result != 0 ? result : ncclCommInitRank(context, ranks, id, rank);
}
