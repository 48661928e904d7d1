/* The JSON of the contract (data/schema/report-1.schema.json). */
#ifndef NCCLWHICH_REPORT_JSON_H
#define NCCLWHICH_REPORT_JSON_H

#include "linkage/sequence.h"

#include <jansson.h>

/* A string of the analysed files: bytes that are no UTF-8 become U+FFFD, and
 * KEY_hex in OBJECT has them exactly.  NULL gives null. */
void json_put_text(json_t *object, const char *key, const char *text);

/* The words of enum open_flags. */
json_t *json_flags(unsigned flags);

/* "objects": the link map in order. */
json_t *json_objects(const struct process *p);
/* "start": would the process start? */
json_t *json_start(const struct process *p);
/* "events": the opens that were simulated, in order. */
json_t *json_events(const struct sequence *s);
/* "bindings" of every object, for tree --bindings. */
json_t *json_all_bindings(struct process *p);
/* "context": what decided something. */
json_t *json_context(const struct sequence *s);

/* Serialises ROOT with a final newline; the caller frees.  ROOT is released. */
char *json_text(json_t *root, bool compact);

#endif
