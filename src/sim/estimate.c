/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/estimate.h"

#include <errno.h>

#include "engine/sim/sim.h"
#include "sys/big.h"

#define MEDIAN_MILLI 500
#define HOUR (3600 * STK_SECOND)
#define DAY (24 * HOUR)

int stk_sim_estimate_init(struct stk_sim_estimate *e, const struct stk_params *p, bool forecast)
{
    static const char *const words[] = {"given", "limit", "predicted", "exact"};

    *e = (struct stk_sim_estimate){.rounded = stk_params_word(p, stk_sim_limit, "rounded")};
    while (!stk_params_word(p, stk_sim_told, words[e->told]))
        e->told++;
    if (e->told != STK_TOLD_PREDICTED && !forecast)
        return 0;
    e->predict = stk_predict_new(&stk_big_mem);
    return e->predict ? 0 : -ENOMEM;
}

void stk_sim_estimate_done(struct stk_sim_estimate *e)
{
    stk_predict_free(e->predict);
    e->predict = NULL;
}

/* What users write who know about how long it takes: the next round time. */
static stk_time round_up(stk_time run)
{
    static const stk_time round[] = {HOUR, 4 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY, 30 * DAY};

    for (size_t i = 0; i < sizeof(round) / sizeof(*round); i++)
        if (run <= round[i])
            return round[i];
    return run;
}

/* What the user asked for; 0: nothing. */
static stk_time asked(const struct stk_sim_estimate *e, const struct stk_trace_job *j)
{
    return j->estimate ? j->estimate : e->rounded ? round_up(j->duration) : 0;
}

void stk_sim_estimate_set(const struct stk_sim_estimate *e, const struct stk_trace_job *j,
                          struct stk_job_spec *io)
{
    const struct stk_run_kind k = {j->tenant, io->demand.gpus * io->demand.tasks, asked(e, j)};

    switch (e->told) {
    case STK_TOLD_GIVEN:
        io->estimate = j->estimate ? j->estimate : j->duration;
        return;
    case STK_TOLD_EXACT:
        io->estimate = j->duration;
        return;
    case STK_TOLD_LIMIT:
        io->estimate = k.estimate;
        return;
    case STK_TOLD_PREDICTED:
        io->estimate = stk_predict_estimate(e->predict, &k);
        if (io->estimate == 0) /* what others' jobs took is better than nothing */
            io->estimate = stk_predict_run(e->predict, &k, 0, MEDIAN_MILLI);
        io->terms.asked = k.estimate;
        io->terms.limit = k.estimate ? k.estimate : STK_MAX_DURATION;
        return;
    }
}

void stk_sim_estimate_ended(struct stk_sim_estimate *e, const struct stk_trace_job *j,
                            uint32_t gpus, stk_time run)
{
    const struct stk_run_kind k = {j->tenant, gpus, asked(e, j)};

    if (e->predict)
        stk_predict_ran(e->predict, &k, run);
}
