/* SPDX-License-Identifier: Apache-2.0 */
/* told.c - which jobs the daemon was told of, and how they looked: only what looks different is
 * told again.
 *
 * There are two sources, in two threads: answers with all jobs, which take long, and answers about
 * one. An answer that was asked for before something newer was told, or before the job was changed
 * by us, does not take that back: each job has that time, and an answer asked for before passes
 * over it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "libslurm/helper.h"
#include "libslurm/names.h"
#include "sys/big.h"

#define LINE_JOBS 500u

struct known {
    uint32_t id, seen;
    uint64_t digest;
    int64_t alone; /* ms: when it was asked for alone, or changed, last */
    char *nodes;   /* "n[1-3]", while it is there; else NULL */
};

struct stk_slurm_told {
    pthread_mutex_t lock;
    struct stk_mem mem;
    struct stk_map by_id; /* to its place in jobs */
    struct known *jobs;
    uint32_t n_jobs, cap_jobs, round, highest;
    bool all;               /* all were told once */
    json_t *changed, *gone; /* of the answer that is taken in */
};

struct stk_slurm_told *stk_slurm_told_new(void)
{
    struct stk_slurm_told *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->mem = stk_big_mem;
    t->changed = json_array();
    t->gone = json_array();
    (void)pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void drop_all(struct stk_slurm_told *t)
{
    for (uint32_t i = 0; i < t->n_jobs; i++)
        free(t->jobs[i].nodes);
    t->n_jobs = 0;
}

void stk_slurm_told_free(struct stk_slurm_told *t)
{
    if (!t)
        return;
    drop_all(t);
    stk_map_done(&t->by_id, &t->mem);
    stk_mem_drop(&t->mem, &t->jobs, &t->cap_jobs, sizeof(*t->jobs));
    json_decref(t->changed);
    json_decref(t->gone);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

void stk_slurm_told_clear(struct stk_slurm_told *t)
{
    (void)pthread_mutex_lock(&t->lock);
    t->all = false;
    drop_all(t);
    t->highest = 0;
    stk_map_done(&t->by_id, &t->mem);
    (void)pthread_mutex_unlock(&t->lock);
}

uint32_t stk_slurm_told_highest(struct stk_slurm_told *t)
{
    uint32_t highest;

    (void)pthread_mutex_lock(&t->lock);
    highest = t->all ? t->highest : 0;
    (void)pthread_mutex_unlock(&t->lock);
    return highest;
}

static void flush(struct stk_slurm_told *t, bool all, bool last)
{
    if (!last && json_array_size(t->changed) < LINE_JOBS)
        return;
    if (json_array_size(t->changed) + json_array_size(t->gone) > 0 || (all && last))
        stk_slurm_say(json_pack("{s:s,s:b,s:b,s:O,s:O}", "op", "jobs", "all", all, "last", last,
                                "jobs", t->changed, "gone", t->gone));
    (void)json_array_clear(t->changed);
    (void)json_array_clear(t->gone);
}

/* Its row, made when it is new; NULL: no memory, and it is told when there is. */
static struct known *row(struct stk_slurm_told *t, uint32_t id, uint64_t digest)
{
    uint32_t at = stk_map_get(&t->by_id, id);

    if (at == UINT32_MAX) {
        if (stk_mem_grow(&t->mem, &t->jobs, &t->cap_jobs, t->n_jobs + 1, sizeof(*t->jobs)) < 0 ||
            stk_map_reserve(&t->by_id, &t->mem, t->n_jobs + 1) < 0)
            return NULL;
        at = t->n_jobs++;
        t->jobs[at] = (struct known){.id = id, .digest = ~digest};
        stk_map_put(&t->by_id, id, at);
        t->highest = id > t->highest ? id : t->highest;
    }
    return &t->jobs[at];
}

static bool is_there(const slurm_job_info_t *j)
{
    return (j->job_state & JOB_STATE_BASE) == JOB_RUNNING || (j->job_state & JOB_COMPLETING);
}

static void note(struct stk_slurm_told *t, const slurm_job_info_t *j, int64_t asked, bool alone)
{
    uint64_t h = stk_slurm_job_digest(j);
    struct known *k = row(t, j->job_id, h);

    if (!k)
        return;
    k->seen = t->round;
    if (k->alone > asked || (!alone && k->alone == asked))
        return;
    if (alone)
        k->alone = asked;
    if (k->digest == h)
        return;
    k->digest = h;
    (void)json_array_append_new(t->changed, stk_slurm_job(j));
    free(k->nodes);
    k->nodes = is_there(j) && j->nodes ? strdup(j->nodes) : NULL;
}

struct looking {
    const char *node;
    bool found;
};

static int is_node(void *ctx, const char *name)
{
    struct looking *l = ctx;

    l->found = l->found || strcmp(l->node, name) == 0;
    return 0;
}

uint32_t stk_slurm_told_on(struct stk_slurm_told *t, const char *node, uint32_t *ids, uint32_t max)
{
    uint32_t n = 0;

    (void)pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < t->n_jobs && n < max; i++) {
        struct looking l = {.node = node};

        if (t->jobs[i].nodes)
            (void)stk_slurm_hosts(t->jobs[i].nodes, is_node, &l);
        if (l.found)
            ids[n++] = t->jobs[i].id;
    }
    (void)pthread_mutex_unlock(&t->lock);
    return n;
}

void stk_slurm_told_changed(struct stk_slurm_told *t, uint32_t id, int64_t now)
{
    uint32_t at;

    (void)pthread_mutex_lock(&t->lock);
    at = stk_map_get(&t->by_id, id);
    if (at != UINT32_MAX)
        t->jobs[at].alone = now;
    (void)pthread_mutex_unlock(&t->lock);
}

void stk_slurm_told_sent(struct stk_slurm_told *t, uint32_t id, int64_t now)
{
    struct known *k;

    (void)pthread_mutex_lock(&t->lock);
    k = t->all ? row(t, id, 0) : NULL;
    if (k)
        k->alone = now;
    (void)pthread_mutex_unlock(&t->lock);
}

/* Those that Slurm has forgotten: it does, some minutes after they ended, and when it lost them. */
static void forget(struct stk_slurm_told *t, int64_t asked)
{
    for (uint32_t i = t->n_jobs; i-- > 0;) {
        if (t->jobs[i].seen == t->round || t->jobs[i].alone >= asked)
            continue;
        (void)json_array_append_new(t->gone, json_integer(t->jobs[i].id));
        stk_map_remove(&t->by_id, t->jobs[i].id);
        free(t->jobs[i].nodes);
        t->jobs[i] = t->jobs[--t->n_jobs];
        if (i < t->n_jobs) {
            stk_map_remove(&t->by_id, t->jobs[i].id);
            stk_map_put(&t->by_id, t->jobs[i].id, i);
        }
    }
}

void stk_slurm_told_whole(struct stk_slurm_told *t, const job_info_msg_t *m, int64_t asked)
{
    bool all;

    (void)pthread_mutex_lock(&t->lock);
    all = !t->all;
    t->round++;
    for (uint32_t i = 0; i < m->record_count; i++) {
        note(t, &m->job_array[i], asked, false);
        flush(t, all, false);
    }
    forget(t, asked);
    flush(t, all, true);
    t->all = true;
    (void)pthread_mutex_unlock(&t->lock);
}

void stk_slurm_told_one(struct stk_slurm_told *t, const job_info_msg_t *m, int64_t asked)
{
    (void)pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < m->record_count && t->all; i++)
        note(t, &m->job_array[i], asked, true);
    if (t->all)
        flush(t, false, true);
    (void)pthread_mutex_unlock(&t->lock);
}
