#include "loader/tokens.h"

#include <stdlib.h>

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Length of token NAME at TEXT (behind the '$'), braces included; 0 = not it.
 * Since 2.28 an unbraced token ends where a word would; before, only '/' or
 * the end of the string could follow it. */
static size_t token_at(const char *text, const char *name, int version)
{
	size_t n = strlen(name);

	if (text[0] == '{')
		return !strncmp(text + 1, name, n) && text[1 + n] == '}' ? n + 2 : 0;
	if (strncmp(text, name, n))
		return 0;
	if (version >= 228 ? is_word(text[n]) : text[n] && text[n] != '/')
		return 0;
	return n;
}

static size_t any_token(const char *text, int version, char *which)
{
	size_t n;

	if ((n = token_at(text, "ORIGIN", version)))
		*which = 'O';
	else if ((n = token_at(text, "PLATFORM", version)))
		*which = 'P';
	else if ((n = token_at(text, "LIB", version)))
		*which = 'L';
	return n;
}

bool tokens_any(const char *text, int version)
{
	char which;

	for (text = strchr(text, '$'); text; text = strchr(text + 1, '$'))
		if (any_token(text + 1, version, &which))
			return true;
	return false;
}

/* is_trusted_path_normalize: does the path, with "." and ".." taken out as
 * text, lie under a default directory? */
static bool is_trusted(const char *path, const struct token_values *v)
{
	char *clean = xmalloc(strlen(path) + 2), *to = clean;
	bool trusted = false;
	size_t i;

	while (*path == '/') {
		while (*path == '/')
			path++;
		if (path[0] == '.' && (path[1] == '/' || !path[1])) {
			path++;
		} else if (path[0] == '.' && path[1] == '.' && (path[2] == '/' || !path[2])) {
			path += 2;
			while (to > clean && *--to != '/')
				;
		} else {
			*to++ = '/';
			while (*path && *path != '/')
				*to++ = *path++;
		}
	}
	*to++ = '/';
	*to = '\0';
	for (i = 0; i < v->n_system_dir; i++)
		trusted |= !strncmp(clean, v->system_dir[i], strlen(v->system_dir[i]));
	free(clean);
	return trusted;
}

const char *tokens_expand(const char *text, const struct token_values *v, struct names *names)
{
	const char *from = text, *result = NULL;
	bool check_trust = false;
	char *out = NULL;
	size_t n = 0, room = 0;

	if (!strchr(text, '$'))
		return names_add(names, text);
	while (*from) {
		const char *value = NULL;
		char which = 0;
		size_t length = *from == '$' ? any_token(from + 1, v->version, &which) : 0, k;

		if (length) {
			value = which == 'O' ? v->origin : which == 'L' ? v->lib : v->platform;
			if (which == 'O' && v->secure &&
			    (from != text || (from[1 + length] && from[1 + length] != '/')))
				value = NULL;
			if (which == 'O' && v->secure && v->for_executable)
				check_trust = true;
			if (!value)
				goto out;
			from += 1 + length;
		}
		k = value ? strlen(value) : 1;
		if (n + k + 1 > room)
			out = xrealloc(out, room = (n + k + 1) * 2);
		if (value)
			memcpy(out + n, value, k);
		else
			out[n] = *from++;
		n += k;
	}
	if (!out)
		out = xmalloc(1);
	out[n] = '\0';
	if (!check_trust || is_trusted(out, v))
		result = names_add_n(names, out, n);
out:
	free(out);
	return result;
}
