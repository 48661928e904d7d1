#include "linkage/imports_internal.h"

#include "elf/scan.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAME_MOST = 256, NAMES_MOST = 4096 };

struct native {
	struct importer *im;
	VEC(const char *) name;
};

/* A whole string that is a dotted name. */
static void take_name(void *context, const struct scan_hit *hit)
{
	struct native *v = context;
	size_t n, dots = 0;

	if (hit->before && hit->at[-1])
		return;
	for (n = 0; n < hit->after && n < NAME_MOST && (isalnum(hit->at[n]) || hit->at[n] == '_' || hit->at[n] == '.'); n++)
		dots += hit->at[n] == '.';
	if (n == hit->after || n == NAME_MOST || hit->at[n] || !dots || hit->at[n - 1] == '.' || v->name.n == NAMES_MOST)
		return;
	vec_push(&v->name, names_add_n(&v->im->store->names, (const char *)hit->at, n));
}

static bool is_extension(struct importer *im, const char *name)
{
	const char *dot;

	for (dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
		if (!importer_find(im, names_add_n(&im->store->names, name, (size_t)(dot - name)))->package)
			return false;
	return importer_find(im, name)->kind == MODULE_EXTENSION;
}

/* What an extension imports from C.  Cython's cimport hands the names of the
 * modules that it takes types and functions from to PyImport_ImportModule while
 * the module starts; these stand in the file as whole strings, in this order.
 * Only extensions of the same distribution are taken for it: names that are
 * there for another reason are those of Python's own modules and of classes. */
void importer_native(struct importer *im, const struct module *m)
{
	char *top = xprintf("%.*s", (int)strcspn(m->name, "."), m->name);
	const char *needle = top;
	struct native v = {.im = im};
	struct reader *r = xmalloc(sizeof(*r));
	const struct elf_object *elf;
	struct root_file *file;
	int fd, open_error;
	size_t i;

	if (!strchr(m->name, '.') || root_lookup(im->store->root, m->file, &file))
		goto out;
	elf = store_object(im->store, file, &open_error);
	if (open_error || elf->fault || (fd = store_reader(im->store, file, r)) < 0)
		goto out;
	elf_scan(r, elf, &needle, 1, take_name, &v);
	close(fd);
	for (i = 0; i < v.name.n; i++)
		if (v.name.at[i] != m->name && is_extension(im, v.name.at[i]))
			importer_import(im, v.name.at[i], m->file, 0, true);
out:
	vec_free(&v.name);
	free(top);
	free(r);
}
