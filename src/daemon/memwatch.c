/* SPDX-License-Identifier: Apache-2.0 */
/* memwatch.c - jobs with part of a GPU that take more of its memory than they asked for.
 *
 * The driver does not stop them, and the one that fails is whoever asks for memory next. So what
 * the processes of each job hold is added up at every reading; a job that is over its part, and a
 * slack for what CUDA itself takes, at two readings in a row is killed as the kernel kills for want
 * of memory: at once, and with the reason in its note. That counts as an error of the job. Its
 * neighbours are not touched. A job of whole GPUs has all of their memory; one that takes turns has
 * it while it is its turn; the memory of a MIG instance is kept by the card. */
#include "daemon/memwatch.h"

#include <signal.h>
#include <stdio.h>

#include "core/state.h"

struct sum { /* what a job holds on the GPU in hand */
    stk_job_number job;
    double mib;
};

/* A running job with part of a GPU whose memory is its own affair; NULL: it is none. */
static const struct stk_job *limited(struct stk_daemon *d, stk_job_number number,
                                     const struct stk_demand **ret_demand)
{
    const struct stk_core *core = stk_live_core(d->live);
    const struct stk_state *s = stk_core_state(core);
    uint32_t slot = stk_core_find(core, number);
    const struct stk_job *j = slot == STK_NONE ? NULL : &s->jobs[slot];
    const struct stk_demand *of = j ? &s->shapes[j->shape].demand : NULL;

    if (!j || j->state != STK_JOB_RUNNING || !of->gpu_milli || of->mig || !of->gpu_mem_mib ||
        of->share == STK_SHARE_TIME)
        return NULL;
    *ret_demand = of;
    return j;
}

static uint32_t add_up(struct stk_daemon *d, uint32_t gpu, struct sum *sums)
{
    const struct stk_gpu_sample *now = &d->machine.gpus.gpu[gpu].now;
    uint32_t n = 0, k;

    for (uint32_t i = 0; i < now->n_procs; i++) {
        const struct stk_gpu_proc *p = &now->proc[i];
        stk_job_number job = p->mem_mib.known ? stk_daemon_job_of(d, p->pid, p->uid) : 0;

        for (k = 0; k < n && sums[k].job != job; k++)
            ;
        if (!job)
            continue;
        if (k == n)
            sums[n++] = (struct sum){.job = job};
        sums[k].mib += p->mem_mib.v;
    }
    return n;
}

/* Was it over at the reading before? It is at this one. */
static bool twice(struct stk_memwatch *w, const struct stk_over *o)
{
    if (w->n_now < STK_MEMWATCH_MAX)
        w->now[w->n_now++] = *o;
    for (uint32_t i = 0; i < w->n_before; i++)
        if (w->before[i].job == o->job && w->before[i].lease == o->lease)
            return true;
    return false;
}

static void act(struct stk_daemon *d, stk_job_number job, double mib, double asked)
{
    const struct stk_entry *e = stk_live_entry(d->live, job);
    char text[160];

    (void)snprintf(text, sizeof(text), "used %.1f GiB of GPU memory, asked for %.4g GiB",
                   mib / 1024, asked / 1024);
    if (!e || !e->warning[STK_WARN_MEMORY])
        stk_log(STK_LOG_WARN, "job %u %s", job, text);
    stk_live_warn(d->live, job, STK_WARN_MEMORY, text);
    if (d->config.gpus.mem_action == STK_MEM_WARN)
        return;
    stk_live_blame(d->live, job, text);
    (void)stk_local_signal(d->engine, job, SIGKILL, false);
}

static void look_at(struct stk_memwatch *w, struct stk_daemon *d, uint32_t gpu)
{
    struct sum sums[STK_GPUVIEW_PROCS];
    uint32_t n = add_up(d, gpu, sums);

    for (uint32_t i = 0; i < n; i++) {
        const struct stk_demand *of = NULL;
        const struct stk_job *j = limited(d, sums[i].job, &of);

        if (!j || sums[i].mib <= (double)of->gpu_mem_mib + (double)d->config.gpus.mem_slack_mib)
            continue;
        if (twice(w, &(struct stk_over){sums[i].job, j->lease}))
            act(d, sums[i].job, sums[i].mib, (double)of->gpu_mem_mib);
    }
}

/* Warnings are taken back when there is no more reason for them. */
static void forget(const struct stk_memwatch *w, struct stk_daemon *d)
{
    for (uint32_t i = 0; i < w->n_before; i++) {
        bool still = false;

        for (uint32_t k = 0; k < w->n_now; k++)
            still |= w->now[k].job == w->before[i].job;
        if (!still)
            stk_live_warn(d->live, w->before[i].job, STK_WARN_MEMORY, NULL);
    }
}

void stk_memwatch_look(struct stk_memwatch *w, struct stk_daemon *d)
{
    const struct stk_state *s = stk_core_state(stk_live_core(d->live));

    w->n_now = 0;
    for (uint32_t i = 0; i < d->machine.gpus.n && i < STK_GPUVIEW_MAX; i++) {
        uint32_t gpu, node = stk_machine_node_of(&d->machine, i, &gpu);

        if (node < s->n_nodes && s->nodes[node].mask_part >> gpu & 1)
            look_at(w, d, i);
    }
    forget(w, d);
    for (uint32_t i = 0; i < w->n_now; i++)
        w->before[i] = w->now[i];
    w->n_before = w->n_now;
}
