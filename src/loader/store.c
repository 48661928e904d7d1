#include "loader/store.h"

#include "loader/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { LD_SO_MOST = 16 << 20, LIBC_MOST = 64 << 20, CACHE_MOST = 64 << 20 };

struct store *store_new(const char *dir, struct error *e)
{
	struct store *s = xmalloc(sizeof(*s));

	memset(s, 0, sizeof(*s));
	s->root = root_new(dir, &s->names, e);
	if (!s->root) {
		free(s);
		return NULL;
	}
	return s;
}

void store_free(struct store *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->slurped.n; i++)
		free(s->slurped.at[i]);
	vec_free(&s->slurped);
	for (i = 0; i < s->symbol_tables.n; i++) {
		elf_symbols_free(&s->symbol_tables.at[i]->symbols);
		elf_relocations_free(&s->symbol_tables.at[i]->relocations);
		name_map_free(&s->symbol_tables.at[i]->first);
	}
	vec_free(&s->symbol_tables);
	name_map_free(&s->symbols);
	name_map_free(&s->facts);
	for (i = 0; i < s->cache_list.n; i++)
		name_map_free(&s->cache_list.at[i]->memo);
	vec_free(&s->cache_list);
	name_map_free(&s->caches);
	root_free(s->root);
	names_free(&s->names);
	arena_free(&s->arena);
	free(s);
}

int store_reader(struct store *s, const struct root_file *file, struct reader *r)
{
	int fd = root_open(s->root, file);

	if (fd >= 0)
		reader_open(r, fd, file->size);
	return fd;
}

const struct elf_object *store_object(struct store *s, struct root_file *file, int *open_error)
{
	struct reader r;
	int fd;

	*open_error = 0;
	if (file->parsed)
		return file->parsed;
	if (!S_ISREG(file->mode)) {
		file->parsed = (void *)elf_object_unreadable(
			S_ISDIR(file->mode) ? ELF_DIRECTORY : ELF_NOT_REGULAR, &s->arena);
		return file->parsed;
	}
	fd = store_reader(s, file, &r);
	if (fd < 0) {
		*open_error = -fd;
		return elf_object_unreadable(ELF_UNREADABLE, &s->arena);
	}
	file->parsed = (void *)elf_object_read(&r, &s->names, &s->arena);
	close(fd);
	return file->parsed;
}

const unsigned char *store_slurp(struct store *s, const struct root_file *file, size_t limit, size_t *size)
{
	unsigned char *data;
	struct reader r;
	int fd;

	if (file->size > limit)
		return NULL;
	fd = store_reader(s, file, &r);
	if (fd < 0)
		return NULL;
	data = xmalloc(file->size + 1);
	*size = file->size;
	if (!reader_at(&r, 0, data, file->size)) {
		close(fd);
		free(data);
		return NULL;
	}
	close(fd);
	data[file->size] = 0;
	vec_push(&s->slurped, data);
	return data;
}

/* An ld.so before 2.33 does not name its version; the libc beside it does. */
static void version_from_libc(struct store *s, struct ld_facts *f, const struct root_file *ld_so)
{
	size_t i, size;

	for (i = 0; i <= f->n_system_dir && !f->version; i++) {
		const char *slash = strrchr(ld_so->real, '/');
		char *path = i ? xprintf("%slibc.so.6", f->system_dir[i - 1])
			       : xprintf("%.*s/libc.so.6", (int)(slash - ld_so->real), ld_so->real);
		const unsigned char *data;
		struct root_file *libc;

		if (!root_lookup(s->root, names_add(&s->names, path), &libc) && S_ISREG(libc->mode) &&
		    (data = store_slurp(s, libc, LIBC_MOST, &size))) {
			f->version = libc_banner_version(data, size);
			f->version_from = "libc.so.6";
		}
		free(path);
	}
}

const struct ld_facts *store_facts(struct store *s, struct root_file *file, struct error *e)
{
	struct ld_facts *f = name_map_get(&s->facts, file->real);
	const struct elf_object *elf;
	const unsigned char *data;
	int open_error;
	size_t size;

	if (f)
		return f;
	elf = store_object(s, file, &open_error);
	data = S_ISREG(file->mode) && !open_error ? store_slurp(s, file, LD_SO_MOST, &size) : NULL;
	if (!data || (elf->fault && elf->fault != ELF_NO_DYNAMIC)) {
		error_set(e, "%s: not a dynamic loader: %s", file->real,
			  open_error ? strerror(open_error) : elf_fault_text(elf->fault));
		return NULL;
	}
	f = ld_facts_read(data, size, file->real, elf->machine, &s->names, &s->arena);
	if (!f->version && f->libc == LIBC_GLIBC)
		version_from_libc(s, f, file);
	if (!f->version && f->libc == LIBC_GLIBC) {
		f->version = 236; /* the version this rule set was checked on */
		f->version_from = "table";
	}
	name_map_put(&s->facts, file->real, f);
	return f;
}

struct store_cache *store_cache(struct store *s, const char *path)
{
	struct store_cache *c = name_map_get(&s->caches, path);
	const unsigned char *data;
	struct root_file *file;
	size_t size;

	if (c)
		return c;
	c = arena_new(&s->arena, struct store_cache);
	name_map_put(&s->caches, path, c);
	vec_push(&s->cache_list, c);
	if (root_lookup(s->root, path, &file))
		return c;
	data = S_ISREG(file->mode) ? store_slurp(s, file, CACHE_MOST, &size) : NULL;
	if (!data)
		c->why = "cannot be read";
	else
		c->cache = ld_cache_parse(data, size, &s->arena, &c->why);
	return c;
}

struct ld_cache_hit store_cache_lookup(struct store *s, struct store_cache *c, const char *name,
				       const struct ld_facts *facts, const struct hwcaps *hw)
{
	struct ld_cache_hit *hit;

	if (c->memo_facts != facts || c->memo_legacy != hw->legacy_mask || c->memo_platform != hw->platform ||
	    c->memo_isa != hw->isa || c->memo_subdirs != hw->n_subdir) {
		name_map_free(&c->memo);
		c->memo_facts = facts;
		c->memo_legacy = hw->legacy_mask;
		c->memo_platform = hw->platform;
		c->memo_isa = hw->isa;
		c->memo_subdirs = hw->n_subdir;
	}
	hit = name_map_get(&c->memo, name);
	if (hit)
		return *hit;
	hit = arena_new(&s->arena, struct ld_cache_hit);
	*hit = ld_cache_lookup(c->cache, name, facts, hw);
	if (hit->path)
		hit->path = names_add(&s->names, hit->path);
	name_map_put(&c->memo, name, hit);
	return *hit;
}
