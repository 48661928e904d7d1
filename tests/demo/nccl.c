/* A mock of libnccl for the demo: no GPU, but the parts of the real one that decide how two copies
 * in one process behave. It is compiled once for every version, with
 *
 *   NCCL_CODE     23007 for 2.30.7
 *   NCCL_VERSION  "2.30.7"
 *   NCCL_COMM     size in bytes of the communicator object, which differs from version to version
 *
 * As in the real library: SONAME libnccl.so.2; every ncclX is a weak definition beside a strong
 * pncclX; calls of the own API go through the PLT, since the library is not linked -Bsymbolic; a
 * communicator has a magic number at both ends, and CommCheck looks for the second one where the
 * communicator of *its own* version would end. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(NCCL_CODE) || !defined(NCCL_VERSION) || !defined(NCCL_COMM)
#error "compile with -DNCCL_CODE=... -DNCCL_VERSION=... -DNCCL_COMM=..."
#endif

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5
} ncclResult_t;

typedef struct {
	char internal[128];
} ncclUniqueId;

#define MAGIC 0x0280028002800280ULL

struct ncclComm {
	uint64_t start_magic;
	int rank;
	int ranks;
	int version;
	char state[NCCL_COMM - 2 * sizeof(uint64_t) - 4 * sizeof(int)];
	int state_end;
	uint64_t end_magic;
};
typedef struct ncclComm *ncclComm_t;

_Static_assert(sizeof(struct ncclComm) == NCCL_COMM, "size of the communicator");

/* More than any version needs: a foreign CommCheck reads past the end of a smaller object, here
 * into zeros. */
#define COMM_ALLOCATION (4UL << 20)

#define API(type, name, ...)                                                            \
	type p##name(__VA_ARGS__) __attribute__((visibility("default"), alias(#name))); \
	type name(__VA_ARGS__) __attribute__((visibility("default"), weak, noinline));  \
	type name(__VA_ARGS__)

static const char banner[] = "NCCL version " NCCL_VERSION "+cuda13.0";

API(ncclResult_t, ncclGetVersion, int *version)
{
	if (version == NULL)
		return ncclInvalidArgument;
	*version = NCCL_CODE;
	return ncclSuccess;
}

API(const char *, ncclGetErrorString, ncclResult_t result)
{
	switch (result) {
	case ncclSuccess:
		return "no error";
	case ncclInvalidArgument:
		return "invalid argument";
	case ncclInvalidUsage:
		return "invalid usage";
	default:
		return "internal error";
	}
}

API(ncclResult_t, ncclGetUniqueId, ncclUniqueId *id)
{
	if (id == NULL)
		return ncclInvalidArgument;
	memset(id, 0, sizeof(*id));
	snprintf(id->internal, sizeof(id->internal), "mock id of %s", NCCL_VERSION);
	return ncclSuccess;
}

static ncclResult_t CommCheck(ncclComm_t comm)
{
	if (comm == NULL) {
		printf("  NCCL WARN comm argument is NULL  [printed by the code of %s]\n",
			NCCL_VERSION);
		return ncclInvalidArgument;
	}
	if (comm->start_magic != MAGIC || comm->end_magic != MAGIC) {
		printf("  NCCL WARN Error: corrupted comm object detected  [printed by the code of "
		       "%s]\n",
			NCCL_VERSION);
		return ncclInvalidArgument;
	}
	return ncclSuccess;
}

API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *error)
{
	ncclResult_t result = CommCheck(comm);

	if (result != ncclSuccess)
		return result;
	*error = ncclSuccess;
	return ncclSuccess;
}

/* Every call that uses a communicator starts here. The call below is the one that goes astray: it
 * goes through the PLT, so it reaches the first ncclCommGetAsyncError of this object's search scope,
 * which may be another copy's. */
static ncclResult_t ncclCommEnsureReady(ncclComm_t comm)
{
	ncclResult_t error = ncclSuccess;
	ncclResult_t result = ncclCommGetAsyncError(comm, &error);

	return result != ncclSuccess ? result : error;
}

static ncclResult_t init_rank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	ncclComm_t made;

	if (comm == NULL || ranks < 1 || rank < 0 || rank >= ranks || id.internal[0] == '\0')
		return ncclInvalidArgument;
	made = calloc(1, COMM_ALLOCATION);
	if (made == NULL)
		return ncclSystemError;
	made->start_magic = MAGIC;
	made->end_magic = MAGIC;
	made->rank = rank;
	made->ranks = ranks;
#if NCCL_CODE < 23000
	/* Another self-call through the PLT; 2.30 uses the constant. */
	ncclGetVersion(&made->version);
#else
	made->version = NCCL_CODE;
#endif
	printf("  %s\n", banner);
	*comm = made;
	return ncclSuccess;
}

API(ncclResult_t, ncclCommInitRank, ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	return init_rank(comm, ranks, id, rank);
}

API(ncclResult_t, ncclCommInitAll, ncclComm_t *comms, int devices, const int *list)
{
	ncclUniqueId id;
	ncclResult_t result = ncclGetUniqueId(&id);

	(void)list;
	for (int i = 0; result == ncclSuccess && i < devices; i++)
		result = init_rank(&comms[i], devices, id, i);
	if (result != ncclSuccess)
		printf("  NCCL WARN %s\n", ncclGetErrorString(result));
	return result;
}

static ncclResult_t destroy(ncclComm_t comm)
{
	if (comm == NULL)
		return ncclSuccess;
	comm->start_magic = comm->end_magic = 0;
	free(comm);
	return ncclSuccess;
}

API(ncclResult_t, ncclCommDestroy, ncclComm_t comm)
{
	return destroy(comm);
}

API(ncclResult_t, ncclCommAbort, ncclComm_t comm)
{
	return destroy(comm);
}

API(ncclResult_t, ncclCommCount, ncclComm_t comm, int *count)
{
	ncclResult_t result = ncclCommEnsureReady(comm);

	if (result == ncclSuccess)
		*count = comm->ranks;
	return result;
}

API(ncclResult_t, ncclGroupStart, void)
{
	return ncclSuccess;
}

API(ncclResult_t, ncclGroupEnd, void)
{
	return ncclSuccess;
}

/* One rank: the sum is a copy. */
static ncclResult_t reduce(const void *send, void *receive, size_t count, ncclComm_t comm)
{
	ncclResult_t result = CommCheck(comm);

	if (result == ncclSuccess)
		result = ncclCommEnsureReady(comm);
	if (result == ncclSuccess && receive != send)
		memcpy(receive, send, count * sizeof(float));
	return result;
}

API(ncclResult_t, ncclAllReduce, const void *send, void *receive, size_t count, int type, int op,
	ncclComm_t comm, void *stream)
{
	(void)type, (void)op, (void)stream;
	return reduce(send, receive, count, comm);
}

API(ncclResult_t, ncclBroadcast, const void *send, void *receive, size_t count, int type, int root,
	ncclComm_t comm, void *stream)
{
	(void)type, (void)root, (void)stream;
	return reduce(send, receive, count, comm);
}

API(ncclResult_t, ncclBcast, void *buffer, size_t count, int type, int root, ncclComm_t comm,
	void *stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

/* Names that came with later versions, so that the symbols agree with the banner. */
#define LATER(name)                               \
	API(ncclResult_t, name, ncclComm_t comm)  \
	{                                         \
		return ncclCommEnsureReady(comm); \
	}

LATER(ncclCommFinalize)
LATER(ncclCommSplit)
LATER(ncclCommInitRankConfig)
LATER(ncclMemAlloc)
LATER(ncclMemFree)
LATER(ncclCommRegister)
LATER(ncclCommDeregister)
LATER(ncclCommInitRankScalable)
LATER(ncclCommWindowRegister)
LATER(ncclCommWindowDeregister)
LATER(ncclCommShrink)
#if NCCL_CODE >= 22803
LATER(ncclAlltoAll)
LATER(ncclGather)
LATER(ncclScatter)
LATER(ncclDevCommCreate)
LATER(ncclDevCommDestroy)
#endif
#if NCCL_CODE >= 22902
LATER(ncclCommQueryProperties)
LATER(ncclCommGrow)
LATER(ncclCommGetUniqueId)
#endif
#if NCCL_CODE >= 22907
LATER(ncclCommMemStats)
LATER(ncclCommSuspend)
LATER(ncclCommResume)
#endif
