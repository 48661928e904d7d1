#include "linkage/imports_internal.h"

#include <stdlib.h>

enum { NAME_MOST = 1024 }; /* longer names are none, and their parts would be many */

enum block_kind { BLOCK_PLAIN, BLOCK_IF, BLOCK_TRY, BLOCK_SUPPRESS };

/* A compound statement whose body is being read. */
struct block {
	unsigned indent; /* of its header */
	enum block_kind kind;
	enum sure own;   /* its body runs whenever the statement itself does */
	enum sure live;  /* … and it is reached at all */
	/* if: a branch before this one is taken; one may be */
	bool taken, doubtful;
	/* try: in its body; what the body raised, and why (struct module) */
	bool body, caught, imports;
	enum sure raised;
	size_t why;
};

struct follower {
	struct importer *im;
	struct module *m;
	const char *path;
	struct source text;
	VEC(struct block) block; /* outermost first */
	bool ended;              /* by an exception of its own: the rest does not run */
};

static enum sure less_sure(enum sure a, enum sure b)
{
	return a < b ? a : b;
}

static enum sure live(const struct follower *f)
{
	return f->block.n ? f->block.at[f->block.n - 1].live : SURE_YES;
}

/* ---- exceptions ---- */

/* An exception is raised here, if SURE; the innermost try whose body this is
 * gets it, and what is left of that body does not run.  Without one it ends
 * the module.  A module of which only a dependency is missing is read to its
 * end all the same: what it would load is of more use than what it does not.
 * True if nothing caught it. */
static bool raise_here(struct follower *f, enum sure sure, size_t why)
{
	size_t i, k;

	for (i = f->block.n; i-- > 0;) {
		struct block *b = &f->block.at[i];

		if ((b->kind == BLOCK_TRY && b->body) || b->kind == BLOCK_SUPPRESS) {
			b->raised = sure > b->raised ? sure : b->raised;
			b->why = why;
			for (k = i; sure == SURE_YES && k < f->block.n; k++)
				f->block.at[k].live = SURE_NO;
			return false;
		}
		sure = less_sure(sure, b->own);
	}
	if (sure != SURE_YES)
		return false;
	if (!f->m->failed)
		f->m->why = why;
	f->m->failed = true;
	return true;
}

/* The statement is behind us. */
static void leave_block(struct follower *f, const struct block *b)
{
	if (b->kind == BLOCK_TRY && b->raised == SURE_YES && !b->caught)
		raise_here(f, SURE_YES, b->why);
}

/* `raise` in a handler passes on what the handler was for. */
static void follow_raise(struct follower *f)
{
	size_t i, why = 0;

	for (i = f->block.n; i-- > 0 && !why;)
		if (f->block.at[i].kind == BLOCK_TRY && !f->block.at[i].body)
			why = f->block.at[i].why;
	if (raise_here(f, SURE_YES, why) && !why)
		f->ended = true;
}

/* ---- imports ---- */

static struct module *import_name(struct follower *f, const char *name, unsigned line)
{
	struct module *m = importer_import(f->im, name, f->path, line, false);
	size_t i;

	for (i = f->block.n; i-- > 0;)
		if (f->block.at[i].kind == BLOCK_TRY && f->block.at[i].body)
			f->block.at[i].imports = true;
	if (module_failed(m) && raise_here(f, SURE_YES, m->why) && m->kind != MODULE_MISSING)
		importer_import(f->im, name, f->path, line, true);
	return m;
}

static const char *join_names(const struct follower *f, const char *package, const char *name)
{
	char *text = xprintf("%s%s%s", package, *package && *name ? "." : "", name);
	const char *result = names_add(&f->im->store->names, text);

	free(text);
	return result;
}

/* The package that LEVELS dots stand for; NULL if there is none. */
static const char *package_of(const struct follower *f, unsigned levels)
{
	const char *name = f->m->name, *dot;

	for (levels -= f->m->package && levels; levels; levels--) {
		dot = strrchr(name, '.');
		if (!dot)
			return NULL;
		name = names_add_n(&f->im->store->names, name, (size_t)(dot - name));
	}
	return name;
}

static const char *bound_key(const struct follower *f, const struct module *m, const char *name)
{
	char *text = xprintf("%s:%s", m->name, name);
	const char *key = names_add(&f->im->store->names, text);

	free(text);
	return key;
}

/* A name that a package binds itself is not looked for among its submodules
 * (importlib._bootstrap._handle_fromlist: hasattr). */
static void bind(struct follower *f, const struct token *name)
{
	if (f->m->package && f->block.n == 0 && name->kind == TOKEN_NAME)
		name_map_put(&f->im->bound, bound_key(f, f->m, names_add_n(&f->im->store->names, name->at, name->n)), f->m);
}

static void import_member(struct follower *f, const struct module *package, const char *name, unsigned line)
{
	const char *full = join_names(f, package->name, name);
	struct module *m = importer_find(f->im, full);

	if (m->kind == MODULE_MISSING || m->kind == MODULE_MADE ||
	    (!m->begun && name_map_get(&f->im->bound, bound_key(f, package, name))))
		return;
	import_name(f, full, line);
}

/* A dotted name from token I on, "" if there is none; I is left behind it. */
static const char *take_dotted(const struct follower *f, const struct token *t, size_t n, size_t *i)
{
	const char *name = "";

	while (*i < n && t[*i].kind == TOKEN_NAME) {
		if (strlen(name) + t[*i].n > NAME_MOST)
			return "";
		name = join_names(f, name, names_add_n(&f->im->store->names, t[*i].at, t[*i].n));
		++*i;
		if (*i + 1 >= n || !token_is(&t[*i], ".") || t[*i + 1].kind != TOKEN_NAME)
			break;
		++*i;
	}
	return name;
}

/* import a.b.c as d, e */
static void follow_import(struct follower *f, const struct token *t, size_t n)
{
	size_t i = 1;

	while (i < n && live(f)) {
		const char *name = take_dotted(f, t, n, &i);

		if (!*name)
			return;
		import_name(f, name, t->line);
		while (i < n && !token_is(&t[i], ","))
			i++;
		i++;
	}
}

/* from ..a import (b as c, d), from a import * */
static void follow_from(struct follower *f, const struct token *t, size_t n)
{
	struct module *m;
	unsigned levels = 0;
	const char *name, *package = "";
	size_t i, k;

	for (i = 1; i < n && token_is(&t[i], "."); i++)
		levels++;
	if (i < n && token_is(&t[i], "import"))
		name = "";
	else
		name = take_dotted(f, t, n, &i);
	if (i >= n || !token_is(&t[i], "import") || (!levels && !*name))
		return;
	if (levels)
		package = package_of(f, levels);
	if (!package)
		return;
	m = import_name(f, join_names(f, package, name), t->line);
	for (i++; i < n && live(f); i++) {
		if (token_is(&t[i], "*"))
			for (k = 0; k < m->all.n && live(f); k++)
				import_member(f, m, m->all.at[k], t[i].line);
		if (t[i].kind != TOKEN_NAME)
			continue;
		if (m->package && !module_failed(m))
			import_member(f, m, names_add_n(&f->im->store->names, t[i].at, t[i].n), t[i].line);
		if (i + 2 < n && token_is(&t[i + 1], "as"))
			i += 2;
		bind(f, &t[i]);
	}
}

/* importlib.import_module("x"), __import__("x") anywhere in a statement that runs. */
static void follow_calls(struct follower *f, const struct token *t, size_t n)
{
	size_t i;

	for (i = 0; i + 3 < n && live(f); i++) {
		const char *name;
		unsigned levels = 0;

		if (token_is(&t[i], "lambda"))
			return;
		if ((!token_is(&t[i], "import_module") && !token_is(&t[i], "__import__")) || !token_is(&t[i + 1], "(") ||
		    t[i + 2].kind != TOKEN_STRING || !t[i + 2].plain || t[i + 2].n > NAME_MOST ||
		    (!token_is(&t[i + 3], ",") && !token_is(&t[i + 3], ")")))
			continue;
		name = names_add_n(&f->im->store->names, t[i + 2].at, t[i + 2].n);
		for (; *name == '.'; name++)
			levels++;
		if (levels) {
			const char *package = package_of(f, levels);

			name = package ? join_names(f, package, name) : "";
		}
		if (*name)
			import_name(f, name, t[i].line);
	}
}

/* __all__ = ["a", "b"], += too */
static void read_all(struct follower *f, const struct token *t, size_t n)
{
	size_t i;

	if (n < 3 || !f->m->package || !token_is(&t[0], "__all__") || !(token_is(&t[1], "=") || token_is(&t[1], "+=")))
		return;
	for (i = 2; i < n; i++)
		if (t[i].kind == TOKEN_STRING && t[i].plain && t[i].n)
			vec_push(&f->m->all, names_add_n(&f->im->store->names, t[i].at, t[i].n));
}

static void follow_simple(struct follower *f, const struct token *t, size_t n)
{
	if (!n || live(f) == SURE_NO || f->ended)
		return;
	if (token_is(t, "import")) {
		follow_import(f, t, n);
	} else if (token_is(t, "from")) {
		follow_from(f, t, n);
	} else if (token_is(t, "raise")) {
		follow_raise(f);
	} else {
		follow_calls(f, t, n);
		read_all(f, t, n);
		if (n > 2 && token_is(&t[1], "="))
			bind(f, t);
	}
}

/* Statements of one line, between semicolons. */
static void follow_line(struct follower *f, const struct token *t, size_t n)
{
	size_t i, start = 0;

	for (i = 0; i < n; i++)
		if (token_is(&t[i], ";")) {
			follow_simple(f, t + start, i - start);
			start = i + 1;
		}
	follow_simple(f, t + start, n - start);
}

/* ---- compound statements ---- */

/* Does a handler for this catch an ImportError? */
static bool catches(const struct token *t, size_t n)
{
	static const char *const names[] = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"};
	size_t i, k;

	for (i = 1; i < n; i++)
		for (k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (token_is(&t[i], names[k]))
				return true;
	return n <= 1;
}

/* A clause of the if statement B. */
static void start_branch(const struct follower *f, struct block *b, const struct token *t, size_t n)
{
	enum sure test = n > 1 ? test_truth(f->im, t + 1, n - 1) : SURE_YES;

	b->own = b->taken ? SURE_NO : b->doubtful ? less_sure(test, SURE_MAYBE) : test;
	b->taken |= test == SURE_YES;
	b->doubtful |= test == SURE_MAYBE;
}

/* A clause of the try statement B.  Where nothing was imported there is no
 * telling what the handlers are for. */
static void start_clause(struct block *b, const struct token *t, size_t n)
{
	b->body = false;
	if (token_is(t, "finally")) {
		b->own = SURE_YES;
	} else if (token_is(t, "else")) {
		b->own = b->raised == SURE_YES ? SURE_NO : b->raised ? SURE_MAYBE : SURE_YES;
	} else if (b->raised && !b->why) { /* an exception of its own: of which class, is not asked */
		b->own = SURE_MAYBE;
		b->caught = true;
	} else if (b->raised) {
		b->own = catches(t, n) && !b->caught ? b->raised : SURE_NO;
		b->caught |= b->own == SURE_YES;
	} else {
		b->own = b->imports ? SURE_NO : SURE_MAYBE;
	}
}

/* A new statement; its block's kind and how sure its body is. */
static void start_statement(const struct follower *f, struct block *b, const struct token *t, size_t n)
{
	size_t i;

	b->own = SURE_MAYBE; /* for, while, match, case, else of a loop */
	if (token_is(t, "if")) {
		b->kind = BLOCK_IF;
		start_branch(f, b, t, n);
	} else if (token_is(t, "try")) {
		b->kind = BLOCK_TRY;
		b->own = SURE_YES;
		b->body = true;
	} else if (token_is(t, "class")) {
		b->own = SURE_YES;
	} else if (token_is(t, "with")) {
		b->own = SURE_YES;
		for (i = 0; i < n; i++)
			if (token_is(&t[i], "suppress"))
				b->kind = BLOCK_SUPPRESS;
	} else if (token_is(t, "def") || token_is(t, "async")) {
		b->own = SURE_NO;
	} else if (token_is(t, "while") && n > 1) {
		b->own = less_sure(test_truth(f->im, t + 1, n - 1), SURE_MAYBE);
	}
}

static bool is_one_of(const struct token *t, const char *const *words)
{
	for (; *words; words++)
		if (token_is(t, *words))
			return true;
	return false;
}

/* Where the header of a compound statement has its colon; 0 = it is none.
 * match and case are words like any other unless the line says otherwise. */
static size_t header_end(const struct token *t, size_t n)
{
	static const char *const words[] = {
		"if", "elif", "else", "try", "except", "finally", "for", "while", "with", "def", "class", "async", NULL,
	};
	static const char *const soft[] = {"match", "case", NULL};
	unsigned depth = 0, lambdas = 0;
	size_t i;

	if (!is_one_of(t, words) && !(is_one_of(t, soft) && token_is(&t[n - 1], ":")))
		return 0;
	for (i = 0; i < n; i++) {
		if (token_is(&t[i], "(") || token_is(&t[i], "[") || token_is(&t[i], "{"))
			depth++;
		else if (token_is(&t[i], ")") || token_is(&t[i], "]") || token_is(&t[i], "}"))
			depth -= depth > 0;
		else if (!depth && token_is(&t[i], "lambda"))
			lambdas++;
		else if (!depth && token_is(&t[i], ":") && !lambdas--)
			return i;
	}
	return 0;
}

/* Is this a further clause of the statement B? */
static bool continues(const struct block *b, const struct token *t)
{
	if (b->kind == BLOCK_IF)
		return token_is(t, "elif") || token_is(t, "else");
	return b->kind == BLOCK_TRY && (token_is(t, "except") || token_is(t, "else") || token_is(t, "finally"));
}

static void take_line(struct follower *f)
{
	const struct token *t = f->text.token.at;
	size_t n = f->text.token.n, end;
	struct block b = {.indent = f->text.indent};
	bool further = false;

	if (f->block.n && f->block.at[f->block.n - 1].live == SURE_NO && f->block.at[f->block.n - 1].indent < b.indent)
		return;
	while (f->block.n && f->block.at[f->block.n - 1].indent >= f->text.indent && !further) {
		struct block last = f->block.at[--f->block.n];

		further = last.indent == f->text.indent && continues(&last, t);
		if (further)
			b = last;
		else
			leave_block(f, &last);
	}
	end = header_end(t, n);
	if (!end) {
		follow_line(f, t, n);
		return;
	}
	if (!further)
		start_statement(f, &b, t, end);
	else if (b.kind == BLOCK_IF)
		start_branch(f, &b, t, end);
	else
		start_clause(&b, t, end);
	if ((token_is(t, "def") || token_is(t, "class")) && n > 1 && live(f) == SURE_YES)
		bind(f, &t[1]);
	b.live = less_sure(b.own, live(f));
	vec_push(&f->block, b);
	follow_line(f, t + end + 1, n - end - 1);
}

void follow_text(struct importer *im, struct module *m, const char *path, const char *source)
{
	struct follower f = {.im = im, .m = m, .path = path};

	source_open(&f.text, source);
	while (!f.ended && !im->full && source_next(&f.text))
		take_line(&f);
	while (f.block.n) {
		struct block b = f.block.at[--f.block.n];

		leave_block(&f, &b);
	}
	vec_free(&f.block);
	vec_free(&f.text.token);
}
