#include "linkage/imports_internal.h"

#include <ctype.h>
#include <stdlib.h>

/* A file may nest fields of formatted strings as deep as it likes, our stack
 * not; and a table may be one statement: no import has as many tokens. */
enum { FIELDS_MOST = 20, TOKENS_MOST = 1 << 16 };

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

void source_open(struct source *t, const char *text)
{
	memset(t, 0, sizeof(*t));
	t->at = strncmp(text, "\xef\xbb\xbf", 3) ? text : text + 3;
	t->line = 1;
}

bool token_is(const struct token *t, const char *word)
{
	return t->kind != TOKEN_STRING && strlen(word) == t->n && !memcmp(t->at, word, t->n);
}

static void push_token(struct source *t, struct token token)
{
	if (t->token.n < TOKENS_MOST)
		vec_push(&t->token, token);
}

static void skip_string(struct source *t, bool formatted, struct token *out);

/* {expression!conversion:format} of a formatted string, the cursor behind its
 * '{'.  A quote opens a string in the expression (since 3.12 even the quote of
 * the string around it), and is a letter like any other in the format. */
static void skip_field(struct source *t)
{
	unsigned depth = 0;
	bool format = false;

	t->nested++;
	for (; *t->at; t->at++) {
		char c = *t->at;

		t->line += c == '\n';
		if (c == '}' && !depth) {
			t->at++;
			break;
		}
		if (format) {
			if (c == '{' && t->nested < FIELDS_MOST) {
				t->at++;
				skip_field(t);
				t->at--;
			}
		} else if (c == '"' || c == '\'') {
			struct token inner;

			skip_string(t, tolower((unsigned char)t->at[-1]) == 'f' && t->nested < FIELDS_MOST, &inner);
			t->at--;
		} else if (c == '(' || c == '[' || c == '{') {
			depth++;
		} else if (c == ')' || c == ']' || c == '}') {
			depth -= depth > 0;
		} else if (c == ':' && !depth) {
			format = true;
		}
	}
	t->nested--;
}

/* The cursor is at the quote, and is left behind the string.  A raw string
 * keeps its backslashes, but they guard a quote all the same. */
static void skip_string(struct source *t, bool formatted, struct token *out)
{
	char quote = *t->at;
	bool triple = t->at[1] == quote && t->at[2] == quote;

	*out = (struct token){.kind = TOKEN_STRING, .plain = true, .line = t->line};
	t->at += triple ? 3 : 1;
	out->at = t->at;
	for (; *t->at; t->at++) {
		char c = *t->at;

		if (c == quote && (!triple || (t->at[1] == quote && t->at[2] == quote)))
			break;
		if (c == '\n') {
			if (!triple) /* a string that is not closed ends with its line */
				break;
			t->line++;
		} else if (c == '\\' && t->at[1]) {
			out->plain = false;
			t->at++;
			t->line += *t->at == '\n';
		} else if (formatted && c == '{') {
			if (t->at[1] == '{') {
				t->at++;
				continue;
			}
			out->plain = false;
			t->at++;
			skip_field(t);
			t->at--;
		}
	}
	out->n = (size_t)(t->at - out->at);
	if (*t->at == quote)
		t->at += triple ? 3 : 1;
}

/* A name, or the string whose prefix it turns out to be. */
static void read_name(struct source *t)
{
	struct token token = {.kind = TOKEN_NAME, .at = t->at, .line = t->line};
	bool prefix = true, formatted = false;

	for (; is_name(*t->at); t->at++) {
		prefix &= *t->at && strchr("rbuftRBUFT", *t->at) != NULL;
		formatted |= *t->at && strchr("ftFT", *t->at) != NULL;
	}
	token.n = (size_t)(t->at - token.at);
	if ((*t->at == '"' || *t->at == '\'') && prefix && token.n <= 2)
		skip_string(t, formatted, &token);
	push_token(t, token);
}

/* An operator; those of two characters that end in '=' are one token. */
static void read_mark(struct source *t, unsigned *depth)
{
	struct token token = {.kind = TOKEN_MARK, .at = t->at, .n = 1, .line = t->line};
	char c = *t->at;

	if (c == '(' || c == '[' || c == '{')
		++*depth;
	else if ((c == ')' || c == ']' || c == '}') && *depth)
		--*depth;
	if (t->at[1] == '=' && strchr("=!<>:+-*/|&%@^", c))
		token.n = 2;
	t->at += token.n;
	push_token(t, token);
}

/* Blank lines and lines with a comment alone have no indentation. */
static void read_indent(struct source *t)
{
	for (t->indent = 0;; t->at++) {
		if (*t->at == '\t')
			t->indent = (t->indent / 8 + 1) * 8;
		else if (*t->at == ' ')
			t->indent++;
		else if (*t->at == '\f')
			t->indent = 0;
		else
			return;
	}
}

bool source_next(struct source *t)
{
	unsigned depth = 0;

	t->token.n = 0;
	read_indent(t);
	while (*t->at) {
		char c = *t->at;

		if (c == '\n') {
			t->at++;
			t->line++;
			if (depth)
				continue;
			if (t->token.n)
				return true;
			read_indent(t);
		} else if (c == '#') {
			t->at += strcspn(t->at, "\n");
		} else if (c == '\\') {
			t->at += t->at[1] == '\r' && t->at[2] == '\n' ? 2 : 1;
			if (*t->at == '\n') {
				t->at++;
				t->line++;
			}
		} else if (isspace((unsigned char)c)) {
			t->at++;
		} else if (c == '"' || c == '\'') {
			struct token token;

			skip_string(t, false, &token);
			push_token(t, token);
		} else if (isdigit((unsigned char)c)) {
			struct token token = {.kind = TOKEN_NUMBER, .at = t->at, .line = t->line};

			while (is_name(*t->at))
				t->at++;
			token.n = (size_t)(t->at - token.at);
			push_token(t, token);
		} else if (is_name(c)) {
			read_name(t);
		} else {
			read_mark(t, &depth);
		}
	}
	return t->token.n > 0;
}
