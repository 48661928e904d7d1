/* A shim: a library that is linked with one copy of libnccl and does, as its macros say, one or more
 * of MINT, MAKE and USE.  run.py compiles each kind once and then writes the absolute path of a copy
 * over the placeholder in DT_NEEDED. */
#include <stddef.h>

struct id {
	char internal[128];
};

int ncclGetUniqueId(struct id *id);
int ncclCommInitRank(void **comm, int ranks, struct id id, int rank);
int ncclAllReduce(
	const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream);

#ifdef MINT
int shim_mint(struct id *id)
{
	return ncclGetUniqueId(id);
}
#endif

#ifdef MAKE
int shim_make(void **comm, int ranks, struct id id, int rank)
{
	return ncclCommInitRank(comm, ranks, id, rank);
}
#endif

#ifdef USE
int shim_use(
	const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream)
{
	return ncclAllReduce(send, receive, count, type, op, comm, stream);
}
#endif
