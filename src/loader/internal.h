/* What the parts of the simulated loader share among themselves: search.c
 * finds files, map.c turns them into objects, deps.c follows their needs,
 * start.c and open.c are the two ways in. */
#ifndef NCCLWHICH_LOADER_INTERNAL_H
#define NCCLWHICH_LOADER_INTERNAL_H

#include "loader/process.h"
#include "loader/tokens.h"

/* Why a load did not happen.  glibc throws; we return NULL and leave this. */
struct failure {
	const char *text;   /* NULL = no failure */
	const char *object; /* the file or name it is about */
	bool fatal;         /* no error is returned: the process dies or blocks */
};

/* Returns NULL, for `return fail(…)`. */
void *fail(struct process *p, const char *object, const char *text);
void *fail_fatally(struct process *p, const char *object, const char *text);

enum map_mode {
	MAP_SECURE = 1,   /* __RTLD_SECURE: a preload of a set-id process */
	MAP_DLOPEN = 2,   /* __RTLD_DLOPEN: DF_1_NOOPEN counts */
	MAP_CALLMAP = 4,  /* the loader given is only the caller of dlopen */
	MAP_NOLOAD = 8,
	MAP_FAKE = 16     /* trace mode: a missing dependency becomes a missing object */
};

/* search.c */
struct found {
	const char *path;       /* realname, NULL = nothing */
	struct root_file *file;
	const struct elf_object *elf;
	enum stage stage;
	const struct object *list_of;
	bool other_class;       /* something of another class was passed over */
	int error;              /* errno of the last miss */
};

void search_init(struct process *p);
void search(struct process *p, struct object *loader, const char *name, unsigned mode, int ns,
	    struct lookup *l, struct found *out);
const char *absolute(struct process *p, const char *path);
struct token_values tokens_of(const struct process *p, const struct object *o);

/* map.c */
struct object *object_new(struct process *p, const char *path, const char *name,
			  enum object_kind kind, struct object *loader, int ns);
void object_dispose(struct object *o);
void object_link(struct process *p, struct object *o);
void object_unlink(struct process *p, struct object *o);
void object_move_before(struct process *p, struct object *o, struct object *before);
bool namespace_is_whole(const struct process *p, int ns);
bool object_has_name(const struct object *o, const char *name);
void object_add_name(struct process *p, struct object *o, const char *name);
struct object *map_object(struct process *p, struct object *loader, const char *name,
			  enum object_kind kind, unsigned mode, int ns, struct lookup *l);
struct lookup *lookup_new(struct process *p, const struct object *requester, const char *request,
			  enum how how);

/* deps.c: both return false after a failure. */
bool map_dependencies(struct process *p, struct object *o, struct object **preload,
		      size_t n_preload, unsigned mode);
bool check_versions(struct process *p, const struct object_list *list, unsigned mode);
bool check_isa(struct process *p, const struct object_list *list);

/* scope.c: what relocation would refuse, for those of the list that are not
 * relocated yet. */
bool relocate_list(struct process *p, const struct object_list *list);

#endif
