#include "base/names.h"

#include <stdlib.h>

/* Open addressing with linear probing: nothing is ever taken out of either
 * table, which is what makes this the simplest thing that is fast. */

struct names_slot {
	const char *name;
	uint32_t hash, length;
};

struct name_map_slot {
	const char *name;
	void *value;
};

static uint32_t hash_text(const char *s, size_t n)
{
	uint32_t h = 2166136261u;

	while (n--)
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h;
}

static size_t hash_pointer(const void *p)
{
	return (size_t)(((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15ull >> 20);
}

static void names_enlarge(struct names *pool)
{
	size_t room = pool->room ? pool->room * 2 : 1024, i, k;
	struct names_slot *slot = xmalloc(room * sizeof(*slot));

	memset(slot, 0, room * sizeof(*slot));
	for (i = 0; i < pool->room; i++) {
		if (!pool->slot[i].name)
			continue;
		for (k = pool->slot[i].hash & (room - 1); slot[k].name; k = (k + 1) & (room - 1))
			;
		slot[k] = pool->slot[i];
	}
	free(pool->slot);
	pool->slot = slot;
	pool->room = room;
}

const char *names_add_n(struct names *pool, const char *s, size_t n)
{
	uint32_t h = hash_text(s, n);
	struct names_slot *slot;
	size_t k;

	if (pool->n * 2 >= pool->room)
		names_enlarge(pool);
	for (k = h & (pool->room - 1);; k = (k + 1) & (pool->room - 1)) {
		slot = &pool->slot[k];
		if (!slot->name)
			break;
		if (slot->hash == h && slot->length == n && !memcmp(slot->name, s, n))
			return slot->name;
	}
	slot->name = arena_strndup(&pool->arena, s, n);
	slot->hash = h;
	slot->length = (uint32_t)n;
	pool->n++;
	return slot->name;
}

const char *names_add(struct names *pool, const char *s)
{
	return names_add_n(pool, s, strlen(s));
}

void names_free(struct names *pool)
{
	free(pool->slot);
	arena_free(&pool->arena);
	memset(pool, 0, sizeof(*pool));
}

static struct name_map_slot *name_map_find(const struct name_map *m, const char *name)
{
	size_t k = hash_pointer(name) & (m->room - 1);

	while (m->slot[k].name && m->slot[k].name != name)
		k = (k + 1) & (m->room - 1);
	return &m->slot[k];
}

void *name_map_get(const struct name_map *m, const char *name)
{
	return m->room ? name_map_find(m, name)->value : NULL;
}

void name_map_put(struct name_map *m, const char *name, void *value)
{
	struct name_map_slot *slot;

	if (m->n * 2 >= m->room) {
		struct name_map bigger = {.room = m->room ? m->room * 2 : 64, .n = m->n};
		size_t i;

		bigger.slot = xmalloc(bigger.room * sizeof(*bigger.slot));
		memset(bigger.slot, 0, bigger.room * sizeof(*bigger.slot));
		for (i = 0; i < m->room; i++)
			if (m->slot[i].name)
				*name_map_find(&bigger, m->slot[i].name) = m->slot[i];
		free(m->slot);
		*m = bigger;
	}
	slot = name_map_find(m, name);
	if (!slot->name) {
		slot->name = name;
		m->n++;
	}
	slot->value = value;
}

void name_map_free(struct name_map *m)
{
	free(m->slot);
	memset(m, 0, sizeof(*m));
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
