#include "linkage/imports_internal.h"

#include <stdlib.h>

/* How deep parentheses are looked into. */
enum { NESTED_MOST = 16, TEXT_MOST = 256 };

/* What an expression is worth, as far as a branch needs it. */
struct value {
	bool known;
	const char *text; /* NULL = None */
};

struct tokens {
	const struct token *at, *end;
};

static bool take(struct tokens *t, const char *word)
{
	if (t->at == t->end || !token_is(t->at, word))
		return false;
	t->at++;
	return true;
}

static const char *take_string(const struct importer *im, struct tokens *t)
{
	const struct token *s = t->at;

	if (s == t->end || s->kind != TOKEN_STRING || !s->plain)
		return NULL;
	t->at++;
	return names_add_n(&im->store->names, s->at, s->n);
}

/* os.environ.get(NAME[, DEFAULT]), os.getenv(…), os.environ[NAME]. */
static struct value take_variable(const struct importer *im, struct tokens *t, bool subscript)
{
	const struct value unknown = {0};
	struct value v = {.known = true};
	const char *name = take_string(im, t), *fallback = NULL;

	if (!name)
		return unknown;
	if (!subscript && take(t, ",") && !take(t, "None") && !(fallback = take_string(im, t)))
		return unknown;
	if (!take(t, subscript ? "]" : ")"))
		return unknown;
	v.text = plan_getenv(im->plan, name);
	v.known = v.text || !subscript;
	if (!v.text)
		v.text = fallback;
	return v;
}

/* A dotted name and what stands behind it, if that is known. */
static struct value take_value(const struct importer *im, struct tokens *t)
{
	static const struct {
		const char *name, *text;
	} known[] = {
		{"sys.platform", "linux"}, {"platform", "linux"}, {"os.name", "posix"}, {"sys.byteorder", "little"},
		{"sys.implementation.name", "cpython"}, {"platform.system()", "Linux"},
		{"platform.python_implementation()", "CPython"}, {"__name__", "a module"},
		{"os.sep", "/"}, {"os.path.sep", "/"}, {"TYPE_CHECKING", ""}, {"False", ""}, {"None", ""},
		{"True", "1"}, {"__debug__", "1"}, {"PY2", ""}, {"PY3", "1"},
	};
	char name[TEXT_MOST] = "";
	size_t i, n = 0;
	const char *last = "";

	for (; t->at < t->end && t->at->kind == TOKEN_NAME; t->at++) {
		if (n + t->at->n + 4 > sizeof(name))
			return (struct value){0};
		memcpy(name + n, t->at->at, t->at->n);
		last = name + n;
		n += t->at->n;
		name[n] = '\0';
		if (t->at + 1 == t->end || !token_is(t->at + 1, ".")) {
			t->at++;
			break;
		}
		t->at++;
		name[n++] = '.';
	}
	if (!strcmp(last, "TYPE_CHECKING")) /* typing.TYPE_CHECKING, t.TYPE_CHECKING */
		return (struct value){.known = true, .text = ""};
	if ((!strcmp(name, "os.environ.get") || !strcmp(last, "getenv")) && take(t, "("))
		return take_variable(im, t, false);
	if (!strcmp(name, "os.environ") && take(t, "["))
		return take_variable(im, t, true);
	if (t->at + 1 < t->end && token_is(t->at, "(") && token_is(t->at + 1, ")")) {
		t->at += 2;
		strcpy(name + n, "()");
	}
	if (!strcmp(name, "platform.machine()"))
		return (struct value){.known = true, .text = im->machine == EM_AARCH64 ? "aarch64" : "x86_64"};
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (*name && !strcmp(known[i].name, name))
			return (struct value){.known = true, .text = known[i].text};
	return (struct value){0};
}

static enum sure sure_of(bool is)
{
	return is ? SURE_YES : SURE_NO;
}

/* -1, 0, 1: less, equal, greater; false for an operator that is none of ours. */
static bool compare(struct tokens *t, int order, enum sure *out)
{
	if (take(t, ">="))
		*out = sure_of(order >= 0);
	else if (take(t, "<="))
		*out = sure_of(order <= 0);
	else if (take(t, "=="))
		*out = sure_of(order == 0);
	else if (take(t, "!="))
		*out = sure_of(order != 0);
	else if (take(t, ">"))
		*out = sure_of(order > 0);
	else if (take(t, "<"))
		*out = sure_of(order < 0);
	else
		return false;
	return true;
}

/* (3, 8) at OUT, at most MOST numbers; how many, 0 if it is no such thing. */
static size_t take_tuple(struct tokens *t, unsigned *out, size_t most)
{
	size_t n = 0;

	if (!take(t, "("))
		return 0;
	while (t->at < t->end && t->at->kind == TOKEN_NUMBER && n < most) {
		out[n++] = (unsigned)strtoul(t->at++->at, NULL, 10);
		if (!take(t, ","))
			break;
	}
	return take(t, ")") ? n : 0;
}

/* What follows sys.version_info, of which major and minor are known.  Whole, it
 * is longer than any tuple written down: equal as far as that goes is greater. */
static enum sure version_truth(const struct importer *im, struct tokens t)
{
	unsigned own[2] = {im->major, im->minor}, other[3];
	size_t n_own = 5, n, i = 0;
	const struct token *operator;
	enum sure sure = SURE_MAYBE;
	int order = 0;

	if ((t.end - t.at > 2 && token_is(t.at, ".")) || (t.end - t.at > 3 && token_is(t.at, "[") && token_is(t.at + 2, "]"))) {
		bool minor = token_is(t.at + 1, "minor") || token_is(t.at + 1, "1");

		if (!minor && !token_is(t.at + 1, "major") && !token_is(t.at + 1, "0"))
			return SURE_MAYBE;
		t.at += token_is(t.at, ".") ? 2 : 3;
		if (t.end - t.at != 2 || t.at[1].kind != TOKEN_NUMBER)
			return SURE_MAYBE;
		other[0] = (unsigned)strtoul(t.at[1].at, NULL, 10);
		order = own[minor] < other[0] ? -1 : own[minor] > other[0];
		compare(&t, order, &sure);
		return sure;
	}
	if (t.end - t.at > 4 && token_is(t.at, "[") && token_is(t.at + 1, ":") && token_is(t.at + 3, "]")) {
		n_own = strtoul(t.at[2].at, NULL, 10);
		t.at += 4;
	}
	operator = t.at;
	if (operator == t.end)
		return SURE_MAYBE;
	t.at++;
	n = take_tuple(&t, other, 3);
	if (!n || t.at != t.end)
		return SURE_MAYBE;
	for (i = 0; i < n && i < n_own && i < 2 && !order; i++)
		order = own[i] < other[i] ? -1 : own[i] > other[i];
	if (!order && n > 2 && n_own > 2)
		return SURE_MAYBE; /* it takes the third number */
	if (!order)
		order = n_own < n ? -1 : n_own > n;
	t.at = operator;
	compare(&t, order, &sure);
	return sure;
}

/* in ("a", "b"), in {"a"}, in ["a"]. */
static enum sure membership(const struct importer *im, struct tokens *t, struct value v)
{
	enum sure found = SURE_NO;
	const char *text;

	if (!take(t, "(") && !take(t, "[") && !take(t, "{"))
		return SURE_MAYBE;
	while ((text = take_string(im, t))) {
		if (v.text && !strcmp(text, v.text))
			found = SURE_YES;
		if (!take(t, ","))
			break;
	}
	return take(t, ")") || take(t, "]") || take(t, "}") ? found : SURE_MAYBE;
}

static enum sure opposite(enum sure s)
{
	return s == SURE_YES ? SURE_NO : s == SURE_NO ? SURE_YES : s;
}

/* "NAME" in os.environ. */
static enum sure environ_has(const struct importer *im, struct tokens t)
{
	const char *name = take_string(im, &t);
	bool not = take(&t, "not");
	enum sure has;

	if (!name || !take(&t, "in") || !take(&t, "os") || !take(&t, ".") || !take(&t, "environ") || t.at != t.end)
		return SURE_MAYBE;
	has = sure_of(plan_getenv(im->plan, name) != NULL);
	return not ? opposite(has) : has;
}

/* A value alone, or compared to one string or several. */
static enum sure atom_truth(const struct importer *im, struct tokens t)
{
	enum sure sure = SURE_MAYBE;
	struct value v;
	const char *text;

	if (t.at == t.end)
		return SURE_MAYBE;
	if (t.at->kind == TOKEN_NUMBER)
		return t.at + 1 == t.end ? sure_of(t.at->n > 1 || *t.at->at != '0') : SURE_MAYBE;
	if (t.at->kind == TOKEN_STRING)
		return environ_has(im, t);
	if (t.end - t.at > 3 && token_is(t.at, "sys") && token_is(t.at + 1, ".") && token_is(t.at + 2, "version_info")) {
		t.at += 3;
		return version_truth(im, t);
	}
	/* sys.platform.startswith("win") */
	if (t.end - t.at == 8 && token_is(t.at, "sys") && token_is(t.at + 2, "platform") && token_is(t.at + 4, "startswith")) {
		t.at += 6;
		text = take_string(im, &t);
		return text ? sure_of(!strncmp("linux", text, strlen(text))) : SURE_MAYBE;
	}
	v = take_value(im, &t);
	if (!v.known)
		return SURE_MAYBE;
	if (t.at == t.end)
		return sure_of(v.text && *v.text);
	if (take(&t, "in")) {
		sure = membership(im, &t, v);
	} else if (take(&t, "not")) {
		sure = take(&t, "in") ? opposite(membership(im, &t, v)) : SURE_MAYBE;
	} else if (take(&t, "is")) {
		bool not = take(&t, "not");

		if (take(&t, "None"))
			sure = sure_of(!v.text != not);
	} else if (take(&t, "==")) {
		text = take_string(im, &t);
		sure = text ? sure_of(v.text && !strcmp(text, v.text)) : SURE_MAYBE;
	} else if (take(&t, "!=")) {
		text = take_string(im, &t);
		sure = text ? sure_of(!v.text || strcmp(text, v.text)) : SURE_MAYBE;
	}
	return t.at == t.end ? sure : SURE_MAYBE;
}

/* The next WORD outside brackets, or END. */
static const struct token *next_word(struct tokens t, const char *word)
{
	unsigned depth = 0;

	for (; t.at < t.end; t.at++) {
		if (token_is(t.at, "(") || token_is(t.at, "[") || token_is(t.at, "{"))
			depth++;
		else if (token_is(t.at, ")") || token_is(t.at, "]") || token_is(t.at, "}"))
			depth -= depth > 0;
		else if (!depth && token_is(t.at, word))
			break;
	}
	return t.at;
}

static enum sure truth(const struct importer *im, struct tokens t, unsigned depth);

/* Terms joined by WORD; a term that is DECIDES settles it. */
static enum sure join_truth(const struct importer *im, struct tokens t, const char *word, enum sure decides, unsigned depth)
{
	enum sure all = opposite(decides);

	for (;;) {
		struct tokens term = {t.at, next_word(t, word)};
		enum sure sure = truth(im, term, depth + 1);

		if (sure == decides)
			return sure;
		if (sure == SURE_MAYBE)
			all = sure;
		if (term.end == t.end)
			return all;
		t.at = term.end + 1;
	}
}

/* Are the first and the last token a pair of parentheses around all between? */
static bool is_wrapped(struct tokens t)
{
	struct tokens inner = {t.at + 1, t.end - 1};
	unsigned depth = 0;

	if (t.end - t.at < 2 || !token_is(t.at, "(") || !token_is(t.end - 1, ")"))
		return false;
	for (; inner.at < inner.end; inner.at++) {
		if (token_is(inner.at, "("))
			depth++;
		else if (token_is(inner.at, ")") && !depth--)
			return false;
	}
	return true;
}

static enum sure truth(const struct importer *im, struct tokens t, unsigned depth)
{
	bool not = false;
	enum sure sure;

	if (depth > NESTED_MOST)
		return SURE_MAYBE;
	if (next_word(t, "or") != t.end)
		return join_truth(im, t, "or", SURE_YES, depth);
	if (next_word(t, "and") != t.end)
		return join_truth(im, t, "and", SURE_NO, depth);
	while (take(&t, "not"))
		not = !not;
	if (is_wrapped(t))
		sure = truth(im, (struct tokens){t.at + 1, t.end - 1}, depth + 1);
	else
		sure = atom_truth(im, t);
	return not ? opposite(sure) : sure;
}

enum sure test_truth(const struct importer *im, const struct token *t, size_t n)
{
	return truth(im, (struct tokens){t, t + n}, 0);
}
