/* The report of `opens`: what each object shows of what it opens. */
#ifndef NCCLWHICH_REPORT_OPENS_H
#define NCCLWHICH_REPORT_OPENS_H

#include "linkage/plugins.h"
#include "linkage/python.h"
#include "linkage/surface.h"
#include "report/json.h"
#include "report/text.h"

struct opens_entry {
	const char *path;
	const struct root_file *file;
	const struct surface *surface;
	struct plugin_opens plugins; /* of a copy of the library itself */
	struct python_file script;   /* a Python file instead of an object: then SURFACE shows nothing */
	bool is_script;
};

struct opens_report {
	const struct target *target;
	VEC(struct opens_entry) at;
};

void opens_text(struct text *t, const struct opens_report *o);
json_t *opens_json(const struct opens_report *o);

#endif
