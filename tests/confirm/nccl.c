/* A libnccl for ranks that are threads of one process: a barrier and real sums in host memory.  Compile
 * with -DMISBEHAVE=... to make it hang (1), crash (2) or refuse (3) in init, or change nothing in the
 * collective (4). */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MISBEHAVE
#define MISBEHAVE 0
#endif

enum { MOST = 1 << 16 };

struct id {
	char internal[128];
};

struct comm {
	int rank, ranks;
};

const char banner[] = "NCCL version 2.30.7+cuda13.0";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int waiting, round_number;
static float total[MOST];

static void wait_for_all(int ranks)
{
	int mine;

	pthread_mutex_lock(&lock);
	mine = round_number;
	if (++waiting == ranks) {
		waiting = 0;
		round_number++;
		pthread_cond_broadcast(&changed);
	}
	while (mine == round_number)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

int ncclGetVersion(int *version)
{
	*version = 23007;
	return 0;
}

int ncclGetUniqueId(struct id *id)
{
	memset(id, 1, sizeof(*id));
	return 0;
}

int ncclCommInitRank(struct comm **comm, int ranks, struct id id, int rank)
{
	(void)id;
	if (MISBEHAVE == 1)
		for (;;)
			pause();
	if (MISBEHAVE == 2)
		raise(SIGSEGV);
	if (MISBEHAVE == 3)
		return 3;
	wait_for_all(ranks); /* one that is missing makes the others wait for ever */
	*comm = malloc(sizeof(**comm));
	(*comm)->rank = rank;
	(*comm)->ranks = ranks;
	printf("%s\n", banner);
	return 0;
}

int ncclCommCount(struct comm *comm, int *count)
{
	*count = comm->ranks;
	return 0;
}

static float load(const unsigned char *from, int type)
{
	uint32_t bits;
	float value;

	if (type == 7)
		memcpy(&bits, from, 4);
	else
		bits = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 24;
	memcpy(&value, &bits, 4);
	return value;
}

static void store(unsigned char *to, float value, int type)
{
	unsigned char bytes[4];

	memcpy(bytes, &value, 4);
	if (type == 7)
		memcpy(to, bytes, 4);
	else
		memcpy(to, bytes + 2, 2);
}

int ncclAllReduce(const unsigned char *send, unsigned char *receive, size_t count, int type, int op,
	struct comm *comm, void *stream)
{
	size_t size = type == 7 ? 4 : 2, i;

	(void)op, (void)stream;
	if (MISBEHAVE == 4)
		return 0;
	if (comm->rank == 0)
		memset(total, 0, sizeof(total));
	wait_for_all(comm->ranks);
	pthread_mutex_lock(&lock);
	for (i = 0; i < count && i < MOST; i++)
		total[i] += load(send + i * size, type);
	pthread_mutex_unlock(&lock);
	wait_for_all(comm->ranks);
	for (i = 0; i < count && i < MOST; i++)
		store(receive + i * size, total[i], type);
	wait_for_all(comm->ranks);
	return 0;
}
