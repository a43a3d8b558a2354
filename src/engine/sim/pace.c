/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sim/pace.h"

#include <math.h>
#include <string.h>

int stk_pace_init(struct stk_pace *p, const struct stk_pace_config *cfg, const struct stk_mem *mem)
{
    uint32_t gpus = 0;

    *p = (struct stk_pace){.cfg = *cfg, .mem = *mem, .least = 1};
    if (!cfg->speeds)
        return 0;
    if (stk_mem_grow(mem, &p->first, &p->cap_first, cfg->n_nodes + 1, sizeof(*p->first)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < cfg->n_nodes; i++) {
        p->first[i] = gpus;
        gpus += cfg->nodes[i].gpus;
    }
    return stk_mem_grow(mem, &p->on, &p->cap_on, gpus + 1, sizeof(*p->on));
}

void stk_pace_done(struct stk_pace *p)
{
    for (uint32_t i = 0; i < p->cap_jobs; i++)
        stk_mem_drop(&p->mem, &p->jobs[i].pieces, &p->jobs[i].cap_pieces,
                     sizeof(*p->jobs[i].pieces));
    stk_mem_drop(&p->mem, &p->jobs, &p->cap_jobs, sizeof(*p->jobs));
    stk_mem_drop(&p->mem, &p->first, &p->cap_first, sizeof(*p->first));
    stk_mem_drop(&p->mem, &p->on, &p->cap_on, sizeof(*p->on));
    stk_mem_drop(&p->mem, &p->changed, &p->cap_changed, sizeof(*p->changed));
    stk_mem_drop(&p->mem, &p->running, &p->cap_running, sizeof(*p->running));
}

int stk_pace_work(struct stk_pace *p, uint32_t job, uint32_t row, uint64_t steps)
{
    struct stk_pacer *j;

    if (stk_mem_grow(&p->mem, &p->jobs, &p->cap_jobs, job + 1, sizeof(*p->jobs)) < 0)
        return -ENOMEM;
    j = &p->jobs[job];
    *j = (struct stk_pacer){.left = steps,
                            .row = row,
                            .counts = steps > 0,
                            .pieces = j->pieces,
                            .cap_pieces = j->cap_pieces};
    return 0;
}

bool stk_pace_counts(const struct stk_pace *p, uint32_t job)
{
    return job < p->cap_jobs && p->jobs[job].counts;
}

static double seconds(stk_time t)
{
    return (double)t / (double)STK_SECOND;
}

/* Whole steps in one round; 0: rounds do not matter, or are too short for one. */
static uint64_t per_round(const struct stk_pace *p, const struct stk_pacer *j)
{
    return p->cfg.steps > 0 ? (uint64_t)(j->speed * seconds(p->cfg.steps)) : 0;
}

uint64_t stk_pace_left(const struct stk_pace *p, uint32_t job, stk_time now)
{
    const struct stk_pacer *j = &p->jobs[job];
    stk_time ran = j->runs && now > j->since ? now - j->since : 0;
    uint64_t round = per_round(p, j), did = 0;

    if (round > 0) {
        did = (uint64_t)(ran / p->cfg.steps) * round;
        ran %= p->cfg.steps;
    }
    did += (uint64_t)(seconds(ran) * j->speed + 1e-6);
    return did < j->left ? j->left - did : 0;
}

stk_time stk_pace_end(const struct stk_pace *p, uint32_t job)
{
    const struct stk_pacer *j = &p->jobs[job];
    uint64_t round = per_round(p, j), full = 0;
    double us;

    if (j->left == 0)
        return j->since;
    if (!(j->speed > 0))
        return STK_NEVER_TIME;
    if (round > 0)
        full = (j->left - 1) / round;
    us = (double)full * (double)p->cfg.steps +
         ceil((double)(j->left - full * round) / j->speed * (double)STK_SECOND);
    return us < (double)(STK_MAX_DURATION - j->since) ? j->since + (stk_time)us : STK_NEVER_TIME;
}

/* ---- who is where ---- */

static bool meet(const struct stk_pacer *a, const struct stk_pacer *b)
{
    for (uint32_t i = 0; i < a->n_pieces; i++)
        for (uint32_t k = 0; k < b->n_pieces; k++)
            if (a->pieces[i].node.i == b->pieces[k].node.i &&
                (a->pieces[i].mask & b->pieces[k].mask))
                return true;
    return false;
}

/* Steps per second with those that share a GPU with it. */
static double speed_of(struct stk_pace *p, uint32_t job)
{
    const struct stk_pacer *j = &p->jobs[job];
    const struct stk_speeds *s = p->cfg.speeds;
    double alone = stk_speed_alone(s, j->row, j->type, false), keeps = 1;

    for (uint32_t i = 0; j->shared && alone > 0 && i < p->n_running; i++) {
        const struct stk_pacer *o = &p->jobs[p->running[i]];

        if (p->running[i] != job && meet(j, o))
            keeps *= stk_speed_beside(s, j->row, o->row, j->type) / alone;
    }
    p->least = keeps < p->least ? keeps : p->least;
    return stk_speed_alone(s, j->row, j->type, j->spread) * keeps;
}

/* Counts what it did so far; from now on it goes as fast as it can now. */
static void repace(struct stk_pace *p, uint32_t job, stk_time now)
{
    struct stk_pacer *j = &p->jobs[job];

    j->left = stk_pace_left(p, job, now);
    j->since = now > j->since ? now : j->since;
    j->speed = speed_of(p, job);
    p->changed[p->n_changed++] = job;
}

/* Adds the job to its GPUs, or takes it off. True: others are, or were, on one of them. */
static bool take_gpus(struct stk_pace *p, const struct stk_pacer *j, bool on)
{
    bool shared = false;

    for (uint32_t i = 0; i < j->n_pieces; i++)
        for (uint64_t m = j->pieces[i].mask; m; m &= m - 1) {
            uint16_t *n = &p->on[p->first[j->pieces[i].node.i] + (uint32_t)__builtin_ctzll(m)];

            if (!on)
                --*n;
            shared |= *n > 0;
            if (on)
                ++*n;
        }
    return shared;
}

static void remember(struct stk_pace *p, uint32_t job)
{
    p->jobs[job].shared = true;
    p->running[p->n_running++] = job;
}

static void forget(struct stk_pace *p, uint32_t job)
{
    for (uint32_t i = 0; i < p->n_running; i++)
        if (p->running[i] == job) {
            p->running[i] = p->running[--p->n_running];
            return;
        }
}

/* The job came or went: those on its GPUs go at another speed. */
static void repace_others(struct stk_pace *p, uint32_t job, stk_time now)
{
    for (uint32_t i = 0; i < p->cap_jobs; i++) {
        struct stk_pacer *o = &p->jobs[i];

        if (i == job || !o->runs || !meet(&p->jobs[job], o))
            continue;
        if (!o->shared)
            remember(p, i);
        repace(p, i, now);
    }
}

static int reserve(struct stk_pace *p, struct stk_pacer *j, uint32_t pieces)
{
    if (stk_mem_grow(&p->mem, &p->changed, &p->cap_changed, p->cap_jobs, sizeof(*p->changed)) < 0 ||
        stk_mem_grow(&p->mem, &p->running, &p->cap_running, p->cap_jobs, sizeof(*p->running)) < 0)
        return -ENOMEM;
    return stk_mem_grow(&p->mem, &j->pieces, &j->cap_pieces, pieces, sizeof(*j->pieces));
}

int stk_pace_start(struct stk_pace *p, stk_time now, const struct stk_start *s, stk_time delay)
{
    struct stk_pacer *j = &p->jobs[s->job.i];

    if (reserve(p, j, s->n_pieces) < 0)
        return -ENOMEM;
    memcpy(j->pieces, s->pieces, s->n_pieces * sizeof(*j->pieces));
    j->n_pieces = s->n_pieces;
    j->type = p->cfg.nodes[s->pieces[0].node.i].gpu_type;
    j->spread = s->n_pieces > 1;
    j->since = now + delay;
    p->n_changed = 0;
    if (take_gpus(p, j, true)) {
        remember(p, s->job.i);
        repace_others(p, s->job.i, now);
    }
    j->runs = true;
    j->speed = speed_of(p, s->job.i);
    p->changed[p->n_changed++] = s->job.i;
    return 0;
}

void stk_pace_stop(struct stk_pace *p, stk_time now, uint32_t job)
{
    struct stk_pacer *j = &p->jobs[job];

    j->left = stk_pace_left(p, job, now);
    j->runs = false;
    p->n_changed = 0;
    if (j->shared)
        forget(p, job);
    j->shared = false;
    if (take_gpus(p, j, false))
        repace_others(p, job, now);
}
