/* SPDX-License-Identifier: Apache-2.0 */
/* sample_all.c - GPUs, tenants and the whole, as they are at this look. */
#include <math.h>
#include <stdlib.h>

#include "core/share.h"
#include "core/tenant.h"
#include "daemon/sample.h"
#include "live/counts.h"

static const struct stk_state *state(const struct stk_sampler *w)
{
    return stk_core_state(stk_live_core(w->d->live));
}

static float known(const struct stk_gpu_sample *s, enum stk_gpu_metric m, double scale)
{
    return s && s->value[m].known ? (float)(s->value[m].v * scale) : NAN;
}

static void put_gpu(struct stk_sampler *w, uint32_t node, const struct stk_series_at *at)
{
    const struct stk_gpu_sample *s = stk_sample_reading(w->d, node, at->member);
    const struct stk_gpu_use *u = stk_sample_use(w, node, at->member);
    float v[STK_SERIES_GPU_FIELDS];

    v[STK_SERIES_GPU_ALLOCATED] = u->alloc;
    v[STK_SERIES_GPU_UTILIZATION] = known(s, STK_GPU_UTIL, 0.01);
    v[STK_SERIES_GPU_ACTIVE] = w->d->machine.is_virtual ? u->at_work : known(s, STK_GPU_UTIL, 0.01);
    v[STK_SERIES_GPU_MEMORY] = known(s, STK_GPU_MEM_USED_MIB, 1);
    v[STK_SERIES_GPU_POWER] = known(s, STK_GPU_POWER_W, 1);
    v[STK_SERIES_GPU_TEMPERATURE] = known(s, STK_GPU_TEMP_C, 1);
    stk_series_put(w->series, at, v);
}

void stk_sample_put_gpus(struct stk_sampler *w)
{
    const struct stk_live_config *c = stk_live_config(w->d->live);
    const struct stk_state *s = state(w);

    for (uint32_t n = 0; n < s->n_nodes; n++) {
        struct stk_series_at at = {STK_SERIES_GPU, stk_series_id(c->nodes[n].name), 0,
                                   s->nodes[n].gpus};

        for (; at.member < at.members && at.member < STK_MAX_NODE_GPUS; at.member++)
            put_gpu(w, n, &at);
    }
}

/* ---- tenants ---- */

struct tally {
    double active;
    uint32_t running, waiting;
};

static void tally_jobs(const struct stk_state *s, struct tally *n)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE || j->tenant >= s->n_tenants)
            continue;
        for (uint32_t at = j->tenant + 1; at; at = s->tenants[at - 1].parent) {
            n[at - 1].running += j->lease != 0;
            n[at - 1].waiting += j->state == STK_JOB_WAITING;
        }
    }
}

static void tally_active(const struct stk_sampler *w, struct tally *n)
{
    const struct stk_state *s = state(w);
    const struct stk_core *core = stk_live_core(w->d->live);

    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t slot = w->list[i].here ? stk_core_find(core, w->list[i].number) : STK_NONE;

        if (slot == STK_NONE || s->jobs[slot].tenant >= s->n_tenants)
            continue;
        for (uint32_t at = s->jobs[slot].tenant + 1; at; at = s->tenants[at - 1].parent)
            n[at - 1].active += w->list[i].at_work;
    }
}

/* Counters are of leaves; a parent has those of all below it. */
static void fill_counts(const struct stk_sampler *w, uint32_t tenant, float *v)
{
    const struct stk_state *s = state(w);
    const struct stk_live_counts *c = stk_live_counts(w->d->live);

    v[STK_SERIES_TENANT_STARTED] = v[STK_SERIES_TENANT_WAITED] = 0;
    for (uint32_t i = 0; i < s->n_tenants && i < c->n_tenants; i++) {
        uint32_t at = i + 1;

        while (at && at - 1 != tenant)
            at = s->tenants[at - 1].parent;
        if (!at)
            continue;
        v[STK_SERIES_TENANT_STARTED] +=
            (float)(c->tenant[i].starts - (i < w->seen.n_tenants ? w->seen.tenant[i].starts : 0));
        v[STK_SERIES_TENANT_WAITED] +=
            (float)(c->tenant[i].waited - (i < w->seen.n_tenants ? w->seen.tenant[i].waited : 0)) /
            1e6f;
    }
}

static float gpus(uint64_t milli, uint64_t none)
{
    return milli == none ? NAN : (float)milli / 1000;
}

static void put_tenant(struct stk_sampler *w, uint32_t i, const struct tally *n)
{
    const struct stk_state *s = state(w);
    const struct stk_series_at at = {STK_SERIES_TENANT, stk_series_id(s->tenants[i].name), 0, 1};
    float v[STK_SERIES_TENANT_FIELDS];

    v[STK_SERIES_TENANT_USED] = gpus(*stk_tenant_used(s, i, STK_ALL_TYPES), UINT64_MAX);
    v[STK_SERIES_TENANT_ACTIVE] = (float)n->active;
    v[STK_SERIES_TENANT_GUARANTEE] = gpus(*stk_tenant_guarantee(s, i, STK_ALL_TYPES), UINT64_MAX);
    v[STK_SERIES_TENANT_LIMIT] = gpus(*stk_tenant_limit(s, i, STK_ALL_TYPES), STK_NO_LIMIT);
    v[STK_SERIES_TENANT_DUE] = gpus(stk_core_due(stk_live_core(w->d->live), i), UINT64_MAX);
    v[STK_SERIES_TENANT_WAITING] = gpus(stk_share_waiting(s, i), UINT64_MAX);
    v[STK_SERIES_TENANT_RUNNING] = (float)n->running;
    v[STK_SERIES_TENANT_QUEUED] = (float)n->waiting;
    fill_counts(w, i, v);
    stk_series_put(w->series, &at, v);
}

void stk_sample_put_tenants(struct stk_sampler *w)
{
    const struct stk_state *s = state(w);
    struct tally *n = s->n_tenants ? calloc(s->n_tenants, sizeof(*n)) : NULL;

    if (!n)
        return;
    tally_jobs(s, n);
    tally_active(w, n);
    for (uint32_t i = 0; i < s->n_tenants; i++)
        put_tenant(w, i, &n[i]);
    free(n);
}

/* ---- the whole ---- */

static float waiting_gpus(struct stk_sampler *w, const struct stk_state *s)
{
    double sum = 0;
    uint32_t left = s->n_waiting;

    w->oldest = 0;
    for (uint32_t i = 0; i < s->n_jobs && left > 0; i++) {
        const struct stk_job *j = &s->jobs[i];
        uint32_t milli;

        if (j->state != STK_JOB_WAITING)
            continue;
        left--;
        if (j->queued > 0 && !j->slept && (w->oldest == 0 || j->queued < w->oldest)) {
            w->oldest = j->queued;
            w->oldest_job = j->number;
        }
        milli = s->shapes[j->shape].demand.gpu_milli;
        sum += milli ? (double)j->gpus * milli / 1000 : (double)j->gpus;
    }
    return (float)sum;
}

static uint64_t all_ended(const struct stk_live_counts *c)
{
    uint64_t n = 0;

    for (int i = 0; i < STK_CAUSE_MAX; i++)
        n += c->ended[i];
    return n;
}

struct sums {
    double gpus, off, alloc, work, power, util;
    uint32_t n_power, n_util;
};

static void sum_gpu(const struct stk_sampler *w, uint32_t node, uint32_t gpu, struct sums *t)
{
    const struct stk_gpu_sample *r = stk_sample_reading(w->d, node, gpu);

    t->alloc += stk_sample_use(w, node, gpu)->alloc;
    t->work += stk_sample_use(w, node, gpu)->at_work;
    if (r && r->value[STK_GPU_POWER_W].known && ++t->n_power)
        t->power += r->value[STK_GPU_POWER_W].v;
    if (r && r->value[STK_GPU_UTIL].known && ++t->n_util)
        t->util += r->value[STK_GPU_UTIL].v / 100;
}

static struct sums sum_gpus(const struct stk_sampler *w)
{
    const struct stk_state *s = state(w);
    struct sums t = {0};

    for (uint32_t n = 0; n < s->n_nodes; n++) {
        t.gpus += s->nodes[n].gpus;
        t.off += __builtin_popcountll(s->nodes[n].mask_off);
        for (uint32_t g = 0; g < s->nodes[n].gpus && g < STK_MAX_NODE_GPUS; g++)
            sum_gpu(w, n, g, &t);
    }
    return t;
}

void stk_sample_put_cluster(struct stk_sampler *w)
{
    const struct stk_state *s = state(w);
    const struct stk_live_counts *c = stk_live_counts(w->d->live);
    const struct stk_series_at at = {STK_SERIES_CLUSTER, 0, 0, 1};
    const struct sums t = sum_gpus(w);
    float v[STK_SERIES_CLUSTER_FIELDS];

    v[STK_SERIES_CLUSTER_GPUS] = (float)t.gpus;
    v[STK_SERIES_CLUSTER_ALLOCATED] = (float)t.alloc;
    v[STK_SERIES_CLUSTER_ACTIVE] = (float)t.work;
    v[STK_SERIES_CLUSTER_OFF] = (float)t.off;
    v[STK_SERIES_CLUSTER_RUNNING] = (float)s->n_leased;
    v[STK_SERIES_CLUSTER_QUEUED] = (float)s->n_waiting;
    v[STK_SERIES_CLUSTER_WAITING] = waiting_gpus(w, s);
    v[STK_SERIES_CLUSTER_STARTED] = (float)(c->wait.count - w->seen.starts);
    v[STK_SERIES_CLUSTER_WAITED] = (float)(c->wait.sum - w->seen.waited_s);
    v[STK_SERIES_CLUSTER_ENDED] = (float)(all_ended(c) - w->seen.ended);
    v[STK_SERIES_CLUSTER_PREEMPTED] = (float)(stk_preemptions(c) - w->seen.preempted);
    v[STK_SERIES_CLUSTER_POWER] = t.n_power ? (float)t.power : NAN;
    v[STK_SERIES_CLUSTER_UTILIZATION] = t.n_util ? (float)(t.util / t.n_util) : NAN;
    stk_series_put(w->series, &at, v);
}

void stk_sample_count(struct stk_sampler *w)
{
    const struct stk_live_counts *c = stk_live_counts(w->d->live);
    struct stk_live_counts_seen *s = &w->seen;
    void *more = c->n_tenants > s->n_tenants ? realloc(s->tenant, c->n_tenants * sizeof(*s->tenant))
                                             : s->tenant;

    s->starts = c->wait.count;
    s->waited_s = c->wait.sum;
    s->ended = all_ended(c);
    s->preempted = stk_preemptions(c);
    if (!more)
        return;
    s->tenant = more;
    s->n_tenants = c->n_tenants;
    for (uint32_t i = 0; i < c->n_tenants; i++) {
        s->tenant[i].starts = c->tenant[i].starts;
        s->tenant[i].waited = c->tenant[i].waited;
    }
}
