/* SPDX-License-Identifier: Apache-2.0 */
/* told.c - which jobs the daemon was told of, and how they looked: only what looks different is
 * told again.
 *
 * There are two sources, in two threads: answers with all jobs, which take long, and answers about
 * one. An answer that was asked for before something newer was told, or before the job was changed
 * by us, does not take that back: each job has that time, and an answer asked for before passes
 * over it.
 *
 * What is told at once may be much, and part of it is written by users: a line ends when it has so
 * many bytes, and no text of a job is longer than it is of use (job.c). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "libslurm/helper.h"
#include "libslurm/names.h"
#include "sys/big.h"

#define LINE_BYTES (1u << 20) /* a line with more of them ends, behind the job that it is at */

struct text { /* that grows */
    char *s;
    size_t n, cap;
};

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
    bool all;                  /* all were told once */
    json_int_t answered;       /* the last request that was, by its number; 0: none */
    json_int_t after;          /* ... when the answer that is taken in was asked for */
    int64_t boot;              /* ... of which slurmctld */
    struct text changed, gone; /* of the answer that is taken in: members of JSON arrays */
};

/* ---- lines ---- */

/* Who cannot say something ends, and says it all when it is started again. */
static void put(struct text *t, const char *s, size_t n)
{
    if (t->n + n > t->cap) {
        size_t cap = 2 * (t->n + n) + 4096;
        char *more = realloc(t->s, cap);

        if (!more)
            _exit(1);
        t->s = more;
        t->cap = cap;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
}

static void put_word(struct text *t, const char *s)
{
    put(t, s, strlen(s));
}

static void add(struct text *t, const char *s)
{
    if (t->n > 0)
        put_word(t, ",");
    put_word(t, s);
}

/* When the line is long enough, or the last one. */
static void flush(struct stk_slurm_told *t, bool all, bool last)
{
    struct text line = {NULL, 0, 0};
    char after[80];

    if (!last && t->changed.n + t->gone.n < LINE_BYTES)
        return;
    if (t->changed.n + t->gone.n > 0 || (all && last)) {
        put_word(&line, all ? "{\"op\":\"jobs\",\"all\":true" : "{\"op\":\"jobs\",\"all\":false");
        put_word(&line, last ? ",\"last\":true" : ",\"last\":false");
        (void)snprintf(after, sizeof(after), ",\"after\":%lld,\"boot\":%lld,\"jobs\":[",
                       (long long)t->after, (long long)t->boot);
        put_word(&line, after);
        put(&line, t->changed.s, t->changed.n);
        put_word(&line, "],\"gone\":[");
        put(&line, t->gone.s, t->gone.n);
        put_word(&line, "]}\n");
        stk_slurm_say_line(line.s, line.n);
        free(line.s);
    }
    t->changed.n = t->gone.n = 0;
}

/* ---- what was told ---- */

struct stk_slurm_told *stk_slurm_told_new(void)
{
    struct stk_slurm_told *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->mem = stk_big_mem;
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
    free(t->changed.s);
    free(t->gone.s);
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

static void tell(struct stk_slurm_told *t, const slurm_job_info_t *j)
{
    json_t *job = stk_slurm_job(j);
    char *s = json_dumps(job, JSON_COMPACT);

    if (!s)
        _exit(1); /* there is no memory */
    add(&t->changed, s);
    free(s);
    json_decref(job);
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
    tell(t, j);
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
    char number[16];

    for (uint32_t i = t->n_jobs; i-- > 0;) {
        if (t->jobs[i].seen == t->round || t->jobs[i].alone >= asked)
            continue;
        (void)snprintf(number, sizeof(number), "%u", t->jobs[i].id);
        add(&t->gone, number);
        stk_map_remove(&t->by_id, t->jobs[i].id);
        free(t->jobs[i].nodes);
        t->jobs[i] = t->jobs[--t->n_jobs];
        if (i < t->n_jobs) {
            stk_map_remove(&t->by_id, t->jobs[i].id);
            stk_map_put(&t->by_id, t->jobs[i].id, i);
        }
    }
}

void stk_slurm_told_answered(struct stk_slurm_told *t, json_int_t id)
{
    (void)pthread_mutex_lock(&t->lock);
    t->answered = id > t->answered ? id : t->answered;
    (void)pthread_mutex_unlock(&t->lock);
}

json_int_t stk_slurm_told_last(struct stk_slurm_told *t)
{
    json_int_t id;

    (void)pthread_mutex_lock(&t->lock);
    id = t->answered;
    (void)pthread_mutex_unlock(&t->lock);
    return id;
}

void stk_slurm_told_whole(struct stk_slurm_told *t, const job_info_msg_t *m, int64_t asked,
                          json_int_t after, int64_t boot)
{
    bool all;

    (void)pthread_mutex_lock(&t->lock);
    t->after = after;
    t->boot = boot;
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
