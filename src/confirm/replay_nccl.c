/* The second stage: NCCL on the devices, through the paths' own bindings.
 *
 * Nothing is called through a handle of our own: the functions are those that
 * the requester's slots, or its handle, lead to, so that interposition and
 * scopes are what the engine will have.  Ranks are threads with a device each.
 * They tell each other what they hold before the first call that waits, and
 * after every step whether it went well: all go on, or all stop, and nobody
 * waits in a collective for one that left.  What waits for ever all the same
 * is ended from outside, at the deadline.
 *
 * The prototypes are those of nccl.h and cuda.h of all versions since 2.7. */
#include "confirm/replay_map.h"

#include <dlfcn.h>

struct unique_id {
	char internal[128];
};

struct functions {
	int (*get_version)(int *);
	int (*get_unique_id)(struct unique_id *);
	int (*init_rank)(void **, int, struct unique_id, int);
	int (*count)(void *, int *);
	int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
};

enum { FLOAT32 = 7, BFLOAT16 = 9, SUM = 0, RANKS_MOST = 16, ELEMENTS_MOST = 65536 };

/* A device API: the runtime, or, where only the driver is installed, the driver. */
struct device_api {
	const char *library;
	void *handle;
	int driver; /* the names and prototypes of libcuda */
	int (*set_device)(int);
	int (*allocate)(void **, size_t);
	int (*to_device)(void *, const void *, size_t);
	int (*to_host)(void *, const void *, size_t);
	int (*synchronize)(void);
};

static struct device_api device;
static int n_devices;
static struct functions minted, made, used; /* of the three paths of the case */
static struct unique_id id;

/* ---- the runtime of CUDA */

static int (*runtime_memcpy)(void *, const void *, size_t, int);
static int (*driver_retain)(void **, int);
static int (*driver_set)(void *);
static int (*driver_allocate)(unsigned long long *, size_t);
static int (*driver_to_device)(unsigned long long, const void *, size_t);
static int (*driver_to_host)(void *, unsigned long long, size_t);

static int runtime_to_device(void *to, const void *from, size_t n)
{
	return runtime_memcpy(to, from, n, 1);
}

static int runtime_to_host(void *to, const void *from, size_t n)
{
	return runtime_memcpy(to, from, n, 2);
}

static int driver_set_device(int number)
{
	void *context = NULL;
	int error = driver_retain(&context, number); /* a device handle is its number */

	return error ? error : driver_set(context);
}

static int driver_malloc(void **at, size_t n)
{
	unsigned long long address = 0;
	int error = driver_allocate(&address, n);

	*at = (void *)(uintptr_t)address;
	return error;
}

static int driver_up(void *to, const void *from, size_t n)
{
	return driver_to_device((uintptr_t)to, from, n);
}

static int driver_down(void *to, const void *from, size_t n)
{
	return driver_to_host(to, (uintptr_t)from, n);
}

static const void *entry(const char *name)
{
	return dlsym(device.handle, name);
}

/* ISO C has no cast from data to function pointers. */
#define TAKE(function, name) (*(const void **)&(function) = entry(name))

static const char *use_runtime(void)
{
	int (*get_count)(int *);

	TAKE(get_count, "cudaGetDeviceCount");
	TAKE(device.set_device, "cudaSetDevice");
	TAKE(device.allocate, "cudaMalloc");
	TAKE(runtime_memcpy, "cudaMemcpy");
	TAKE(device.synchronize, "cudaDeviceSynchronize");
	device.to_device = runtime_to_device;
	device.to_host = runtime_to_host;
	if (!get_count || !device.set_device || !device.allocate || !runtime_memcpy || !device.synchronize)
		return "it lacks a function";
	return get_count(&n_devices) ? "cudaGetDeviceCount fails" : n_devices < 1 ? "no device" : NULL;
}

static const char *use_driver(void)
{
	int (*init)(unsigned), (*get_count)(int *);

	TAKE(init, "cuInit");
	TAKE(get_count, "cuDeviceGetCount");
	TAKE(driver_retain, "cuDevicePrimaryCtxRetain");
	TAKE(driver_set, "cuCtxSetCurrent");
	TAKE(driver_allocate, "cuMemAlloc_v2");
	TAKE(driver_to_device, "cuMemcpyHtoD_v2");
	TAKE(driver_to_host, "cuMemcpyDtoH_v2");
	TAKE(device.synchronize, "cuCtxSynchronize");
	device.set_device = driver_set_device;
	device.allocate = driver_malloc;
	device.to_device = driver_up;
	device.to_host = driver_down;
	if (!init || !get_count || !driver_retain || !driver_set || !driver_allocate || !driver_to_device ||
	    !driver_to_host || !device.synchronize)
		return "it lacks a function";
	return init(0) || get_count(&n_devices) ? "cuInit fails" : n_devices < 1 ? "no device" : NULL;
}

/* The runtime that the engine has loaded, else one that is installed. */
static void find_device(void)
{
	static const char *const libraries[] = {"libcudart.so.13", "libcudart.so.12", "libcuda.so.1"};
	const char *why = "neither libcudart.so.13, libcudart.so.12 nor libcuda.so.1 can be opened";
	struct line l;
	unsigned pass, i;

	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < 3; i++) {
			device.handle = dlopen(libraries[i], RTLD_NOW | (pass ? 0 : RTLD_NOLOAD));
			if (!device.handle || (i == 2 && !pass))
				continue;
			device.library = libraries[i];
			device.driver = i == 2;
			why = device.driver ? use_driver() : use_runtime();
			if (why)
				continue;
			l.n = 0;
			line_field(&l, "device");
			line_number(&l, n_devices);
			line_field(&l, device.library);
			line_end(&l);
			return;
		}
	line_say("no-device", why);
	bare_exit(0);
}

/* ---- the path's functions */

static void *function_of(int path, const char *name)
{
	const struct nccl_path *p = &paths[path];

	if (p->event >= 0)
		return events[p->event].handle ? dlsym((void *)events[p->event].handle, name) : NULL;
	return p->object >= 0 ? binding_of(p->object, name) : NULL;
}

static void take_functions(struct functions *f, int path)
{
	static const char *const names[] = {"ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclCommCount",
					    "ncclAllReduce"};
	void **slot[] = {(void **)&f->get_version, (void **)&f->get_unique_id, (void **)&f->init_rank,
			 (void **)&f->count, (void **)&f->all_reduce};
	unsigned i;

	if (path < 0 || path >= n_paths)
		replay_give_up("a case without a path");
	for (i = 0; i < 5; i++)
		*slot[i] = function_of(path, names[i]);
}

/* ---- ranks */

enum phase { PHASE_PREPARED, PHASE_IDENTIFIED, PHASE_MINTED, PHASE_MADE, PHASE_COUNTED, PHASE_FLOAT, PHASE_BFLOAT, PHASES };

static int arrived[PHASES], failed[PHASES];
static unsigned long holds[RANKS_MOST]; /* what each rank holds: a hash of its copy's identity */

/* Everybody says how it went; true when it went well everywhere. */
static int all_well(enum phase phase, int well)
{
	if (!well)
		__atomic_add_fetch(&failed[phase], 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&arrived[phase], 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&arrived[phase], __ATOMIC_SEQ_CST) < n_ranks)
		bare_sleep(1);
	return !__atomic_load_n(&failed[phase], __ATOMIC_SEQ_CST);
}

static void say(const char *what, int rank, const char *name, const char *text, int code)
{
	struct line l;

	l.n = 0;
	line_field(&l, what);
	line_number(&l, rank);
	if (name)
		line_field(&l, name);
	if (text)
		line_field(&l, text);
	else
		line_number(&l, code);
	line_end(&l);
}

static void say_step(int rank, const char *name)
{
	struct line l;

	l.n = 0;
	line_field(&l, "step");
	line_number(&l, rank);
	line_field(&l, name);
	line_end(&l);
}

/* What this rank holds, for the others to compare.  True if it may go on. */
static int identify(int rank)
{
	struct line l;
	struct stat st = {.st_dev = 0};
	char build_id[132] = "";
	const char *missing = !minted.get_unique_id ? "ncclGetUniqueId" : !made.init_rank ? "ncclCommInitRank"
			      : !used.count ? "ncclCommCount" : !used.all_reduce ? "ncclAllReduce" : NULL;
	int owner = map_owner((uintptr_t)made.init_rank), version = 0;

	if (owner >= 0) {
		map_identity(owner, &st);
		map_build_id(owner, build_id, sizeof(build_id));
	}
	if (made.get_version && made.get_version(&version))
		version = -1;
	holds[rank] = (unsigned long)st.st_ino * 31 + (unsigned long)st.st_dev * 7 + (unsigned long)version;
	l.n = 0;
	line_field(&l, "rank");
	line_number(&l, rank);
	line_number(&l, (long)st.st_dev);
	line_number(&l, (long)st.st_ino);
	line_field(&l, owner < 0 ? "" : objects[owner].map->l_name);
	line_field(&l, build_id);
	line_number(&l, version);
	line_field(&l, missing ? missing : "-");
	line_end(&l);
	return !missing;
}

static int decide(int rank, int well)
{
	int i, same = 1;

	well = all_well(PHASE_IDENTIFIED, well);
	for (i = 1; i < n_ranks; i++)
		same &= holds[i] == holds[0];
	if (rank == 0)
		line_say("decide", !well ? "stop: a function is missing" : same ? "go" : "stop: the ranks hold different copies");
	return well && same;
}

static float pattern(int rank, size_t i)
{
	return (float)((rank + 1) * (int)(i % 7 + 1)); /* sums of up to eight ranks are exact in bfloat16, too */
}

static size_t store(unsigned char *to, float value, int type)
{
	union {
		float f;
		uint32_t u;
	} bits = {.f = value};

	if (type == FLOAT32) {
		memcpy(to, &bits, 4);
		return 4;
	}
	to[0] = (unsigned char)(bits.u >> 16);
	to[1] = (unsigned char)(bits.u >> 24);
	return 2;
}

/* Out of place, and the target holds a pattern of its own: "nothing happened"
 * looks like nothing else. */
static const char *check_sum(const unsigned char *got, int type, size_t size)
{
	unsigned char wanted[4];
	size_t i, k, untouched = 0, wrong = 0;

	for (i = 0; i < (size_t)n_elements; i++) {
		int bad = 0, old = 1;

		store(wanted, pattern(0, i) * (float)(n_ranks * (n_ranks + 1) / 2), type);
		for (k = 0; k < size; k++) {
			bad |= got[i * size + k] != wanted[k];
			old &= got[i * size + k] == 0xA5;
		}
		wrong += (size_t)bad;
		untouched += (size_t)old;
	}
	return !wrong ? "right" : untouched == (size_t)n_elements ? "untouched" : "wrong";
}

static unsigned char host[RANKS_MOST][ELEMENTS_MOST * 4];

static int reduce(int rank, void *comm, int type, const char *name)
{
	unsigned char *buffer = host[rank];
	size_t size = type == FLOAT32 ? 4 : 2, n = (size_t)n_elements * size, i;
	void *send = NULL, *receive = NULL;
	const char *sum;
	int error;

	say_step(rank, name);
	error = device.allocate(&send, n) || device.allocate(&receive, n);
	for (i = 0; i < (size_t)n_elements; i++)
		store(buffer + i * size, pattern(rank, i), type);
	error = error || device.to_device(send, buffer, n);
	memset(buffer, 0xA5, n);
	error = error || device.to_device(receive, buffer, n);
	if (error) {
		say("result", rank, "device", NULL, 1);
		return 0;
	}
	error = used.all_reduce(send, receive, (size_t)n_elements, type, SUM, comm, NULL);
	say("result", rank, name, NULL, error);
	if (error)
		return 0;
	if (device.synchronize() || device.to_host(buffer, receive, n)) {
		say("result", rank, "device", NULL, 1);
		return 0;
	}
	sum = check_sum(buffer, type, size);
	say("sum", rank, name, sum, 0);
	return sum[0] == 'r';
}

static int mint(int rank)
{
	int error = 0;

	if (rank)
		return 1;
	say_step(rank, "id");
	error = minted.get_unique_id(&id);
	say("result", rank, "id", NULL, error);
	return !error;
}

static int make(int rank, void **comm)
{
	int error;

	say_step(rank, "init");
	error = made.init_rank(comm, n_ranks, id, rank);
	say("result", rank, "init", NULL, error);
	if (!error)
		say("comm", rank, NULL, *comm ? "set" : "null", 0);
	return !error && *comm;
}

static int count(int rank, void *comm)
{
	int n = -1, error;

	say_step(rank, "count");
	error = used.count(comm, &n);
	say("result", rank, "count", NULL, error);
	if (!error && n != n_ranks)
		say("sum", rank, "count", "wrong", 0);
	/* The collective is tried all the same: this refuses on every rank at
	 * once, without waiting. */
	return 1;
}

static void *run_rank(void *argument)
{
	int rank = (int)(intptr_t)argument;
	void *comm = NULL;
	int well = !device.set_device(rank);

	if (!well)
		say("result", rank, "device", NULL, 1);
	if (!all_well(PHASE_PREPARED, well) || !decide(rank, identify(rank)) || !all_well(PHASE_MINTED, mint(rank)) ||
	    !all_well(PHASE_MADE, make(rank, &comm)) || !all_well(PHASE_COUNTED, count(rank, comm)))
		return NULL;
	if (all_well(PHASE_FLOAT, reduce(rank, comm, FLOAT32, "all-reduce float32")))
		all_well(PHASE_BFLOAT, reduce(rank, comm, BFLOAT16, "all-reduce bfloat16"));
	return NULL;
}

static void run_ranks(void)
{
	int (*create)(unsigned long *, const void *, void *(*)(void *), void *);
	int (*join)(unsigned long, void **) = NULL;
	unsigned long thread[RANKS_MOST];
	void *threads;
	int i;

	if (n_ranks > 1) {
		/* A library of its own up to glibc 2.33; libnccl needs it anyway. */
		threads = dlopen("libpthread.so.0", RTLD_NOW);
		*(const void **)&create = threads ? dlsym(threads, "pthread_create") : NULL;
		*(const void **)&join = threads ? dlsym(threads, "pthread_join") : NULL;
		if (!create || !join)
			replay_give_up("no threads in this process");
	}
	for (i = 1; i < n_ranks; i++)
		if (create(&thread[i], NULL, run_rank, (void *)(intptr_t)i))
			replay_give_up("no thread for a rank");
	run_rank(NULL);
	for (i = 1; i < n_ranks; i++)
		join(thread[i], NULL);
}

void nccl_run(void)
{
	if (!dlopen || !dlsym)
		replay_give_up("no dlopen in this process (before glibc 2.34 it is in libdl.so.2)");
	find_device();
	if (n_ranks > n_devices || n_ranks > RANKS_MOST)
		replay_give_up("more ranks than devices");
	if (n_elements > ELEMENTS_MOST || n_ranks < 1 || n_elements < 1)
		replay_give_up("too much to reduce");
	take_functions(&minted, case_path[0]);
	take_functions(&made, case_path[1]);
	take_functions(&used, case_path[2]);
	run_ranks();
	line_say("finish", NULL);
	/* Not through exit(): 2.30.3 aborts there, and nothing is left to learn. */
	bare_exit(0);
}
