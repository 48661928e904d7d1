/* The file system being looked at.
 *
 * A root answers one question: what does this path, read by a process inside
 * the root, lead to?  Symbolic links are followed by us and not by the kernel:
 * absolute targets start again at the root, ".." cannot climb above it, and
 * forty links end in ELOOP, as for a process that lives there.  Nothing
 * outside a confined root is ever opened.
 *
 * Answers are remembered: the tree is taken not to change while we look.  A
 * file is identified by device and inode, so symbolic and hard links to it are
 * one root_file.  All memory belongs to the root. */
#ifndef NCCLWHICH_ROOT_ROOT_H
#define NCCLWHICH_ROOT_ROOT_H

#include "base/error.h"
#include "base/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct root;

struct root_file {
	const char *real; /* canonical path in the root, interned, first spelling found */
	dev_t dev;
	ino_t ino;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uint64_t size; /* bytes */
	void *parsed;  /* for the owner of the root: what it has read out of the file */
};

/* DIR NULL = the running system, unconfined.  NULL after an error. */
struct root *root_new(const char *dir, struct names *names, struct error *e);
void root_free(struct root *r);

bool root_is_confined(const struct root *r);

/* The directory the root was opened as, "" for the running system. */
const char *root_prefix(const struct root *r);

/* Where an absolute path, interned in the root's pool, leads.  Returns 0 and
 * the file, or a negative errno; nothing is opened. */
int root_lookup(struct root *r, const char *path, struct root_file **file);

/* The target of the symbolic link at PATH (absolute, interned), which need not
 * lead anywhere; NULL if PATH itself is no link. */
const char *root_link_target(struct root *r, const char *path);

/* Is PATH (absolute, interned) a directory, as stat() would say? */
bool root_is_directory(struct root *r, const char *path);

/* Lays the files of a wheel over the root, as they would stand were it installed
 * in the directory SITE, which need not be there: what is on disk under their
 * names is hidden, nothing is written.  WHEEL is the archive.  Both are absolute
 * and interned.  Answers given before are forgotten.  -1 after an error. */
int root_install(struct root *r, const char *wheel, const char *site, struct error *e);

/* Is it a file of a wheel, which does not stand on disk? */
bool root_is_laid(const struct root_file *file);

/* A descriptor for reading, or a negative errno.  Only regular files are
 * opened; anything else is -EINVAL. */
int root_open(struct root *r, const struct root_file *file);

/* Does the file carry capabilities (security.capability)? */
bool root_has_capabilities(struct root *r, const struct root_file *file);

/* What if there were a symbolic link PATH -> TARGET?  Answers given before are
 * forgotten; nothing on disk changes.  PATH is a canonical absolute path. */
void root_suppose_link(struct root *r, const char *path, const char *target);

/* Takes back every supposed link. */
void root_suppose_nothing(struct root *r);

/* Names; the vector is the caller's, they are interned. */
struct root_listing {
	VEC(const char *) name;
};

/* Names in a directory (absolute path), sorted; 0 or a negative errno. */
int root_list(struct root *r, const char *path, struct root_listing *out);

/* Paths of the files that an installed wheel has laid, in its order; none if it
 * is not installed. */
void root_list_installed(const struct root *r, const char *wheel, struct root_listing *out);

#endif
