/* Text for people, and how it leaves the program. */
#ifndef NCCLWHICH_REPORT_TEXT_H
#define NCCLWHICH_REPORT_TEXT_H

#include "linkage/sequence.h"

#include <stdio.h>

/* A growing text; text_take() ends it and hands it to the caller. */
struct text {
	FILE *stream;
	char *data;
	size_t size;
	bool color;
};

void text_open(struct text *t, bool color);
char *text_take(struct text *t);

/* A name out of an analysed file: control characters as \xHH, so that it
 * cannot move the cursor of whoever reads the report. */
void text_name(struct text *t, const char *name);
const char *text_bold(const struct text *t);
const char *text_red(const struct text *t);
const char *text_green(const struct text *t);
const char *text_plain(const struct text *t);

/* How an object or a candidate was found, in words: "LD_LIBRARY_PATH". */
void text_stage(struct text *t, enum stage stage, const struct object *list_of);

/* The link map, one object a line. */
void text_tree(struct text *t, const struct sequence *s);

/* Writes DATA to PATH through a temporary file and a rename (to what is no regular file,
 * a device or a pipe, directly), or to standard
 * output when PATH is NULL.  Returns -1 after an error. */
int output_write(const char *path, const char *data, size_t size, struct error *e);

#endif
