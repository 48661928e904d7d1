/* Inside the replay library: the real link map, and what it is bound to. */
#ifndef NCCLWHICH_CONFIRM_REPLAY_MAP_H
#define NCCLWHICH_CONFIRM_REPLAY_MAP_H

#include "confirm/replay_bare.h"

#include <link.h>

/* libc's, if the process has them. */
extern void *dlopen(const char *, int) __attribute__((weak));
extern void *dlmopen(long, const char *, int) __attribute__((weak));
extern void *dlsym(void *, const char *) __attribute__((weak));
extern char *dlerror(void) __attribute__((weak));
extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *) __attribute__((weak));

enum { OBJECTS_MOST = 4096, SYMBOLS_MOST = 512, EVENTS_MOST = 1024, NAMESPACES_MOST = 16 };

struct mapped {
	const struct link_map *map; /* NULL: unloaded again */
	const ElfW(Phdr) *phdr;
	unsigned phnum;
	uintptr_t start, end;       /* of its image */
	unsigned ns;                /* 0 = the base namespace */
	int event;                  /* that mapped it, -1 = start-up */
	int number;                 /* in the records, in link-map order */
};

struct event {
	int flags;
	const char *caller, *name;
	const struct link_map *handle; /* NULL: it failed, or has not happened */
};

extern struct mapped objects[OBJECTS_MOST];
extern int n_objects;
extern struct event events[EVENTS_MOST];
extern int n_events;
extern const char *symbols[SYMBOLS_MOST];
extern int n_symbols;
extern const char *program_path;

/* Reads the link maps again; what is new was mapped by EVENT. */
void map_scan(int event);
void map_add_namespace(const struct link_map *any);
/* Records of all objects, in order. */
void map_report(const char *phase);
/* The object that an address lies in, that has this link map, or that has this
 * realname ("" = the program); -1. */
int map_owner(uintptr_t address);
int map_of(const struct link_map *map);
int map_find(const char *path);
/* The first object of the base namespace with this SONAME; -1. */
int map_soname(const char *soname);
/* The address of a return instruction in it, 0 if it has none. */
uintptr_t map_return_in(int object);
void map_identity(int object, struct stat *st);
void map_build_id(int object, char *hex, size_t room);

/* Every reference to a tracked symbol, with what it is bound to now. */
void bindings_report(void);
/* What a call of NAME by OBJECT reaches: its slot, or, where that waits for
 * the first call or OBJECT has none, what a call would find now. */
void *binding_of(int object, const char *name);

/* The second stage; never returns. */
void nccl_run(void) __attribute__((noreturn));
enum { PATHS_MOST = 256 };
struct nccl_path {
	int object; /* of a linked path: the requester */
	int event;  /* of an opened one; -1 = linked */
};
extern struct nccl_path paths[PATHS_MOST];
extern int n_paths;
extern int case_path[3]; /* that mints the id, makes the communicator, uses it */
extern int n_ranks, n_elements;

#endif
