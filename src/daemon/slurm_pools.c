/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_pools.c - Slurm's partition of a job, where partitions may share nodes. Jobs from before a
 * partition was added that shares nodes with theirs are confined to the nodes of their own. */
#include "core/state.h"
#include "daemon/daemon.h"

const char *stk_daemon_slurm_partition(const struct stk_daemon *d, const struct stk_entry *e)
{
    const struct stk_live_config *c = stk_live_config(d->live);
    json_t *spec = stk_live_spec(d->live, e->rec.spec);
    uint32_t row =
        stk_live_pool_row(c, json_string_value(json_object_get(spec, "pool")),
                          stk_queue_find(c->core.queues, c->core.n_queues, e->rec.queue));

    json_decref(spec);
    return c->pools[row];
}

/* It waits, and may run on any node of a pool of which its partition may have but some. */
static bool is_loose(struct stk_daemon *d, stk_job_number number)
{
    const struct stk_state *s = stk_core_state(stk_live_core(d->live));
    uint32_t slot = stk_core_find(stk_live_core(d->live), number);
    enum stk_job_state state = stk_daemon_slurm_state(d, number);

    return (state == STK_JOB_WAITING || state == STK_JOB_BLOCKED || state == STK_JOB_HELD) &&
           s->shapes[s->jobs[slot].shape].demand.nodes == 0 &&
           stk_live_pool_shared(stk_live_config(d->live), s->jobs[slot].pool);
}

void stk_daemon_slurm_confine(struct stk_daemon *d)
{
    for (const struct stk_entry *e = stk_live_next(d->live, 0); e;
         e = stk_live_next(d->live, e->number))
        if (is_loose(d, e->number))
            stk_daemon_slurm_act(d, "update", &e->number, 1,
                                 json_pack("{s:s}", "pool", stk_daemon_slurm_partition(d, e)));
}
