#include "linkage/flags.h"

#include <dlfcn.h>
#include <string.h>

static const struct {
	const char *word;
	unsigned flag, clears;
	long bit;
} known[] = {
	{"lazy", OPEN_LAZY, OPEN_NOW, RTLD_LAZY},
	{"now", OPEN_NOW, OPEN_LAZY, RTLD_NOW},
	{"global", OPEN_GLOBAL, 0, RTLD_GLOBAL},
	{"noload", OPEN_NOLOAD, 0, RTLD_NOLOAD},
	{"deepbind", OPEN_DEEPBIND, 0, RTLD_DEEPBIND},
	{"nodelete", OPEN_NODELETE, 0, RTLD_NODELETE},
	{"newlm", OPEN_NEWLM, 0, 0},
	{"local", 0, OPEN_GLOBAL, 0},
};

enum { KNOWN = sizeof(known) / sizeof(known[0]) };

bool flags_take_word(unsigned *flags, const char *word, size_t n)
{
	unsigned i;

	for (i = 0; i < KNOWN; i++)
		if (strlen(known[i].word) == n && !strncmp(known[i].word, word, n)) {
			*flags = (*flags | known[i].flag) & ~known[i].clears;
			return true;
		}
	return false;
}

const char *flags_word(unsigned flags, unsigned i)
{
	unsigned k;

	for (k = 0; k < KNOWN; k++)
		if ((known[k].flag ? (flags & known[k].flag) != 0 : !(flags & known[k].clears)) && !i--)
			return known[k].word;
	return NULL;
}

unsigned flags_of_words(const char *const *word, unsigned n)
{
	unsigned flags = OPEN_NOW;

	for (; n--; word++)
		flags_take_word(&flags, *word, strlen(*word));
	return flags;
}

/* dlopen takes RTLD_NOW before RTLD_LAZY where both are there. */
unsigned flags_of_bits(long bits)
{
	unsigned flags = bits >= 0 && !(bits & RTLD_NOW) ? OPEN_LAZY : OPEN_NOW, i;

	for (i = 0; i < KNOWN && bits >= 0; i++)
		if (known[i].bit & bits & ~(RTLD_LAZY | RTLD_NOW))
			flags |= known[i].flag;
	return flags;
}
