/* A scan for references: the bytes of a branch or a load whose operand comes out
 * at one of a few addresses.  Decoding everything would cost a hundred times as
 * much; what is found here is decoded afterwards, with its function. */
#include "elf/code_internal.h"

#include "elf/scan.h"

#include <endian.h>
#include <stdlib.h>

enum {
	CHUNK = 256 * 1024,
	MARGIN = 4096,                 /* what a match may look at on either side */
	AHEAD = 512,                   /* AArch64: instructions from adrp to the load */
	SPANS_MOST = 4096,
	BLOOM = 32768,                 /* bits */
};
#define SCANNED_MOST ((uint64_t)4 << 30) /* bytes a file, over all scans */

struct stub { /* what may be one */
	uint64_t begin, jump;
	uint32_t id;
};

struct find {
	struct code *c;
	struct code_references *f;
	struct code_target *target; /* the ones of this scan, sorted */
	size_t n;
	uint64_t low, high;
	unsigned char bloom[BLOOM / 8]; /* of the low bits of the targets */
	bool *met;                   /* per target: referred to */
	VEC(struct code_target) more; /* targets of the second scan: PLT stubs that turned up */
	VEC(struct stub) stub;
	/* the chunk */
	const unsigned char *data;
	size_t lead, size, limit; /* matches begin in [lead, size), bytes reach to limit */
	uint64_t vaddr;           /* of data[0] */
};

static int by_address(const void *a, const void *b)
{
	const struct code_target *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int by_place(const void *a, const void *b)
{
	const struct code_reference *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

static const struct code_target *target_at(const struct find *s, uint64_t at)
{
	struct code_target key = {.at = at};

	return bsearch(&key, s->target, s->n, sizeof(key), by_address);
}

static void found(struct find *s, uint64_t at, const struct code_target *t, enum reference_kind kind)
{
	s->met[t - s->target] = true;
	if (s->f->ref.n < SITES_MOST)
		vec_push(&s->f->ref, ((struct code_reference){at, t->id, (uint8_t)kind}));
	else
		code_note(s->c, "it calls dlopen and its like too often: not all calls were looked at");
}

static uint32_t word_at(const unsigned char *p)
{
	uint32_t w;

	memcpy(&w, p, sizeof(w));
	return le32toh(w);
}

/* A jump through a slot is a stub of the PLT if it begins a stub's slot and goes
 * on as linkers fill one: a push for lazy binding, or padding.  Otherwise, as
 * -fno-plt makes it, a tail call. */
static void x86_jump_through_slot(struct find *s, size_t at, const struct code_target *t)
{
	const unsigned char *p = s->data + at, *next = p + 6;
	size_t begin = at;
	bool filler;

	if (begin && s->data[begin - 1] == 0xf2) /* bnd */
		begin--;
	if (begin >= 4 && !memcmp(s->data + begin - 4, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		begin -= 4;
	filler = (size_t)(next - s->data) + 2 > s->limit || *next == 0x68 || *next == 0xcc || *next == 0x90 ||
		 (next[0] == 0x66 && (next[1] == 0x90 || next[1] == 0x0f || next[1] == 0x2e)) ||
		 (next[0] == 0x0f && next[1] == 0x1f);
	if (!filler || (s->vaddr + begin) % 8) {
		found(s, s->vaddr + at, t, REF_JUMP);
		return;
	}
	vec_push(&s->more, ((struct code_target){s->vaddr + begin, t->id, false}));
	vec_push(&s->stub, ((struct stub){s->vaddr + begin, s->vaddr + at, t->id}));
}

/* The four bytes at I are a displacement that leads to TARGET. */
static void x86_match(struct find *s, size_t i, const struct code_target *t)
{
	const unsigned char *p = s->data + i;
	uint64_t at = s->vaddr + i;
	bool rip = i >= 3 && (p[-1] & 0xc7) == 0x05;

	if (i < 3)
		return;
	if (t->slot) {
		if (p[-2] == 0xff && p[-1] == 0x15)
			found(s, at - 2, t, REF_CALL);
		else if (p[-2] == 0xff && p[-1] == 0x25)
			x86_jump_through_slot(s, i - 2, t);
		else if (rip && p[-2] == 0x8b && (p[-3] & 0xf8) == 0x48)
			found(s, at - 3, t, REF_LOAD);
		else if (p[-2] == 0xff && p[-1] == 0x35)
			found(s, at - 2, t, REF_LOAD);
	} else if (p[-1] == 0xe8) {
		found(s, at - 1, t, REF_CALL);
	} else if (p[-1] == 0xe9) {
		found(s, at - 1, t, REF_JUMP);
	} else if (p[-2] == 0x0f && (p[-1] & 0xf0) == 0x80) {
		found(s, at - 2, t, REF_JUMP);
	} else if (rip && p[-2] == 0x8d && (p[-3] & 0xf8) == 0x48) {
		found(s, at - 3, t, REF_ADDRESS);
	}
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef uint32_t four __attribute__((vector_size(16)));

/* Does one of the sixteen displacements that begin here lead between LOW and
 * LOW + SPAN, modulo 2^32?  BIAS is the place of the first, less LOW. */
static bool any_leads_there(const unsigned char *p, uint32_t bias, uint32_t span)
{
	four place = {bias, bias + 4, bias + 8, bias + 12}, limit = {span, span, span, span}, hit, d[4];
	uint64_t half[2];

	memcpy(&d[0], p, sizeof(d[0]));
	memcpy(&d[1], p + 1, sizeof(d[1]));
	memcpy(&d[2], p + 2, sizeof(d[2]));
	memcpy(&d[3], p + 3, sizeof(d[3]));
	hit = (four)(d[0] + place <= limit) | (four)(d[1] + place + 1 <= limit) | (four)(d[2] + place + 2 <= limit) |
	      (four)(d[3] + place + 3 <= limit);
	memcpy(half, &hit, sizeof(half));
	return half[0] | half[1];
}
#else
static bool any_leads_there(const unsigned char *p, uint32_t bias, uint32_t span)
{
	(void)p, (void)bias, (void)span;
	return true;
}
#endif

static void scan_x86(struct find *s)
{
	uint64_t low = s->low - s->vaddr - 4, span = s->high - s->low;
	size_t i = s->lead, k, end = s->size + 4 < s->limit ? s->size : s->limit >= 4 ? s->limit - 3 : 0;

	/* The hot loop: almost never does anything come of it. */
	while (i < end) {
		size_t stop = i + 16 < end ? i + 16 : end;

		if (i + 20 <= s->limit && span < UINT32_MAX &&
		    !any_leads_there(s->data + i, (uint32_t)i - (uint32_t)low, (uint32_t)span)) {
			i = stop;
			continue;
		}
		for (k = i; k < stop; k++) {
			uint64_t t = k + (uint64_t)(int64_t)(int32_t)word_at(s->data + k) - low;
			const struct code_target *found_at;

			if (t <= span && (s->bloom[(t + s->low) % BLOOM / 8] >> (t + s->low) % 8 & 1) &&
			    (found_at = target_at(s, t + s->low)))
				x86_match(s, k, found_at);
		}
		i = stop;
	}
}

/* Short jumps to code: rare enough to be looked for around each target, and
 * ambiguous enough to need the decoder's word. */
static void scan_x86_short(struct find *s)
{
	size_t k;

	for (k = 0; k < s->n; k++) {
		uint64_t t = s->target[k].at, first = t > 130 ? t - 130 : 0, at;

		if (s->target[k].slot)
			continue;
		for (at = first; at < t + 126; at++) {
			uint64_t i = at - s->vaddr;

			if (at < s->vaddr + s->lead || i >= s->size || i + 2 > s->limit)
				continue;
			if ((s->data[i] == 0xeb || (s->data[i] & 0xf0) == 0x70) &&
			    at + 2 + (uint64_t)(int64_t)(int8_t)s->data[i + 1] == t)
				found(s, at, &s->target[k], REF_JUMP);
		}
	}
}

/* In a program at a fixed address below 4 GB an address is a number like any
 * other: movl $address,%reg, or into memory. */
static void scan_x86_absolute(struct find *s)
{
	size_t k;

	for (k = 0; s->c->o->type == ET_EXEC && k < s->n && k < 64; k++) {
		uint32_t value = htole32((uint32_t)s->target[k].at);
		const unsigned char *at = s->data + s->lead;

		while (!s->target[k].slot && s->target[k].at <= UINT32_MAX &&
		       (at = memmem(at, s->limit - (size_t)(at - s->data), &value, sizeof(value)))) {
			size_t i = (size_t)(at - s->data);

			if (i >= s->size)
				break;
			if (i >= 1 && (at[-1] & 0xf8) == 0xb8)
				found(s, s->vaddr + i - 1, &s->target[k], REF_ADDRESS);
			else if (i >= 2 && at[-2] == 0xc7 && (at[-1] & 0xf8) == 0xc0)
				found(s, s->vaddr + i - 3, &s->target[k], REF_ADDRESS);
			else if (i >= 3 && (at[-2] == 0xc7 || at[-3] == 0xc7 || (i >= 4 && at[-4] == 0xc7)))
				found(s, s->vaddr + i - 3, &s->target[k], REF_ADDRESS);
			at++;
		}
	}
}

/* adrp xN at I forms a page that has targets: which of them are loaded, or
 * formed, with xN afterwards?  The same register may by then hold something
 * else; the trace will notice. */
static void arm_page(struct find *s, size_t i, uint64_t page)
{
	uint32_t reg = word_at(s->data + i) & 31;
	size_t k, end = i + 4 + AHEAD * 4;
	const struct code_target *t;

	if (end > s->limit)
		end = s->limit;
	for (k = i + 4; k + 4 <= end; k += 4) {
		uint32_t w = word_at(s->data + k);
		bool load = (w & 0xffc00000) == 0xf9400000, add = (w & 0xffc00000) == 0x91000000;

		if ((w & 0x9f00001f) == (0x90000000 | reg)) /* the next one forms its own */
			break;
		if ((!load && !add) || (w >> 5 & 31) != reg)
			continue;
		t = target_at(s, page + (load ? (w >> 10 & 0xfff) * 8 : w >> 10 & 0xfff));
		if (!t || t->slot != load)
			continue;
		/* A stub of the PLT uses x16 and x17, which are made for that. */
		if (load && reg == 16 && (w & 31) == 17 && k == i + 4) {
			bool bti = i >= 4 && (word_at(s->data + i - 4) & 0xffffff3f) == 0xd503241f;

			vec_push(&s->more,
				 ((struct code_target){s->vaddr + i - (bti ? 4 : 0), t->id, false}));
			if (bti) /* a branch may go either way round it */
				vec_push(&s->more, ((struct code_target){s->vaddr + i, t->id, false}));
		} else {
			found(s, s->vaddr + k, t, load ? REF_LOAD : REF_ADDRESS);
		}
	}
}

static void scan_aarch64(struct find *s)
{
	uint64_t page = s->low & ~4095ull, pages = (s->high & ~4095ull) - page;
	size_t i = (s->lead + 3) & ~(size_t)3;

	for (; i < s->size && i + 4 <= s->limit; i += 4) {
		uint32_t w = word_at(s->data + i);
		uint64_t at = s->vaddr + i, to;
		const struct code_target *t;

		if ((w & 0x9f000000) == 0x90000000) {
			to = (at & ~4095ull) +
			     ((uint64_t)((int64_t)((uint64_t)(w >> 5 & 0x7ffff) << 45) >> 43 | (w >> 29 & 3)) << 12);
			if (to - page <= pages)
				arm_page(s, i, to);
			continue;
		}
		if ((w & 0x7c000000) == 0x14000000)
			to = at + (uint64_t)((int64_t)((uint64_t)(w & 0x3ffffff) << 38) >> 36);
		else if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000)
			to = at + (uint64_t)((int64_t)((uint64_t)(w >> 5 & 0x7ffff) << 45) >> 43);
		else if ((w & 0x7e000000) == 0x36000000)
			to = at + (uint64_t)((int64_t)((uint64_t)(w >> 5 & 0x3fff) << 50) >> 48);
		else
			continue;
		if (to - s->low > s->high - s->low || !(t = target_at(s, to)) || t->slot)
			continue;
		found(s, at, t, (w & 0xfc000000) == 0x94000000 ? REF_CALL : REF_JUMP);
	}
}

static void keep_span(struct code *c, const struct code_span *s, uint64_t begin, uint64_t end)
{
	if (end > begin && c->span.n < SPANS_MOST)
		vec_push(&c->span, ((struct code_span){s->offset + begin, s->vaddr + begin, end - begin}));
}

/* Scans a span; the first time it is cut at device code, and the rest kept. */
static int scan_span(struct find *s, unsigned char *buffer, struct code_span span, bool cut)
{
	struct code *c = s->c;
	uint64_t at = 0, begin = 0, length = 0;

	while (at < span.size && c->scanned <= SCANNED_MOST) {
		uint64_t lead = at - begin < MARGIN ? at - begin : MARGIN, want = lead + CHUNK + MARGIN, have, n, block;

		have = span.size - (at - lead) < want ? span.size - (at - lead) : want;
		if (!reader_at(c->r, span.offset + at - lead, buffer, have))
			return -1;
		n = have - lead < CHUNK ? have - lead : CHUNK;
		/* The header of a block may begin at the end of this chunk. */
		block = cut ? scan_find_fatbin(buffer + lead, have - lead, have - lead, span.offset + at, span.size - at,
					       &length)
			    : have - lead;
		s->data = buffer;
		s->lead = lead;
		s->limit = block < have - lead ? lead + block : have;
		s->size = block < n ? lead + block : lead + n;
		s->vaddr = span.vaddr + at - lead;
		if (c->arm) {
			scan_aarch64(s);
		} else {
			scan_x86(s);
			scan_x86_short(s);
			scan_x86_absolute(s);
		}
		c->scanned += have;
		if (block >= n) {
			at += n;
			continue;
		}
		keep_span(c, &span, begin, at + block);
		at += block + length;
		begin = at;
	}
	if (cut)
		keep_span(c, &span, begin, span.size);
	return 0;
}

static int scan(struct find *s)
{
	struct code *c = s->c;
	unsigned char *buffer;
	bool cut = !c->spans_known;
	size_t i, n = cut ? c->o->n_load : c->span.n;
	int result = 0;

	if (!s->n)
		return 0;
	if (c->scanned > SCANNED_MOST) {
		code_note(c, "its code is too large to be searched for all it refers to");
		return -1;
	}
	qsort(s->target, s->n, sizeof(*s->target), by_address);
	s->low = s->target[0].at;
	s->high = s->target[s->n - 1].at;
	memset(s->bloom, 0, sizeof(s->bloom));
	for (i = 0; i < s->n; i++)
		s->bloom[s->target[i].at % BLOOM / 8] |= (unsigned char)(1u << s->target[i].at % 8);
	buffer = xmalloc(CHUNK + 2 * MARGIN);
	for (i = 0; i < n && !result; i++) {
		struct code_span span;

		if (!cut) {
			span = c->span.at[i];
		} else {
			const struct elf_segment *g = &c->o->load[i];

			span = (struct code_span){g->offset, g->vaddr, g->filesz};
			if (!(g->flags & PF_X) || g->offset >= c->r->size)
				continue;
			if (span.size > c->r->size - span.offset)
				span.size = c->r->size - span.offset;
		}
		result = scan_span(s, buffer, span, cut);
	}
	c->spans_known = true;
	free(buffer);
	if (result < 0)
		code_note(c, "its code could not all be read");
	return result;
}

/* Slots first, which yields the stubs; then branches to these and to the given
 * addresses.  A jump through a slot to which nobody branches is no stub. */
int code_find(struct code *c, struct code_references *f)
{
	struct find s = {.c = c, .f = f};
	size_t i, k;
	int result;

	s.target = xmalloc((f->target.n + 1) * sizeof(*s.target));
	s.met = xmalloc(f->target.n + 1);
	for (i = 0; i < f->target.n; i++)
		if (f->target.at[i].slot)
			s.target[s.n++] = f->target.at[i];
		else
			vec_push(&s.more, f->target.at[i]);
	result = scan(&s);
	free(s.target);
	s.target = s.more.at;
	s.n = s.more.n;
	s.met = xrealloc(s.met, s.n + 1);
	memset(s.met, 0, s.n + 1);
	if (!result)
		result = scan(&s);
	for (i = 0; i < s.stub.n; i++) {
		const struct stub *stub = &s.stub.at[i];
		const struct code_target *t = target_at(&s, stub->begin);

		if (t && !s.met[t - s.target])
			vec_push(&f->ref, ((struct code_reference){stub->jump, stub->id, REF_JUMP}));
	}
	vec_free(&s.more);
	vec_free(&s.stub);
	free(s.met);
	if (f->ref.n)
		qsort(f->ref.at, f->ref.n, sizeof(*f->ref.at), by_place);
	for (i = k = 0; i < f->ref.n; i++)
		if (!k || by_place(&f->ref.at[k - 1], &f->ref.at[i]))
			f->ref.at[k++] = f->ref.at[i];
	f->ref.n = k;
	return result;
}

void code_references_free(struct code_references *f)
{
	vec_free(&f->ref);
	vec_free(&f->target);
}
