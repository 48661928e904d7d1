#include "loader/facts.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* Distributions differ; these two lists are what upstream and Debian build. */
static const char *const table_x86_64[] = {"/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/",
					   "/lib64/", "/usr/lib64/", "/lib/", "/usr/lib/", NULL};
static const char *const table_aarch64[] = {"/lib/aarch64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/",
					    "/lib64/", "/usr/lib64/", "/lib/", "/usr/lib/", NULL};

/* memmem for text with its NUL or without. */
static const unsigned char *find(const unsigned char *data, size_t size, const char *text, size_t n)
{
	return memmem(data, size, text, n);
}

#define find_text(data, size, text) find((data), (size), (text), sizeof(text) - 1)

static int version_after(const unsigned char *data, size_t size, const char *text)
{
	const unsigned char *at = memmem(data, size, text, strlen(text));
	char number[16] = "";
	int major, minor;

	if (!at)
		return 0;
	at += strlen(text);
	memcpy(number, at, data + size - at < 15 ? (size_t)(data + size - at) : 15);
	return sscanf(number, "%3d.%3d", &major, &minor) == 2 ? major * 100 + minor : 0;
}

int libc_banner_version(const unsigned char *data, size_t size)
{
	const unsigned char *at = find_text(data, size, "GNU C Library (");

	return at ? version_after(at, (size_t)(data + size - at), "release version ") : 0;
}

/* Is this the length table of the run: size_t values, the strings' lengths in
 * order?  Its being there tells the default directories from other text. */
static bool has_length_table(const unsigned char *data, size_t size, const uint64_t *length, size_t n)
{
	return memmem(data, size, length, n * sizeof(*length)) != NULL;
}

struct run {
	size_t at, n;
	uint64_t length[16];
};

/* A run is as many NUL-terminated strings as follow each other, each of which
 * begins and ends with '/'. */
static struct run run_at(const unsigned char *data, size_t size, size_t at)
{
	struct run r = {.at = at};

	while (at < size && data[at] == '/' && r.n < 16) {
		const unsigned char *nul = memchr(data + at, 0, size - at);
		size_t n;

		if (!nul)
			break;
		n = (size_t)(nul - (data + at));
		if (n < 2 || n > 256 || data[at + n - 1] != '/')
			break;
		r.length[r.n++] = n;
		at += n + 1;
	}
	return r;
}

/* A table is looked for in the whole file; an ld.so has one or two runs, and a
 * file that has more than this is none. */
enum { RUNS_MOST = 64 };

static void read_system_dirs(struct ld_facts *f, const unsigned char *data, size_t size,
			     struct names *names, struct arena *arena)
{
	struct run best = {0};
	size_t i, at, tried = 0;

	for (i = 1; i + 2 < size; i++) {
		struct run r;

		if (data[i] != '/' || data[i - 1] != 0)
			continue;
		r = run_at(data, size, i);
		if (r.n > best.n && tried++ < RUNS_MOST && has_length_table(data, size, r.length, r.n))
			best = r;
		if (r.n)
			for (at = 0; at < r.n; at++)
				i += r.length[at] + (at ? 1 : 0);
	}
	f->dirs_from = best.n ? "ld.so" : "table";
	if (!best.n) {
		const char *const *t = f->machine == EM_AARCH64 ? table_aarch64 : table_x86_64;

		for (f->n_system_dir = 0; t[f->n_system_dir]; f->n_system_dir++)
			;
		f->system_dir = arena_alloc(arena, f->n_system_dir * sizeof(*f->system_dir));
		for (i = 0; i < f->n_system_dir; i++)
			f->system_dir[i] = names_add(names, t[i]);
		return;
	}
	f->n_system_dir = best.n;
	f->system_dir = arena_alloc(arena, best.n * sizeof(*f->system_dir));
	for (i = 0, at = best.at; i < best.n; at += best.length[i++] + 1)
		f->system_dir[i] = names_add_n(names, (const char *)data + at, best.length[i]);
}

static void read_cache_path(struct ld_facts *f, const unsigned char *data, size_t size,
			    struct names *names)
{
	static const char tail[] = "/ld.so.cache"; /* with its NUL */
	const unsigned char *at = memmem(data, size, tail, sizeof(tail)), *start;

	f->cache_path = names_add(names, "/etc/ld.so.cache");
	f->cache_from = "table";
	if (!at)
		return;
	for (start = at; start > data && start[-1]; start--)
		;
	if (*start != '/')
		return;
	f->cache_path = names_add(names, (const char *)start);
	f->cache_from = "ld.so";
}

/* $LIB stands as a string of its own, "lib", "lib64" or "lib/TRIPLET"; only the
 * last kind can be told from other text, so the others follow from the
 * default directories: /lib64/ or /usr/lib64/ among them means "lib64". */
static void read_lib(struct ld_facts *f, const unsigned char *data, size_t size, struct names *names)
{
	const char *triplet = f->machine == EM_AARCH64 ? "lib/aarch64-linux-gnu" : "lib/x86_64-linux-gnu";
	size_t n = strlen(triplet) + 1, i;
	const unsigned char *at = data, *end = data + size;

	while ((at = memmem(at, (size_t)(end - at), triplet, n))) {
		if (at > data && !at[-1]) {
			f->lib = names_add(names, triplet);
			f->lib_from = "ld.so";
			return;
		}
		at++;
	}
	f->lib = names_add(names, "lib");
	for (i = 0; i < f->n_system_dir; i++)
		if (!strcmp(f->system_dir[i], "/lib64/") || !strcmp(f->system_dir[i], "/usr/lib64/"))
			f->lib = names_add(names, "lib64");
	f->lib_from = f->dirs_from;
}

static void read_version(struct ld_facts *f, const unsigned char *data, size_t size, const char *real)
{
	const char *base = strrchr(real, '/');
	int major, minor;

	f->version = version_after(data, size, "release version ");
	f->version_from = "ld.so";
	if (f->version)
		return;
	/* Up to 2.33 the file itself is ld-2.31.so behind a link. */
	if (base && sscanf(base + 1, "ld-%3d.%3d.so", &major, &minor) == 2) {
		f->version = major * 100 + minor;
		f->version_from = "file name";
	}
}

struct ld_facts *ld_facts_read(const unsigned char *data, size_t size, const char *real,
			       uint16_t machine, struct names *names, struct arena *arena)
{
	struct ld_facts *f = arena_new(arena, struct ld_facts);

	f->machine = machine;
	f->preload_path = names_add(names, "/etc/ld.so.preload");
	if (strstr(real, "ld-musl") || find_text(data, size, "musl libc")) {
		f->libc = LIBC_MUSL;
	} else if (!find_text(data, size, "LD_LIBRARY_PATH") || !find_text(data, size, "ld.so.cache")) {
		f->libc = LIBC_OTHER;
	}
	read_version(f, data, size, real);
	read_system_dirs(f, data, size, names, arena);
	read_cache_path(f, data, size, names);
	read_lib(f, data, size, names);
	f->glibc_hwcaps = find_text(data, size, "glibc-hwcaps");
	/* 2.33 to 2.36 name the legacy directories in their --help text; before
	 * there were only these. */
	f->legacy_hwcaps = !f->glibc_hwcaps || find_text(data, size, "Legacy HWCAP subdirectories");
	return f;
}
