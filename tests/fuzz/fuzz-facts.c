/* What an interpreter says of itself; and, with the first bytes as text, the tokens of a path. */
#include "loader/facts.h"
#include "loader/tokens.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_facts(const unsigned char *data, size_t size, struct names *names)
{
	struct arena arena = {0};
	struct ld_facts *f = ld_facts_read(data, size, size % 2 ? "/lib/ld-2.31.so" : "/lib64/ld-linux-x86-64.so.2",
					   size % 3 ? EM_X86_64 : EM_AARCH64, names, &arena);
	size_t i;

	if (!f->n_system_dir || !f->lib || f->cache_path[0] != '/' || f->version < 0)
		abort();
	for (i = 0; i < f->n_system_dir; i++)
		if (f->system_dir[i][0] != '/' || f->system_dir[i][strlen(f->system_dir[i]) - 1] != '/')
			abort();
	if (libc_banner_version(data, size) < 0)
		abort();
	arena_free(&arena);
}

static void expand(const unsigned char *data, size_t size, struct names *names)
{
	static const char *system_dir[] = {"/lib/", "/usr/lib/"};
	struct token_values v = {.origin = size % 5 ? "/opt/app" : NULL, .lib = "lib64", .platform = "haswell",
				 .version = size % 2 ? 236 : 227, .secure = size % 3 == 0, .for_executable = size % 7 == 0,
				 .system_dir = system_dir, .n_system_dir = 2};
	const char *text = names_add_n(names, (const char *)data, strnlen((const char *)data, size < 4096 ? size : 4096));
	const char *out = tokens_expand(text, &v, names);

	/* What has no token is not changed, and is never refused. */
	if (!tokens_any(text, v.version) && (!out || strcmp(out, text)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *copy = xmalloc(size + 1);
	struct names names = {0};

	memcpy(copy, data, size);
	copy[size] = 0; /* as store_slurp() leaves it */
	read_facts(copy, size, &names);
	expand(copy, size, &names);
	names_free(&names);
	free(copy);
	return 0;
}
