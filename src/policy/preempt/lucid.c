/* SPDX-License-Identifier: Apache-2.0 */
/* lucid.c - preempt: as the simulator of Lucid (Hu et al., ASPLOS'23) does it, for comparison with
 * results published with it. Not for use: it evicts jobs for others that then do not start.
 *
 * Differences from afresh: ties are broken by position in Lucid's lists, not by job number; all
 * jobs outside the count are evicted before anything is placed; a chosen job that finds no
 * consolidated place stays queued, and those evicted for it are not put back; one pass per instant,
 * since a second one would not find the same.
 *
 * With order srtf the list is the queue (in order of entering it), then the running jobs (in order
 * of starting), sorted by remaining time. With order las it is the running jobs, then the queue,
 * sorted by submit time inside each level. docs/spec/simulator.md has the whole protocol.
 */
#include "policy/registry.h"

#include "core/decide.h"
#include "core/txn.h"
#include "core/walk.h"

enum { P_LIST };
static const struct stk_param params[] = {
    [P_LIST] = {"lucid.list", STK_PARAM_WORD, "queue-first", 0, 0, "queue-first|running-first",
                "which jobs come first in Lucid's list"},
    {0},
};

struct lucid {
    bool running_first;
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    (void)err;
    ((struct lucid *)st)->running_first = stk_params_word(p, &params[P_LIST], "running-first");
    return 0;
}

/* All active jobs in Lucid's order into s->sort; data: has a lease. */
static uint32_t list_jobs(const struct lucid *l, struct stk_state *s, struct stk_pool *p,
                          stk_time now)
{
    const struct stk_oent *run;
    uint32_t n = 0, len;

    stk_walk_begin(s, p, now);
    while ((len = stk_walk_run(s, p, &run)) > 0)
        for (uint32_t i = 0; i < len; i++) {
            const struct stk_job *j = &s->jobs[run[i].id];
            bool runs = j->lease != 0;

            s->sort[n++] = (struct stk_sort_item){(int64_t)(runs != l->running_first) << 32 |
                                                      (runs ? j->lease : j->queue_seq),
                                                  run[i].id, runs};
        }
    stk_sort(s->sort, n, s->sort_tmp);
    for (uint32_t i = 0; l->running_first && i < n; i++)
        s->sort[i].key = s->jobs[s->sort[i].id].submitted;
    if (l->running_first)
        stk_sort(s->sort, n, s->sort_tmp);
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_job *j = &s->jobs[s->sort[i].id];

        s->sort[i].key = j->rank + j->rate * (now / s->order->tick);
    }
    stk_sort(s->sort, n, s->sort_tmp);
    return n;
}

/* Drops kept picks that were cancelled or held while the evicted went. How many are left. */
static uint32_t still_waiting(struct stk_state *s, uint32_t pool)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < s->n_kept; i++) {
        const struct stk_job *j = &s->jobs[s->list_a[i]];

        if (j->state == STK_JOB_WAITING && j->pool == pool)
            s->list_a[k++] = s->list_a[i];
    }
    return k;
}

static uint32_t pass(const void *st, struct stk_ask *ask)
{
    struct stk_state *s = ask->s;
    struct stk_pool *p = &s->pools[ask->pool];
    uint64_t left = p->gpus_up - p->gpus_idle_off;
    uint32_t n, n_out = 0;

    if (s->kept_pool == ask->pool && s->kept_now == ask->now) { /* the evicted are gone: place */
        s->kept_pool = STK_NONE;
        return stk_walk_place(ask, s->list_a, still_waiting(s, ask->pool));
    }
    if (p->pass_at == ask->now && p->n_leased > 0)
        return 0;                 /* where nobody runs, nothing would ever make it look again */
    if (s->kept_pool != STK_NONE) /* this pool's list takes the place of the other's */
        s->pools[s->kept_pool].pass_at = INT64_MIN;
    s->kept_pool = STK_NONE;
    p->pass_at = ask->now;
    s->n_kept = 0;
    n = list_jobs(st, s, p, ask->now);
    for (uint32_t i = 0; i < n && n_out < ask->cap; i++) {
        const struct stk_job *j = &s->jobs[s->sort[i].id];

        if (j->gpus <= left) {
            left -= j->gpus;
            if (!s->sort[i].data)
                s->list_a[s->n_kept++] = s->sort[i].id;
        } else if (s->sort[i].data) {
            ask->out[n_out] = stk_decide_evict(s, ask->now, s->sort[i].id, STK_NONE);
            ask->out[n_out++].u.evict.suspend = false;
        }
    }
    if (n_out == 0)
        return stk_walk_place(ask, s->list_a, s->n_kept);
    if (n_out == ask->cap) { /* more may have to go: look again when these are gone */
        p->pass_at = INT64_MIN;
        return n_out;
    }
    s->kept_pool = ask->pool;
    s->kept_now = ask->now;
    return n_out;
}

const struct stk_preempt_ops stk_preempt_lucid = {
    .name = "lucid",
    .help = "as Lucid's simulator does it; for comparison only",
    .params = params,
    .state_size = sizeof(struct lucid),
    .init = init,
    .pass = pass,
};
