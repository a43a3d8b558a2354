/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_share.c - the CPUs of jobs without GPUs that ask for none. Without a share as many of them as
 * come would run at once. The site's default is written into the description ("cpu_share"), so that
 * the scheduler, the supervisor and the pages all read the same number, and a job keeps it when the
 * site changes the default. */
#include "core/state.h"
#include "live/state.h"

/* Explicit requests below this, 0 included, count as this much: "needs no CPU" has a bound, too. */
#define LEAST_MILLI 100

static bool wants_gpus(const json_t *job)
{
    return json_number_value(json_object_get(job, "gpus")) > 0 ||
           json_number_value(json_object_get(job, "gpu_mem_mib")) > 0 ||
           json_object_get(job, "mig") != NULL;
}

/* A default must not make a job impossible: tasks that do not fit with it divide what there is. */
static uint32_t fit_tasks(const struct stk_live *l, const json_t *job, uint32_t milli)
{
    const struct stk_state *s = stk_core_state(l->core);
    int64_t tasks = json_integer_value(json_object_get(job, "tasks"));
    int64_t per_node = json_integer_value(json_object_get(job, "tasks_per_node"));
    int64_t each = (tasks + s->n_nodes - 1) / s->n_nodes, most = 0;

    for (uint32_t i = 0; i < s->n_nodes && tasks > 1; i++)
        most = s->nodes[i].cpu_milli > (uint64_t)most ? (int64_t)s->nodes[i].cpu_milli : most;
    if (per_node > each)
        each = per_node;
    if (most == 0 || milli * each <= most)
        return milli;
    return most > each ? (uint32_t)(most / each) : 1;
}

int stk_live_share_cpus(const struct stk_live *l, json_t *job, struct stk_err *err)
{
    const json_t *asked = json_object_get(job, "cpus");
    double cpus = json_number_value(asked);
    uint32_t milli = l->cfg.default_cpu_milli;

    if (milli == 0 || wants_gpus(job) || cpus * 1000 >= LEAST_MILLI) {
        (void)json_object_del(job, "cpu_share");
        return 0;
    }
    if (asked && milli > LEAST_MILLI)
        milli = LEAST_MILLI;
    milli = fit_tasks(l, job, milli);
    return json_object_set_new(job, "cpu_share", json_real(milli / 1000.0)) < 0
               ? stk_err_set(err, -ENOMEM, "out of memory")
               : 0;
}
