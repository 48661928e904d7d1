#include "root/zip.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MEMBERS_MOST = 1 << 20,
	BLOCK = 64 * 1024,  /* read from the archive at a time */
	PAGE = 4096,
};

/* What stands in memory at a time, besides the member asked for last: enough for
 * what PyTorch's wheel has.  The largest member that is read, and all that is
 * unpacked: twice and ten times what the largest wheels have. */
static const uint64_t kept_most = 2ull << 30, member_most = 4ull << 30, unpacked_most = 32ull << 30;

struct kept {
	size_t member;
	int fd;
};

struct zip {
	int fd;
	struct arena arena;
	VEC(struct zip_member) member;
	VEC(size_t) entry;        /* of each, its place among all entries */
	struct archive *reader;   /* at entry `next` */
	size_t next;
	VEC(struct kept) kept;    /* oldest first */
	uint64_t kept_bytes, unpacked;
};

static struct archive *begin(int fd)
{
	struct archive *a = archive_read_new();

	if (!a)
		return NULL;
	if (lseek(fd, 0, SEEK_SET) < 0 || archive_read_support_format_zip_seekable(a) != ARCHIVE_OK ||
	    archive_read_open_fd(a, fd, BLOCK) != ARCHIVE_OK)
		return archive_read_free(a), NULL;
	return a;
}

static const char *name_of(struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);

	return name ? name : archive_entry_pathname_utf8(entry);
}

/* A warning is about a name's characters, and the entry is there. */
static int next_entry(struct archive *a, struct archive_entry **entry)
{
	int result = archive_read_next_header(a, entry);

	return result == ARCHIVE_WARN ? ARCHIVE_OK : result;
}

static void drop(struct zip *z, size_t k)
{
	z->kept_bytes -= z->member.at[z->kept.at[k].member].size;
	close(z->kept.at[k].fd);
	memmove(z->kept.at + k, z->kept.at + k + 1, (z->kept.n - k - 1) * sizeof(*z->kept.at));
	z->kept.n--;
}

void zip_close(struct zip *z)
{
	if (!z)
		return;
	while (z->kept.n)
		drop(z, z->kept.n - 1);
	archive_read_free(z->reader);
	close(z->fd);
	vec_free(&z->kept);
	vec_free(&z->member);
	vec_free(&z->entry);
	arena_free(&z->arena);
	free(z);
}

struct zip *zip_open(int fd, const char *name, struct error *e)
{
	struct zip *z = xmalloc(sizeof(*z));
	struct archive *a = begin(fd);
	struct archive_entry *entry;
	size_t n;
	int result = ARCHIVE_FATAL;

	memset(z, 0, sizeof(*z));
	z->fd = fd;
	for (n = 0; a && (result = next_entry(a, &entry)) == ARCHIVE_OK && n < MEMBERS_MOST; n++) {
		const char *text = name_of(entry);

		if (archive_entry_filetype(entry) == AE_IFDIR || !text)
			continue;
		vec_push(&z->member, ((struct zip_member){arena_strdup(&z->arena, text),
							  archive_entry_size(entry) > 0 ? (uint64_t)archive_entry_size(entry) : 0}));
		vec_push(&z->entry, n);
	}
	if (result != ARCHIVE_EOF || !n) {
		const char *why = n >= MEMBERS_MOST ? "it has too many members"
				  : result == ARCHIVE_EOF ? "it is empty or cut short" : a ? archive_error_string(a) : NULL;

		error_set(e, "%s: cannot be read as a zip archive%s%s", name, why ? ": " : "", why ? why : "");
		archive_read_free(a);
		zip_close(z);
		return NULL;
	}
	archive_read_free(a);
	return z;
}

size_t zip_count(const struct zip *z)
{
	return z->member.n;
}

const struct zip_member *zip_member(const struct zip *z, size_t k)
{
	return &z->member.at[k];
}

/* The reader goes forward only: members are mostly asked for in their order. */
static bool go_to(struct zip *z, size_t entry_number)
{
	struct archive_entry *entry;

	if (!z->reader || z->next > entry_number) {
		archive_read_free(z->reader);
		z->reader = begin(z->fd);
		z->next = 0;
	}
	for (; z->reader && z->next <= entry_number; z->next++)
		if (next_entry(z->reader, &entry) != ARCHIVE_OK)
			return false;
	return z->reader != NULL;
}

static bool is_zero(const unsigned char *b, size_t n)
{
	return !n || (!b[0] && !memcmp(b, b + 1, n - 1));
}

static bool write_all(int fd, const unsigned char *b, size_t n, uint64_t at)
{
	while (n) {
		size_t part = PAGE - at % PAGE < n ? PAGE - at % PAGE : n;
		ssize_t done = is_zero(b, part) ? (ssize_t)part : pwrite(fd, b, part, (off_t)at);

		if (done <= 0)
			return false;
		b += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return true;
}

/* Into memory; a member that is longer or shorter than it says is damaged. */
static int unpack(struct zip *z, size_t k)
{
	const uint64_t size = z->member.at[k].size;
	uint64_t end = 0;
	const void *block;
	size_t n;
	la_int64_t at;
	int fd, result;

	if (size > member_most || size > unpacked_most - z->unpacked)
		return -EFBIG;
	z->unpacked += size;
	fd = memfd_create("member", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!go_to(z, z->entry.at[k]) || ftruncate(fd, (off_t)size) < 0) {
		close(fd);
		return -EIO;
	}
	while ((result = archive_read_data_block(z->reader, &block, &n, &at)) == ARCHIVE_OK) {
		if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at || !write_all(fd, block, n, (uint64_t)at))
			break;
		end = (uint64_t)at + n;
	}
	if (result == ARCHIVE_EOF && end == size)
		return fd;
	close(fd);
	archive_read_free(z->reader); /* it may be in the middle of anything */
	z->reader = NULL;
	return -EIO;
}

int zip_member_open(struct zip *z, size_t k)
{
	size_t i;
	int fd = -1;

	for (i = 0; i < z->kept.n; i++)
		if (z->kept.at[i].member == k)
			fd = z->kept.at[i].fd;
	if (fd < 0) {
		fd = unpack(z, k);
		if (fd < 0)
			return fd;
		while (z->kept.n && z->kept_bytes + z->member.at[k].size > kept_most)
			drop(z, 0);
		vec_push(&z->kept, ((struct kept){k, fd}));
		z->kept_bytes += z->member.at[k].size;
	}
	fd = dup(fd);
	if (fd < 0)
		return -errno;
	lseek(fd, 0, SEEK_SET);
	return fd;
}
