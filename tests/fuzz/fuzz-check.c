/* A whole check of a small root.  The input is the files, one after another, parted by SEPARATOR:
 * the engine, a tracked library, another library, the cache. */
#include "cmd/simulate.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEPARATOR "\n#NEXT#\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const files[] = {"bin/engine", "opt/libnccl.so.2", "opt/liba.so", "etc/ld.so.cache"};
static char root[4096];

static void put(const char *name, const void *data, size_t size)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void make(const char *name)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (mkdir(path, 0755) < 0)
		abort();
}

/* A loader is known by its words: an object without a dynamic section that says them will do. */
static void put_loader(void)
{
	static const char words[] = "LD_LIBRARY_PATH\0/etc/ld.so.cache\0glibc-hwcaps\0Legacy HWCAP subdirectories\0"
				    "ld.so (fuzz) stable release version 2.36.\n";
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		char words[sizeof(words)];
	} f = {
		.e = {.e_ident = ELFMAG "\2\1\1", .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1,
		      .e_phoff = sizeof(Elf64_Ehdr), .e_phnum = 1, .e_phentsize = sizeof(Elf64_Phdr)},
		.p = {.p_type = PT_LOAD, .p_filesz = sizeof(f), .p_memsz = sizeof(f), .p_align = 4096},
	};

	memcpy(f.words, words, sizeof(words));
	put("lib64/ld-linux-x86-64.so.2", &f, sizeof(f));
}

static void remove_root(void)
{
	static const char *const all[] = {"lib64/ld-linux-x86-64.so.2", "bin", "opt", "etc", "lib64", ""};
	char path[4200];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, files[i]);
		remove(path);
	}
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, all[i]);
		remove(path);
	}
}

static void make_root(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/ncclwhich-fuzz.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(root))
		abort();
	make("bin");
	make("opt");
	make("etc");
	make("lib64");
	put_loader();
	atexit(remove_root);
}

static void put_files(const uint8_t *data, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const uint8_t *end = memmem(data, size, SEPARATOR, sizeof(SEPARATOR) - 1);
		size_t n = end ? (size_t)(end - data) : size;

		put(files[i], data, n);
		if (end)
			n += sizeof(SEPARATOR) - 1;
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct options o = {0};
	struct simulation s;
	struct error e = {0};
	struct text t;

	if (!root[0])
		make_root();
	put_files(data, size);
	o.plan.root = root;
	o.plan.engine = "/bin/engine";
	o.plan.library_path = "/opt";
	vec_push(&o.plan.events, ((struct event){.name = "libnccl.so.2", .flags = OPEN_NOW}));
	vec_push(&o.plan.events, ((struct event){.name = "/opt/liba.so", .flags = OPEN_LAZY | OPEN_GLOBAL}));
	if (simulation_start(&s, &o, true, &e) == 0) {
		free(json_text(check_json(&s.report), false));
		text_open(&t, false);
		check_text(&t, &s.report);
		free(text_take(&t));
	} else if (!e.text) {
		abort();
	}
	simulation_end(&s);
	error_clear(&e);
	vec_free(&o.plan.events);
	return 0;
}
