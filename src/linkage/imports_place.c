#include "linkage/imports_internal.h"

#include "elf/symbols.h"
#include "linkage/sequence.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CONFIG_MOST = 1 << 20, SITE_MOST = 4 << 20, VERSION_MOST = 16 };

/* What is known of the interpreter while it is looked for. */
struct place {
	struct importer *im;
	const char *executable;
	const char *venv;    /* directory of a virtual environment, or NULL */
	const char *home;    /* pyvenv.cfg: where its interpreter lives */
	bool system_site;    /* … whose packages count too */
	char version[VERSION_MOST]; /* "3.12", "3.13t"; "" = not known yet */
	const char *prefix;  /* of the installation */
	const char *library; /* PREFIX/lib/python3.12 */
};

static const char *parent_of(const struct importer *im, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? names_add(&im->store->names, "/")
			     : names_add_n(&im->store->names, path, (size_t)(slash - path));
}

static const char *join_format(const struct importer *im, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static const char *join_format(const struct importer *im, const char *format, ...)
{
	const char *path;
	va_list ap;
	char *text;

	va_start(ap, format);
	text = xvprintf(format, ap);
	va_end(ap);
	path = names_add(&im->store->names, text[0] == '/' && text[1] == '/' ? text + 1 : text);
	free(text);
	return path;
}

/* ---- the interpreter ---- */

/* "3.12", "3.13t" at the start of TEXT, and nothing but digits and a dot
 * behind it; false if it is no version. */
static bool take_version(struct place *p, const char *text)
{
	size_t n = strspn(text, "0123456789"), k;

	if (!n || text[n] != '.')
		return false;
	k = n + 1 + strspn(text + n + 1, "0123456789");
	if (k == n + 1)
		return false;
	k += text[k] == 't';
	if (k >= sizeof(p->version))
		return false;
	memcpy(p->version, text, k);
	p->version[k] = '\0';
	return true;
}

static const unsigned char *slurp(const struct importer *im, const char *path, size_t limit, size_t *size)
{
	struct root_file *file;

	return !root_lookup(im->store->root, path, &file) && S_ISREG(file->mode)
		? store_slurp(im->store, file, limit, size) : NULL;
}

/* One line of pyvenv.cfg: KEY = VALUE. */
static void take_setting(struct place *p, char *line)
{
	char *equals = strchr(line, '='), *value, *end;

	if (!equals)
		return;
	for (end = equals; end > line && strchr(" \t", end[-1]); end--)
		;
	*end = '\0';
	for (value = equals + 1; *value == ' ' || *value == '\t'; value++)
		;
	line += strspn(line, " \t");
	if (!strcmp(line, "home") && value[0] == '/')
		p->home = names_add(&p->im->store->names, value);
	else if (!strcmp(line, "include-system-site-packages"))
		p->system_site = !strcasecmp(value, "true");
	else if (!strcmp(line, "version") || !strcmp(line, "version_info"))
		take_version(p, value);
}

static bool read_config(struct place *p, const char *dir)
{
	size_t size;
	const char *path = importer_join(p->im, dir, "pyvenv.cfg"), *at;
	const unsigned char *data = slurp(p->im, path, CONFIG_MOST, &size);

	if (!data)
		return false;
	for (at = (const char *)data; *at;) {
		size_t n = strcspn(at, "\r\n");
		char *line = xprintf("%.*s", (int)n, at);

		take_setting(p, line);
		free(line);
		at += n + strspn(at + n, "\r\n");
	}
	p->venv = dir;
	return true;
}

/* bin/python3 or bin/python of a directory, else any bin/python3.N. */
static const char *executable_below(struct importer *im, const char *dir)
{
	static const char *const usual[] = {"python3", "python"};
	const char *bin = importer_join(im, dir, "bin");
	const struct directory *d = importer_list(im, bin);
	size_t i;

	for (i = 0; i < 2; i++)
		if (importer_is_file(im, importer_join(im, bin, usual[i])))
			return importer_join(im, bin, usual[i]);
	for (i = 0; d && i < d->listing.name.n; i++) {
		const char *name = d->listing.name.at[i];

		if (!strncmp(name, "python3.", 8) && !name[8 + strspn(name + 8, "0123456789t")] &&
		    importer_is_file(im, importer_join(im, bin, name)))
			return importer_join(im, bin, name);
	}
	return NULL;
}

/* The executable, its machine, and the environment that it stands in. */
static int find_executable(struct place *p, const char *python, struct error *e)
{
	struct importer *im = p->im;
	const char *path = plan_path(im->plan, im->store, python), *dir;
	const struct elf_object *elf;
	struct root_file *file;
	int error, open_error;

	while (path[1] && path[strlen(path) - 1] == '/')
		path = names_add_n(&im->store->names, path, strlen(path) - 1);
	if (root_is_directory(im->store->root, path)) {
		p->executable = executable_below(im, path);
		if (!p->executable)
			return error_set(e, "--python %s: there is no bin/python3 in it", python);
	} else {
		p->executable = path;
	}
	error = root_lookup(im->store->root, p->executable, &file);
	if (error)
		return error_set(e, "--python %s: %s", python, strerror(-error));
	elf = store_object(im->store, file, &open_error);
	if (open_error || elf->fault)
		return error_set(e, "--python %s: %s is no program: %s", python, p->executable,
				 open_error ? strerror(open_error) : elf_fault_text(elf->fault));
	im->machine = elf->machine;
	/* As Python does: beside the executable as it was named, links and all. */
	dir = parent_of(im, p->executable);
	if (!read_config(p, dir))
		read_config(p, parent_of(im, dir));
	if (!p->home)
		p->home = parent_of(im, file->real);
	dir = strrchr(file->real, '/') + 1;
	if (!p->version[0] && !strncmp(dir, "python", 6))
		take_version(p, dir + 6);
	return 0;
}

/* ---- the library ---- */

static bool is_library(struct place *p, const char *prefix, const char *lib, const char *name)
{
	const char *dir = join_format(p->im, "%s/%s/%s", prefix, lib, name);

	if (!importer_is_file(p->im, importer_join(p->im, dir, "os.py")) &&
	    !importer_is_file(p->im, importer_join(p->im, dir, "os.pyc")))
		return false;
	p->prefix = prefix;
	p->library = dir;
	return true;
}

/* In PREFIX/lib or lib64: python3.N of the version that is known, the last in
 * order otherwise. */
static bool library_below(struct place *p, const char *prefix)
{
	static const char *const libs[] = {"lib", "lib64"};
	const struct directory *d;
	char name[VERSION_MOST + 16];
	unsigned best = 0;
	size_t i, k;

	for (i = 0; i < 2; i++) {
		if (p->version[0]) {
			/* pyvenv.cfg does not say that threads are free. */
			snprintf(name, sizeof(name), "python%s", p->version);
			if (is_library(p, prefix, libs[i], name))
				return true;
			snprintf(name, sizeof(name), "python%st", p->version);
			if (is_library(p, prefix, libs[i], name))
				return take_version(p, name + 6);
			continue;
		}
		d = importer_list(p->im, importer_join(p->im, prefix, libs[i]));
		for (k = 0; d && k < d->listing.name.n; k++) {
			const char *entry = d->listing.name.at[k];
			unsigned minor = strncmp(entry, "python3.", 8) ? 0 : (unsigned)strtoul(entry + 8, NULL, 10);

			if (minor > best && strlen(entry) < sizeof(name) && is_library(p, prefix, libs[i], entry)) {
				best = minor;
				strcpy(name, entry);
			}
		}
	}
	return best && take_version(p, name + 6);
}

/* Python climbs from its own directory until lib/python3.N/os.py is below. */
static bool find_library(struct place *p, const char *start)
{
	const char *dir;

	for (dir = start; dir[1]; dir = parent_of(p->im, dir))
		if (library_below(p, dir))
			return true;
	return library_below(p, dir);
}

/* ---- what modules are called ---- */

/* The tag of extension modules: as the files in lib-dynload have it, where
 * there are any; else as it is made. */
static void find_suffixes(struct place *p)
{
	struct importer *im = p->im;
	const struct directory *d = importer_list(im, importer_join(im, p->library, "lib-dynload"));
	bool threaded = p->version[strlen(p->version) - 1] == 't';
	size_t i, n;

	sscanf(p->version, "%u.%u", &im->major, &im->minor);
	for (i = 0; d && i < d->listing.name.n && !im->n_suffix; i++) {
		const char *dot = strchr(d->listing.name.at[i], '.');

		n = dot ? strlen(dot) : 0;
		if (n > 12 && !strncmp(dot, ".cpython-", 9) && !strcmp(dot + n - 3, ".so"))
			im->suffix[im->n_suffix++] = names_add(&im->store->names, dot);
	}
	for (i = 0; i < 2 && im->n_suffix < 2; i++)
		im->suffix[im->n_suffix++] = join_format(im, ".cpython-%u%u%s-%s-linux-%s.so", im->major, im->minor,
			threaded ? "t" : "", im->machine == EM_AARCH64 ? "aarch64" : "x86_64", i ? "musl" : "gnu");
	if (!threaded)
		im->suffix[im->n_suffix++] = ".abi3.so";
	im->suffix[im->n_suffix++] = ".so";
}

static void add_builtins_of(struct importer *im, const struct root_file *file, const struct elf_object *elf, size_t *n)
{
	struct elf_symbols symbols;
	struct reader *r = xmalloc(sizeof(*r));
	int fd = store_reader(im->store, file, r);
	size_t i;

	if (fd >= 0 && elf_symbols_read(r, elf, &symbols) == 0) {
		for (i = 1; i < symbols.n; i++) {
			const char *name = elf_symbol_name(&symbols, i);

			if (elf_symbol_defined(&symbols, i) && !strncmp(name, "PyInit_", 7)) {
				name_map_put(&im->builtin, names_add(&im->store->names, name + 7), im);
				++*n;
			}
		}
		elf_symbols_free(&symbols);
	}
	if (fd >= 0)
		close(fd);
	free(r);
}

/* Built-in modules export PyInit_NAME like others, from the program or from the
 * libpython that it needs.  Some have no such function. */
static void find_builtins(struct place *p)
{
	static const char *const always[] = {"sys", "builtins", "marshal", "_imp", "_warnings", "_frozen_importlib",
					     "_frozen_importlib_external", "zipimport", "__main__"};
	static const char *const usual[] = {
		"_abc", "_ast", "_codecs", "_collections", "_functools", "_io", "_locale", "_operator", "_signal",
		"_sre", "_stat", "_string", "_symtable", "_thread", "_tokenize", "_tracemalloc", "_weakref", "_typing",
		"_suggestions", "_sysconfig", "atexit", "errno", "faulthandler", "gc", "itertools", "posix", "pwd", "time",
	};
	struct importer *im = p->im;
	struct root_file *file;
	const struct elf_object *elf;
	int open_error;
	size_t i, n = 0;

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		name_map_put(&im->builtin, names_add(&im->store->names, always[i]), im);
	if (root_lookup(im->store->root, p->executable, &file))
		return;
	elf = store_object(im->store, file, &open_error);
	add_builtins_of(im, file, elf, &n);
	for (i = 0; i < elf->n_dependency; i++) {
		const char *name = elf->dependency[i].name;
		const char *const places[] = {
			join_format(im, "%s/lib/%s", p->prefix, name),
			join_format(im, "%s/lib64/%s", p->prefix, name),
			join_format(im, "/usr/lib/%s-linux-gnu/%s", im->machine == EM_AARCH64 ? "aarch64" : "x86_64", name),
			join_format(im, "/usr/lib64/%s", name),
			join_format(im, "/usr/lib/%s", name),
		};
		size_t k;

		for (k = 0; !strncmp(name, "libpython", 9) && k < sizeof(places) / sizeof(places[0]); k++)
			if (!root_lookup(im->store->root, places[k], &file) && S_ISREG(file->mode)) {
				add_builtins_of(im, file, store_object(im->store, file, &open_error), &n);
				break;
			}
	}
	for (i = 0; !n && i < sizeof(usual) / sizeof(usual[0]); i++)
		name_map_put(&im->builtin, names_add(&im->store->names, usual[i]), im);
}

/* ---- sys.path ---- */

static void add_path(struct importer *im, const char *dir)
{
	struct root_file *file, *other;
	size_t i;

	if (root_lookup(im->store->root, dir, &file) || !S_ISDIR(file->mode))
		return;
	for (i = 0; i < im->path.n; i++)
		if (!root_lookup(im->store->root, im->path.at[i], &other) && other == file)
			return;
	vec_push(&im->path, dir);
}

/* The lines of a .pth file: directories, and statements that start with import. */
static void read_pth(struct importer *im, const char *dir, const char *name)
{
	size_t size, n;
	const char *at = (const char *)slurp(im, importer_join(im, dir, name), CONFIG_MOST, &size);

	for (; at && *at; at += n + strspn(at + n, "\r\n")) {
		size_t end;

		n = end = strcspn(at, "\r\n");
		while (end && strchr(" \t", at[end - 1]))
			end--;
		if (!end || *at == '#')
			continue;
		if (!strncmp(at, "import ", 7) || !strncmp(at, "import\t", 7))
			vec_push(&im->started, names_add_n(&im->store->names, at, end));
		else if (*at == '/')
			add_path(im, names_add_n(&im->store->names, at, end));
		else
			add_path(im, importer_join(im, dir, names_add_n(&im->store->names, at, end)));
	}
}

/* site.addsitedir */
static void add_site(struct importer *im, const char *dir)
{
	const struct directory *d = importer_list(im, dir);
	size_t i, n;

	if (!d)
		return;
	add_path(im, dir);
	for (i = 0; i < d->listing.name.n; i++) {
		const char *name = d->listing.name.at[i];

		n = strlen(name);
		if (n > 4 && name[0] != '.' && !strcmp(name + n - 4, ".pth"))
			read_pth(im, dir, name);
	}
}

/* Where packages are below a prefix: Debian's own Python has directories of its
 * own for them, and says so in its site.py. */
static void add_sites(struct place *p, const char *prefix, bool debian)
{
	if (debian) {
		add_site(p->im, join_format(p->im, "%s/local/lib/python%s/dist-packages", prefix, p->version));
		add_site(p->im, join_format(p->im, "%s/lib/python3/dist-packages", prefix));
		add_site(p->im, join_format(p->im, "%s/lib/python%s/dist-packages", prefix, p->version));
		return;
	}
	if (strstr(p->library, "/lib64/")) /* sys.platlibdir */
		add_site(p->im, join_format(p->im, "%s/lib64/python%s/site-packages", prefix, p->version));
	add_site(p->im, join_format(p->im, "%s/lib/python%s/site-packages", prefix, p->version));
}

static void add_python_path(struct importer *im)
{
	const char *at = plan_getenv(im->plan, "PYTHONPATH");
	size_t n;

	for (; at && *at; at += n + (at[n] == ':')) {
		n = strcspn(at, ":");
		if (n)
			add_path(im, plan_path(im->plan, im->store, names_add_n(&im->store->names, at, n)));
	}
}

static void make_path(struct place *p)
{
	struct importer *im = p->im;
	const char *home = plan_getenv(im->plan, "HOME"), *no_user = plan_getenv(im->plan, "PYTHONNOUSERSITE");
	size_t size;
	const unsigned char *site = slurp(im, importer_join(im, p->library, "site.py"), SITE_MOST, &size);
	bool debian = site && memmem(site, size, "dist-packages", 13);

	add_python_path(im);
	add_path(im, p->library);
	add_path(im, importer_join(im, p->library, "lib-dynload"));
	if (p->venv)
		add_sites(p, p->venv, false);
	if (p->venv && !p->system_site)
		return;
	if (home && home[0] == '/' && !(no_user && *no_user))
		add_site(im, join_format(im, "%s/.local/lib/python%s/site-packages", home, p->version));
	add_sites(p, p->prefix, debian);
}

int importer_place(struct importer *im, const char *python, struct error *e)
{
	struct place p = {.im = im};
	struct root_file *file;

	if (find_executable(&p, python, e) < 0)
		return -1;
	/* A virtual environment that was moved with its interpreter names a home
	 * that is not there. */
	if (!find_library(&p, p.home) && (root_lookup(im->store->root, p.executable, &file) ||
					  !find_library(&p, parent_of(im, file->real))))
		return error_set(e, "--python %s: no library of Python%s%s, that is lib/python3.N/os.py, above %s", python,
				 p.version[0] ? " " : "", p.version, p.home);
	find_suffixes(&p);
	find_builtins(&p);
	make_path(&p);
	im->out->executable = p.executable;
	im->out->version = join_format(im, "%u.%u", im->major, im->minor);
	return 0;
}
