/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - jobs of ours that have leases, by number and by lease, and jobs that Slurm has, by its
 * number and by ours: news of one job costs the same however many there are. Jobs that just run are
 * in no list that is walked: with every tick only those are looked at that wait for something. */
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "sys/json.h"

/* ---- jobs with leases ---- */

static struct stk_slurm_job *at(const struct stk_slurm *m, uint32_t i)
{
    return i == UINT32_MAX ? NULL : m->jobs[i];
}

struct stk_slurm_job *stk_slurm_find(const struct stk_slurm *m, stk_job_number number)
{
    return at(m, stk_map_get(&m->by_number, number));
}

struct stk_slurm_job *stk_slurm_find_lease(const struct stk_slurm *m, stk_lease_id lease)
{
    return at(m, stk_map_get(&m->by_lease, lease));
}

/* In the list of those that time matters for, or not. */
static void sort_in(struct stk_slurm_job *j)
{
    bool waits = j->where == STK_S_UNSENT || j->where == STK_S_SENT || j->where == STK_S_LOST;
    bool soon = j->stopping || j->requeued || j->verify_at || j->limit_due || !j->judged;
    bool timed = (waits || soon) && j->where != STK_S_ENDED;
    struct stk_slurm *m = j->m;

    if (timed == j->timed)
        return;
    j->timed = timed;
    if (timed) {
        j->prev = NULL;
        j->next = m->timed;
        if (m->timed)
            m->timed->prev = j;
        m->timed = j;
        return;
    }
    if (j->prev)
        j->prev->next = j->next;
    else
        m->timed = j->next;
    if (j->next)
        j->next->prev = j->prev;
}

void stk_slurm_move(struct stk_slurm_job *j, enum stk_slurm_where where)
{
    if (where == STK_S_ENDED && j->where != STK_S_ENDED)
        stk_slurm_use_ours(j->m, j, false);
    j->where = where;
    sort_in(j);
}

void stk_slurm_verify_at(struct stk_slurm_job *j, int64_t ms)
{
    j->verify_at = ms;
    sort_in(j);
}

void stk_slurm_judged(struct stk_slurm_job *j, bool judged)
{
    j->judged = judged;
    sort_in(j);
}

void stk_slurm_requeued(struct stk_slurm_job *j)
{
    j->requeued = true;
    sort_in(j);
}

void stk_slurm_limit_due(struct stk_slurm_job *j, bool due)
{
    j->limit_due = due;
    sort_in(j);
}

void stk_slurm_stopping(struct stk_slurm_job *j, const struct stk_stop *s)
{
    j->stopping = true;
    j->stop = *s;
    sort_in(j);
}

static void job_free(struct stk_slurm_job *j)
{
    free(j->pieces);
    free(j->spec);
    free(j);
}

void stk_slurm_read_spec(struct stk_slurm_job *j)
{
    json_t *o = j->spec ? stk_json_loads(j->spec) : NULL;
    json_int_t n = stk_whole(json_object_get(o, "imported"), "job");

    j->imported = n > 0 && n < UINT32_MAX ? (uint32_t)n : 0;
    j->exclusive = stk_yes(o, "exclusive");
    j->limit_s = stk_whole(o, "time_limit_s");
    j->uid = (uint32_t)stk_whole(o, "uid");
    json_decref(o);
}

static struct stk_slurm_job *job_new(struct stk_slurm *m, const struct stk_start *s)
{
    struct stk_slurm_job *j = calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    *j = (struct stk_slurm_job){.m = m,
                                .number = s->number,
                                .id = s->job,
                                .lease = s->lease,
                                .restarts = s->restarts,
                                .n_pieces = s->n_pieces,
                                .pieces = calloc(s->n_pieces + 1, sizeof(*j->pieces)),
                                .spec = s->spec ? strdup(s->spec) : NULL};
    if (!j->pieces || (s->spec && !j->spec)) {
        job_free(j);
        return NULL;
    }
    memcpy(j->pieces, s->pieces, s->n_pieces * sizeof(*j->pieces));
    stk_slurm_read_spec(j);
    return j;
}

struct stk_slurm_job *stk_slurm_add(struct stk_slurm *m, const struct stk_start *s)
{
    struct stk_slurm_job *j;

    if (stk_mem_grow(&m->mem, &m->jobs, &m->cap_jobs, m->n_jobs + 1, sizeof(*m->jobs)) < 0 ||
        stk_map_reserve(&m->by_number, &m->mem, m->n_jobs + 1) < 0 ||
        stk_map_reserve(&m->by_lease, &m->mem, m->n_jobs + 1) < 0)
        return NULL;
    j = job_new(m, s);
    if (!j)
        return NULL;
    j->at = m->n_jobs;
    m->jobs[m->n_jobs++] = j;
    stk_map_put(&m->by_number, j->number, j->at);
    stk_map_put(&m->by_lease, j->lease, j->at);
    stk_slurm_use_ours(m, j, true);
    sort_in(j);
    return j;
}

void stk_slurm_remove(struct stk_slurm *m, struct stk_slurm_job *j)
{
    struct stk_slurm_job *last = m->jobs[--m->n_jobs];

    stk_slurm_move(j, STK_S_ENDED);
    stk_map_remove(&m->by_number, j->number);
    stk_map_remove(&m->by_lease, j->lease);
    if (last != j) {
        last->at = j->at;
        m->jobs[last->at] = last;
        stk_map_put(&m->by_number, last->number, last->at);
        stk_map_put(&m->by_lease, last->lease, last->at);
    }
    job_free(j);
}

/* ---- jobs that Slurm has ---- */

static struct stk_slurm_seen *seen_at(const struct stk_slurm *m, uint32_t i)
{
    return i == UINT32_MAX ? NULL : &m->seen[i];
}

struct stk_slurm_seen *stk_slurm_seen(const struct stk_slurm *m, uint32_t slurm)
{
    return seen_at(m, stk_map_get(&m->seen_by_slurm, slurm));
}

struct stk_slurm_seen *stk_slurm_seen_of(const struct stk_slurm *m, stk_job_number number)
{
    return number ? seen_at(m, stk_map_get(&m->seen_by_number, number)) : NULL;
}

void stk_slurm_unsee(struct stk_slurm *m, struct stk_slurm_seen *s)
{
    struct stk_slurm_seen *last = &m->seen[--m->n_seen];

    if (s->number)
        stk_map_remove(&m->seen_by_number, s->number);
    else
        stk_slurm_use_theirs(m, s->job, false);
    stk_map_remove(&m->seen_by_slurm, s->slurm);
    json_decref(s->job);
    if (last == s)
        return;
    *s = *last;
    stk_map_put(&m->seen_by_slurm, s->slurm, (uint32_t)(s - m->seen));
    if (s->number)
        stk_map_put(&m->seen_by_number, s->number, (uint32_t)(s - m->seen));
}

static struct stk_slurm_seen *see_new(struct stk_slurm *m, uint32_t slurm, stk_job_number number)
{
    struct stk_slurm_seen *s;

    if (stk_mem_grow(&m->mem, &m->seen, &m->cap_seen, m->n_seen + 1, sizeof(*s)) < 0 ||
        stk_map_reserve(&m->seen_by_slurm, &m->mem, m->n_seen + 1) < 0 ||
        stk_map_reserve(&m->seen_by_number, &m->mem, m->n_seen + 1) < 0)
        return NULL;
    s = &m->seen[m->n_seen];
    *s = (struct stk_slurm_seen){.slurm = slurm, .number = number};
    stk_map_put(&m->seen_by_slurm, slurm, m->n_seen);
    if (number)
        stk_map_put(&m->seen_by_number, number, m->n_seen);
    m->n_seen++;
    return s;
}

/* It waits, and has run before, or was to: since now, as far as we know. */
static bool has_left(const struct stk_slurm_seen *s, const json_t *job)
{
    return stk_slurm_pending(job) && ((s->job && !stk_slurm_pending(s->job)) ||
                                      stk_whole(job, "restarts") > stk_whole(s->job, "restarts"));
}

struct stk_slurm_seen *stk_slurm_see(struct stk_slurm *m, json_t *job, stk_job_number number)
{
    uint32_t slurm = (uint32_t)stk_whole(job, "job");
    struct stk_slurm_seen *s = stk_slurm_seen(m, slurm);

    if (s && s->number != number) /* Slurm has used the number again */
        stk_slurm_unsee(m, s);
    s = stk_slurm_seen_of(m, number);
    if (s && s->slurm != slurm)
        stk_slurm_unsee(m, s);
    s = stk_slurm_seen(m, slurm);
    s = s ? s : see_new(m, slurm, number);
    if (!s)
        return NULL;
    if (has_left(s, job))
        s->left_at = stk_slurm_ms();
    if (s->job && !number)
        stk_slurm_use_theirs(m, s->job, false);
    json_decref(s->job);
    s->job = json_incref(job);
    s->round = m->round;
    if (!number)
        stk_slurm_use_theirs(m, job, true);
    return s;
}

void stk_slurm_table_free(struct stk_slurm *m)
{
    while (m->n_jobs > 0)
        job_free(m->jobs[--m->n_jobs]);
    while (m->n_seen > 0)
        json_decref(m->seen[--m->n_seen].job);
    stk_mem_drop(&m->mem, &m->jobs, &m->cap_jobs, sizeof(*m->jobs));
    stk_mem_drop(&m->mem, &m->seen, &m->cap_seen, sizeof(*m->seen));
    stk_map_done(&m->by_number, &m->mem);
    stk_map_done(&m->by_lease, &m->mem);
    stk_map_done(&m->seen_by_slurm, &m->mem);
    stk_map_done(&m->seen_by_number, &m->mem);
    stk_map_done(&m->odd, &m->mem);
}
