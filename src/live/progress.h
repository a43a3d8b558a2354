/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how long a job will run in all, from the steps that it reports.
 *
 * "Step 40 of 600" says how much is left once it is known how long a step takes: that is measured
 * between the first report and the latest, so that what comes before the first step (imports, data,
 * compilation) is not taken for work. Time is the job's own: that in which it had its GPUs. A job
 * that goes back, or changes how many steps there are, is measured anew.
 *
 * A first report alone counts where the job has not been started before and has done some steps:
 * its start is then counted in, and the next report mends that.
 *
 * Jobs may report as often as they like, and what they like. The scheduler hears of it when it is
 * new, and then at most once a minute, and only if what is left has changed by a tenth. */
#ifndef STK_LIVE_PROGRESS_H
#define STK_LIVE_PROGRESS_H

#include <stdbool.h>

#include "model/time.h"

struct stk_progress {   /* zeroed: nothing was reported */
    double first, last; /* steps */
    double of;          /* steps in all; 0: nothing was reported */
    stk_time first_at;  /* what the job had run at its first report */
    stk_time total;     /* what it will run in all; 0: not known */
    stk_time told_at;   /* what it had run when the scheduler was told */
    bool told;
};

/* A report of a job that has run for 'ran'. 'fresh': it runs for the first time. False: it says
 * nothing new. */
bool stk_progress_step(struct stk_progress *p, stk_time ran, double step, double of, bool fresh);
/* Whether the scheduler, which expects 'expected_left', should be told of p->total. */
bool stk_progress_due(const struct stk_progress *p, stk_time ran, stk_time expected_left);
/* p->total as a time that the job stays below with this chance, in thousandths (1 to 999). */
stk_time stk_progress_chance(const struct stk_progress *p, stk_time ran, uint32_t milli);

#endif
