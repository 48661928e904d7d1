#include "elf/note.h"

#include <endian.h>
#include <jansson.h>
#include <stdlib.h>

enum { DLOPEN_TYPE = 0x407c0c0a, TEXT_MOST = 1 << 20, FEATURES_MOST = 4096 };

static void take_feature(const json_t *feature, struct names *names, struct arena *arena, struct dlopen_note *out)
{
	const json_t *soname = json_object_get(feature, "soname");
	const char *text;
	size_t i;

	out->name = arena_alloc(arena, json_array_size(soname) * sizeof(*out->name));
	for (i = 0; i < json_array_size(soname); i++)
		if ((text = json_string_value(json_array_get(soname, i))) && *text)
			out->name[out->n++] = names_add(names, text);
	if ((text = json_string_value(json_object_get(feature, "feature"))))
		out->feature = names_add(names, text);
	if ((text = json_string_value(json_object_get(feature, "priority"))))
		out->priority = names_add(names, text);
}

/* A note's text: a JSON array of features. */
static void take_text(const char *text, struct names *names, struct arena *arena, struct dlopen_notes *out)
{
	json_error_t error;
	json_t *array = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	struct dlopen_note *more;
	size_t i, n = json_array_size(array);

	if (!json_is_array(array) || n > FEATURES_MOST) {
		out->damage = array ? "a dlopen note that is no list of features"
				    : arena_printf(arena, "a dlopen note that is no JSON: %s", error.text);
		json_decref(array);
		return;
	}
	more = arena_alloc(arena, (out->n + n) * sizeof(*more));
	if (out->n)
		memcpy(more, out->at, out->n * sizeof(*more));
	out->at = more;
	for (i = 0; i < n; i++)
		take_feature(json_array_get(array, i), names, arena, &out->at[out->n++]);
	json_decref(array);
}

static bool is_dlopen_note(struct reader *r, uint64_t at, const Elf64_Nhdr *nh)
{
	char owner[4];

	return le32toh(nh->n_type) == DLOPEN_TYPE && le32toh(nh->n_namesz) == 4 &&
	       reader_at(r, at + sizeof(*nh), owner, 4) && !memcmp(owner, "FDO", 4);
}

static void read_segment(struct reader *r, uint64_t at, uint64_t end, struct names *names, struct arena *arena,
			 struct dlopen_notes *out)
{
	Elf64_Nhdr nh;

	while (at < end && end - at >= sizeof(nh) && reader_at(r, at, &nh, sizeof(nh))) {
		uint64_t size = le32toh(nh.n_descsz);
		uint64_t desc = at + sizeof(nh) + (((uint64_t)le32toh(nh.n_namesz) + 3) & ~3ull);
		char *text;

		if (desc > end || size > end - desc)
			return;
		if (is_dlopen_note(r, at, &nh) && size <= TEXT_MOST) {
			text = xmalloc(size + 1);
			if (reader_at(r, desc, text, size)) {
				text[size] = '\0';
				take_text(text, names, arena, out);
			}
			free(text);
		}
		at = (desc + size + 3) & ~3ull;
	}
}

void elf_dlopen_notes(struct reader *r, const struct elf_object *o, struct names *names, struct arena *arena,
		      struct dlopen_notes *out)
{
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < o->n_note; i++)
		read_segment(r, o->note_offset[i], o->note_offset[i] + o->note_size[i], names, arena, out);
}
