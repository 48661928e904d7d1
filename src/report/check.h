/* The report of `check`, for people and for programs. */
#ifndef NCCLWHICH_REPORT_CHECK_H
#define NCCLWHICH_REPORT_CHECK_H

#include "report/json.h"
#include "report/text.h"
#include "verdict/run.h"

struct check_report {
	struct run **run; /* one a processor that changes the answer */
	size_t n;
	enum verdict verdict; /* the worst of them */
};

void check_text(struct text *t, const struct check_report *c);
json_t *check_json(const struct check_report *c);

/* One request, with every candidate. */
json_t *json_lookup(const struct lookup *l);

/* A candidate and why it was passed over or taken, on one line. */
void text_candidate(struct text *t, const struct candidate *c);

#endif
