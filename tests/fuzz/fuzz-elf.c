/* Everything that is read out of one file: object, symbols, relocations, identity, texts, notes, calls. */
#include "elf/code.h"
#include "elf/library.h"
#include "elf/note.h"
#include "elf/scan.h"
#include "elf/symbols.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long touched;

/* Reads all that it is given, so that the sanitizer sees what is not ours. */
static void touch(const char *s)
{
	if (s)
		touched += strlen(s);
}

static void take(void *context, const struct scan_hit *hit)
{
	const uint64_t *size = context;
	size_t i;

	if (hit->offset >= *size || hit->after > *size - hit->offset || hit->before > hit->offset)
		abort();
	for (i = 0; i < hit->after; i++)
		touched += hit->at[i];
	for (i = 1; i <= hit->before; i++)
		touched += hit->at[-(long)i];
}

static void touch_object(const struct elf_object *o)
{
	size_t i;

	touch(elf_fault_text(o->fault));
	touch(elf_fault_code(o->fault));
	touch(elf_machine_name(o->machine));
	touch(o->detail);
	touch(o->interp);
	touch(o->soname);
	touch(o->rpath);
	touch(o->runpath);
	for (i = 0; i < o->n_dependency; i++)
		touch(o->dependency[i].name);
	for (i = 0; i < o->n_version_need; i++) {
		touch(o->version_need[i].file);
		touch(o->version_need[i].version);
	}
	for (i = 0; i < o->n_version_def; i++)
		touch(o->version_def[i].version);
}

static void read_notes(struct reader *r, const struct elf_object *o, struct names *names, struct arena *arena)
{
	struct dlopen_notes notes;
	size_t i, k;

	elf_dlopen_notes(r, o, names, arena, &notes);
	touch(notes.damage);
	for (i = 0; i < notes.n; i++) {
		for (k = 0; k < notes.at[i].n; k++)
			touch(notes.at[i].name[k]);
		touch(notes.at[i].feature);
		touch(notes.at[i].priority);
	}
}

static void read_code(struct reader *r, const struct elf_object *o, const struct elf_symbols *s, struct names *names,
		      struct arena *arena)
{
	struct elf_opens opens;
	size_t i;

	elf_code_opens(r, o, s, names, arena, &opens);
	touch(opens.note);
	for (i = 0; i < opens.n; i++) {
		touch(opens.at[i].function);
		touch(opens.at[i].name);
		touch(opens.at[i].in);
		touch(opens.at[i].via_in);
	}
}

static void read_tables(struct reader *r, const struct elf_object *o, struct names *names, struct arena *arena)
{
	static const char *const needles[] = {"nccl", "NCCL version ", "lib.so", "\x50\xed"};
	struct elf_relocations relocations;
	struct elf_symbols symbols;
	size_t i;

	touch(elf_build_id(r, o, arena));
	if (elf_symbols_read(r, o, &symbols) == 0) {
		for (i = 0; i < symbols.n; i++)
			touch(elf_symbol_name(&symbols, i));
		touched += elf_stored_constant(r, o, &symbols, "ncclGetVersion");
		read_code(r, o, &symbols, names, arena);
		elf_symbols_free(&symbols);
	}
	if (elf_relocations_read(r, o, &relocations) == 0) {
		for (i = 0; i < relocations.n; i++)
			touched += relocations.at[i].symbol;
		elf_relocations_free(&relocations);
	}
	elf_scan(r, o, needles, sizeof(needles) / sizeof(needles[0]), take, &r->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct names names = {0};
	struct arena arena = {0};
	const struct elf_object *o;
	struct reader r;

	if (fd < 0 && (fd = memfd_create("fuzz", MFD_CLOEXEC)) < 0)
		abort();
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	reader_open(&r, fd, size);
	o = elf_object_read(&r, &names, &arena);
	touch_object(o);
	if (!o->fault) {
		read_tables(&r, o, &names, &arena);
		read_notes(&r, o, &names, &arena);
	}
	names_free(&names);
	arena_free(&arena);
	return 0;
}
