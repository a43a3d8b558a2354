/* SPDX-License-Identifier: Apache-2.0 */
/* sample_jobs.c - what jobs do: the CPU time and memory of their processes, and their GPUs as last
 * read. All processes are listed once and each is followed to its job through its parents, so a
 * look costs one pass over the processes and one over the jobs that run.
 *
 * Virtual GPUs cannot be read: one is at work while the processes of its job use CPU time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "daemon/idleness.h"
#include "daemon/sample.h"

#define MAX_DEPTH 64
#define MAX_JOBS 4096u /* sampled at a time */
#define STALE_US INT64_C(60000000)
#define IDLE_SHARE 0.02 /* of its GPUs: below this it does nothing */

struct stk_gpu_use *stk_sample_use(const struct stk_sampler *w, uint32_t node, uint32_t gpu)
{
    return &w->gpus[(size_t)node * STK_MAX_NODE_GPUS + gpu];
}

const struct stk_gpu_sample *stk_sample_reading(const struct stk_daemon *d, uint32_t node,
                                                uint32_t gpu)
{
    const struct stk_gpus *t = &d->machine.gpus;
    const uint64_t read = stk_machine_read_mask(&d->machine, node, UINT64_C(1) << gpu);
    const uint32_t i = read ? (uint32_t)__builtin_ctzll(read) : t->n;
    const struct stk_gpu_sample *s = i < t->n ? &t->gpu[i].now : NULL;

    return s && s->at_us > 0 && d->clock.wall - s->at_us <= STALE_US ? s : NULL;
}

/* ---- who is there ---- */

static struct stk_sampled *find(const struct stk_sampler *w, stk_job_number number)
{
    uint32_t at = stk_map_get(&w->by_number, number);

    return at == UINT32_MAX ? NULL : &w->list[at];
}

static void meet(void *ctx, stk_job_number number)
{
    struct stk_sampler *w = ctx;
    struct stk_sampled *j = find(w, number);

    if (!j) {
        if (w->n >= MAX_JOBS || stk_map_reserve(&w->by_number, &w->mem, w->n + 1) < 0 ||
            stk_mem_grow(&w->mem, &w->list, &w->cap, w->n + 1, sizeof(*w->list)) < 0)
            return;
        j = &w->list[w->n];
        *j = (struct stk_sampled){.number = number};
        stk_map_put(&w->by_number, number, w->n++);
    }
    j->here = true;
}

/* Those that are gone, once what they used is written down. */
static void sweep(struct stk_sampler *w)
{
    for (uint32_t i = 0; i < w->n;) {
        if (w->list[i].here || w->list[i].usage.seen_s > 0) {
            i++;
            continue;
        }
        stk_map_remove(&w->by_number, w->list[i].number);
        w->list[i] = w->list[--w->n];
        if (i < w->n)
            stk_map_put(&w->by_number, w->list[i].number, i);
    }
}

/* ---- processes ---- */

struct table { /* all processes, and which job each is of */
    struct stk_proc *list;
    size_t n;
    struct stk_map
        root; /* pid of a supervisor or an adopted process: place in the sampler's list */
};

static void add_root(struct stk_sampler *w, struct table *t, pid_t pid, uint32_t i)
{
    if (pid > 0 && stk_map_reserve(&t->root, &w->mem, t->root.n + 1) == 0)
        stk_map_put(&t->root, (uint32_t)pid, i);
}

static void add_roots(struct stk_sampler *w, struct table *t)
{
    struct stk_local_info info;

    for (uint32_t i = 0; i < w->n; i++) {
        if (!w->list[i].here || stk_local_info(w->d->engine, w->list[i].number, &info) < 0)
            continue;
        add_root(w, t, info.shim, i);
        for (uint32_t k = 0; k < info.n_tasks; k++)
            if (!info.tasks[k].ended)
                add_root(w, t, info.tasks[k].pid, i);
    }
}

static uint32_t job_of(const struct table *t, const struct stk_proc *p)
{
    for (int depth = 0; p && p->pid > 1 && depth < MAX_DEPTH; depth++) {
        uint32_t at = stk_map_get(&t->root, (uint32_t)p->pid);

        if (at != UINT32_MAX)
            return at;
        p = stk_proc_find(t->list, t->n, p->ppid);
    }
    return UINT32_MAX;
}

static void look_processes(struct stk_sampler *w, double dt)
{
    const double tick = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    uint64_t *ticks = calloc(w->n + 1u, sizeof(*ticks));
    struct table t = {0};

    if (!ticks || stk_proc_list(&t.list, &t.n) < 0) {
        free(ticks);
        return;
    }
    add_roots(w, &t);
    for (size_t i = 0; i < t.n; i++) {
        uint32_t at = job_of(&t, &t.list[i]);

        if (at == UINT32_MAX)
            continue;
        ticks[at] += t.list[i].cpu;
        w->list[at].rss_mib += (double)t.list[i].rss * page / 1048576;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        struct stk_sampled *j = &w->list[i];

        j->cpus = j->known && ticks[i] > j->ticks && dt > 0
                      ? (double)(ticks[i] - j->ticks) / tick / dt
                      : 0;
        j->ticks = ticks[i];
    }
    stk_map_done(&t.root, &w->mem);
    free(t.list);
    free(ticks);
}

/* ---- GPUs ---- */

/* What its own processes do on a GPU that it shares; NaN: not known. */
static double shared_sm(struct stk_daemon *d, const struct stk_gpu_sample *s, stk_job_number number)
{
    double sum = 0;

    if (!s->procs_known)
        return NAN;
    for (uint32_t i = 0; i < s->n_procs; i++)
        if (s->proc[i].sm.known && stk_daemon_job_of(d, s->proc[i].pid, s->proc[i].uid) == number)
            sum += s->proc[i].sm.v / 100;
    return sum < 1 ? sum : 1;
}

struct at { /* a GPU of a job */
    uint32_t node, gpu;
    double part; /* of it */
    bool shared;
};

static double activity(const struct stk_sampler *w, const struct stk_sampled *j,
                       const struct at *at)
{
    const struct stk_gpu_sample *s;

    if (w->d->machine.is_virtual)
        return j->cpus >= STK_IDLE_CPU ? 1 : 0;
    s = stk_sample_reading(w->d, at->node, at->gpu);
    if (!s)
        return NAN;
    if (at->shared)
        return shared_sm(w->d, s, j->number);
    return s->value[STK_GPU_UTIL].known ? s->value[STK_GPU_UTIL].v / 100 : NAN;
}

/* Calls 'fn' for each of its GPUs, in order. */
static void each_gpu(struct stk_sampler *w, struct stk_sampled *j,
                     void (*fn)(struct stk_sampler *w, struct stk_sampled *j, const struct at *at,
                                void *ctx),
                     void *ctx)
{
    const struct stk_core *core = stk_live_core(w->d->live);
    const struct stk_state *s = stk_core_state(core);
    uint32_t slot = stk_core_find(core, j->number);
    const struct stk_job *job = slot == STK_NONE ? NULL : &s->jobs[slot];
    const struct stk_demand *of = job ? &s->shapes[job->shape].demand : NULL;

    j->n_gpus = 0;
    for (uint32_t i = 0; job && job->lease && i < job->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[job->first_piece + i];

        for (uint64_t m = p->mask; m; m &= m - 1) {
            const struct at at = {p->node.i, (uint32_t)__builtin_ctzll(m),
                                  of->gpu_milli ? of->gpu_milli / 1000.0 : 1, of->gpu_milli != 0};

            fn(w, j, &at, ctx);
            j->n_gpus++;
        }
    }
}

static void look_gpu(struct stk_sampler *w, struct stk_sampled *j, const struct at *at, void *ctx)
{
    double a = activity(w, j, at), work = isnan(a) ? 0 : a * at->part;

    (void)ctx;
    j->unknown = j->unknown || isnan(a);
    if (j->n_gpus < STK_USAGE_GPUS)
        j->active[j->n_gpus] = a;
    j->gpus += at->part;
    j->measured += isnan(a) ? 0 : at->part;
    j->at_work += work;
    stk_sample_use(w, at->node, at->gpu)->alloc += (float)at->part;
    stk_sample_use(w, at->node, at->gpu)->at_work += (float)work;
}

/* Where processes cannot be looked at: what jobs were given is known all the same. */
static void book_all(const struct stk_sampler *w, const struct stk_state *s)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        uint32_t milli;

        if (!j->lease) /* nor need it have a shape: its place may be free */
            continue;
        milli = s->shapes[j->shape].demand.gpu_milli;
        for (uint32_t k = 0; k < j->n_pieces; k++) {
            const struct stk_piece *p = &s->pieces[j->first_piece + k];

            for (uint64_t m = p->mask; m; m &= m - 1)
                stk_sample_use(w, p->node.i, (uint32_t)__builtin_ctzll(m))->alloc +=
                    milli ? (float)milli / 1000 : 1;
        }
    }
}

void stk_sample_jobs(struct stk_sampler *w, double dt)
{
    const struct stk_core *core = stk_live_core(w->d->live);
    const struct stk_state *s = stk_core_state(core);

    memset(w->gpus, 0, (size_t)s->n_nodes * STK_MAX_NODE_GPUS * sizeof(*w->gpus));
    for (uint32_t i = 0; i < w->n; i++) {
        w->list[i].here = false;
        w->list[i].rss_mib = w->list[i].gpus = w->list[i].at_work = w->list[i].measured = 0;
        w->list[i].unknown = false;
    }
    if (w->d->slurm)
        book_all(w, s);
    if (!w->d->slurm) { /* else its processes are elsewhere */
        stk_local_each(w->d->engine, meet, w);
        look_processes(w, dt);
    }
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t slot = stk_core_find(core, w->list[i].number);

        w->list[i].here = w->list[i].here && slot != STK_NONE && s->jobs[slot].lease;
        if (w->list[i].here)
            each_gpu(w, &w->list[i], look_gpu, NULL);
    }
}

/* ---- into the series ---- */

static void more(float *sum, double v)
{
    *sum = (isnan(*sum) ? 0 : *sum) + (float)v;
}

static void add_reading(struct stk_sampler *w, struct stk_sampled *j, const struct at *at,
                        void *ctx)
{
    const struct stk_gpu_sample *s = stk_sample_reading(w->d, at->node, at->gpu);
    float *v = ctx;

    if (s && s->value[STK_GPU_MEM_USED_MIB].known)
        more(&v[STK_SERIES_JOB_GPU_MEMORY], s->value[STK_GPU_MEM_USED_MIB].v * at->part);
    if (s && s->value[STK_GPU_POWER_W].known)
        more(&v[STK_SERIES_JOB_POWER], s->value[STK_GPU_POWER_W].v * at->part);
    if (s && j->n_gpus < STK_USAGE_GPUS && !isnan(j->active[j->n_gpus]))
        more(&v[STK_SERIES_JOB_UTILIZATION], j->active[j->n_gpus]);
}

/* One of several: which of them does what. */
static void put_gpu(struct stk_sampler *w, struct stk_sampled *j, const struct at *at, void *ctx)
{
    const struct stk_gpu_sample *s = stk_sample_reading(w->d, at->node, at->gpu);
    const uint32_t *members = ctx;
    const double active = j->n_gpus < STK_USAGE_GPUS ? j->active[j->n_gpus] : NAN;
    float v[STK_SERIES_JOB_GPU_FIELDS] = {(float)at->gpu, (float)active, NAN, NAN, NAN};

    if (s)
        v[STK_SERIES_JOB_GPU_UTILIZATION] = (float)active;
    if (s && s->value[STK_GPU_MEM_USED_MIB].known)
        v[STK_SERIES_JOB_GPU_MEM] = (float)(s->value[STK_GPU_MEM_USED_MIB].v * at->part);
    if (s && s->value[STK_GPU_POWER_W].known)
        v[STK_SERIES_JOB_GPU_WATTS] = (float)(s->value[STK_GPU_POWER_W].v * at->part);
    stk_series_put(
        w->series,
        &(struct stk_series_at){STK_SERIES_JOB_GPU, (int64_t)j->number, j->n_gpus, *members}, v);
}

static void put_gpus(struct stk_sampler *w, struct stk_sampled *j)
{
    uint32_t members = j->n_gpus < STK_USAGE_GPUS ? j->n_gpus : STK_USAGE_GPUS;

    if (members > 1)
        each_gpu(w, j, put_gpu, &members);
}

static void add_usage(struct stk_sampled *j, const float *v, double dt)
{
    struct stk_usage *u = &j->usage;

    u->seen_s += dt;
    u->gpu_s += j->measured * dt;
    u->active_s += j->at_work * dt;
    u->cpu_s += j->cpus * dt;
    u->mem_mib = j->rss_mib > u->mem_mib ? j->rss_mib : u->mem_mib;
    if (!isnan(v[STK_SERIES_JOB_POWER]))
        u->energy_j += v[STK_SERIES_JOB_POWER] * dt;
    if (v[STK_SERIES_JOB_GPU_MEMORY] > u->gpu_mem_mib)
        u->gpu_mem_mib = v[STK_SERIES_JOB_GPU_MEMORY];
    for (uint32_t k = 0; k < j->n_gpus && k < STK_USAGE_GPUS; k++) {
        if (isnan(j->active[k]))
            continue;
        u->had[k] += (float)dt;
        u->active[k] += (float)(j->active[k] * dt);
    }
}

/* Of the time since the last look, how long it had its lease: no more than that was measured. */
static double leased_s(const struct stk_entry *e, stk_time now, double dt)
{
    const struct stk_lease *l = e ? &e->rec.lease : NULL;
    const double since = l && l->from > 0 && l->to == 0 ? (double)(now - l->from) / 1e6 : 0;

    return since < dt ? (since > 0 ? since : 0) : dt;
}

static void put_job(struct stk_sampler *w, struct stk_sampled *j, double dt)
{
    const struct stk_entry *e = stk_live_entry(w->d->live, j->number);
    const json_t *step = e ? json_object_get(e->progress, "step") : NULL;
    float v[STK_SERIES_JOB_FIELDS];

    for (int f = 0; f < STK_SERIES_JOB_FIELDS; f++)
        v[f] = NAN;
    v[STK_SERIES_JOB_GPUS] = (float)j->gpus;
    v[STK_SERIES_JOB_ACTIVE] = (float)j->at_work;
    v[STK_SERIES_JOB_CPUS] = (float)j->cpus;
    v[STK_SERIES_JOB_MEMORY] = (float)j->rss_mib;
    each_gpu(w, j, add_reading, v);
    if (j->n_gpus > 0)
        v[STK_SERIES_JOB_UTILIZATION] /= (float)j->n_gpus;
    if (json_is_number(step))
        v[STK_SERIES_JOB_STEP] = (float)json_number_value(step);
    stk_series_put(w->series, &(struct stk_series_at){STK_SERIES_JOB, (int64_t)j->number, 0, 1}, v);
    put_gpus(w, j);
    add_usage(j, v, leased_s(e, w->d->clock.now, dt));
}

/* A job that takes turns does nothing while it is another's. */
static void note_idle(struct stk_sampler *w, struct stk_sampled *j, stk_time now, double dt)
{
    struct stk_local_turn turn;

    j->worked = j->worked || (j->gpus > 0 && !j->unknown && j->at_work >= IDLE_SHARE * j->gpus);
    if (j->gpus <= 0 || j->unknown || j->at_work >= IDLE_SHARE * j->gpus ||
        (stk_local_turn(w->d->engine, j->number, &turn) && !turn.has))
        j->idle_since = 0;
    else if (j->idle_since == 0)
        j->idle_since = now - (stk_time)(dt * 1e6);
}

void stk_sample_put_jobs(struct stk_sampler *w, double dt)
{
    for (uint32_t i = 0; i < w->n; i++) {
        struct stk_sampled *j = &w->list[i];

        if (j->here && j->known) {
            put_job(w, j, dt);
            note_idle(w, j, w->d->clock.now, dt);
        }
        j->known = j->known || j->here;
    }
    sweep(w);
}
