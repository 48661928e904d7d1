/* From options to runs: what check and explain have in common. */
#ifndef NCCLWHICH_CMD_SIMULATE_H
#define NCCLWHICH_CMD_SIMULATE_H

#include "cmd/options.h"
#include "linkage/cpus.h"
#include "linkage/imports.h"
#include "report/check.h"

struct simulation {
	struct store *store;
	struct user_data data;
	struct surfaces surfaces;
	struct import_list imports;
	struct cpu cpu[CPUS_MOST];
	struct run *runs[CPUS_MOST];
	struct check_report report;
};

/* Runs the plan on every processor on which it may differ.  Returns -1 after
 * an error; end it with simulation_end() either way.  With --python the engine
 * of the plan becomes the interpreter. */
int simulation_start(struct simulation *s, struct options *o, bool with_fixes, struct error *e);
void simulation_end(struct simulation *s);

/* The exit status of a report: 1 for findings at or above the threshold, else 3
 * for unsure or none, else 0. */
int simulation_status(const struct options *o, const struct check_report *report);

#endif
