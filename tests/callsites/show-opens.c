/* Prints what elf/code finds in the files that are named, as JSON, one line a file. */
#include "elf/code.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void print_text(const char *key, const char *s)
{
	printf("\"%s\":", key);
	if (!s) {
		printf("null");
		return;
	}
	putchar('"');
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			printf("\\u%04x", (unsigned char)*s);
		else
			putchar(*s);
	putchar('"');
}

static void print_open(const struct elf_open *o, const char *before)
{
	printf("%s{", before);
	print_text("function", o->function);
	putchar(',');
	print_text("name", o->name ? o->name : o->form);
	printf(",\"handle\":\"%s\"", (const char *const[]){"unknown", "default", "next", "opened"}[o->handle]);
	printf(",\"computed\":%s,\"taken\":%s,\"flags\":%ld,\"where\":%llu,", o->computed ? "true" : "false",
	       o->taken ? "true" : "false", o->flags, (unsigned long long)o->where);
	print_text("in", o->in);
	putchar(',');
	print_text("via", o->via_in);
	putchar('}');
}

static int show(const char *path)
{
	struct reader *r = xmalloc(sizeof(*r));
	struct names names = {0};
	struct arena arena = {0};
	struct elf_symbols symbols = {0};
	struct elf_opens opens = {0};
	const struct elf_object *o;
	int fd = open(path, O_RDONLY | O_CLOEXEC), result;
	struct stat st;
	double began;
	size_t i;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		perror(path);
		free(r);
		return 1;
	}
	reader_open(r, fd, (uint64_t)st.st_size);
	o = elf_object_read(r, &names, &arena);
	if (elf_symbols_read(r, o, &symbols) < 0)
		memset(&symbols, 0, sizeof(symbols));
	began = now();
	result = elf_code_opens(r, o, &symbols, &names, &arena, &opens);
	putchar('{');
	print_text("path", path);
	printf(",\"result\":%d,\"ms\":%.1f,", result, now() - began);
	print_text("note", opens.note);
	printf(",\"opens\":[");
	for (i = 0; i < opens.n; i++)
		print_open(&opens.at[i], i ? "," : "");
	printf("]}\n");
	elf_symbols_free(&symbols);
	arena_free(&arena);
	names_free(&names);
	free(r);
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	int i, result = 0;

	for (i = 1; i < argc; i++)
		result |= show(argv[i]);
	return result;
}
