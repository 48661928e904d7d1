/* The flags of an open, as words, as the RTLD_ bits of a call, as enum open_flags. */
#ifndef NCCLWHICH_LINKAGE_FLAGS_H
#define NCCLWHICH_LINKAGE_FLAGS_H

#include "loader/process.h"

/* "lazy", "now", "local", "global", "noload", "deepbind", "nodelete", "newlm": what WORD, of
 * N characters, changes in *FLAGS; false: there is no such word. */
bool flags_take_word(unsigned *flags, const char *word, size_t n);

/* The words that say FLAGS, "local" the last: the I-th, or NULL after them. */
const char *flags_word(unsigned flags, unsigned i);

/* Of the words of a data file; now where neither lazy nor now is among them. */
unsigned flags_of_words(const char *const *word, unsigned n);

/* Of RTLD_ bits as code passes them; of -1, what is usual. */
unsigned flags_of_bits(long bits);

#endif
