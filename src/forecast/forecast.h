/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.h - when waiting jobs will start: the same core, run forward.
 *
 * Several forks of the core are made. In each, every job that runs or will run gets a run time
 * drawn from what jobs like it took (predict.h), given how long it has run already. Users' jobs are
 * alike (sweeps, retries of one failure), so in one draw most of a user's jobs lie at one place
 * among those of the past: drawn one by one they would even out, and P90 would be too early. Then
 * time goes on from end to end and the fork decides, until the jobs asked about have started. The
 * starts are put in order: the middle one is P50, and nine of ten are not later than P90.
 *
 * Draws depend on the seed, the fork's number, the user and the job's number alone: asking twice
 * gives the same answer.
 *
 * It is assumed that nobody submits or cancels anything, that nodes stay as they are, that jobs end
 * well, and that starts, stops and moves take no time. So later jobs that overtake (higher
 * priority, shorter under sjf) are not foreseen.
 *
 * Costs 'draws' forks, and the decisions until then; no more than 'most_events' events in each.
 */
#ifndef STK_FORECAST_FORECAST_H
#define STK_FORECAST_FORECAST_H

#include "core/core.h"
#include "forecast/predict.h"

#define STK_FORECAST_DRAWS 20u
#define STK_FORECAST_PIECES 64u /* that are told of one start */

struct stk_forecast_config {
    stk_time now; /* not before the latest event */
    const struct stk_predict *predict;
    /* What the user of the job said, for the predictor. NULL: its tenant and its estimate. */
    struct stk_run_kind (*kind)(void *ctx, const struct stk_state *s, uint32_t job);
    /* What the job will run in all with this chance, in thousandths, given that it has run so far:
     * where more is known of it than its kind says; 0: nothing is. May be NULL. */
    stk_time (*known)(void *ctx, const struct stk_state *s, uint32_t job, stk_time so_far,
                      uint32_t milli);
    void *ctx;
    bool limited; /* jobs are stopped when they have run as long as their estimate */
    /* Where the i-th job asked about starts, in the draw whose start is its P50; not called when
     * that is not foreseen. At most STK_FORECAST_PIECES, borrowed for the call. May be NULL. */
    void (*where)(void *ctx, uint32_t i, const struct stk_piece *pieces, uint32_t n);
    uint32_t draws;       /* 1 to 1000 */
    uint32_t most_events; /* of a draw */
    uint64_t seed;
};

struct stk_expected {
    stk_time p10, p50, p90;    /* its start; STK_NEVER_TIME: not foreseen */
    stk_time end_p50, end_p90; /* its end, if it does not have to give way; likewise */
};

/* In steps, for who has other things to do meanwhile. The core may change between two steps, but
 * not go: each draw begins with what it is then. */
struct stk_forecast;
int stk_forecast_begin(const struct stk_core *core, const struct stk_forecast_config *cfg,
                       const uint32_t *jobs, uint32_t n, struct stk_forecast **ret,
                       struct stk_err *err); /* 0 or -ENOMEM */
/* About so much work, counted in events of a small core: forks, and events of a large one, count
 * as several. 1: there is more; 0: it is complete; < 0: it failed. */
int stk_forecast_step(struct stk_forecast *d, uint32_t events, struct stk_err *err);
/* Of one that is complete: a row for each job that was asked about. Calls 'where'. */
void stk_forecast_read(struct stk_forecast *d, struct stk_expected *ret);
void stk_forecast_free(struct stk_forecast *d); /* NULL is a no-op */

/* All of it at once. One row for each job slot asked about, each once, which should be waiting; one
 * that has GPUs starts now. Changes nothing. 0 or -ENOMEM. */
int stk_forecast(const struct stk_core *core, const struct stk_forecast_config *cfg,
                 const uint32_t *jobs, uint32_t n, struct stk_expected *ret, struct stk_err *err);

#endif
