/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - which jobs are asked for alone, and when, because something is about to happen to
 * them: they were released, stopped, or have ended. Each is asked for again, with growing pauses,
 * until it has come to rest, for some 15 s: on a busy machine Slurm takes seconds to clean up after
 * a job. Answers with all jobs, which come later, are the backstop.
 *
 * What there is a hurry with comes first: an end frees GPUs. The rest (a mark was put on a job, and
 * shows) comes when nothing else is due, and where that is many jobs, all are asked for in one.
 * New jobs are found by their numbers, as Slurm gives them out in order. */
#include "libslurm/follow.h"

#include <stdlib.h>

#define MAX_FOLLOWED 4096u
#define MAX_SLOW 64u /* without hurry: with more of them one answer with all is cheaper */
#define TRIES 40u
#define NEW_TRIES 5u
#define NEW_MS 10
#define MAX_PAUSE_MS 500

struct stk_slurm_follow {
    struct stk_slurm_followed list[MAX_FOLLOWED];
    uint32_t n, n_slow;
    bool full;      /* all are to be asked for */
    int64_t new_at; /* ms: when to look for new ones; 0: not */
    uint32_t new_tries;
    bool new_found;
};

struct stk_slurm_follow *stk_slurm_follow_new(void)
{
    return calloc(1, sizeof(struct stk_slurm_follow));
}

void stk_slurm_follow_free(struct stk_slurm_follow *f)
{
    free(f);
}

/* MAX_FOLLOWED, or less: its place, or that of a new one. */
static uint32_t find(const struct stk_slurm_follow *f, uint32_t id)
{
    uint32_t i = 0;

    while (i < f->n && f->list[i].id != id)
        i++;
    return i;
}

static void take_out(struct stk_slurm_follow *f, uint32_t i)
{
    f->n_slow -= !f->list[i].hurry;
    f->list[i] = f->list[--f->n];
}

static void drop_slow(struct stk_slurm_follow *f)
{
    for (uint32_t i = f->n; i-- > 0;)
        if (!f->list[i].hurry)
            take_out(f, i);
    f->full = true;
}

static void put(struct stk_slurm_follow *f, struct stk_slurm_followed j)
{
    if (f->n == MAX_FOLLOWED) {
        f->full = true;
        return;
    }
    f->list[f->n++] = j;
    f->n_slow += !j.hurry;
    if (f->n_slow > MAX_SLOW)
        drop_slow(f);
}

void stk_slurm_follow_job(struct stk_slurm_follow *f, uint32_t id, int64_t now, int64_t pause,
                          bool hurry)
{
    struct stk_slurm_followed j = {
        .id = id, .at = now + pause, .pause = pause > 0 ? pause : 2, .hurry = hurry};
    uint32_t i = find(f, id);

    if (i < f->n && f->list[i].hurry && !hurry)
        return;
    if (i < f->n)
        take_out(f, i);
    put(f, j);
}

void stk_slurm_follow_new_jobs(struct stk_slurm_follow *f, int64_t now)
{
    f->new_tries = 0;
    f->new_found = false;
    f->new_at = now + 1;
}

int64_t stk_slurm_follow_next(const struct stk_slurm_follow *f)
{
    int64_t next = f->new_at ? f->new_at : INT64_MAX;

    for (uint32_t i = 0; i < f->n; i++)
        next = f->list[i].at < next ? f->list[i].at : next;
    return next;
}

bool stk_slurm_follow_full(struct stk_slurm_follow *f)
{
    bool full = f->full;

    f->full = false;
    return full;
}

/* Who is due for longest; f->n: nobody. */
static uint32_t due(const struct stk_slurm_follow *f, int64_t now, bool hurry)
{
    uint32_t best = f->n;

    for (uint32_t i = 0; i < f->n; i++)
        if (f->list[i].hurry == hurry && f->list[i].at <= now &&
            (best == f->n || f->list[i].at < f->list[best].at))
            best = i;
    return best;
}

bool stk_slurm_follow_take(struct stk_slurm_follow *f, uint32_t highest, int64_t now,
                           struct stk_slurm_followed *ret)
{
    uint32_t i = due(f, now, true);

    if (i == f->n && f->new_at && now >= f->new_at) {
        *ret = (struct stk_slurm_followed){.id = highest > 0 ? highest + 1 : 0, .is_new = true};
        return true;
    }
    i = i < f->n ? i : due(f, now, false);
    if (i == f->n)
        return false;
    *ret = f->list[i];
    take_out(f, i);
    return true;
}

/* Slurm may be about to make it: it is asked for a few times more. A number can also be left out,
 * and then all are asked for. */
static void asked_new(struct stk_slurm_follow *f, int64_t now, bool found)
{
    f->new_found = f->new_found || found;
    f->new_tries = found ? 0 : f->new_tries + 1;
    f->new_at = now + (found ? 0 : (int64_t)NEW_MS << f->new_tries);
    if (f->new_tries < NEW_TRIES)
        return;
    f->new_at = 0;
    f->full = f->full || !f->new_found;
}

void stk_slurm_follow_asked(struct stk_slurm_follow *f, struct stk_slurm_followed j, int64_t now,
                            enum stk_slurm_rest rest)
{
    if (j.is_new) {
        asked_new(f, now, rest == STK_SLURM_RESTS || rest == STK_SLURM_RESTLESS);
        return;
    }
    if (rest == STK_SLURM_RESTS || rest == STK_SLURM_UNKNOWN || find(f, j.id) < f->n)
        return; /* the last: there is a new reason to ask */
    if (++j.tries > TRIES) {
        f->full = f->full || rest == STK_SLURM_SILENT;
        return;
    }
    j.pause += j.pause / 2 + 1;
    if (j.pause > MAX_PAUSE_MS)
        j.pause = MAX_PAUSE_MS;
    j.at = now + j.pause;
    put(f, j);
}
