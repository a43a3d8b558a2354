/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_pools.c - Slurm's partition of a job, where partitions may share nodes. Jobs from before a
 * partition was added that shares nodes with theirs are confined to the nodes of their own. A
 * partition that has jobs, or that a reservation names, cannot be left out of slurm.partitions. */
#include <string.h>

#include "core/state.h"
#include "daemon/daemon.h"
#include "engine/slurm/slurm.h"
#include "sys/json.h"

const char *stk_daemon_slurm_partition(const struct stk_daemon *d, const struct stk_entry *e,
                                       const char *pool)
{
    const struct stk_live_config *c = stk_live_config(d->live);

    return c->pools[stk_live_pool_row(
        c, pool, stk_queue_find(c->core.queues, c->core.n_queues, e->rec.queue))];
}

/* It waits, and may run on any node of a pool of which its partition may have but some. */
static bool is_loose(struct stk_daemon *d, stk_job_number number)
{
    const struct stk_state *s = stk_core_state(stk_live_core(d->live));
    uint32_t slot = stk_core_find(stk_live_core(d->live), number);

    return stk_daemon_slurm_waits(d, number) && s->shapes[s->jobs[slot].shape].demand.nodes == 0 &&
           stk_live_pool_shared(stk_live_config(d->live), s->jobs[slot].pool);
}

static void confine(struct stk_daemon *d, const struct stk_entry *e)
{
    json_t *spec = stk_live_spec(d->live, e->rec.spec);
    const char *pool = json_string_value(json_object_get(spec, "pool"));

    stk_daemon_slurm_act(d, "update", &e->number, 1,
                         json_pack("{s:s}", "pool", stk_daemon_slurm_partition(d, e, pool)));
    json_decref(spec);
}

void stk_daemon_slurm_confine(struct stk_daemon *d)
{
    const struct stk_live_config *c = stk_live_config(d->live);
    bool shared = false;

    for (uint32_t i = 0; i < c->core.n_pools; i++)
        shared = shared || stk_live_pool_shared(c, i);
    for (const struct stk_entry *e = shared ? stk_live_next(d->live, 0) : NULL; e;
         e = stk_live_next(d->live, e->number))
        if (is_loose(d, e->number))
            confine(d, e);
}

static bool is_of_partition(struct stk_daemon *d, const struct stk_entry *e, const char *name)
{
    json_t *spec = stk_live_spec(d->live, e->rec.spec);
    const char *pool = json_string_value(json_object_get(spec, "pool"));
    bool yes = pool && strcmp(pool, name) == 0;

    json_decref(spec);
    return yes;
}

/* A reservation that is not over and names the pool; NULL: there is none. */
static const char *reservation_of(struct stk_daemon *d, const char *pool)
{
    const json_t *all = stk_live_reservations(d->live);

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *o = json_array_get(all, i);

        if (!json_object_get(o, "over") && strcmp(stk_str(o, "pool"), pool) == 0)
            return stk_str(o, "name");
    }
    return NULL;
}

int stk_daemon_slurm_check_left_out(struct stk_daemon *d, struct stk_err *err)
{
    for (uint32_t row = 0; row < d->machine.n_pools; row++) {
        const char *name = stk_slurm_left_out(d->engine, row);
        const char *reserved = name ? reservation_of(d, name) : NULL;
        uint32_t n = 0;

        for (const struct stk_entry *e = name ? stk_live_next(d->live, 0) : NULL; e;
             e = stk_live_next(d->live, e->number))
            n += is_of_partition(d, e, name);
        if (n > 0)
            return stk_err_set(err, -EINVAL,
                               "slurm.partitions: partition %.40s has %u job%s that %s not ended "
                               "and is left out: put it back, or cancel %s first",
                               name, n, n == 1 ? "" : "s", n == 1 ? "has" : "have",
                               n == 1 ? "it" : "them");
        if (reserved)
            return stk_err_set(err, -EINVAL,
                               "slurm.partitions: reservation %.60s is of partition %.40s, which "
                               "is left out: put it back, or remove the reservation first (stoker "
                               "reserve rm)",
                               reserved, name);
    }
    return 0;
}
