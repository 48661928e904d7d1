#include "elf/note.h"

#include <endian.h>
#include <jansson.h>
#include <stdlib.h>

enum { DLOPEN_TYPE = 0x407c0c0a, TEXT_MOST = 1 << 20, FEATURES_MOST = 4096 };

/* The notes of a file in the making. */
struct collection {
	struct names *names;
	struct arena *arena;
	VEC(struct dlopen_note) note;
	const char *damage;
};

static struct dlopen_note feature_of(const json_t *feature, struct names *names, struct arena *arena)
{
	struct dlopen_note out = {0};
	const json_t *soname = json_object_get(feature, "soname");
	const char *text;
	size_t i;

	out.name = arena_alloc(arena, json_array_size(soname) * sizeof(*out.name));
	for (i = 0; i < json_array_size(soname); i++)
		if ((text = json_string_value(json_array_get(soname, i))) && *text)
			out.name[out.n++] = names_add(names, text);
	if ((text = json_string_value(json_object_get(feature, "feature"))))
		out.feature = names_add(names, text);
	if ((text = json_string_value(json_object_get(feature, "priority"))))
		out.priority = names_add(names, text);
	return out;
}

/* A note's text: a JSON array of features. */
static void take_text(const char *text, struct collection *out)
{
	json_error_t error;
	json_t *array = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	size_t i, n = json_array_size(array);

	if (!json_is_array(array) || n > FEATURES_MOST - out->note.n) {
		if (!out->damage)
			out->damage = !array ? arena_printf(out->arena, "a dlopen note that is no JSON: %s", error.text)
				      : json_is_array(array) ? "more dlopen notes than are believed"
				      : "a dlopen note that is no list of features";
		json_decref(array);
		return;
	}
	for (i = 0; i < n; i++)
		vec_push(&out->note, feature_of(json_array_get(array, i), out->names, out->arena));
	json_decref(array);
}

static bool is_dlopen_note(struct reader *r, uint64_t at, const Elf64_Nhdr *nh)
{
	char owner[4];

	return le32toh(nh->n_type) == DLOPEN_TYPE && le32toh(nh->n_namesz) == 4 &&
	       reader_at(r, at + sizeof(*nh), owner, 4) && !memcmp(owner, "FDO", 4);
}

static void read_segment(struct reader *r, uint64_t at, uint64_t end, struct collection *out)
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
				take_text(text, out);
			}
			free(text);
		}
		at = (desc + size + 3) & ~3ull;
	}
}

void elf_dlopen_notes(struct reader *r, const struct elf_object *o, struct names *names, struct arena *arena,
		      struct dlopen_notes *out)
{
	struct collection c = {.names = names, .arena = arena};
	size_t i;

	for (i = 0; i < o->n_note; i++)
		read_segment(r, o->note_offset[i], o->note_offset[i] + o->note_size[i], &c);
	*out = (struct dlopen_notes){.n = c.note.n, .damage = c.damage};
	out->at = arena_alloc(arena, c.note.n * sizeof(*out->at));
	if (c.note.n)
		memcpy(out->at, c.note.at, c.note.n * sizeof(*out->at));
	vec_free(&c.note);
}
