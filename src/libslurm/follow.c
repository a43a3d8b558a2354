/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - jobs that are asked for alone, because something is about to happen to them: they were
 * released, stopped, or have ended. Each is asked for again, with growing pauses, until it has come
 * to rest, for some 15 s: on a busy machine Slurm takes seconds to clean up after a job. Answers
 * with all jobs, which come later, are the backstop. New jobs are found by their numbers, as Slurm
 * gives them out in order. */
#include <stdlib.h>
#include <string.h>

#include "libslurm/helper.h"

#define MAX_FOLLOWED 4096u
#define TRIES 40u
#define NEW_TRIES 5u
#define NEW_MS 10
#define MAX_PAUSE_MS 500

struct followed {
    uint32_t id, tries;
    int64_t at, pause; /* ms */
};

struct stk_slurm_follow {
    struct stk_slurm_told *told;
    struct followed list[MAX_FOLLOWED];
    uint32_t n;
    int64_t new_at; /* ms: when to look for new ones; 0: not */
    uint32_t new_tries;
};

struct stk_slurm_follow *stk_slurm_follow_new(struct stk_slurm_told *told)
{
    struct stk_slurm_follow *f = calloc(1, sizeof(*f));

    if (f)
        f->told = told;
    return f;
}

void stk_slurm_follow_free(struct stk_slurm_follow *f)
{
    free(f);
}

void stk_slurm_follow_job(struct stk_slurm_follow *f, uint32_t id, int64_t now, int64_t pause)
{
    uint32_t i = 0;

    while (i < f->n && f->list[i].id != id)
        i++;
    if (i == MAX_FOLLOWED)
        return; /* seen with all others */
    f->n += i == f->n;
    f->list[i] = (struct followed){.id = id, .at = now + pause, .pause = pause > 0 ? pause : 2};
}

void stk_slurm_follow_new_jobs(struct stk_slurm_follow *f, int64_t now)
{
    f->new_tries = 0;
    f->new_at = now + 1;
}

int64_t stk_slurm_follow_next(const struct stk_slurm_follow *f)
{
    int64_t next = f->new_at ? f->new_at : INT64_MAX;

    for (uint32_t i = 0; i < f->n; i++)
        next = f->list[i].at < next ? f->list[i].at : next;
    return next;
}

/* It is about to start, or to be gone. */
static bool restless(const job_info_msg_t *m)
{
    for (uint32_t i = 0; i < m->record_count; i++) {
        const slurm_job_info_t *j = &m->job_array[i];
        bool waits = (j->job_state & JOB_STATE_BASE) == JOB_PENDING && j->priority != 0;

        if (waits || (j->job_state & JOB_COMPLETING))
            return true;
    }
    return false;
}

/* < 0: Slurm did not say; 0: it has come to rest; 1: ask again. */
static int ask(struct stk_slurm_follow *f, uint32_t id, int64_t now)
{
    job_info_msg_t *m = NULL;
    int rc;

    if (slurm_load_job(&m, id, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS)
        return -1;
    stk_slurm_told_one(f->told, m, now);
    rc = restless(m);
    slurm_free_job_info_msg(m);
    return rc;
}

static void ask_new(struct stk_slurm_follow *f, int64_t now)
{
    uint32_t from = stk_slurm_told_highest(f->told), id = from;

    while (from > 0 && id - from < MAX_FOLLOWED && ask(f, id + 1, now) >= 0)
        id++;
    if (id > from)
        f->new_tries = 0;
    f->new_at = ++f->new_tries < NEW_TRIES ? now + ((int64_t)NEW_MS << f->new_tries) : 0;
}

void stk_slurm_follow_ask(struct stk_slurm_follow *f, int64_t now)
{
    uint32_t i = 0;

    if (f->new_at && now >= f->new_at)
        ask_new(f, now);
    for (uint32_t k = 1; k < f->n; k++)
        i = f->list[k].at < f->list[i].at ? k : i; /* who is due for longest */
    if (f->n == 0 || f->list[i].at > now)
        return;
    if (ask(f, f->list[i].id, now) <= 0 || ++f->list[i].tries > TRIES) {
        f->list[i] = f->list[--f->n];
        return;
    }
    f->list[i].pause += f->list[i].pause / 2 + 1;
    if (f->list[i].pause > MAX_PAUSE_MS)
        f->list[i].pause = MAX_PAUSE_MS;
    f->list[i].at = now + f->list[i].pause;
}
