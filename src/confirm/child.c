#include "confirm/child.h"

#include "confirm/place.h"
#include "confirm/replay.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Where the engine's loader does not get in the way. */
enum { ORDERS_FD = 97, RECORDS_FD = 98, SAID_MOST = 64 * 1024 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- in the new process, before its exec */

static void __attribute__((noreturn)) unable(int fd, const char *what)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s: %s", what, strerror(errno));

	if (write(fd, text, (size_t)n) < 0)
		_exit(98);
	_exit(98);
}

static void __attribute__((noreturn)) become(const struct child_setup *s, int orders, int records, int output,
					     int complaints, pid_t parent)
{
	const struct rlimit none = {0, 0};
	char *const argv[] = {(char *)s->exe, NULL};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const char *what;

	setpgid(0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		unable(complaints, "prctl");
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGPIPE, SIG_DFL);
	if ((what = place_enter(s->place, s->cwd)))
		unable(complaints, what);
	if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 ||
	    dup2(records, RECORDS_FD) < 0 || (orders >= 0 && dup2(orders, ORDERS_FD) < 0))
		unable(complaints, "dup2");
	alarm((unsigned)s->seconds + 10); /* survives exec: should all else fail */
	if (!s->untraced && ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		unable(complaints, "ptrace, for the breakpoint at its entry point (--untraced does without)");
	execve(s->exe, argv, (char *const *)s->env);
	unable(complaints, s->exe);
}

/* ---- tracing */

static unsigned long entry_of(pid_t pid)
{
	char path[64];
	unsigned long pair[2] = {0, 0};
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, pair, sizeof(pair)) == (ssize_t)sizeof(pair))
		if (pair[0] == AT_ENTRY || pair[0] == AT_NULL)
			break;
	if (fd >= 0)
		close(fd);
	return pair[0] == AT_ENTRY ? pair[1] : 0;
}

static bool plant_breakpoint(struct child *c)
{
#if defined(__x86_64__)
	const unsigned long code = 0xcc, mask = 0xff; /* int3 */
#else
	const unsigned long code = 0xd4200000, mask = 0xffffffff; /* brk #0 */
#endif
	long word;

	c->entry = entry_of(c->pid);
	errno = 0;
	word = c->entry ? ptrace(PTRACE_PEEKTEXT, c->pid, (void *)c->entry, NULL) : 0;
	return c->entry && !errno &&
	       ptrace(PTRACE_POKETEXT, c->pid, (void *)c->entry, (void *)(((unsigned long)word & ~mask) | code)) == 0 &&
	       ptrace(PTRACE_SETOPTIONS, c->pid, NULL, (void *)PTRACE_O_EXITKILL) == 0;
}

static bool is_at_entry(const struct child *c)
{
	struct user_regs_struct regs;
	struct iovec vec = {&regs, sizeof(regs)};

	if (ptrace(PTRACE_GETREGSET, c->pid, (void *)NT_PRSTATUS, &vec) < 0)
		return true; /* a trap that cannot be explained: do not let it go on */
#if defined(__x86_64__)
	return regs.rip == c->entry + 1;
#else
	return regs.pc == c->entry;
#endif
}

static void kill_child(struct child *c)
{
	int status;

	kill(-c->pid, SIGKILL);
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &status, __WALL) == c->pid && WIFSTOPPED(status))
		;
}

/* ---- what it says */

static void drain(struct child *c)
{
	char chunk[16384];
	ssize_t n;

	while ((n = read(c->records_fd, chunk, sizeof(chunk))) > 0) {
		c->text = xrealloc(c->text, c->size + (size_t)n + 1);
		memcpy(c->text + c->size, chunk, (size_t)n);
		c->size += (size_t)n;
		c->text[c->size] = '\0';
	}
}

char *record_cut(char **at)
{
	char *from = *at, *to = from, *field = from;

	for (; *from && *from != '\t'; from++)
		if (*from == '\\' && from[1]) {
			from++;
			*to++ = *from == 't' ? '\t' : *from == 'n' ? '\n' : *from;
		} else {
			*to++ = *from;
		}
	*at = *from ? from + 1 : NULL;
	*to = '\0';
	return field;
}

bool binding_cut(char *line, char **from, char **to, char **symbol)
{
	char *end;

	*from = strstr(line, "binding file ");
	*to = *from ? strstr(*from, " to ") : NULL;
	*symbol = *to ? strchr(*to, '`') : NULL;
	end = *symbol ? strchr(*symbol, '\'') : NULL;
	if (!end)
		return false;
	*end = '\0';
	*from += strlen("binding file ");
	*to += strlen(" to ");
	*symbol += 1;
	(*from)[strcspn(*from, " ")] = '\0';
	(*to)[strcspn(*to, " ")] = '\0';
	return true;
}

static void cut_records(struct child *c)
{
	char *line = c->text, *end;

	for (; line && (end = memchr(line, '\n', c->size - (size_t)(line - c->text))); line = end + 1) {
		struct record r = {.n = 0};
		char *at = line;

		*end = '\0';
		while (at && r.n < sizeof(r.field) / sizeof(r.field[0]))
			r.field[r.n++] = record_cut(&at);
		vec_push(&c->records, r);
	}
}

static void keep_output(struct child *c)
{
	ssize_t n;

	if (c->said)
		return;
	c->said = xmalloc(SAID_MOST + 1);
	n = pread(c->output_fd, c->said, SAID_MOST, 0);
	c->said[n > 0 ? n : 0] = '\0';
}

static void finish(struct child *c, enum child_end end, int status)
{
	c->end = end;
	c->status = status;
	c->ended = now();
	kill(-c->pid, SIGKILL); /* whatever it left behind */
	drain(c);
	cut_records(c);
	keep_output(c);
}

/* ---- its life */

/* The child is stopped at its exec, or has failed before. */
static void await_exec(struct child *c, int complaints)
{
	char text[512];
	ssize_t n;
	int status;

	n = read(complaints, text, sizeof(text) - 1); /* closed by the exec */
	if (c->untraced && n <= 0)
		return;
	if (waitpid(c->pid, &status, __WALL) == c->pid && WIFSTOPPED(status) && n <= 0) {
		if (plant_breakpoint(c) && ptrace(PTRACE_CONT, c->pid, NULL, NULL) == 0)
			return;
		kill_child(c);
		c->said = xstrdup("no breakpoint can be set at its entry point");
	} else {
		if (WIFSTOPPED(status))
			kill_child(c);
		text[n > 0 ? n : 0] = '\0';
		c->said = xstrdup(n > 0 ? text : "the process could not be started");
	}
	finish(c, CHILD_UNABLE, 0);
}

static int orders_file(const char *text, struct error *e)
{
	int fd = memfd_create("orders", MFD_CLOEXEC);
	size_t n = strlen(text);

	if (fd < 0 || write(fd, text, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) < 0) {
		if (fd >= 0)
			close(fd);
		return error_set(e, "the orders for the replay: %s", strerror(errno));
	}
	return fd;
}

int child_start(struct child *c, const struct child_setup *setup, struct error *e)
{
	int records[2] = {-1, -1}, complaints[2] = {-1, -1}, orders = -1, result = -1;
	pid_t parent = getpid();

	memset(c, 0, sizeof(*c));
	c->records_fd = c->output_fd = -1;
	if (setup->orders && (orders = orders_file(setup->orders, e)) < 0)
		return -1;
	c->output_fd = memfd_create("output", MFD_CLOEXEC);
	if (c->output_fd < 0 || pipe2(records, O_CLOEXEC) < 0 || pipe2(complaints, O_CLOEXEC) < 0) {
		error_set(e, "pipe: %s", strerror(errno));
		goto out;
	}
	c->records_fd = records[0];
	fcntl(c->records_fd, F_SETFL, O_NONBLOCK);
	c->untraced = setup->untraced;
	c->began = now();
	c->deadline = c->began + setup->seconds;
	fflush(NULL);
	c->pid = fork();
	if (c->pid == 0)
		become(setup, orders, records[1], c->output_fd, complaints[1], parent);
	if (c->pid < 0) {
		error_set(e, "fork: %s", strerror(errno));
		goto out;
	}
	setpgid(c->pid, c->pid);
	close(complaints[1]);
	complaints[1] = -1;
	close(records[1]);
	records[1] = -1;
	await_exec(c, complaints[0]);
	result = 0;
out:
	if (orders >= 0)
		close(orders);
	if (records[1] >= 0)
		close(records[1]);
	if (complaints[0] >= 0)
		close(complaints[0]);
	if (complaints[1] >= 0)
		close(complaints[1]);
	return result;
}

bool child_step(struct child *c)
{
	int status;

	if (c->end != CHILD_RUNNING)
		return true;
	drain(c);
	while (waitpid(c->pid, &status, WNOHANG | __WALL) == c->pid) {
		if (WIFEXITED(status)) {
			finish(c, CHILD_EXITED, WEXITSTATUS(status));
			return true;
		}
		if (WIFSIGNALED(status)) {
			finish(c, CHILD_SIGNALLED, WTERMSIG(status));
			return true;
		}
		if (!WIFSTOPPED(status))
			continue;
		if (WSTOPSIG(status) == SIGTRAP && is_at_entry(c)) {
			kill_child(c);
			finish(c, CHILD_AT_ENTRY, 0);
			return true;
		}
		ptrace(PTRACE_CONT, c->pid, NULL, (void *)(long)WSTOPSIG(status));
	}
	if (now() >= c->deadline) {
		kill_child(c);
		finish(c, CHILD_LATE, 0);
		return true;
	}
	return false;
}

void children_poll(struct child *const *c, size_t n)
{
	struct pollfd fds[64];
	nfds_t count = 0;
	size_t i;

	for (i = 0; i < n && count < 64; i++)
		if (c[i]->end == CHILD_RUNNING)
			fds[count++] = (struct pollfd){.fd = c[i]->records_fd, .events = POLLIN};
	/* A stop for a signal is not seen on the pipe: do not sleep long.  A
	 * closed pipe comes before the end of the process: do not spin. */
	if (poll(fds, count, 10) > 0)
		for (i = 0; i < count; i++)
			if (fds[i].revents & POLLHUP) {
				usleep(500);
				break;
			}
}

void child_wait(struct child *c)
{
	while (!child_step(c))
		children_poll(&c, 1);
}

void child_free(struct child *c)
{
	if (c->end == CHILD_RUNNING && c->pid > 0)
		kill_child(c);
	if (c->records_fd >= 0)
		close(c->records_fd);
	if (c->output_fd >= 0)
		close(c->output_fd);
	vec_free(&c->records);
	free(c->text);
	free(c->said);
	memset(c, 0, sizeof(*c));
	c->records_fd = c->output_fd = -1;
}

const struct record *child_record(const struct child *c, const char *kind, const struct record *after)
{
	const struct record *r = after ? after + 1 : c->records.at;

	for (; c->records.n && r < c->records.at + c->records.n; r++)
		if (!strcmp(r->field[0], kind))
			return r;
	return NULL;
}

const char *child_end_text(const struct child *c, struct arena *arena)
{
	switch (c->end) {
	case CHILD_RUNNING: return "still running";
	case CHILD_EXITED: return arena_printf(arena, "exit status %d", c->status);
	case CHILD_SIGNALLED: return arena_printf(arena, "signal %d (%s)", c->status, strsignal(c->status));
	case CHILD_LATE: return arena_printf(arena, "no end within %.0f s", c->deadline - c->began);
	case CHILD_AT_ENTRY: return "the replay library was ignored; stopped before the engine ran";
	case CHILD_UNABLE: return arena_printf(arena, "not started: %s", c->said);
	}
	return "";
}
