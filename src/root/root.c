#include "root/root.h"

#include "root/zip.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { LINKS_MOST = 40 }; /* MAXSYMLINKS of the kernel */

/* What a path led to: a file, or an errno. */
struct answer {
	int error;
	int links; /* symbolic links of the path itself that were followed */
	struct root_file *file;
};

struct supposed {
	const char *path, *target;
};

struct file_key {
	dev_t dev;
	ino_t ino;
	struct root_file *file;
};

/* A file of a wheel, or a directory that is there for the sake of such. */
struct laid {
	struct zip *zip; /* NULL: a directory */
	bool on_disk;    /* it is there, and has more in it */
	size_t member;
	ino_t ino;
	VEC(const char *) child;
};

struct wheel {
	const char *path;
	struct zip *zip;
	VEC(const char *) file;
};

/* No device of a file on disk. */
static const dev_t laid_device = (dev_t)-1;

struct root {
	int fd; /* of a confined root; -1 = the running system */
	char *prefix;
	struct names *names;
	struct arena arena;
	struct name_map answers;
	struct file_key *files; /* open addressing by (dev, ino) */
	size_t n_files, room_files;
	VEC(struct supposed) supposed;
	VEC(struct wheel) wheel;
	VEC(struct laid *) laid;
	struct name_map laid_at; /* canonical path -> struct laid */
};

struct root *root_new(const char *dir, struct names *names, struct error *e)
{
	struct root *r = xmalloc(sizeof(*r));

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	r->names = names;
	if (dir) {
		r->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (r->fd < 0) {
			error_set(e, "%s: cannot open the root: %s", dir, strerror(errno));
			free(r);
			return NULL;
		}
	}
	r->prefix = xstrdup(dir ? dir : "");
	return r;
}

void root_free(struct root *r)
{
	size_t i;

	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	free(r->prefix);
	for (i = 0; i < r->wheel.n; i++) {
		zip_close(r->wheel.at[i].zip);
		vec_free(&r->wheel.at[i].file);
	}
	for (i = 0; i < r->laid.n; i++)
		vec_free(&r->laid.at[i]->child);
	vec_free(&r->wheel);
	vec_free(&r->laid);
	name_map_free(&r->laid_at);
	free(r->files);
	vec_free(&r->supposed);
	name_map_free(&r->answers);
	arena_free(&r->arena);
	free(r);
}

bool root_is_confined(const struct root *r)
{
	return r->fd >= 0;
}

const char *root_prefix(const struct root *r)
{
	return r->prefix;
}

/* The path as the kernel gets it: relative to the root's descriptor, or
 * absolute.  PATH is canonical, so none of its directories is a link. */
static const char *path_below(const struct root *r, const char *path)
{
	if (r->fd < 0)
		return path;
	return path[1] ? path + 1 : ".";
}

static struct root_file *file_of(struct root *r, const struct stat *st, const char *real)
{
	size_t k;
	struct root_file *f;

	if (r->n_files * 2 >= r->room_files) {
		size_t room = r->room_files ? r->room_files * 2 : 1024, i;
		struct file_key *files = xmalloc(room * sizeof(*files));

		memset(files, 0, room * sizeof(*files));
		for (i = 0; i < r->room_files; i++) {
			if (!r->files[i].file)
				continue;
			for (k = r->files[i].ino & (room - 1); files[k].file; k = (k + 1) & (room - 1))
				;
			files[k] = r->files[i];
		}
		free(r->files);
		r->files = files;
		r->room_files = room;
	}
	for (k = st->st_ino & (r->room_files - 1); r->files[k].file; k = (k + 1) & (r->room_files - 1))
		if (r->files[k].ino == st->st_ino && r->files[k].dev == st->st_dev)
			return r->files[k].file;
	f = arena_new(&r->arena, struct root_file);
	f->real = real;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->mode = st->st_mode;
	f->uid = st->st_uid;
	f->gid = st->st_gid;
	f->size = st->st_size > 0 ? (uint64_t)st->st_size : 0;
	r->files[k] = (struct file_key){st->st_dev, st->st_ino, f};
	r->n_files++;
	return f;
}

static const char *supposed_link(const struct root *r, const char *path)
{
	size_t i;

	for (i = 0; i < r->supposed.n; i++)
		if (r->supposed.at[i].path == path)
			return r->supposed.at[i].target;
	return NULL;
}

static void stat_of_laid(const struct laid *laid, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_dev = laid_device;
	st->st_ino = laid->ino;
	st->st_mode = laid->zip ? S_IFREG | 0644 : S_IFDIR | 0755;
	st->st_size = laid->zip ? (off_t)zip_member(laid->zip, laid->member)->size : 0;
}

/* What stands at DIR/NAME, DIR canonical, without following it.  Returns a
 * link's target in TARGET (of PATH_MAX bytes), else "" and the stat. */
static int look(struct root *r, const char *path, struct stat *st, char *target)
{
	const char *supposed = supposed_link(r, path);
	const struct laid *laid = name_map_get(&r->laid_at, path);
	ssize_t n;

	target[0] = '\0';
	if (supposed) {
		strcpy(target, supposed);
		return 0;
	}
	if (laid && !laid->on_disk) {
		stat_of_laid(laid, st);
		return 0;
	}
	if (fstatat(r->fd < 0 ? AT_FDCWD : r->fd, path_below(r, path), st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(st->st_mode))
		return 0;
	n = readlinkat(r->fd < 0 ? AT_FDCWD : r->fd, path_below(r, path), target, PATH_MAX - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	target[n] = '\0';
	return 0;
}

/* BEFORE is the number of links that were followed before PATH came up: they
 * use up the forty, but are no property of PATH. */
static struct answer *resolve(struct root *r, const char *path, int before);

/* An ELOOP that only came about by the links before holds for this once. */
static struct answer *remember(struct root *r, const char *path, int before, int error, int links,
			       struct root_file *file)
{
	struct answer *a = arena_new(&r->arena, struct answer);

	a->error = error;
	a->links = links;
	a->file = file;
	if (error != -ELOOP || !before)
		name_map_put(&r->answers, path, a);
	return a;
}

/* DIR/REST where DIR is a canonical directory; REST may hold anything. */
static const char *join(struct root *r, const char *dir, const char *rest)
{
	char *text = xprintf("%s/%s", dir[1] ? dir : "", rest);
	const char *name = names_add(r->names, text);

	free(text);
	return name;
}

static const char *parent_of(struct root *r, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? names_add(r->names, "/")
			     : names_add_n(r->names, path, (size_t)(slash - path));
}

/* The last component of PATH, seen from the canonical directory DIR. */
static struct answer *resolve_last(struct root *r, const char *path, const char *last,
				   const struct root_file *dir, int before, int links)
{
	char target[PATH_MAX];
	struct stat st;
	const char *real;
	struct answer *a;
	int error;

	if (!S_ISDIR(dir->mode))
		return remember(r, path, before, -ENOTDIR, links, NULL);
	if (!*last || !strcmp(last, "."))
		return remember(r, path, before, 0, links, (struct root_file *)dir);
	if (!strcmp(last, "..")) {
		a = resolve(r, parent_of(r, dir->real), 0);
		return remember(r, path, before, a->error, links, a->file);
	}
	if (strlen(last) > NAME_MAX)
		return remember(r, path, before, -ENAMETOOLONG, links, NULL);
	real = join(r, dir->real, last);
	error = look(r, real, &st, target);
	if (error)
		return remember(r, path, before, error, links, NULL);
	if (!target[0])
		return remember(r, path, before, 0, links, file_of(r, &st, real));
	if (before + links >= LINKS_MOST)
		return remember(r, path, before, -ELOOP, links, NULL);
	a = resolve(r, target[0] == '/' ? names_add(r->names, target) : join(r, dir->real, target),
		    before + links + 1);
	return remember(r, path, before, a->error, links + 1 + a->links, a->file);
}

/* An answer holds wherever there is room left for its links; without it the
 * walk finds out where the room ends.  ELOOP stays ELOOP. */
static struct answer *remembered(const struct root *r, const char *path, int before)
{
	struct answer *a = name_map_get(&r->answers, path);

	return a && (a->error == -ELOOP || before + a->links <= LINKS_MOST) ? a : NULL;
}

/* One component further, from a parent that has been answered. */
static struct answer *resolve_step(struct root *r, const char *path, struct answer *parent, int before)
{
	struct answer *a = remembered(r, path, before);

	if (a)
		return a;
	if (parent->error)
		return remember(r, path, before, parent->error, parent->links, NULL);
	return resolve_last(r, path, strrchr(path, '/') + 1, parent->file, before, parent->links);
}

static struct answer *resolve_top(struct root *r)
{
	const char *top = names_add(r->names, "/");
	struct answer *a = name_map_get(&r->answers, top);
	struct stat st;

	if (a)
		return a;
	if (fstatat(r->fd < 0 ? AT_FDCWD : r->fd, path_below(r, top), &st, 0) < 0)
		return remember(r, top, 0, -errno, 0, NULL);
	return remember(r, top, 0, 0, 0, file_of(r, &st, top));
}

/* Left to right and not by recursion, so that the depth of a path costs no
 * stack; only a link's target recurses, and of these there are forty. */
static struct answer *resolve(struct root *r, const char *path, int before)
{
	struct answer *a = remembered(r, path, before), *parent;
	const char *slash;

	if (a)
		return a;
	if (strlen(path) >= PATH_MAX)
		return remember(r, path, before, -ENAMETOOLONG, 0, NULL);
	if (!path[1])
		return resolve_top(r);
	parent = remembered(r, parent_of(r, path), before);
	if (parent)
		return resolve_step(r, path, parent, before);
	parent = resolve_top(r);
	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/'))
		parent = resolve_step(r, names_add_n(r->names, path, (size_t)(slash - path)), parent, before);
	return resolve_step(r, path, parent, before);
}

int root_lookup(struct root *r, const char *path, struct root_file **file)
{
	struct answer *a = resolve(r, path, 0);

	*file = a->file;
	return a->error;
}

const char *root_link_target(struct root *r, const char *path)
{
	struct answer *parent = resolve(r, parent_of(r, path), 0);
	char target[PATH_MAX];
	struct stat st;

	if (parent->error || !S_ISDIR(parent->file->mode) ||
	    look(r, join(r, parent->file->real, strrchr(path, '/') + 1), &st, target) || !target[0])
		return NULL;
	return names_add(r->names, target);
}

bool root_is_directory(struct root *r, const char *path)
{
	struct answer *a = resolve(r, path, 0);

	return !a->error && S_ISDIR(a->file->mode);
}

/* Where there is no openat2: one component after the other, following nothing. */
static int open_stepwise(int dir, const char *path, int flags)
{
	char name[NAME_MAX + 1];
	int fd = dir, next, error;
	size_t n;

	for (;; path += n + 1) {
		n = strcspn(path, "/");
		if (n > NAME_MAX) { /* no name that was found */
			next = -1;
			errno = ENAMETOOLONG;
		} else {
			memcpy(name, path, n);
			name[n] = '\0';
			next = openat(fd, name, path[n] ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags);
		}
		error = errno;
		if (fd != dir)
			close(fd);
		errno = error;
		if (next < 0 || !path[n])
			return next;
		fd = next;
	}
}

int root_open(struct root *r, const struct root_file *file)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	const struct laid *laid;
	struct stat st;
	int fd;

	if (!S_ISREG(file->mode))
		return -EINVAL;
	if (root_is_laid(file)) {
		laid = name_map_get(&r->laid_at, file->real);
		return laid ? zip_member_open(laid->zip, laid->member) : -ENOENT;
	}
	if (r->fd < 0) {
		fd = open(file->real, (int)how.flags);
	} else {
		/* The walk has already shown that no component is a link; the kernel
		 * confines the open once more in case the tree is changing. */
		fd = (int)syscall(SYS_openat2, r->fd, path_below(r, file->real), &how, sizeof(how));
		if (fd < 0 && (errno == ENOSYS || errno == EPERM))
			fd = open_stepwise(r->fd, path_below(r, file->real), (int)how.flags);
	}
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

bool root_has_capabilities(struct root *r, const struct root_file *file)
{
	char value[64];
	ssize_t n;
	int fd;

	if (root_is_laid(file))
		return false;
	if (r->fd < 0)
		return lgetxattr(file->real, "security.capability", value, sizeof(value)) > 0;
	fd = root_open(r, file);
	if (fd < 0)
		return false;
	n = fgetxattr(fd, "security.capability", value, sizeof(value));
	close(fd);
	return n > 0;
}

static void forget_answers(struct root *r)
{
	name_map_free(&r->answers);
}

void root_suppose_link(struct root *r, const char *path, const char *target)
{
	vec_push(&r->supposed, ((struct supposed){names_add(r->names, path), names_add(r->names, target)}));
	forget_answers(r);
}

void root_suppose_nothing(struct root *r)
{
	r->supposed.n = 0;
	forget_answers(r);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_disk(struct root *r, const char *path, struct root_listing *out)
{
	int fd = openat(r->fd < 0 ? AT_FDCWD : r->fd, path_below(r, path),
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), error;
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		error = -errno;
		close(fd);
		return error;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			vec_push(&out->name, names_add(r->names, entry->d_name));
	closedir(dir);
	return 0;
}

int root_list(struct root *r, const char *path, struct root_listing *out)
{
	const struct laid *laid;
	struct root_file *file;
	int error = root_lookup(r, path, &file);
	size_t i, n = 0;

	if (error)
		return error;
	if (!S_ISDIR(file->mode))
		return -ENOTDIR;
	laid = name_map_get(&r->laid_at, file->real);
	error = list_disk(r, file->real, out);
	if (error && !laid)
		return error;
	for (i = 0; laid && i < laid->child.n; i++)
		vec_push(&out->name, laid->child.at[i]);
	if (out->name.n)
		qsort(out->name.at, out->name.n, sizeof(*out->name.at), compare_names);
	for (i = 0; i < out->name.n; i++)
		if (!n || out->name.at[n - 1] != out->name.at[i])
			out->name.at[n++] = out->name.at[i];
	out->name.n = n;
	return 0;
}

/* ---- wheels ---- */

bool root_is_laid(const struct root_file *file)
{
	return file->dev == laid_device;
}

static struct laid *lay(struct root *r, const char *path)
{
	struct laid *laid = arena_new(&r->arena, struct laid);

	vec_push(&r->laid, laid);
	laid->ino = r->laid.n;
	name_map_put(&r->laid_at, path, laid);
	forget_answers(r);
	return laid;
}

static void add_child(struct root *r, const char *dir, const char *path)
{
	struct laid *laid = name_map_get(&r->laid_at, dir);

	if (!laid) {
		laid = lay(r, dir);
		laid->on_disk = true;
	}
	vec_push(&laid->child, names_add(r->names, path_base(path)));
}

/* The canonical path of a directory, which is laid where there is none; NULL where
 * a file stands. */
static const char *lay_directory(struct root *r, const char *path)
{
	struct root_file *file;
	const char *parent, *real;

	if (!path[1])
		return path;
	if (!root_lookup(r, path, &file))
		return S_ISDIR(file->mode) ? file->real : NULL;
	parent = lay_directory(r, parent_of(r, path));
	if (!parent)
		return NULL;
	real = join(r, parent, path_base(path));
	add_child(r, parent, real);
	lay(r, real);
	return real;
}

static int lay_file(struct root *r, struct wheel *w, const char *path, size_t member)
{
	const char *dir = lay_directory(r, parent_of(r, path)), *real;
	struct root_file *file;
	struct laid *laid;

	if (!dir || (!root_lookup(r, path, &file) && S_ISDIR(file->mode)))
		return -1;
	real = join(r, dir, path_base(path));
	laid = name_map_get(&r->laid_at, real);
	if (!laid) {
		add_child(r, dir, real);
		laid = lay(r, real);
	}
	laid->zip = w->zip;
	laid->member = member;
	vec_push(&w->file, real);
	return 0;
}

/* Names that a wheel may have: none that leads out of where it is installed. */
static bool is_proper(const char *name)
{
	size_t n;

	if (strlen(name) >= PATH_MAX / 2)
		return false;
	for (;; name += n + 1) {
		n = strcspn(name, "/");
		if (!n || n > NAME_MAX || (name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.'))))
			return false;
		if (!name[n])
			return true;
	}
}

/* What of the member's name goes below SITE: all of it, but for what stands in
 * NAME.data (binary distribution format, "The .data directory"); NULL: nothing. */
static const char *below_site(const char *name)
{
	static const char *const library[] = {"purelib/", "platlib/"};
	size_t n = strcspn(name, "/"), i;

	if (n < 5 || strncmp(name + n - 5, ".data", 5) || !name[n])
		return name;
	for (i = 0; i < 2; i++)
		if (!strncmp(name + n + 1, library[i], 8))
			return name + n + 9;
	return NULL;
}

int root_install(struct root *r, const char *wheel, const char *site, struct error *e)
{
	struct wheel w = {.path = wheel};
	struct root_file *file;
	int error = root_lookup(r, wheel, &file), fd;
	size_t k;

	fd = error ? error : root_open(r, file);
	if (fd < 0)
		return error_set(e, "%s: %s", wheel, strerror(-fd));
	w.zip = zip_open(fd, wheel, e);
	if (!w.zip)
		return -1;
	for (k = 0; k < zip_count(w.zip); k++)
		if (!is_proper(zip_member(w.zip, k)->name)) {
			zip_close(w.zip);
			return error_set(e, "%s: is no wheel: the name of a member leads out of it", wheel);
		}
	for (k = 0; k < zip_count(w.zip); k++) {
		const char *below = below_site(zip_member(w.zip, k)->name);

		if (below && *below && lay_file(r, &w, join(r, site, below), k) < 0) {
			vec_push(&r->wheel, w); /* what has been laid refers to it */
			return error_set(e, "%s: cannot be installed in %s: something is a file and a directory", wheel, site);
		}
	}
	vec_push(&r->wheel, w);
	return 0;
}

void root_list_installed(const struct root *r, const char *wheel, struct root_listing *out)
{
	size_t i, k;

	for (i = 0; i < r->wheel.n; i++)
		for (k = 0; r->wheel.at[i].path == wheel && k < r->wheel.at[i].file.n; k++)
			vec_push(&out->name, r->wheel.at[i].file.at[k]);
}
