#include "report/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void text_open(struct text *t, bool color)
{
	t->color = color;
	t->data = NULL;
	t->stream = open_memstream(&t->data, &t->size);
	if (!t->stream) {
		fputs("ncclwhich: out of memory\n", stderr);
		exit(2);
	}
}

char *text_take(struct text *t)
{
	fclose(t->stream);
	return t->data;
}

/* Bytes of the UTF-8 character at S if it may be printed, else 0: a control
 * character, or no UTF-8, of which a terminal may make a control character. */
static size_t printable_at(const unsigned char *s)
{
	static const unsigned least[] = {0, 0x20, 0xa0, 0x800, 0x10000};
	size_t n = *s < 0x80 ? 1 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4, i;
	unsigned c = n == 1 ? *s : *s & (0x7fu >> n);

	if ((*s >= 0x7f && *s < 0xc0) || *s >= 0xf8)
		return 0;
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c >= least[n] && c < 0x110000 && (c < 0xd800 || c > 0xdfff) ? n : 0;
}

void text_name(struct text *t, const char *name)
{
	const unsigned char *s = (const unsigned char *)name, *from = s;
	size_t n;

	while (*s) {
		if ((n = printable_at(s))) {
			s += n;
			continue;
		}
		fwrite(from, 1, (size_t)(s - from), t->stream);
		fprintf(t->stream, "\\x%02X", *s);
		from = ++s;
	}
	fwrite(from, 1, (size_t)(s - from), t->stream);
}

const char *text_bold(const struct text *t)
{
	return t->color ? "\033[1m" : "";
}

const char *text_red(const struct text *t)
{
	return t->color ? "\033[1;31m" : "";
}

const char *text_green(const struct text *t)
{
	return t->color ? "\033[1;32m" : "";
}

const char *text_plain(const struct text *t)
{
	return t->color ? "\033[0m" : "";
}

void text_stage(struct text *t, enum stage stage, const struct object *list_of)
{
	switch (stage) {
	case BY_LOADED: fputs("already loaded", t->stream); break;
	case BY_PATH: fputs("by its path", t->stream); break;
	case BY_RPATH: case BY_RUNPATH:
		fputs(stage == BY_RPATH ? "RPATH of " : "RUNPATH of ", t->stream);
		text_name(t, list_of ? list_of->path : "?");
		break;
	case BY_ENV: fputs("LD_LIBRARY_PATH", t->stream); break;
	case BY_CACHE: fputs("ld.so.cache", t->stream); break;
	case BY_DEFAULT: fputs("default directory", t->stream); break;
	case BY_NOTHING: fputs("not found", t->stream); break;
	}
}

static void tree_line(struct text *t, const struct object *o)
{
	fputs("  ", t->stream);
	if (o->how == HOW_VDSO) {
		fprintf(t->stream, "%s => (the kernel's)\n", o->path);
		return;
	}
	text_name(t, o->request ? o->request : o->path);
	fputs(" => ", t->stream);
	if (o->missing)
		fprintf(t->stream, "%snot found%s", text_red(t), text_plain(t));
	else
		text_name(t, o->path);
	fprintf(t->stream, "  [%s", how_name(o->how));
	if (o->requester) {
		fputs(o->how == HOW_PRELOAD || o->how == HOW_INTERP ? " of " : " by ", t->stream);
		text_name(t, *o->requester->path ? path_base(o->requester->path) : "the bare program");
	}
	if (!o->missing && o->how != HOW_INTERP) {
		fputs("; ", t->stream);
		text_stage(t, o->found_by, o->list_of);
	}
	fputs("]\n", t->stream);
}

void text_tree(struct text *t, const struct sequence *s)
{
	const struct process *p = s->process;
	const struct object *o;
	size_t i;

	fputs(text_bold(t), t->stream);
	text_name(t, *p->exe->path ? p->exe->path : "(bare program)");
	fprintf(t->stream, "%s\n", text_plain(t));
	for (i = 0; i < p->ns.n; i++) {
		if (i)
			fprintf(t->stream, "  namespace %zu\n", i);
		for (o = process_first(p, i); o; o = o->next)
			if (o != p->exe)
				tree_line(t, o);
	}
	if (!p->started) {
		fprintf(t->stream, "%sstart-up fails%s: ", text_red(t), text_plain(t));
		text_name(t, p->start_object ? p->start_object : "");
		fputs(": ", t->stream);
		text_name(t, p->start_error);
		fputc('\n', t->stream);
	}
	for (i = 0; i < p->warnings.n; i++) {
		fputs("warning: ", t->stream);
		text_name(t, p->warnings.at[i]);
		fputc('\n', t->stream);
	}
	for (i = 0; i < s->opened.n; i++) {
		const struct opened *opened = &s->opened.at[i];

		if (opened->lookup && !opened->lookup->error)
			continue;
		fprintf(t->stream, "%sdlopen fails%s: ", text_red(t), text_plain(t));
		text_name(t, opened->name);
		fputs(": ", t->stream);
		text_name(t, opened->lookup ? opened->lookup->error : "its caller is not loaded");
		fputc('\n', t->stream);
	}
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* A device, a pipe, /dev/stdout: written to, and not replaced. */
static int write_through(const char *path, const char *data, size_t size, struct error *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY), result;

	if (fd < 0)
		return error_set(e, "%s: %s", path, strerror(errno));
	result = write_all(fd, data, size);
	if (result < 0)
		error_set(e, "%s: %s", path, strerror(errno));
	close(fd);
	return result < 0 ? -1 : 0;
}

int output_write(const char *path, const char *data, size_t size, struct error *e)
{
	char *temporary, *real;
	struct stat st;
	mode_t mask;
	int fd, result = -1;

	if (!path) {
		if (write_all(STDOUT_FILENO, data, size) < 0)
			return error_set(e, "standard output: %s", strerror(errno));
		return 0;
	}
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return write_through(path, data, size, e);
	real = realpath(path, NULL); /* a link stays one */
	temporary = xprintf("%s.XXXXXX", real ? real : path);
	fd = mkstemp(temporary);
	if (fd < 0) {
		error_set(e, "%s: cannot write beside it: %s", path, strerror(errno));
		goto out;
	}
	mask = umask(0);
	umask(mask);
	if (write_all(fd, data, size) < 0 || fchmod(fd, 0666 & ~mask) < 0 || fsync(fd) < 0 || close(fd) < 0 ||
	    rename(temporary, real ? real : path) < 0) {
		error_set(e, "%s: %s", path, strerror(errno));
		unlink(temporary);
		goto out;
	}
	result = 0;
out:
	free(real);
	free(temporary);
	return result;
}
