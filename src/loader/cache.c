#include "loader/cache.h"

#include <elf.h>
#include <endian.h>
#include <stdlib.h>

struct new_header {
	char magic[20]; /* "glibc-ld.so.cache1.1" */
	uint32_t n, strings;
	uint8_t flags, pad[3];
	uint32_t extension;
	uint32_t unused[3];
};

struct new_entry {
	int32_t flags;
	uint32_t key, value, osversion;
	uint64_t hwcap;
};

struct old_entry {
	int32_t flags;
	uint32_t key, value;
};

enum { OLD_HEADER = 16, EXTENSION_MAGIC = 0xEAA42174 };

struct ld_cache {
	const unsigned char *data; /* of the file, ends in a NUL of ours */
	size_t size;
	const unsigned char *entries;
	size_t n;
	bool old;
	const unsigned char *strings; /* offsets of keys and values count from here */
	size_t strings_size;
	const unsigned char *capability; /* u32 file offsets of names */
	size_t n_capability;
	const char *generator;
};

static const char old_magic[] = "ld.so-1.7.0", new_magic[] = "glibc-ld.so.cache1.1";

static void read_extension(struct ld_cache *c, uint32_t at, struct arena *arena)
{
	uint32_t head[2], i;
	const unsigned char *generator = NULL;
	size_t n_generator = 0;

	if (!at || at % 4 || at > c->size || c->size - at < sizeof(head))
		return;
	memcpy(head, c->data + at, sizeof(head));
	if (le32toh(head[0]) != EXTENSION_MAGIC)
		return;
	for (i = 0; i < le32toh(head[1]); i++) {
		uint32_t section[4], offset, size; /* tag, flags, offset, size */

		if ((c->size - at - sizeof(head)) / sizeof(section) <= i)
			break;
		memcpy(section, c->data + at + sizeof(head) + i * sizeof(section), sizeof(section));
		offset = le32toh(section[2]);
		size = le32toh(section[3]);
		if (offset > c->size || size > c->size - offset)
			break;
		if (le32toh(section[0]) == 0) {
			generator = c->data + offset;
			n_generator = size;
		} else if (le32toh(section[0]) == 1 && size && size % 4 == 0) {
			c->capability = c->data + offset;
			c->n_capability = size / 4;
		}
	}
	if (generator) /* only once: sections may overlap */
		c->generator = arena_strndup(arena, (const char *)generator, n_generator);
}

static struct ld_cache *parse_new(const unsigned char *data, size_t size, size_t at, struct arena *arena,
				  const char **why)
{
	struct ld_cache *c = arena_new(arena, struct ld_cache);
	struct new_header h;

	if (size - at < sizeof(h)) {
		*why = "shorter than its header";
		return NULL;
	}
	memcpy(&h, data + at, sizeof(h));
	if (h.flags && (h.flags & 3) != 2) {
		*why = "another byte order";
		return NULL;
	}
	c->data = data;
	c->size = size;
	c->entries = data + at + sizeof(h);
	c->n = le32toh(h.n);
	if (c->n > (size - at - sizeof(h)) / sizeof(struct new_entry)) {
		*why = "more entries than the file can hold";
		return NULL;
	}
	c->strings = data + at;
	c->strings_size = size - at;
	read_extension(c, le32toh(h.extension), arena);
	return c;
}

static struct ld_cache *parse_old(const unsigned char *data, size_t size, struct arena *arena,
				  const char **why)
{
	struct ld_cache *c;
	uint32_t n;
	size_t end;

	memcpy(&n, data + 12, sizeof(n));
	n = le32toh(n);
	if (n > (size - OLD_HEADER) / sizeof(struct old_entry)) {
		*why = "more entries than the file can hold";
		return NULL;
	}
	end = OLD_HEADER + n * sizeof(struct old_entry);
	end = (end + 7) & ~(size_t)7; /* a new cache may follow, aligned for a u64 */
	if (size > end && size - end >= sizeof(struct new_header) &&
	    !memcmp(data + end, new_magic, sizeof(new_magic) - 1))
		return parse_new(data, size, end, arena, why);
	c = arena_new(arena, struct ld_cache);
	c->data = data;
	c->size = size;
	c->old = true;
	c->entries = data + OLD_HEADER;
	c->n = n;
	c->strings = data + OLD_HEADER + n * sizeof(struct old_entry);
	c->strings_size = size - (size_t)(c->strings - data);
	return c;
}

struct ld_cache *ld_cache_parse(const unsigned char *data, size_t size, struct arena *arena,
				const char **why)
{
	if (size > OLD_HEADER && !memcmp(data, old_magic, sizeof(old_magic) - 1))
		return parse_old(data, size, arena, why);
	if (size > sizeof(struct new_header) && !memcmp(data, new_magic, sizeof(new_magic) - 1))
		return parse_new(data, size, 0, arena, why);
	*why = "no cache of a known format";
	return NULL;
}

const char *ld_cache_generator(const struct ld_cache *c)
{
	return c->generator;
}

static struct new_entry entry_at(const struct ld_cache *c, size_t i)
{
	struct new_entry e = {0};

	if (c->old) {
		struct old_entry o;

		memcpy(&o, c->entries + i * sizeof(o), sizeof(o));
		e.flags = o.flags;
		e.key = o.key;
		e.value = o.value;
	} else {
		memcpy(&e, c->entries + i * sizeof(e), sizeof(e));
	}
	e.flags = (int32_t)le32toh((uint32_t)e.flags);
	e.key = le32toh(e.key);
	e.value = le32toh(e.value);
	e.hwcap = le64toh(e.hwcap);
	return e;
}

/* A string of the cache, or NULL when it lies outside.  One without an end runs
 * up to the end of the file, as in the loader, where zeros fill the page. */
static const char *string_at(const struct ld_cache *c, uint32_t offset)
{
	return offset < c->strings_size ? (const char *)c->strings + offset : NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A char as the machine's compiler has it: signed on x86-64, not on AArch64. */
static int plain_char(char c, uint16_t machine)
{
	return machine == EM_X86_64 ? (signed char)c : (unsigned char)c;
}

/* The value of the digits at *S, which is left behind them.  An int that
 * overflows in the loader wraps; so does this. */
static int read_number(const char **s)
{
	unsigned value = 0;

	while (is_digit(**s))
		value = value * 10 + (unsigned)(*(*s)++ - '0');
	return (int)value;
}

/* _dl_cache_libcmp: runs of digits compare as numbers, so libm.so.06 is
 * libm.so.6.  The sort and the search use it alike. */
static int compare(const char *a, const char *b, uint16_t machine)
{
	while (*a) {
		if (is_digit(*a) && is_digit(*b)) {
			int va = read_number(&a), vb = read_number(&b);

			if (va != vb)
				return va < vb ? -1 : 1;
		} else if (is_digit(*a) || is_digit(*b)) {
			return is_digit(*a) ? 1 : -1;
		} else if (*a != *b) {
			return plain_char(*a, machine) - plain_char(*b, machine);
		} else {
			a++;
			b++;
		}
	}
	return -plain_char(*b, machine);
}

static bool flags_fit(int32_t flags, uint16_t machine)
{
	return flags == (machine == EM_AARCH64 ? 0xa03 : 0x303);
}

static bool is_extension(uint64_t hwcap)
{
	return hwcap >> 42 == 1ull << (62 - 42);
}

/* Rank of an extension entry's capability, lower is better; 0 = not active. */
static size_t rank_of(const struct ld_cache *c, uint64_t hwcap, const struct hwcaps *hw)
{
	uint32_t index = (uint32_t)hwcap, offset;
	const char *name;
	size_t i;

	if (index >= c->n_capability)
		return 0;
	memcpy(&offset, c->capability + (size_t)index * 4, sizeof(offset));
	offset = le32toh(offset);
	if (offset >= c->size)
		return 0;
	name = (const char *)c->data + offset;
	for (i = 0; i < hw->n_subdir; i++)
		if (!strcmp(hw->subdir[i], name))
			return i + 1;
	return 0;
}

static bool plain_fits(uint64_t hwcap, const struct ld_facts *facts, const struct hwcaps *hw)
{
	const uint64_t platforms = 0xfull << 48;

	if (facts->version >= 240)
		return !hwcap;
	if (hwcap & ~hw->legacy_mask)
		return false;
	return !(hwcap & platforms) || (hwcap & platforms) == hw->platform;
}

/* The first of the entries with this key, or c->n. */
static size_t first_entry(const struct ld_cache *c, const char *name, uint16_t machine)
{
	size_t low = 0, high = c->n;

	while (low < high) { /* descending order */
		size_t mid = low + (high - low) / 2;
		const char *key = string_at(c, entry_at(c, mid).key);
		int order;

		if (!key)
			return c->n;
		order = compare(name, key, machine);
		if (order < 0)
			low = mid + 1;
		else if (order > 0)
			high = mid;
		else {
			while (mid > 0) {
				key = string_at(c, entry_at(c, mid - 1).key);
				if (!key || compare(name, key, machine))
					break;
				mid--;
			}
			return mid;
		}
	}
	return c->n;
}

struct ld_cache_hit ld_cache_lookup(const struct ld_cache *c, const char *name,
				    const struct ld_facts *facts, const struct hwcaps *hw)
{
	struct ld_cache_hit hit = {0};
	size_t i, best = 0;

	for (i = first_entry(c, name, facts->machine); i < c->n; i++) {
		struct new_entry e = entry_at(c, i);
		const char *key = string_at(c, e.key), *value = string_at(c, e.value);

		if (!key || compare(name, key, facts->machine))
			break;
		hit.capable |= e.hwcap != 0;
		if (!value || !flags_fit(e.flags, facts->machine))
			continue;
		if (!c->old && facts->glibc_hwcaps && is_extension(e.hwcap)) {
			size_t rank = rank_of(c, e.hwcap, hw);
			unsigned level = (unsigned)(e.hwcap >> 32) & 0x3ff;

			if (facts->machine == EM_X86_64 && !(level < 32 && hw->isa & (1u << level)))
				continue;
			if (rank && (!best || rank < best)) {
				best = rank;
				hit.path = value;
				hit.named = true;
			}
			continue;
		}
		if (best) /* extension entries come first: nothing better follows */
			break;
		if (!c->old && !plain_fits(e.hwcap, facts, hw))
			continue;
		hit.path = value;
		break;
	}
	return hit;
}
