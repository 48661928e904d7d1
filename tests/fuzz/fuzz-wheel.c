/* A wheel: laid over an empty root, every file of it opened and read. */
#include "root/root.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[64];

static void make_root(void)
{
	snprintf(directory, sizeof(directory), "/tmp/fuzz-wheel-XXXXXX");
	if (!mkdtemp(directory))
		abort();
}

static void write_wheel(const uint8_t *data, size_t size)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/w.whl", directory);
	f = fopen(path, "w");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f))
		abort();
}

static void read_all(struct root *r, const char *path)
{
	struct root_file *file;
	char chunk[4096];
	size_t total = 0;
	ssize_t n;
	int fd;

	if (root_lookup(r, path, &file))
		abort(); /* what is listed is there */
	fd = root_open(r, file);
	if (fd < 0)
		return;
	while (total < 1 << 20 && (n = read(fd, chunk, sizeof(chunk))) > 0)
		total += (size_t)n;
	if (total > file->size)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct names names = {0};
	struct error e = {0};
	struct root_listing files = {0}, top = {0};
	struct root *r;
	size_t i;

	if (!directory[0])
		make_root();
	write_wheel(data, size);
	r = root_new(directory, &names, &e);
	if (!r)
		abort();
	if (root_install(r, names_add(&names, "/w.whl"), names_add(&names, "/s/site-packages"), &e) == 0) {
		root_list_installed(r, names_add(&names, "/w.whl"), &files);
		for (i = 0; i < files.name.n && i < 64; i++)
			read_all(r, files.name.at[i]);
		root_list(r, names_add(&names, "/s/site-packages"), &top);
	}
	vec_free(&files.name);
	vec_free(&top.name);
	error_clear(&e);
	root_free(r);
	names_free(&names);
	return 0;
}
