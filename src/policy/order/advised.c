/* SPDX-License-Identifier: Apache-2.0 */
/* advised.c - order and preempt: jobs run where an adviser outside says, in the order it says.
 *
 * What suits unlike GPUs best may take a linear program, which has no place in the core. So
 * somebody outside (src/hetero) thinks, and says of each job the GPU type it belongs on, or
 * nowhere, and its place in line. That is an event; replaying events needs neither the adviser nor
 * its solver. The policy word of a job holds what was said of it last.
 *
 * Once a round: who runs where it does not belong is stopped, then those that wait are placed in
 * line, each on its type. Advice for more than there is leaves the last ones waiting; nobody else
 * gets what an advised job leaves.
 *
 * Cost: O(active jobs) per round in which advice changed, a job came or one ended. Bad without an
 * adviser: nothing runs.
 */
#include "policy/registry.h"

#include "core/decide.h"
#include "core/walk.h"

#define TYPE_BITS 8 /* of the word: GPU type + 1; above them the rank */

enum { P_ROUND, P_OBJECTIVE };
static const struct stk_param params[] = {
    [P_ROUND] = {"hetero.round_s", STK_PARAM_SECONDS, "360", 1, 31536000, NULL,
                 "advice and decisions come at multiples of this"},
    [P_OBJECTIVE] = {"hetero.objective", STK_PARAM_WORD, "speed", 0, 0,
                     "speed|fifo|fifo_perf|max_min_fairness|max_min_fairness_perf|"
                     "finish_time_fairness|finish_time_fairness_perf|min_total_duration|"
                     "min_total_duration_perf",
                     "what advice is for; all but speed: as Gavel has it"},
    {0},
};

const struct stk_param *const stk_hetero_objective = &params[P_OBJECTIVE];

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    (void)err;
    *(stk_time *)st = stk_params_seconds(p, &params[P_ROUND]);
    return 0;
}

static stk_time round_of(const void *st)
{
    return *(const stk_time *)st;
}

static int64_t advised(uint32_t where, int32_t rank)
{
    return (int64_t)rank * (1 << TYPE_BITS) + where;
}

static int64_t where_of(const struct stk_job *j)
{
    return j->word & ((1 << TYPE_BITS) - 1);
}

static uint64_t types(const struct stk_job *j)
{
    return where_of(j) ? UINT64_C(1) << (where_of(j) - 1) : 0;
}

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    (void)now;
    return (struct stk_key){(j->word - where_of(j)) / (1 << TYPE_BITS), 0};
}

const struct stk_order_ops stk_order_advised = {
    .name = "advised",
    .help = "unlike GPUs: where and in which order an adviser says",
    .params = params,
    .state_size = sizeof(stk_time),
    .tick = 1,
    .preemptive = true,
    .init = init,
    .key = key,
    .advised = advised,
    .types = types,
    .round = round_of,
};

static bool belongs(const struct stk_state *s, const struct stk_job *j)
{
    return (types(j) >> s->nodes[s->pieces[j->first_piece].node.i].gpu_type) & 1;
}

static uint32_t pass(const void *st, struct stk_ask *ask)
{
    struct stk_state *s = ask->s;
    const struct stk_oent *run;
    uint32_t n = 0, picks = 0, len;

    (void)st;
    stk_walk_begin(s, &s->pools[ask->pool], ask->now);
    while ((len = stk_walk_run(s, &s->pools[ask->pool], &run)) > 0)
        for (uint32_t i = 0; i < len; i++) {
            const struct stk_job *j = &s->jobs[run[i].id];

            if (j->lease && !belongs(s, j) && n < ask->cap) {
                ask->out[n] = stk_decide_evict(s, ask->now, run[i].id, STK_NONE);
                ask->out[n++].u.evict.suspend = false; /* it could wake here only */
            } else if (!j->lease && types(j)) {
                s->list_a[picks++] = run[i].id;
            }
        }
    return n > 0 ? n : stk_walk_place(ask, s->list_a, picks);
}

const struct stk_preempt_ops stk_preempt_advised = {
    .name = "advised",
    .help = "with order advised: who runs where it does not belong is moved",
    .pass = pass,
};
