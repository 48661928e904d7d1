/* Shared by the files of imports: where modules are found, what a source file
 * says, and the walk from one module to the next.  Strings are interned. */
#ifndef NCCLWHICH_LINKAGE_IMPORTS_INTERNAL_H
#define NCCLWHICH_LINKAGE_IMPORTS_INTERNAL_H

#include "linkage/imports.h"

enum { IMPORTS_FILE_MOST = 16 << 20, IMPORTS_SUFFIXES = 5 };

/* ---- the text of a source file: imports_source.c ---- */

enum token_kind { TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK };

struct token {
	enum token_kind kind;
	bool plain;     /* a string: what stands there is its value */
	const char *at; /* a string's without its quotes */
	size_t n;
	unsigned line;
};

/* Reads logical lines: brackets, backslashes and long strings joined, comments left out. */
struct source {
	const char *at;
	unsigned line;
	unsigned nested; /* fields of formatted strings inside each other */
	unsigned indent; /* of the line read last, in columns */
	VEC(struct token) token;
};

void source_open(struct source *t, const char *text);
/* False at the end.  The line has at least one token. */
bool source_next(struct source *t);
bool token_is(const struct token *t, const char *word);

/* ---- modules and where they are: imports_find.c ---- */

enum module_kind {
	MODULE_MISSING,
	MODULE_BUILTIN,   /* inside the interpreter */
	MODULE_SOURCE,
	MODULE_EXTENSION,
	MODULE_COMPILED,  /* bytecode without source: not read */
	MODULE_NAMESPACE, /* directories, no file */
	MODULE_MADE       /* below a module that is no package: its parent puts it there, or nobody does */
};

struct module {
	const char *name;
	enum module_kind kind;
	const char *file;
	bool package, begun, done;
	bool own_path;           /* a package that sets __path__ itself: there may be more in it than is found */
	bool failed;             /* ends in an exception that nothing catches */
	size_t why;              /* then, or if missing: index in missing plus one, 0 = it raises by itself */
	VEC(const char *) path;  /* of a package: its directories */
	VEC(const char *) all;   /* of a package: its __all__ */
};

struct importer {
	const struct plan *plan;
	struct store *store;
	struct import_list *out;
	unsigned major, minor;   /* of Python */
	uint16_t machine;
	const char *suffix[IMPORTS_SUFFIXES]; /* of extension modules, in order */
	size_t n_suffix;
	VEC(const char *) path;  /* sys.path */
	VEC(const char *) started; /* lines of .pth files that are statements */
	struct name_map builtin; /* modules inside the interpreter */
	struct name_map bound;   /* "package:name": names that a package's own code binds */
	struct name_map modules, listings;
	VEC(struct module *) all;
	VEC(struct directory *) directories;
	unsigned depth;
	bool full;
};

/* sys.path, suffixes and built-in modules of the interpreter. */
int importer_place(struct importer *im, const char *python, struct error *e);
/* The module of that name; below a package only if its parent has been found.
 * Never NULL. */
struct module *importer_find(struct importer *im, const char *name);
void importer_free(struct importer *im);
bool importer_is_file(const struct importer *im, const char *path);
/* DIR/NAME, interned. */
const char *importer_join(const struct importer *im, const char *dir, const char *name);
/* Names in a directory that is listed once; NULL = no directory. */
struct directory {
	struct name_map has;
	struct root_listing listing;
};
const struct directory *importer_list(struct importer *im, const char *path);
/* A package that sets its __path__ by itself: to all parts of it that are along
 * sys.path, or in a way that is not seen. */
void importer_extend_path(struct importer *im, struct module *m, bool along_path);

/* ---- the statements of a file: imports_follow.c, tests in imports_test.c ---- */

/* How sure it is that a statement runs, or that a test is true. */
enum sure { SURE_NO, SURE_MAYBE, SURE_YES };

enum sure test_truth(const struct importer *im, const struct token *t, size_t n);

/* Follows SOURCE, the text of M, from statement to statement.  PATH names it. */
void follow_text(struct importer *im, struct module *m, const char *path, const char *source);

/* ---- the walk: imports.c ---- */

/* Imports NAME and all it stands in; the module, or the first that failed.
 * REGARDLESS: goes on below one that failed by something that is missing. */
struct module *importer_import(struct importer *im, const char *name, const char *by, unsigned line,
			       bool regardless);
/* Imports what the extension M imports itself: imports_native.c. */
void importer_native(struct importer *im, const struct module *m);

static inline bool module_failed(const struct module *m)
{
	/* One that is still running stands in sys.modules, whatever will come of it. */
	return m->kind == MODULE_MISSING || (m->failed && m->done);
}

#endif
