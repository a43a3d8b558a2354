/* SPDX-License-Identifier: Apache-2.0 */
#include "live/progress.h"

#define MOST_STEPS 1e15
#define SOME_STEPS 20    /* a first report counts from this many steps, or a twentieth of all */
#define LEAST STK_SECOND /* between reports that are measured */
#define EVERY (60 * STK_SECOND)
#define NEAR (10 * STK_SECOND) /* what is left below this is not told apart */
#define SPREAD_PCT 15          /* what is left is off by as much, mostly */

static bool is_sane(double step, double of)
{
    return step >= 0 && of >= 1 && of <= MOST_STEPS && step <= of; /* false for NaN */
}

/* Time per step; 0: not known yet. */
static double step_time(const struct stk_progress *p, stk_time ran, double step, bool fresh)
{
    if (step > p->first && ran - p->first_at >= LEAST)
        return (double)(ran - p->first_at) / (step - p->first);
    if (p->total == 0 && fresh && step > 0 && ran >= LEAST &&
        (step >= SOME_STEPS || step * SOME_STEPS >= p->of))
        return (double)ran / step;
    return 0;
}

bool stk_progress_step(struct stk_progress *p, stk_time ran, double step, double of, bool fresh)
{
    double each, total;

    if (!is_sane(step, of) || ran < 0)
        return false;
    if (p->of != of || step < p->last) {
        fresh = fresh && p->of == 0;
        p->first = step;
        p->first_at = ran;
        p->of = of;
    }
    p->last = step;
    each = step_time(p, ran, step, fresh);
    if (each <= 0)
        return false;
    total = (double)ran + (of - step) * each;
    p->total = total < (double)STK_MAX_DURATION ? (stk_time)total : STK_MAX_DURATION;
    return true;
}

bool stk_progress_due(const struct stk_progress *p, stk_time ran, stk_time expected_left)
{
    stk_time left = p->total - ran, off;

    if (p->total == 0 || (p->told && ran - p->told_at < EVERY))
        return false;
    left = left > NEAR ? left : NEAR;
    expected_left = expected_left > NEAR ? expected_left : NEAR;
    off = left > expected_left ? left - expected_left : expected_left - left;
    return off > expected_left / 10;
}

stk_time stk_progress_chance(const struct stk_progress *p, stk_time ran, uint32_t milli)
{
    const double left = p->total > ran ? (double)(p->total - ran) : (double)STK_SECOND;
    const double at = 1 + SPREAD_PCT / 100.0 * ((double)milli - 500) / 400, t = left * at;

    return t < (double)(STK_MAX_DURATION - ran) ? ran + (stk_time)t : STK_MAX_DURATION;
}
