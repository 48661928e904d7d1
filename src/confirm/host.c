#include "confirm/host.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Two segments: what is read and run, and, on a page of its own, the dynamic
 * section, which ld.so writes to (DT_DEBUG, and the addresses in it). */
enum { TEXT_SIZE = 0x1000, PAGE = 0x10000 };

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment[6];
	Elf64_Sym symbol[1];
	uint32_t hash[4]; /* one bucket, one chain, both empty */
	char strings[32];
	unsigned char code[16];
	char interp[512];
};

static const unsigned char exit_x86[] = {0xbf, 97, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05, 0xc3};
static const unsigned char exit_arm[] = {0x20, 0x0c, 0x80, 0xd2, 0xc8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4,
					 0xc0, 0x03, 0x5f, 0xd6};

static Elf64_Phdr segment(uint32_t type, uint32_t flags, uint64_t offset, uint64_t vaddr, uint64_t size, uint64_t align)
{
	return (Elf64_Phdr){.p_type = type, .p_flags = flags, .p_offset = offset, .p_vaddr = vaddr, .p_paddr = vaddr,
			    .p_filesz = size, .p_memsz = size, .p_align = align};
}

static void fill(struct image *m, const char *interp, uint16_t machine, size_t dynamic_size)
{
	const size_t interp_at = offsetof(struct image, interp);

	memcpy(m->header.e_ident, ELFMAG, SELFMAG);
	m->header.e_ident[EI_CLASS] = ELFCLASS64;
	m->header.e_ident[EI_DATA] = ELFDATA2LSB;
	m->header.e_ident[EI_VERSION] = EV_CURRENT;
	m->header.e_type = ET_DYN;
	m->header.e_machine = machine;
	m->header.e_version = EV_CURRENT;
	m->header.e_entry = offsetof(struct image, code);
	m->header.e_phoff = offsetof(struct image, segment);
	m->header.e_ehsize = sizeof(m->header);
	m->header.e_phentsize = sizeof(m->segment[0]);
	m->header.e_phnum = 6;
	m->segment[0] = segment(PT_PHDR, PF_R, m->header.e_phoff, m->header.e_phoff, sizeof(m->segment), 8);
	m->segment[1] = segment(PT_INTERP, PF_R, interp_at, interp_at, strlen(interp) + 1, 1);
	m->segment[2] = segment(PT_LOAD, PF_R | PF_X, 0, 0, TEXT_SIZE, PAGE);
	m->segment[3] = segment(PT_LOAD, PF_R | PF_W, TEXT_SIZE, PAGE + TEXT_SIZE, dynamic_size, PAGE);
	m->segment[4] = segment(PT_DYNAMIC, PF_R | PF_W, TEXT_SIZE, PAGE + TEXT_SIZE, dynamic_size, 8);
	m->segment[5] = segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 16);
	m->hash[0] = m->hash[1] = 1;
	memcpy(m->strings, "\0libc.so.6", sizeof("\0libc.so.6"));
	if (machine == EM_AARCH64)
		memcpy(m->code, exit_arm, sizeof(exit_arm));
	else
		memcpy(m->code, exit_x86, sizeof(exit_x86));
	memcpy(m->interp, interp, strlen(interp) + 1);
}

int host_write(const char *path, const char *interp, uint16_t machine, struct error *e)
{
	static union {
		struct image image;
		unsigned char text[TEXT_SIZE];
	} file;
	const Elf64_Dyn dynamic[] = {
		{.d_tag = DT_NEEDED, .d_un.d_val = 1},
		{.d_tag = DT_HASH, .d_un.d_ptr = offsetof(struct image, hash)},
		{.d_tag = DT_STRTAB, .d_un.d_ptr = offsetof(struct image, strings)},
		{.d_tag = DT_SYMTAB, .d_un.d_ptr = offsetof(struct image, symbol)},
		{.d_tag = DT_STRSZ, .d_un.d_val = sizeof(file.image.strings)},
		{.d_tag = DT_SYMENT, .d_un.d_val = sizeof(Elf64_Sym)},
		{.d_tag = DT_DEBUG},
		{.d_tag = DT_FLAGS_1, .d_un.d_val = DF_1_PIE},
		{.d_tag = DT_NULL},
	};
	int fd, error = 0;

	if (strlen(interp) >= sizeof(file.image.interp))
		return error_set(e, "%s: too long a name for an interpreter", interp);
	memset(&file, 0, sizeof(file));
	fill(&file.image, interp, machine, sizeof(dynamic));
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0 || write(fd, &file, sizeof(file)) != (ssize_t)sizeof(file) ||
	    write(fd, dynamic, sizeof(dynamic)) != (ssize_t)sizeof(dynamic))
		error = errno;
	if (fd >= 0 && close(fd) < 0)
		error = errno;
	return error ? error_set(e, "%s: %s", path, strerror(error)) : 0;
}
