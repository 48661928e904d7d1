/* From a run's paths and copies to findings and a verdict. */
#ifndef NCCLWHICH_VERDICT_JUDGE_H
#define NCCLWHICH_VERDICT_JUDGE_H

#include "verdict/run.h"

/* Fills the findings and the verdict of a run whose paths are collected. */
void judge_run(struct run *r, const struct plan *plan);

#endif
