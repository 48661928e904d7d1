#include "linkage/imports_internal.h"

#include <stdlib.h>
#include <unistd.h>

/* Python itself gives up at some 170 imports inside each other. */
enum { MODULES_MOST = 20000, DEPTH_MOST = 300 };

static void note(struct importer *im, const char *what, const char *why)
{
	if (!im->out->note)
		im->out->note = arena_printf(&im->store->arena, "%s: %s", what, why);
}

/* The text of a source file and a NUL; the caller's, NULL if it cannot be read.
 * Not kept in the store: there may be thousands, and each is read once. */
static char *read_source(struct importer *im, const char *path)
{
	struct root_file *file;
	struct reader *r;
	char *text = NULL;
	int fd;

	if (root_lookup(im->store->root, path, &file) || file->size > IMPORTS_FILE_MOST)
		return NULL;
	r = xmalloc(sizeof(*r));
	fd = store_reader(im->store, file, r);
	if (fd >= 0) {
		text = xmalloc(file->size + 1);
		text[file->size] = '\0';
		if (!reader_at(r, 0, text, file->size)) {
			free(text);
			text = NULL;
		}
		close(fd);
	}
	free(r);
	return text;
}

static void run_source(struct importer *im, struct module *m, const char *text)
{
	if (m->package && strstr(text, "__path__"))
		importer_extend_path(im, m, strstr(text, "extend_path") != NULL);
	follow_text(im, m, m->file, text);
}

/* The first time that a module is imported. */
static void run(struct importer *im, struct module *m, const char *by, unsigned line)
{
	struct import_file file = {.path = m->file, .module = m->name, .by = by, .line = line};
	char *text = NULL;

	if (m->kind == MODULE_MISSING) {
		vec_push(&im->out->missing, ((struct import_missing){m->name, by, line, false}));
		m->why = im->out->missing.n;
	}
	if (m->kind != MODULE_SOURCE && m->kind != MODULE_EXTENSION)
		return;
	if (im->out->at.n >= MODULES_MOST) {
		im->full = true;
		note(im, m->name, "more modules than are followed; this one and what follows are left out");
		return;
	}
	file.extension = m->kind == MODULE_EXTENSION;
	if (!file.extension && !(text = read_source(im, m->file))) {
		note(im, m->file, "cannot be read");
		return;
	}
	vec_push(&im->out->at, file);
	if (im->depth >= DEPTH_MOST) {
		note(im, m->name, "imports stand too deep inside each other to be followed");
	} else {
		im->depth++;
		if (file.extension)
			importer_native(im, m);
		else
			run_source(im, m, text);
		im->depth--;
	}
	free(text);
}

/* The module that the first N bytes of a dotted name are. */
static struct module *import_part(struct importer *im, const char *name, size_t n, const char *by, unsigned line)
{
	struct module *m = importer_find(im, names_add_n(&im->store->names, name, n));

	if (!m->begun) {
		m->begun = true;
		run(im, m, by, line);
		m->done = true;
	}
	return m;
}

struct module *importer_import(struct importer *im, const char *name, const char *by, unsigned line, bool regardless)
{
	struct module *m;
	size_t n = 0;

	do {
		n += strcspn(name + n, ".");
		m = import_part(im, name, n, by, line);
	} while (name[n++] && (regardless ? m->kind != MODULE_MISSING : !module_failed(m)));
	return m;
}

/* What happens before the first statement of the program. */
static void start_up(struct importer *im)
{
	static const char *const first[] = {"encodings", "site"};
	static const char *const custom[] = {"sitecustomize", "usercustomize"};
	struct module *statement = arena_new(&im->store->arena, struct module);
	size_t i;

	for (i = 0; i < 2; i++)
		if (importer_find(im, names_add(&im->store->names, first[i]))->kind != MODULE_MISSING)
			importer_import(im, names_add(&im->store->names, first[i]), NULL, 0, false);
	statement->name = "";
	for (i = 0; i < im->started.n; i++)
		follow_text(im, statement, NULL, im->started.at[i]);
	for (i = 0; i < 2; i++)
		if (importer_find(im, names_add(&im->store->names, custom[i]))->kind != MODULE_MISSING)
			importer_import(im, names_add(&im->store->names, custom[i]), NULL, 0, false);
}

static int import_named(struct importer *im, const char *name, const char *python, struct error *e)
{
	struct module *m;
	size_t k = 0;

	if (!*name || *name == '.' || name[strlen(name) - 1] == '.' || strstr(name, ".."))
		return error_set(e, "--import '%s': the name of a module is wanted", name);
	/* A package that lacks something that it needs is gone on with: what is
	 * wanted is what it would load. */
	do {
		k += strcspn(name + k, ".");
		m = import_part(im, name, k, NULL, 0);
		if (m->kind == MODULE_MISSING)
			return error_set(e, "--import %s: there is no module %s on the path of %s", name, m->name, python);
		if (m->failed && m->why)
			im->out->missing.at[m->why - 1].fatal = true;
	} while (name[k++]);
	return 0;
}

int imports_collect(const struct plan *plan, struct store *store, const char *python,
		    const char *const *modules, size_t n, struct import_list *out, struct error *e)
{
	struct importer im = {.plan = plan, .store = store, .out = out};
	int status = -1;
	size_t i;

	memset(out, 0, sizeof(*out));
	if (importer_place(&im, python, e) < 0)
		goto out;
	start_up(&im);
	for (i = 0; i < n; i++)
		if (import_named(&im, modules[i], python, e) < 0)
			goto out;
	status = 0;
out:
	importer_free(&im);
	if (status < 0)
		imports_free(out);
	return status;
}

void imports_free(struct import_list *list)
{
	vec_free(&list->at);
	vec_free(&list->missing);
}

const char *imports_site(const struct plan *plan, struct store *store, const char *python, struct error *e)
{
	struct import_list none = {0};
	struct importer im = {.plan = plan, .store = store, .out = &none};
	const char *site = NULL, *base;
	size_t i;

	if (importer_place(&im, python, e) == 0) {
		for (i = 0; i < im.path.n && !site; i++) {
			base = path_base(im.path.at[i]);
			if ((!strcmp(base, "site-packages") || !strcmp(base, "dist-packages")) && !strstr(im.path.at[i], "/.local/"))
				site = im.path.at[i];
		}
		if (!site)
			error_set(e, "%s: it has no directory of packages, site-packages, to install a wheel in", python);
	}
	importer_free(&im);
	imports_free(&none);
	return site;
}
