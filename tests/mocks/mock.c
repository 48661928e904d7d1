/* A mock of libnccl: no GPU, but the parts of the real one that decide what two copies in one
 * process do to each other.  mock.py puts the facts of one version in front of this text, as macros
 * (`mock.py VERSION` prints both):
 *
 *   VERSION, CODE        "2.30.7", 23007
 *   MESSAGE              bytes that a rank sends to the root of its id
 *   SIZE, END            size of a communicator, offset of its second magic word (0: no check)
 *   CHECKED(F)           its functions that take a communicator and look at it first
 *   UNCHECKED(F)         those that do not look
 *   PLAIN(F), MAKES(F)   those that take none; those that make one
 *   TABLES(F)            its exported data
 *   OWN_TABLES(F)        the exported data that it fills when it is loaded and destroys at exit
 *   CALLS_LOAD, CALLS_INIT, CALLS_FIRST_COLLECTIVE, CALLS_LATER, CALLS_EXIT
 *                        which of its own functions it calls, through the PLT, and when
 *
 * No outcome is written down anywhere: what a call does follows from which copy's code it reaches,
 * from where that code looks in an object, and from what that copy's own initialisation has filled.
 * So, as in the real library: no -Bsymbolic, every ncclX is a weak definition, a call or a reference
 * to an own exported name can be bound elsewhere. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INTERNAL_ERROR = 3, INVALID_ARGUMENT = 4 };

struct comm;

struct id {
	char internal[128];
};

/* Declared before anything is defined, so that the order of the definitions means nothing. */
#define DECLARE(name) __attribute__((weak)) int name(struct comm *comm);
CHECKED(DECLARE)
UNCHECKED(DECLARE)
PLAIN(DECLARE)
MAKES(DECLARE)
__attribute__((weak)) int ncclGetVersion(int *version);
__attribute__((weak)) int ncclGetUniqueId(struct id *id);
__attribute__((weak)) int ncclCommInitRank(struct comm **comm, int ranks, struct id id, int rank);
__attribute__((weak)) int ncclCommInitAll(struct comm **comms, int devices, const int *list);
__attribute__((weak)) int ncclCommGetAsyncError(struct comm *comm, int *error);
__attribute__((weak)) const char *ncclGetErrorString(int result);
__attribute__((weak)) int ncclAllReduce(const void *send, void *receive, size_t count, int type,
	int op, struct comm *comm, void *stream);
__attribute__((weak)) int ncclBroadcast(const void *send, void *receive, size_t count, int type,
	int root, struct comm *comm, void *stream);
__attribute__((weak)) int ncclBcast(
	void *buffer, size_t count, int type, int root, struct comm *comm, void *stream);

/* The strong twin of a function. */
#define TWIN(name) extern __typeof__(name) p##name __attribute__((alias(#name)));

__attribute__((used)) static const char banner[] = "NCCL version " VERSION "+cuda13.0";

/* What only the initialisation of this very copy fills, such as entry points of the driver. */
static int (*volatile driver_entry)(void);

static int driver_call(void)
{
	return SUCCESS;
}

/* ---- the communicator
 *
 * SIZE bytes; one magic word at the front and one at END; the state and the address of the abort flag
 * in words whose places are others in every layout.  All other words have their own contents, never
 * zero, never the magic, never an address, and so has the memory behind it, so that code of another
 * layout that looks there finds what it does not expect: a word of garbage, but never an unmapped
 * page. */

#define MAGIC 0x0280028002800280ULL

enum { STATE = SIZE - 24, ABORT_FLAG = SIZE - 32, MEMORY = 1 << 21 };

static volatile uint32_t abort_flag;

static void put_word(struct comm *comm, size_t offset, uint64_t word)
{
	memcpy((char *)comm + offset, &word, sizeof(word));
}

static uint64_t get_word(const struct comm *comm, size_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)comm + offset, sizeof(word));
	return word;
}

static struct comm *comm_new(void)
{
	struct comm *comm = malloc(MEMORY);

	if (comm == NULL)
		return NULL;
	for (size_t i = 0; i < MEMORY; i += 8)
		put_word(comm, i, ((i + SIZE) * 0x9e3779b97f4a7c15ULL) | 0x0010000000010000);
	put_word(comm, STATE, SUCCESS);
	put_word(comm, ABORT_FLAG, (uintptr_t)&abort_flag);
#if END
	put_word(comm, 0, MAGIC);
	put_word(comm, END, MAGIC);
#endif
	return comm;
}

static int CommCheck(struct comm *comm)
{
	if (comm == NULL)
		return INVALID_ARGUMENT;
#if END
	if (get_word(comm, 0) != MAGIC || get_word(comm, END) != MAGIC)
		return INVALID_ARGUMENT; /* "corrupted comm object detected" */
#endif
	return SUCCESS;
}

/* The state of a communicator, where this version keeps it: a result code, if it is one of ours. */
static int comm_state(struct comm *comm)
{
	return get_word(comm, STATE) & 0x7fffffff;
}

/* ---- the self-calls */

#define CALL(call)                     \
	do {                           \
		int result = (call);   \
		if (result != SUCCESS) \
			return result; \
	} while (0);

/* Before it asks for the state, it looks at the flag that the communicator points to. */
static int ncclCommEnsureReady(struct comm *comm)
{
	int error = SUCCESS, answer;

	(void)answer;
	if (*(volatile uint32_t *)(uintptr_t)get_word(comm, ABORT_FLAG) != 0)
		return INTERNAL_ERROR;
	CALLS_FIRST_COLLECTIVE
	return error;
}

static int use_comm(struct comm *comm)
{
	CALL(CommCheck(comm))
	CALL(ncclCommEnsureReady(comm))
	return comm_state(comm);
}

/* ---- the id and its root: a thread of the copy that minted it
 *
 * A rank sends the size of its message and the message; the last word of it is the number of ranks.
 * The root refuses a message that is longer than its own by going away: the rank waits for ever.  It
 * takes a shorter one, and then reads the number of ranks where its own version has it. */

static void *root_main(void *argument)
{
	int fd = (int)(intptr_t)argument;
	unsigned char message[MESSAGE];
	int size = 0, ranks;

	memset(message, 0x5e, sizeof(message)); /* what the stack held before */
	if (read(fd, &size, sizeof(size)) != sizeof(size) || size > MESSAGE)
		return NULL;
	if (read(fd, message, size) != size)
		return NULL;
	memcpy(&ranks, message + MESSAGE - sizeof(ranks), sizeof(ranks));
	if (write(fd, &ranks, sizeof(ranks)) < 0)
		return NULL;
	return NULL;
}

int ncclGetUniqueId(struct id *id)
{
	pthread_t root;
	int fds[2];

	if (id == NULL)
		return INVALID_ARGUMENT;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		return SYSTEM_ERROR;
	if (pthread_create(&root, NULL, root_main, (void *)(intptr_t)fds[1]) != 0)
		return SYSTEM_ERROR;
	memset(id, 0, sizeof(*id));
	memcpy(id->internal, &fds[0], sizeof(fds[0]));
	return SUCCESS;
}
TWIN(ncclGetUniqueId)

static int bootstrap(const struct id *id, int ranks)
{
	unsigned char message[MESSAGE];
	int size = MESSAGE, fd, answer;

	memset(message, 0xa5, sizeof(message));
	memcpy(message + MESSAGE - sizeof(ranks), &ranks, sizeof(ranks));
	memcpy(&fd, id->internal, sizeof(fd));
	if (write(fd, &size, sizeof(size)) != sizeof(size))
		return SYSTEM_ERROR;
	if (write(fd, message, sizeof(message)) != sizeof(message))
		return SYSTEM_ERROR;
	if (read(fd, &answer, sizeof(answer)) != sizeof(answer))
		return SYSTEM_ERROR;
	return answer == ranks ? SUCCESS : answer;
}

static int init_rank(struct comm **made, int ranks, const struct id *id)
{
	struct comm *comm;
	int error = SUCCESS, answer;

	(void)answer;
	driver_entry = driver_call;
	CALL(bootstrap(id, ranks))
	comm = comm_new();
	if (comm == NULL)
		return SYSTEM_ERROR;
	CALLS_INIT
	*made = comm;
	return error;
}

int ncclCommInitRank(struct comm **comm, int ranks, struct id id, int rank)
{
	if (comm == NULL || rank < 0 || rank >= ranks)
		return INVALID_ARGUMENT;
	return init_rank(comm, ranks, &id);
}
TWIN(ncclCommInitRank)

/* ---- the rest of the API */

int ncclGetVersion(int *version)
{
	if (version == NULL)
		return INVALID_ARGUMENT;
	*version = CODE;
	return SUCCESS;
}
TWIN(ncclGetVersion)

int ncclCommGetAsyncError(struct comm *comm, int *error)
{
	CALL(CommCheck(comm))
	*error = comm_state(comm);
	return SUCCESS;
}
TWIN(ncclCommGetAsyncError)

const char *ncclGetErrorString(int result)
{
	return result == SUCCESS ? "no error" : "error";
}
TWIN(ncclGetErrorString)

/* The id comes through the PLT, in every version; and so do the next two calls.  Nothing reaches
 * them unless it is asked for these functions. */
int ncclCommInitAll(struct comm **comms, int devices, const int *list)
{
	struct id id;

	(void)list;
	CALL(ncclGetUniqueId(&id))
	for (int i = 0; i < devices; i++)
		if (init_rank(&comms[i], 1, &id) != SUCCESS)
			return *ncclGetErrorString(INTERNAL_ERROR);
	return SUCCESS;
}
TWIN(ncclCommInitAll)

int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
	struct comm *comm, void *stream)
{
	(void)send, (void)receive, (void)count, (void)type, (void)root, (void)stream;
	return use_comm(comm);
}
TWIN(ncclBroadcast)

int ncclBcast(void *buffer, size_t count, int type, int root, struct comm *comm, void *stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
TWIN(ncclBcast)

/* One rank: the sum is a copy. */
int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op,
	struct comm *comm, void *stream)
{
	(void)type, (void)op, (void)stream;
	CALL(use_comm(comm))
	memcpy(receive, send, count * sizeof(float));
	return SUCCESS;
}
TWIN(ncclAllReduce)

static int use_later(struct comm *comm)
{
	int error = SUCCESS, answer;

	(void)answer, (void)comm;
	CALLS_LATER
	return error;
}

#define DEFINE_CHECKED(name)            \
	int name(struct comm *comm)     \
	{                               \
		CALL(use_comm(comm))    \
		return use_later(comm); \
	}                               \
	TWIN(name)
CHECKED(DEFINE_CHECKED)

/* Takes the communicator for its own kind, and its own state for initialised. */
#define DEFINE_UNCHECKED(name)           \
	int name(struct comm *comm)      \
	{                                \
		CALL(driver_entry())     \
		return comm_state(comm); \
	}                                \
	TWIN(name)
UNCHECKED(DEFINE_UNCHECKED)

#define DEFINE_PLAIN(name)          \
	int name(struct comm *comm) \
	{                           \
		(void)comm;         \
		return SUCCESS;     \
	}                           \
	TWIN(name)
PLAIN(DEFINE_PLAIN)

#define DEFINE_MAKES(name)             \
	int name(struct comm *comm)    \
	{                              \
		(void)comm;            \
		return INTERNAL_ERROR; \
	}                              \
	TWIN(name)
MAKES(DEFINE_MAKES)

/* ---- exported data: tables with memory of their own, built at load, destroyed at exit, each time
 * through the GOT, hence perhaps those of another copy */

struct table {
	void *items;
};

#define DEFINE_TABLE(name)                              \
	extern struct table name __attribute__((weak)); \
	struct table name;
TABLES(DEFINE_TABLE)

static int calls_at(int exit)
{
	struct comm *comm = NULL;
	int error = SUCCESS, answer;

	(void)answer, (void)comm;
	if (exit) {
		CALLS_EXIT
	} else {
		CALLS_LOAD
	}
	return error;
}

__attribute__((constructor)) static void load(void)
{
#define BUILD(name) name.items = malloc(160);
	OWN_TABLES(BUILD)
	calls_at(0);
}

__attribute__((destructor)) static void unload(void)
{
	calls_at(1);
#define DESTROY(name) free(name.items);
	OWN_TABLES(DESTROY)
}
