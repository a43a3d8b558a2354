/* SPDX-License-Identifier: Apache-2.0 */
/* import_tell.c - what Slurm is told of users' own jobs that wait: marks and holds; that those in a
 * reservation of Slurm's, or in another's partition, are Slurm's to start; and that one which Slurm
 * started, and not we, goes back. */
#include <stdio.h>
#include <string.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

#define AGAIN_MS 2000 /* Slurm is told again what it has not done by then */
#define LEFT_TO_SLURM "it is in a reservation of Slurm's, and left to Slurm"

/* ---- telling Slurm ---- */

/* Not before it has had time for what it was told last. */
bool stk_slurm_import_may_tell(struct stk_slurm *m, struct stk_slurm_import *i)
{
    int64_t now = stk_slurm_ms();

    if (i->told_at && now - i->told_at < AGAIN_MS) {
        m->again = i->again = true;
        return false;
    }
    i->told_at = now;
    return true;
}

/* The same of a hold; at once when the last one was seen: Slurm may start the job any moment. */
bool stk_slurm_import_may_hold(struct stk_slurm *m, struct stk_slurm_import *i)
{
    int64_t now = stk_slurm_ms();

    if (i->hold_at && now - i->hold_at < AGAIN_MS) {
        m->again = i->again = true;
        return false;
    }
    i->hold_at = i->told_at = now;
    return true;
}

/* 'begin' 0: as it is. */
void stk_slurm_import_comment(struct stk_slurm *m, const json_t *job, const char *words, bool hold,
                              int64_t begin)
{
    json_t *o = json_pack("{s:s,s:o,s:s}", "op", "update", "job", stk_slurm_id(job),
                          "admin_comment", words);

    if (hold)
        (void)json_object_set_new(o, "hold", json_true());
    if (begin)
        (void)json_object_set_new(o, "begin", json_integer(begin));
    if (hold && !stk_yes(job, "held")) /* before Slurm starts it */
        (void)stk_slurm_ask(m, o, NULL, NULL);
    else
        stk_slurm_ask_later(m, o);
}

/* A hold that is its user's own is left to the user; so that Slurm does not start the job when it
 * goes, it also waits for a time that never comes. */
void stk_slurm_import_put_mark(struct stk_slurm *m, const json_t *job,
                               const struct stk_slurm_mark *mk, bool released)
{
    char words[STK_SLURM_MARK_LEN];

    stk_slurm_mark_write(mk, m->cfg.mark, words, sizeof(words));
    stk_slurm_import_comment(m, job, words, !mk->by_user,
                             mk->by_user ? STK_SLURM_HELD_UNTIL
                             : released  ? stk_slurm_wall_s(m)
                                         : 0);
}

/* ---- a job that is put into a reservation of Slurm's, or moved to another's partition, is Slurm's
 * to start ---- */

/* Held for us: what its user holds, its user may release. */
static json_t *letting_go(const json_t *job, const char *words, bool pinned)
{
    bool by_time = stk_whole(job, "begin") >= STK_SLURM_HELD_UNTIL;
    json_t *o = json_pack("{s:s,s:o,s:s}", "op", by_time ? "update" : "release", "job",
                          stk_slurm_id(job), "admin_comment", words);

    (void)json_object_set_new(o, "begin", by_time ? json_integer(1) : json_boolean(pinned));
    if (by_time)
        (void)json_object_set_new(o, "hold", json_string("user"));
    if (pinned) /* where it runs is not for us to say any more */
        (void)json_object_set_new(o, "unpin", json_true());
    return o;
}

/* One that we have not taken in. */
void stk_slurm_import_let_go(struct stk_slurm *m, struct stk_slurm_import *i,
                             const struct stk_slurm_claim *c)
{
    char words[200];

    stk_slurm_claim_write(c, LEFT_TO_SLURM, words, sizeof(words));
    if (stk_slurm_import_may_tell(m, i))
        (void)stk_slurm_ask(m, letting_go(i->job, words, false), NULL, NULL);
}

/* One that is ours stays so, held here, until Slurm starts it: it may come back. From now on a hold
 * on it is its user's own. */
void stk_slurm_import_let_ours_go(struct stk_slurm *m, struct stk_slurm_import *i,
                                  struct stk_slurm_mark *mk, const char *reason)
{
    char words[STK_SLURM_MARK_LEN];
    bool pinned;

    stk_slurm_import_holds(m, i->job, mk, reason);
    if (mk->by_user || !stk_slurm_import_may_tell(m, i))
        return;
    mk->by_user = mk->held = true;
    pinned = mk->pinned != 0;
    mk->pinned = 0;
    stk_slurm_mark_write(mk, m->cfg.mark, words, sizeof(words));
    if (stk_yes(i->job, "held"))
        (void)stk_slurm_ask(m, letting_go(i->job, words, pinned), NULL, NULL);
    else
        stk_slurm_import_comment(m, i->job, words, false, 0);
}

/* Whether a job that is not ours is left to Slurm for its reservation: it came with it, or it was
 * held for us, and we let it go. */
bool stk_slurm_import_is_let_go(const json_t *job)
{
    struct stk_slurm_claim c;

    return *stk_str(job, "reservation") &&
           (!stk_yes(job, "held") || !stk_slurm_claim_read(stk_str(job, "admin_comment"), &c) ||
            strstr(stk_str(job, "admin_comment"), LEFT_TO_SLURM));
}

/* ---- a job that Slurm started, and not we ---- */

/* Slurm started it, and not we. It goes back, if it can, and is held there: else who gets Slurm to
 * start a job would have it outside the books. */
bool stk_slurm_import_back(const struct stk_slurm *m, const json_t *job, stk_job_number number)
{
    return stk_slurm_is(job, "running") && stk_yes(job, "batch") && stk_yes(job, "requeue") &&
           !stk_slurm_import_is_away(m, job) && number && m->cfg.lives &&
           m->cfg.lives(m->cfg.ctx, number);
}

void stk_slurm_import_requeue(struct stk_slurm *m, const json_t *job)
{
    char words[STK_SLURM_MARK_LEN];
    struct stk_slurm_mark mk;

    if (!stk_slurm_mark_read(stk_str(job, "admin_comment"), m->cfg.mark, &mk) &&
        stk_slurm_import_mark_of(m, job, &mk)) {
        stk_slurm_mark_write(&mk, m->cfg.mark, words, sizeof(words));
        stk_slurm_import_comment(m, job, words, false, 0);
    }
    (void)stk_slurm_ask(m, json_pack("{s:s,s:o}", "op", "requeue", "job", stk_slurm_id(job)), NULL,
                        NULL);
}

bool stk_slurm_import_put_back(struct stk_slurm *m, json_t *job, const struct stk_slurm_mark *mk)
{
    stk_job_number number = stk_slurm_import_number(mk, job);
    struct stk_slurm_import *i =
        stk_slurm_import_back(m, job, number) ? stk_slurm_import_add(m, job) : NULL;

    if (!i)
        return false;
    i->round = m->round;
    stk_slurm_import_own(i, mk);
    i->stray = i->again = m->again = true;
    if (!stk_slurm_import_may_tell(m, i))
        return true;
    stk_slurm_log(m, true,
                  "job %u was started by Slurm (its job %u), and not by stoker: it is put back",
                  number, i->slurm);
    stk_slurm_import_requeue(m, job);
    return true;
}

/* Until it has gone. */
void stk_slurm_import_stray_again(struct stk_slurm *m, struct stk_slurm_import *i)
{
    const struct stk_slurm_seen *s = stk_slurm_seen(m, i->slurm);
    struct stk_slurm_mark mk;

    if (s && stk_slurm_runs(s->job) && stk_slurm_import_mark_of(m, s->job, &mk))
        (void)stk_slurm_import_put_back(m, s->job, &mk);
}

/* One that Slurm had started is in its queue again: it would wait there for two minutes. */
void stk_slurm_import_is_back(struct stk_slurm *m, struct stk_slurm_import *i,
                              const struct stk_slurm_mark *mk)
{
    i->stray = false;
    stk_slurm_import_put_mark(m, i->job, mk, true);
}
