/* The shim that is linked statically into the engine: it calls NCCL as a linked library, so the engine itself gets
 * DT_NEEDED libnccl.so.2. The declarations are those of nccl.h, which is not needed here. */
#include <stddef.h>

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

int ncclGetVersion(int *version);
int ncclGetUniqueId(ncclUniqueId *id);
int ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
int ncclCommDestroy(ncclComm_t comm);

int shim_version(int *version)
{
    return ncclGetVersion(version);
}

int shim_unique_id(ncclUniqueId *id)
{
    return ncclGetUniqueId(id);
}

int shim_ctx_create(const ncclUniqueId *id, int nranks, int rank, ncclComm_t *ctx)
{
    return ncclCommInitRank(ctx, nranks, *id, rank);
}

int shim_ctx_destroy(ncclComm_t ctx)
{
    return ctx == NULL ? 0 : ncclCommDestroy(ctx);
}
