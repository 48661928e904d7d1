#include "linkage/script.h"

#include <stdlib.h>
#include <unistd.h>

/* BINPRM_BUF_SIZE of the kernel, and how often a script's interpreter may be a
 * script. */
enum { LINE_MOST = 256, LEVELS_MOST = 5 };

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* The first two words of a #! line: the interpreter and its argument. */
static bool read_line(struct store *store, const struct root_file *file, char *interpreter, char *argument)
{
	char line[LINE_MOST + 1] = "", *word, *end;
	struct reader *r = xmalloc(sizeof(*r));
	int fd = store_reader(store, file, r);
	bool script;

	script = fd >= 0 && reader_at(r, 0, line, file->size < LINE_MOST ? (size_t)file->size : LINE_MOST) &&
		 line[0] == '#' && line[1] == '!';
	if (fd >= 0)
		close(fd);
	free(r);
	if (!script)
		return false;
	line[strcspn(line, "\n")] = '\0';
	for (word = line + 2; *word == ' ' || *word == '\t'; word++)
		;
	end = word + strcspn(word, " \t");
	memcpy(interpreter, word, (size_t)(end - word));
	interpreter[end - word] = '\0';
	for (word = end; *word == ' ' || *word == '\t'; word++)
		;
	end = word + strcspn(word, " \t");
	memcpy(argument, word, (size_t)(end - word));
	argument[end - word] = '\0';
	return *interpreter != '\0';
}

/* execvp: the first regular file of that name on the PATH. */
static const char *on_path(const struct plan *plan, struct store *store, const char *name)
{
	const char *path = plan_getenv(plan, "PATH"), *at;
	struct root_file *file;
	size_t n;

	for (at = path ? path : default_path;; at += n + 1) {
		char *text;
		const char *candidate;

		n = strcspn(at, ":");
		text = xprintf("%.*s/%s", (int)n, at, name);
		candidate = names_add(&store->names, text);
		free(text);
		if (candidate[0] == '/' && !root_lookup(store->root, candidate, &file) && S_ISREG(file->mode) &&
		    (file->mode & 0111))
			return candidate;
		if (!at[n])
			return NULL;
	}
}

const char *script_executable(const struct plan *plan, struct store *store, const char *path, struct error *e)
{
	char interpreter[LINE_MOST + 1], argument[LINE_MOST + 1];
	struct root_file *file;
	int level;

	for (level = 0; level < LEVELS_MOST; level++) {
		const char *slash;

		if (root_lookup(store->root, path, &file) || !S_ISREG(file->mode) ||
		    !read_line(store, file, interpreter, argument))
			return path;
		slash = strrchr(interpreter, '/');
		if (slash && !strcmp(slash, "/env") && *argument && argument[0] != '-' && !strchr(argument, '=')) {
			const char *found = on_path(plan, store, argument);

			if (!found) {
				error_set(e, "%s: its interpreter %s is not on the PATH", path, argument);
				return NULL;
			}
			path = found;
		} else if (interpreter[0] == '/') {
			path = names_add(&store->names, interpreter);
		} else {
			error_set(e, "%s: its interpreter %s is no absolute path", path, interpreter);
			return NULL;
		}
	}
	error_set(e, "%s: a script of a script of a script", path);
	return NULL;
}
