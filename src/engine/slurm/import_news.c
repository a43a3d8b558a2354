/* SPDX-License-Identifier: Apache-2.0 */
/* import_news.c - what Slurm says of jobs that users send to our partitions.
 *
 * Of each record that is told: is it for us, is it ours already, and does it still wait? One that
 * waits is taken in, or kept as it is there (import.c); one that does not any more, and that we
 * have not had started, is gone for us, with a sentence that says why. Until the daemon takes jobs
 * all this is only noted; then it is gone through once more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

static void gone(struct stk_slurm *m, const struct stk_slurm_mark *mk, const json_t *job,
                 const char *sentence)
{
    struct stk_slurm_numbers l = stk_slurm_import_numbers(mk, job);

    for (uint32_t i = 0; i < l.n; i++)
        if (!stk_slurm_find(m, l.list[i]))
            m->cfg.gone(m->cfg.ctx, l.list[i], sentence);
    free(l.list);
}

static void pending_news(struct stk_slurm *m, json_t *job, bool ours,
                         const struct stk_slurm_mark *mk)
{
    struct stk_slurm_import *i = stk_slurm_import_add(m, job);
    struct stk_slurm_job *j;

    if (!i)
        return;
    stk_slurm_import_keep(i, job);
    i->round = m->round;
    if (stk_yes(job, "held"))
        i->hold_at = 0;
    if (!ours) {
        if (i->step == STK_I_OURS)
            i->step = STK_I_NEW;
        stk_slurm_import_consider(m, i);
        return;
    }
    stk_slurm_import_own(i, mk);
    if (stk_whole(job, "submitted") > i->submitted) /* it was put back */
        i->submitted = stk_whole(job, "submitted");
    if (i->stray)
        stk_slurm_import_is_back(m, i, mk);
    j = stk_slurm_find(m, stk_slurm_import_number(mk, job));
    if (!j || stk_slurm_import_several(job)) {
        stk_slurm_import_waits(m, i, *mk);
        return;
    }
    i->again = stk_yes(job, "held"); /* when it has been given up */
    m->again |= i->again;
    if (stk_slurm_import_is_away(m, job) && j->where == STK_S_SENT && !j->back[0])
        stk_slurm_import_reason(m, job, mk, true, j->back, sizeof(j->back));
}

/* It does not wait any more, and not because we had it started. */
static void left(struct stk_slurm *m, const json_t *job, const struct stk_slurm_mark *mk)
{
    const char *state = stk_str(job, "state");
    char sentence[200];

    if (strcmp(state, "cancelled") == 0)
        (void)snprintf(sentence, sizeof(sentence), "was cancelled in Slurm");
    else if (*stk_str(job, "reservation") && strcmp(state, "running") == 0)
        (void)snprintf(sentence, sizeof(sentence),
                       "was started by Slurm, in its reservation %.100s",
                       stk_str(job, "reservation"));
    else if (stk_slurm_import_is_away(m, job) && strcmp(state, "running") == 0)
        (void)snprintf(sentence, sizeof(sentence), "was started by Slurm, in its partition %.100s",
                       stk_str(job, "partition"));
    else if (strcmp(state, "running") == 0)
        (void)snprintf(sentence, sizeof(sentence), "%s", STK_SLURM_NOT_BY_US);
    else
        (void)snprintf(sentence, sizeof(sentence), "ended in Slurm: %.60s", state);
    gone(m, mk, job, sentence);
}

/* The record under the job's number; one of another job's, that a slurmctld which was killed has
 * used the number of again, is dropped. */
static struct stk_slurm_import *same(struct stk_slurm *m, const json_t *job)
{
    struct stk_slurm_import *i = stk_slurm_import_find(m, stk_whole(job, "job"));
    struct stk_slurm_mark mk;

    if (!i || i->step != STK_I_OURS || !stk_slurm_import_reused(i, job) ||
        (stk_slurm_mark_read(stk_str(job, "admin_comment"), m->cfg.mark, &mk) &&
         stk_slurm_owned(m, mk.first, job)))
        return i;
    stk_slurm_import_forget(m, i->slurm);
    return NULL;
}

/* Whether it is for us to look at: it is ours already, or waits for us. */
static bool concerns(struct stk_slurm *m, const json_t *job, bool ours, stk_job_number number)
{
    if (!m->cfg.bring)
        return false;
    if (ours) /* one that Slurm has had started before is not ours any more */
        return !(stk_slurm_import_is_away(m, job) && stk_slurm_pending(job) && number && m->open &&
                 m->cfg.lives && !m->cfg.lives(m->cfg.ctx, number));
    if (stk_slurm_import_partition(m, job) != UINT32_MAX)
        return !stk_slurm_import_is_let_go(job);
    stk_slurm_import_elsewhere(m, job);
    return false;
}

bool stk_slurm_import_news(struct stk_slurm *m, json_t *job, stk_job_number *ret_number)
{
    struct stk_slurm_import *i = same(m, job);
    struct stk_slurm_mark mk = {0};
    bool ours = stk_slurm_import_mark_of(m, job, &mk);
    stk_job_number number =
        ours && !stk_slurm_import_several(job) ? stk_slurm_import_number(&mk, job) : 0;
    const struct stk_slurm_job *j;

    *ret_number = 0;
    if (!concerns(m, job, ours, number)) {
        if (i && i->step != STK_I_ASKED)
            stk_slurm_import_forget(m, i->slurm);
        return false;
    }
    *ret_number = number;
    if (i)
        stk_slurm_import_compare(m, i, job);
    if (stk_slurm_pending(job)) {
        pending_news(m, job, ours, &mk);
        return *ret_number == 0;
    }
    if (i)
        i->round = m->round;
    if (i && i->job) {
        json_decref(i->job);
        i->job = NULL;
    }
    m->missing_one |= i && i->missed && !ours;
    if (!ours)
        return false;
    j = stk_slurm_find(m, number);
    if (m->open && !stk_yes(job, "completing") && (!j || j->where == STK_S_UNSENT) &&
        stk_slurm_import_put_back(m, job, &mk))
        return stk_slurm_see(m, job, number) != NULL;
    if (m->open && !j && !stk_yes(job, "completing")) {
        left(m, job, &mk);
        *ret_number = 0;
    }
    return stk_slurm_import_several(job);
}

void stk_slurm_import_forget(struct stk_slurm *m, uint32_t slurm)
{
    struct stk_slurm_import *i = stk_slurm_import_find(m, slurm);
    struct stk_slurm_mark mk;

    stk_map_remove(&m->elsewhere, slurm);
    if (!i)
        return;
    if (i->job && m->open && stk_slurm_import_mark_of(m, i->job, &mk))
        gone(m, &mk, i->job, "is gone from Slurm");
    m->missing_one |= i->missed;
    if (i->step != STK_I_ASKED)
        stk_slurm_import_drop(m, i);
    else if (i->job) { /* the answer is waited for */
        json_decref(i->job);
        i->job = NULL;
    }
}

void stk_slurm_import_told_all(struct stk_slurm *m)
{
    for (uint32_t k = m->n_imports; k-- > 0;)
        if (m->imports[k].round != m->round)
            stk_slurm_import_forget(m, m->imports[k].slurm);
}

void stk_slurm_import_tick(struct stk_slurm *m)
{
    if (m->missing_one && m->open && m->cfg.missing)
        m->cfg.missing(m->cfg.ctx);
    m->missing_one = false;
    if (!m->again)
        return;
    m->again = false;
    for (uint32_t k = 0; k < m->n_imports; k++) {
        struct stk_slurm_import *i = &m->imports[k];
        struct stk_slurm_mark mk;

        if (!i->again)
            continue;
        if (i->refused && stk_slurm_ms() < i->ask_at && i->job && stk_yes(i->job, "held")) {
            m->again = true;
            continue;
        }
        i->again = false;
        if (i->stray)
            stk_slurm_import_stray_again(m, i);
        else if (i->job)
            pending_news(m, i->job, stk_slurm_import_mark_of(m, i->job, &mk), &mk);
    }
}

void stk_slurm_import_open(struct stk_slurm *m)
{
    m->open = true;
    for (uint32_t k = m->n_imports; k-- > 0;) {
        struct stk_slurm_import *i = &m->imports[k];
        struct stk_slurm_mark mk;

        if (i->job && stk_slurm_import_mark_of(m, i->job, &mk))
            pending_news(m, i->job, true, &mk);
        else if (i->job)
            stk_slurm_import_consider(m, i);
    }
    for (uint32_t k = 0; k < m->n_seen;) {
        struct stk_slurm_mark mk;
        json_t *job = m->seen[k].job;

        k++;
        if (!m->seen[k - 1].number || stk_slurm_pending(job) || stk_yes(job, "completing") ||
            stk_slurm_find(m, m->seen[k - 1].number) || !stk_slurm_import_mark_of(m, job, &mk) ||
            stk_slurm_import_put_back(m, job, &mk))
            continue;
        left(m, job, &mk);
        if (stk_slurm_runs(job)) { /* another is in its place now */
            stk_slurm_revived_theirs(m, job);
            k--;
        }
    }
}

void stk_slurm_open(struct stk_engine *e)
{
    stk_slurm_import_open((struct stk_slurm *)e);
}
