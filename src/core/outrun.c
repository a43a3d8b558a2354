/* SPDX-License-Identifier: Apache-2.0 */
#include "core/outrun.h"

#include "core/backfill.h"
#include "core/booking.h"
#include "core/queue.h"
#include "core/shape.h"

#define UNSURE 4         /* times what is expected is taken to suffice where there is no limit */
#define LEAST STK_SECOND /* what is added to a guess at least */

static bool may_grow(const struct stk_state *s, uint32_t job)
{
    return s->terms[job].limit > s->jobs[job].estimate;
}

void stk_outrun_watch(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    /* an end at that very time is one that was expected */
    if (may_grow(s, job))
        stk_heap_put(&s->outruns, s->due_pos, job, j->expected_end + 1, j->number);
}

void stk_outrun_forget(struct stk_state *s, uint32_t job)
{
    stk_heap_remove(&s->outruns, s->due_pos, job);
}

stk_time stk_outrun_wake(const struct stk_state *s)
{
    return s->outruns.n > 0 ? s->outruns.item[0].key : STK_NEVER_TIME;
}

int stk_outrun_reserve(struct stk_state *s, uint32_t more)
{
    /* each leaves its trees and enters them again */
    return stk_opool_reserve(&s->trees, &s->mem, more + 3 * stk_heap_count(&s->outruns, s->now));
}

stk_time stk_outrun_most(const struct stk_state *s, uint32_t job, stk_time now)
{
    const struct stk_job *j = &s->jobs[job];
    stk_time limit = s->terms[job].limit, more = 0;

    if (limit == STK_MAX_DURATION) /* none: nobody knows, but most do not take as long as that */
        limit = j->estimate < limit / UNSURE ? UNSURE * j->estimate : limit;
    if (limit > j->estimate)
        more = limit - j->estimate;
    return stk_job_remaining(j, now) + more;
}

/* The next guess that lies in the future, or the limit. */
static void grow(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];

    do {
        const stk_time limit = s->terms[job].limit,
                       more = j->estimate > LEAST ? j->estimate : LEAST;

        stk_queue_expect(s, job, more < limit - j->estimate ? j->estimate + more : limit);
    } while (j->expected_end < s->now && may_grow(s, job));
    p->outran = true;
    stk_plan_drop(p);
    if (p->resv_job != STK_NONE)
        stk_shape_unreserve(s, j->pool);
    else if (s->backfill->reserve_all)
        stk_shape_mark_dirty(s, j->pool);
}

void stk_outrun_tick(struct stk_state *s)
{
    while (s->outruns.n > 0 && s->outruns.item[0].key <= s->now) {
        uint32_t job = s->outruns.item[0].id;

        stk_heap_remove(&s->outruns, s->due_pos, job);
        grow(s, job);
        stk_outrun_watch(s, job);
    }
}

void stk_promise_made(struct stk_pool *p, uint32_t job, stk_time at)
{
    if (p->first_for == job + 1 && p->first_at != STK_NEVER_TIME)
        return;
    p->outran &= p->first_for == job + 1;
    p->first_for = job + 1;
    p->first_at = at;
}

bool stk_outruns_sound(const struct stk_state *s, struct stk_err *err)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        const bool watched = stk_has_gpus(j) && may_grow(s, i);

        n += watched;
        if (watched && (s->due_pos[i] == STK_HEAP_OUT || s->due_pos[i] > s->outruns.n ||
                        s->outruns.item[s->due_pos[i] - 1].id != i ||
                        s->outruns.item[s->due_pos[i] - 1].key != j->expected_end + 1)) {
            (void)stk_err_set(err, -EUCLEAN, "nobody looks whether job %u outruns its estimate",
                              j->number);
            return false;
        }
    }
    if (n == s->outruns.n)
        return true;
    (void)stk_err_set(err, -EUCLEAN, "%u estimates may grow, not %u", s->outruns.n, n);
    return false;
}
