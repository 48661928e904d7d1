#include "confirm/place.h"

#include "base/memory.h"
#include "confirm/host.h"
#include "confirm/replay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PKGLIBDIR
#define PKGLIBDIR "/usr/local/lib/ncclwhich"
#endif

#define INSIDE "/.ncclwhich-confirm" /* our directory, in the view of a root */

/* ---- our own files */

char *place_library(const char *name, struct error *e)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *given = getenv("NCCLWHICH_LIBDIR");
	char *slash, *path = NULL;
	int i;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (i = given ? 0 : 1; i < 4; i++) {
		free(path);
		path = i == 0 ? xprintf("%s/%s", given, name) : i == 1 ? xprintf("%s/%s", self, name)
			: i == 2 ? xprintf("%s/../lib/ncclwhich/%s", self, name) : xprintf(PKGLIBDIR "/%s", name);
		if (access(path, R_OK) == 0) {
			char *real = realpath(path, NULL);

			free(path);
			return real;
		}
		if (given)
			break;
	}
	error_set(e, "%s is neither beside the program nor in %s (NCCLWHICH_LIBDIR names another directory)", name,
		  given ? given : PKGLIBDIR);
	free(path);
	return NULL;
}

static int copy_file(const char *from, const char *to, struct error *e)
{
	char chunk[65536];
	ssize_t n = -1;
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	while (in >= 0 && out >= 0 && (n = read(in, chunk, sizeof(chunk))) > 0)
		if (write(out, chunk, (size_t)n) != n) {
			n = -1;
			break;
		}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return n == 0 ? 0 : error_set(e, "%s: cannot be copied to %s: %s", from, to, strerror(errno));
}

const char *place_inside(const struct place *p)
{
	return p->root ? INSIDE : p->dir;
}

/* How a process sees a file of our directory. */
static char *seen_as(const struct place *p, const char *name)
{
	return xprintf("%s/%s", place_inside(p), name);
}

int place_open(struct place *p, const char *root, struct error *e)
{
	const char *tmp = getenv("TMPDIR");
	char *library, *copy, *view;
	int result = -1;

	memset(p, 0, sizeof(*p));
	p->root = root;
	p->user_namespace = geteuid() != 0;
	library = place_library(REPLAY_LIBRARY, e);
	if (!library)
		return -1;
	p->dir = xprintf("%s/ncclwhich-confirm.XXXXXX", tmp && tmp[0] == '/' && !strpbrk(tmp, " :$") ? tmp : "/tmp");
	if (!mkdtemp(p->dir)) {
		error_set(e, "%s: %s", p->dir, strerror(errno));
		free(p->dir);
		p->dir = NULL;
		goto out;
	}
	chmod(p->dir, 0755);
	if (root) {
		view = xprintf("%s/root", p->dir);
		mkdir(view, 0755);
		free(view);
	}
	/* LD_PRELOAD is split at blanks and colons and has tokens expanded. */
	if (!root && !strpbrk(library, " :$")) {
		p->library = xstrdup(library);
		result = 0;
		goto out;
	}
	copy = xprintf("%s/" REPLAY_LIBRARY, p->dir);
	result = copy_file(library, copy, e);
	free(copy);
	p->library = seen_as(p, REPLAY_LIBRARY);
out:
	free(library);
	return result;
}

int place_bare_program(struct place *p, const char *interp, uint16_t machine, struct error *e)
{
	char *path = xprintf("%s/bare", p->dir);
	int result = p->program ? 0 : host_write(path, interp, machine, e);

	if (result == 0 && !p->program)
		p->program = seen_as(p, "bare");
	free(path);
	return result;
}

void place_close(struct place *p)
{
	static const char *const ours[] = {REPLAY_LIBRARY, "bare", "root"};
	char *path;
	size_t i;

	for (i = 0; p->dir && i < sizeof(ours) / sizeof(ours[0]); i++) {
		path = xprintf("%s/%s", p->dir, ours[i]);
		remove(path);
		free(path);
	}
	if (p->dir)
		rmdir(p->dir);
	free(p->dir);
	free(p->library);
	free(p->program);
	memset(p, 0, sizeof(*p));
}

/* ---- a view of a root */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

static bool become_root(void)
{
	char text[64];
	unsigned uid = (unsigned)geteuid(), gid = (unsigned)getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return false;
	write_text("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", uid);
	if (!write_text("/proc/self/uid_map", text))
		return false;
	snprintf(text, sizeof(text), "0 %u 1", gid);
	return write_text("/proc/self/gid_map", text);
}

static bool bind(const char *from, const char *to)
{
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0;
}

/* One entry of the root: a link is made again, everything else is bound. */
static bool show_entry(const char *root, const char *view, const char *name)
{
	char *from = xprintf("%s/%s", root, name), *to = xprintf("%s/%s", view, name), target[PATH_MAX];
	struct stat st;
	bool good = lstat(from, &st) == 0;
	ssize_t n;
	int fd;

	if (good && S_ISLNK(st.st_mode)) {
		n = readlink(from, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		good = n > 0 && symlink(target, to) == 0;
	} else if (good && S_ISDIR(st.st_mode)) {
		good = mkdir(to, 0755) == 0 && (!strcmp(name, "proc") || bind(from, to));
	} else if (good) {
		fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0)
			close(fd);
		good = bind(from, to);
	}
	free(from);
	free(to);
	return good;
}

static const char *enter_view(const struct place *p)
{
	char *view = xprintf("%s/root", p->dir), *ours = xprintf("%s" INSIDE, view), *proc = xprintf("%s/proc", view);
	struct dirent *entry;
	DIR *dir;

	if (p->user_namespace ? !become_root() : unshare(CLONE_NEWNS) < 0)
		return "a root can be confirmed only by root or where user namespaces are allowed";
	/* Nothing may be mounted where others see it. */
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno == EINVAL ? "/ is no mount point, as in a chroot (mount --bind it to itself before); mount"
				       : "mount of / as private";
	if (mount("tmpfs", view, "tmpfs", 0, "mode=755") < 0)
		return "mount of a view of the root";
	dir = opendir(p->root);
	if (!dir)
		return p->root;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    !show_entry(p->root, view, entry->d_name))
			return "mount of an entry of the root";
	closedir(dir);
	/* Without /proc the loader cannot expand the program's $ORIGIN. */
	mkdir(proc, 0755);
	if (!bind("/proc", proc) || mkdir(ours, 0755) < 0 || mount(p->dir, ours, NULL, MS_BIND, NULL) < 0)
		return "mount of /proc";
	if (chroot(view) < 0)
		return "chroot";
	free(view);
	free(ours);
	free(proc);
	return NULL;
}

const char *place_enter(const struct place *p, const char *cwd)
{
	const char *what = p->root ? enter_view(p) : NULL;

	if (what)
		return what;
	return chdir(cwd) < 0 ? cwd : NULL;
}
