/* Which files an import statement loads, found without running Python.
 *
 * The interpreter's own rules are followed as far as they can be seen from
 * outside: where it finds its library, what stands on sys.path, which file a
 * name is (extension, source, package), and the import statements of each
 * file in the order in which they are reached.  Bodies of functions do not run
 * when a module is imported and are passed over; so are branches that a test of
 * the platform, the version, the environment or TYPE_CHECKING rules out.  What an
 * extension module imports by itself is seen only as far as it names extensions
 * of its own distribution.
 *
 * Everything but the vectors lives in the store; imports_free() frees these. */
#ifndef NCCLWHICH_LINKAGE_IMPORTS_H
#define NCCLWHICH_LINKAGE_IMPORTS_H

#include "linkage/plan.h"
#include "loader/store.h"

/* A file in the order in which it is begun: an extension is opened then, a
 * source file's own statements stand around the files that it imports. */
struct import_file {
	const char *path;   /* in the root, absolute, interned; links in it are not followed */
	const char *module; /* dotted name */
	bool extension;     /* else Python source */
	const char *by;     /* the file that imports it first; NULL = the interpreter, or the request */
	unsigned line;      /* … of a source file; 0 = an extension does */
};

/* A module that no file was found for. */
struct import_missing {
	const char *module;
	const char *by; /* as above */
	unsigned line;
	bool fatal;     /* as far as can be seen, an import that was asked for ends in its ModuleNotFoundError */
};

struct import_list {
	VEC(struct import_file) at;
	VEC(struct import_missing) missing;
	const char *executable; /* the interpreter, in the root */
	const char *version;    /* "3.12" */
	const char *note;       /* a bound that was hit; NULL = none */
};

/* What `import MODULES` loads in PYTHON, an interpreter or the directory of a
 * virtual environment or an installation.  -1 after an error: there is no such
 * interpreter, or a module of the request is not found. */
int imports_collect(const struct plan *plan, struct store *store, const char *python,
		    const char *const *modules, size_t n, struct import_list *out, struct error *e);
void imports_free(struct import_list *list);

/* The directory that PYTHON has packages installed in: the first site-packages on
 * its sys.path, be it that of its virtual environment; NULL after an error. */
const char *imports_site(const struct plan *plan, struct store *store, const char *python, struct error *e);

#endif
