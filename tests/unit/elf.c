/* What a file says: a whole object made field by field, and the same with one field wrong. */
#include "test.h"

#include "elf/library.h"
#include "elf/scan.h"
#include "elf/symbols.h"

enum { TEXTS = 256 };

/* One segment that maps the whole file at its offset. */
struct image {
	Elf64_Ehdr e;
	Elf64_Phdr load, dynamic, note;
	Elf64_Dyn dyn[16];
	Elf64_Sym sym[4];
	uint32_t hash[2 + 1 + 4];
	Elf64_Rela rela[3];
	struct {
		Elf64_Verneed vn;
		Elf64_Vernaux va[2];
	} need;
	struct {
		Elf64_Nhdr nh;
		char owner[4];
		unsigned char id[4];
	} id;
	char strings[128];
	unsigned char code[16];
	char text[TEXTS];
};

static const char strings[] = "\0libnccl.so.2\0libc.so.6\0libm.so.6\0/opt/$LIB\0GLIBC_2.2.5\0GLIBC_2.4\0ncclGetVersion\0used";
enum { S_SONAME = 1, S_LIBC = 14, S_LIBM = 24, S_PATH = 34, S_V1 = 44, S_V2 = 56, S_SYMBOL = 66, S_USED = 81 };

#define AT(field) offsetof(struct image, field)

static struct image whole(void)
{
	struct image f = {
		.e = {.e_ident = ELFMAG "\2\1\1", .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1,
		      .e_phoff = AT(load), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3},
		.load = {.p_type = PT_LOAD, .p_filesz = sizeof(f), .p_memsz = sizeof(f), .p_align = 4096},
		.dynamic = {.p_type = PT_DYNAMIC, .p_offset = AT(dyn), .p_vaddr = AT(dyn), .p_filesz = sizeof(f.dyn)},
		.note = {.p_type = PT_NOTE, .p_offset = AT(id), .p_filesz = sizeof(f.id)},
		.dyn = {{DT_NEEDED, {S_LIBC}}, {DT_NEEDED, {S_LIBM}}, {DT_SONAME, {S_SONAME}}, {DT_RPATH, {S_PATH}},
			{DT_STRTAB, {AT(strings)}}, {DT_STRSZ, {sizeof(strings)}}, {DT_SYMTAB, {AT(sym)}},
			{DT_HASH, {AT(hash)}}, {DT_RELA, {AT(rela)}}, {DT_RELASZ, {sizeof(f.rela)}},
			{DT_VERNEED, {AT(need)}}, {DT_VERNEEDNUM, {1}}, {DT_FLAGS_1, {DF_1_NOW | DF_1_NODEFLIB}}},
		.sym = {{0}, {.st_name = S_SYMBOL, .st_info = 0x12, .st_shndx = 1, .st_value = AT(code), .st_size = 7},
			{.st_name = S_USED, .st_info = 0x12}, {.st_name = 9999, .st_info = 0x12}},
		.hash = {1, 4},
		.rela = {{.r_info = ELF64_R_INFO(2, R_X86_64_GLOB_DAT)}, {.r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE)},
			 {.r_info = ELF64_R_INFO(2, R_X86_64_GLOB_DAT)}},
		.need = {{1, 2, S_LIBC, sizeof(Elf64_Verneed), 0},
			 {{0, 0, 2, S_V1, sizeof(Elf64_Vernaux)}, {0, VER_FLG_WEAK, 3, S_V2, 0}}},
		.id = {{4, 4, NT_GNU_BUILD_ID}, "GNU", {0xde, 0xad, 0xbe, 0xef}},
		.code = {0xc7, 0x07, 0x43, 0x77, 0, 0, 0xc3}, /* movl $30531,(%rdi); ret */
	};

	memcpy(f.strings, strings, sizeof(strings));
	return f;
}

struct fixture {
	struct names names;
	struct arena arena;
	struct reader r;
	const struct elf_object *o;
	int fd;
};

static void read_image(struct fixture *x, const void *data, size_t size)
{
	memset(x, 0, sizeof(*x));
	x->fd = file_of(data, size);
	reader_open(&x->r, x->fd, size);
	x->o = elf_object_read(&x->r, &x->names, &x->arena);
}

static void done(struct fixture *x)
{
	close(x->fd);
	names_free(&x->names);
	arena_free(&x->arena);
}

static void whole_object_is_read(void **state)
{
	struct image f = whole();
	struct fixture x;

	(void)state;
	read_image(&x, &f, sizeof(f));
	assert_int_equal(x.o->fault, ELF_FINE);
	assert_int_equal(x.o->n_dependency, 2);
	assert_string_equal(x.o->dependency[0].name, "libc.so.6");
	assert_string_equal(x.o->dependency[1].name, "libm.so.6");
	assert_string_equal(x.o->soname, "libnccl.so.2");
	assert_string_equal(x.o->rpath, "/opt/$LIB");
	assert_null(x.o->runpath);
	assert_true(x.o->bind_now);
	assert_true(x.o->flags_1 & DF_1_NODEFLIB);
	assert_int_equal(x.o->n_version_need, 2);
	assert_string_equal(x.o->version_need[0].version, "GLIBC_2.2.5");
	assert_false(x.o->version_need[0].weak);
	assert_true(x.o->version_need[1].weak);
	assert_false(x.o->has_version_def);
	assert_string_equal(elf_build_id(&x.r, x.o, &x.arena), "deadbeef");
	done(&x);
}

static void symbols_and_relocations_are_read(void **state)
{
	struct image f = whole();
	struct elf_relocations relocations;
	struct elf_symbols symbols;
	struct fixture x;

	(void)state;
	read_image(&x, &f, sizeof(f));
	assert_int_equal(elf_symbols_read(&x.r, x.o, &symbols), 0);
	assert_int_equal(symbols.n, 4);
	assert_string_equal(elf_symbol_name(&symbols, 1), "ncclGetVersion");
	assert_true(elf_symbol_defined(&symbols, 1));
	assert_false(elf_symbol_defined(&symbols, 2));
	assert_string_equal(elf_symbol_name(&symbols, 3), ""); /* outside the strings */
	assert_int_equal(elf_stored_constant(&x.r, x.o, &symbols, "ncclGetVersion"), 30531);
	assert_int_equal(elf_stored_constant(&x.r, x.o, &symbols, "used"), 0);
	assert_int_equal(elf_relocations_read(&x.r, x.o, &relocations), 0);
	assert_int_equal(relocations.n, 1); /* one symbol, one class */
	assert_int_equal(relocations.at[0].symbol, 2);
	assert_int_equal(relocations.at[0].class, RELOC_GOT);
	elf_relocations_free(&relocations);
	elf_symbols_free(&symbols);
	done(&x);
}

static void table_with_an_absurd_count_is_refused(void **state)
{
	struct image f = whole();
	struct elf_symbols symbols;
	struct fixture x;

	(void)state;
	f.hash[1] = 0x7fffffff;
	read_image(&x, &f, sizeof(f));
	assert_int_equal(elf_symbols_read(&x.r, x.o, &symbols), -1);
	assert_int_equal(symbols.n, 0);
	done(&x);
}

static void assert_fault_of(const struct image *f, const char *wanted)
{
	struct fixture x;

	read_image(&x, f, sizeof(*f));
	assert_string_equal(elf_fault_code(x.o->fault), wanted);
	done(&x);
}

/* The file with one field changed has this fault. */
#define assert_fault(change, wanted)          \
	do {                                  \
		f = whole();                  \
		change;                       \
		assert_fault_of(&f, #wanted); \
	} while (0)

static void each_wrong_field_has_its_fault(void **state)
{
	struct image f;

	(void)state;
	assert_fault(f.e.e_ident[1] = 'e', ELF_NO_MAGIC);
	assert_fault(f.e.e_ident[EI_CLASS] = ELFCLASS32, ELF_OTHER_CLASS);
	assert_fault(f.e.e_ident[EI_DATA] = ELFDATA2MSB, ELF_BYTE_ORDER);
	assert_fault(f.e.e_ident[EI_VERSION] = 0, ELF_IDENT_VERSION);
	assert_fault(f.e.e_ident[EI_OSABI] = ELFOSABI_FREEBSD, ELF_OSABI);
	assert_fault(f.e.e_ident[EI_ABIVERSION] = 1, ELF_ABI_VERSION);
	assert_fault(f.e.e_ident[15] = 1, ELF_PADDING);
	assert_fault(f.e.e_version = 2, ELF_VERSION);
	assert_fault(f.e.e_type = ET_REL, ELF_TYPE);
	assert_fault(f.e.e_phentsize = 32, ELF_PHENTSIZE);
	assert_fault(f.e.e_phoff = UINT64_MAX, ELF_PHDRS_OUTSIDE);
	assert_fault(f.e.e_phnum = 0xffff, ELF_PHDRS_OUTSIDE);
	assert_fault(f.e.e_phnum = 0, ELF_NO_LOAD);
	assert_fault(f.load.p_align = 3, ELF_LOAD_ALIGN);
	assert_fault(f.load.p_vaddr = 1, ELF_LOAD_ALIGN);
	assert_fault(f.dynamic.p_filesz = 0, ELF_NO_DYNAMIC);
	assert_fault(f.dynamic.p_vaddr = 1 << 30, ELF_DAMAGED);
	assert_fault(f.dyn[4].d_un.d_ptr = 1 << 30, ELF_DAMAGED);  /* DT_STRTAB */
	assert_fault(f.dyn[0].d_un.d_val = 1 << 30, ELF_DAMAGED);  /* DT_NEEDED */
	assert_fault(f.dyn[10].d_un.d_ptr = 1 << 30, ELF_DAMAGED); /* DT_VERNEED */
	assert_fault((f.load.p_filesz = 1 << 20, f.load.p_memsz = 1 << 21), ELF_TRUNCATED);
	assert_fault(f.need.va[0].vna_next = 0xffffffff, ELF_DAMAGED);
	assert_fault((f.need.vn.vn_cnt = 0, f.need.vn.vn_next = 1, f.dyn[11].d_un.d_val = UINT64_MAX), ELF_DAMAGED);
}

static void of_a_tag_that_stands_twice_the_last_counts(void **state)
{
	struct image f = whole();
	struct fixture x;

	(void)state;
	f.dyn[13] = (Elf64_Dyn){DT_SONAME, {S_LIBM}};
	read_image(&x, &f, sizeof(f));
	assert_string_equal(x.o->soname, "libm.so.6");
	done(&x);
}

static void size_of_the_strings_does_not_matter(void **state)
{
	struct image f = whole();
	struct fixture x;

	(void)state;
	f.dyn[5].d_un.d_val = 1; /* DT_STRSZ: ld.so does not look at it */
	read_image(&x, &f, sizeof(f));
	assert_int_equal(x.o->fault, ELF_FINE);
	assert_string_equal(x.o->soname, "libnccl.so.2");
	done(&x);
}

static void cut_files_are_faults(void **state)
{
	struct image f = whole();
	struct fixture x;
	size_t n;

	(void)state;
	/* Everything up to the last string that is used has to be there. */
	for (n = 0; n < AT(strings) + S_V2; n++) {
		read_image(&x, &f, n);
		assert_int_not_equal(x.o->fault, ELF_FINE);
		if (n < sizeof(Elf64_Ehdr))
			assert_int_equal(x.o->fault, ELF_SHORT);
		done(&x);
	}
}

/* ---- texts ---- */

struct hits {
	unsigned n;
	uint64_t offset[16];
};

static void take(void *context, const struct scan_hit *hit)
{
	struct hits *h = context;

	assert_true(h->n < 16);
	assert_memory_equal(hit->at, "nccl", 4);
	h->offset[h->n++] = hit->offset;
}

static struct hits scan(struct fixture *x)
{
	static const char *const needle[] = {"nccl"};
	struct hits h = {0};

	assert_int_equal(elf_scan(&x->r, x->o, needle, 1, take, &h), 0);
	return h;
}

static void fatbin(char *to, uint64_t size)
{
	memcpy(to, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	memcpy(to + 8, &size, sizeof(size));
}

static void texts_are_found_once_and_not_in_device_code(void **state)
{
	struct image f = whole();
	size_t start = 8 - AT(text) % 8; /* blocks are aligned */
	struct fixture x;
	struct hits h;

	(void)state;
	memcpy(f.text, "nccl", 4);
	fatbin(f.text + start, 64);
	memcpy(f.text + start + 30, "nccl", 4); /* inside */
	memcpy(f.text + start + 90, "nccl", 4); /* behind */
	read_image(&x, &f, sizeof(f));
	h = scan(&x);
	/* "ncclGetVersion" and "libnccl.so.2" are in the dynamic strings, which do not count. */
	assert_int_equal(h.n, 2);
	assert_int_equal(h.offset[0], AT(text));
	assert_int_equal(h.offset[1], AT(text) + start + 90);
	done(&x);
}

static void block_that_lies_about_its_size_hides_nothing(void **state)
{
	struct image f = whole();
	size_t start = 8 - AT(text) % 8;
	struct fixture x;

	(void)state;
	fatbin(f.text + start, UINT64_MAX - 8);
	memcpy(f.text + start + 30, "nccl", 4);
	read_image(&x, &f, sizeof(f));
	assert_int_equal(scan(&x).n, 1);
	done(&x);
}

static void overlapping_segments_are_scanned_once(void **state)
{
	struct image f = whole();
	struct fixture x;

	(void)state;
	f.note = f.load;
	memcpy(f.text + 40, "nccl", 4);
	read_image(&x, &f, sizeof(f));
	assert_int_equal(x.o->n_load, 2);
	assert_int_equal(scan(&x).n, 1);
	done(&x);
}

static void text_on_the_border_of_a_chunk_is_found_once(void **state)
{
	enum { LARGE = 3 << 20 };
	struct image f = whole();
	char *data = xmalloc(LARGE);
	struct fixture x;
	struct hits h;
	size_t at;

	(void)state;
	f.load.p_filesz = f.load.p_memsz = LARGE;
	for (at = (1 << 20) - 4; at <= (1 << 20) + 8192; at += 1365) {
		memset(data, 'x', LARGE);
		memcpy(data, &f, sizeof(f));
		memcpy(data + at, "nccl", 4);
		read_image(&x, data, LARGE);
		h = scan(&x);
		assert_int_equal(h.n, 1);
		assert_int_equal(h.offset[0], at);
		done(&x);
	}
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_object_is_read), cmocka_unit_test(symbols_and_relocations_are_read),
		cmocka_unit_test(table_with_an_absurd_count_is_refused), cmocka_unit_test(each_wrong_field_has_its_fault),
		cmocka_unit_test(of_a_tag_that_stands_twice_the_last_counts),
		cmocka_unit_test(size_of_the_strings_does_not_matter), cmocka_unit_test(cut_files_are_faults),
		cmocka_unit_test(texts_are_found_once_and_not_in_device_code),
		cmocka_unit_test(block_that_lies_about_its_size_hides_nothing),
		cmocka_unit_test(overlapping_segments_are_scanned_once),
		cmocka_unit_test(text_on_the_border_of_a_chunk_is_found_once),
	};

	return run_all(tests);
}
