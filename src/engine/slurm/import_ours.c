/* SPDX-License-Identifier: Apache-2.0 */
/* import_ours.c - users' own jobs that are ours by now: those that are placed and to be started,
 * and elements of arrays that Slurm makes no record of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/import.h"
#include "sys/json.h"

/* ---- elements that are cancelled while they wait: Slurm makes no record of that ---- */

struct leaving {
    struct stk_slurm *m;
    stk_job_number first;
    struct stk_slurm_ranks taken,
        now; /* when it was taken in; what is left in the array's record */
};

static int note_missing(void *ctx, uint32_t task)
{
    struct leaving *l = ctx;
    struct stk_slurm *m = l->m;
    uint32_t rank = stk_slurm_next_rank(&l->taken, task);

    if (stk_slurm_next_rank(&l->now, task) != UINT32_MAX || rank == UINT32_MAX)
        return 0;
    if (stk_mem_grow(&m->mem, &m->missing, &m->cap_missing, m->n_missing + 1, sizeof(*m->missing)) <
        0)
        return -ENOMEM;
    m->missing[m->n_missing++] = l->first + rank;
    return 0;
}

/* O(elements of the record). */
void stk_slurm_import_compare(struct stk_slurm *m, const struct stk_slurm_import *i,
                              const json_t *job)
{
    const char *was = i->job ? stk_str(i->job, "array_tasks") : "",
               *now = stk_str(job, "array_tasks");
    struct stk_slurm_mark mk;
    struct leaving l = {.m = m};
    char one[16];

    if (!i->job || !stk_slurm_import_several(i->job) || strcmp(was, now) == 0 ||
        !stk_slurm_import_mark_of(m, i->job, &mk))
        return;
    if (!stk_slurm_import_several(job)) {
        (void)snprintf(one, sizeof(one), "%lld", (long long)stk_whole(job, "array_task"));
        now = one;
    }
    l.first = mk.first;
    l.taken = stk_slurm_ranks(mk.tasks);
    l.now = stk_slurm_ranks(now);
    (void)stk_slurm_tasks(was, STK_SLURM_MAX_ELEMENTS, note_missing, &l);
}

void stk_slurm_import_told(struct stk_slurm *m)
{
    for (uint32_t k = 0; k < m->n_missing && m->open; k++)
        if (!stk_slurm_find(m, m->missing[k]) && !stk_slurm_seen_of(m, m->missing[k]))
            m->cfg.gone(m->cfg.ctx, m->missing[k], "was cancelled in Slurm");
    m->n_missing = 0;
}

/* ---- by number ---- */

const json_t *stk_slurm_import_there(const struct stk_slurm *m, const struct stk_slurm_job *j,
                                     json_t **ret_id)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);
    const struct stk_slurm_import *i = stk_slurm_import_find(m, j->imported);
    uint32_t task;
    char id[40];

    *ret_id = NULL;
    if (s && stk_slurm_pending(s->job)) {
        *ret_id = stk_slurm_id(s->job);
        return s->job;
    }
    if (!i || !i->job || !i->tasks || !stk_slurm_import_several(i->job) || j->number < i->first)
        return NULL;
    task = stk_slurm_task_at(i->tasks, j->number - i->first);
    if (task == UINT32_MAX ||
        stk_slurm_task_rank(stk_str(i->job, "array_tasks"), task) == UINT32_MAX)
        return NULL;
    (void)snprintf(id, sizeof(id), "%u_%u", i->slurm, task);
    *ret_id = json_string(id);
    return i->job;
}

void stk_slurm_import_clean(struct stk_slurm *m)
{
    for (uint32_t k = 0; k < m->n_imports; k++) {
        const struct stk_slurm_import *i = &m->imports[k];
        struct stk_slurm_mark mk;
        struct stk_slurm_numbers l;

        if (!i->job || i->step != STK_I_OURS || !stk_slurm_import_several(i->job) ||
            !stk_slurm_import_mark_of(m, i->job, &mk))
            continue;
        l = stk_slurm_import_numbers(&mk, i->job);
        for (uint32_t n = 0; n < l.n; n++) {
            char id[40];

            if (m->cfg.lives(m->cfg.ctx, l.list[n]))
                continue;
            (void)snprintf(id, sizeof(id), "%u_%u", i->slurm,
                           stk_slurm_task_at(mk.tasks, l.list[n] - mk.first));
            (void)stk_slurm_ask(m, json_pack("{s:s,s:s}", "op", "cancel", "job", id), NULL, NULL);
        }
        free(l.list);
    }
}

/* It is on its way back into Slurm's queue. */
static bool comes_back(const struct stk_slurm *m, stk_job_number number)
{
    const struct stk_slurm_seen *s = stk_slurm_seen_of(m, number);

    return s && (stk_yes(s->job, "completing") || stk_slurm_import_back(m, s->job, number));
}

/* It is on its way to us: again, where Slurm has forgotten our mark. */
static bool is_brought(const struct stk_slurm_import *i)
{
    return i->step == STK_I_ASKED || (i->step == STK_I_NEW && i->job && !i->refused);
}

/* Slurm has it in its queue no more. One that it has started is another's from now on. */
static void not_there(struct stk_slurm *m, struct stk_slurm_job *j)
{
    struct stk_slurm_seen *s = stk_slurm_seen_of(m, j->number);
    json_t *job = s && stk_slurm_is(s->job, "running") ? json_incref(s->job) : NULL;

    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_UNKNOWN, 0,
                     job ? STK_SLURM_NOT_BY_US : "is gone from Slurm");
    if (job)
        (void)stk_slurm_see(m, job, 0);
    json_decref(job);
}

/* It asks for more GPUs than it was placed with: its user has changed that since, and we have not
 * heard of it in time, or it cannot be. */
static bool wants_more(const struct stk_slurm_job *j, const json_t *shape)
{
    json_int_t tasks = stk_whole(shape, "tasks"), had = 0;
    bool alone = stk_yes(shape, "exclusive") && !j->exclusive;

    for (uint32_t i = 0; i < j->n_pieces; i++)
        had += j->pieces[i].gpus;
    return alone || (tasks > 0 ? tasks : 1) * stk_whole(shape, "gpus") > had;
}

/* The core decides anew, with what it asks for now. */
static bool has_changed(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *there)
{
    struct stk_err err = {""};
    json_t *wish = stk_slurm_import_later(m, there, &err);
    bool more = !wish || wants_more(j, json_object_get(wish, "shape")), held;

    if (!more) {
        json_decref(wish);
        return false;
    }
    held = !wish || stk_slurm_is_odd(m, j);
    if (wish)
        (void)snprintf(
            err.text, sizeof(err.text),
            "asks Slurm for more GPUs than it was placed with; it was changed there%s",
            held ? ", and stoker cannot follow: mend it with scontrol update, then let it "
                   "go on with stoker release"
                 : "");
    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_EVICTED, 0, err.text);
    if (wish && m->cfg.wishes)
        m->cfg.wishes(m->cfg.ctx, &j->number, 1, wish);
    if (held)
        m->cfg.hold(m->cfg.ctx, &j->number, 1, err.text);
    json_decref(wish);
    return true;
}

bool stk_slurm_import_stays(struct stk_slurm *m, struct stk_slurm_job *j, const json_t *there)
{
    struct stk_slurm_import *i = stk_slurm_import_find(m, j->imported);
    struct stk_slurm_mark mk;
    char reason[300] = "";

    if ((i && is_brought(i)) || (!there && comes_back(m, j->number)))
        return true; /* until we are told its number, or it is there */
    if (!there) {
        not_there(m, j);
        return true;
    }
    if (stk_slurm_import_mark_of(m, there, &mk))
        stk_slurm_import_reason(m, there, &mk, true, reason, sizeof(reason));
    if (!reason[0])
        return has_changed(m, j, there);
    stk_slurm_exited(m, j, j->stopping ? j->stop.cause : STK_CAUSE_EVICTED, 0, reason);
    m->cfg.hold(m->cfg.ctx, &j->number, 1, reason);
    i = stk_slurm_import_find(m, stk_whole(there, "job"));
    if (i)
        i->held_here = true;
    return true;
}

/* The record of a job that we have taken in and that has no mark of ours; NULL: there is none. */
static json_t *unmarked(const struct stk_slurm *m, stk_job_number number, uint32_t slurm)
{
    const struct stk_slurm_import *i = stk_slurm_import_find(m, slurm);
    const struct stk_slurm_seen *s = stk_slurm_seen(m, slurm);
    json_t *job = i && i->job && i->step == STK_I_NEW ? i->job : s && !s->number ? s->job : NULL;

    return job && stk_slurm_owned(m, number, job) ? job : NULL;
}

/* What waits is brought again, and then has the number it had. */
static void know_one(struct stk_slurm *m, json_t *job, const struct stk_slurm_mark *mk,
                     const json_t *made)
{
    const struct stk_slurm_import known = {.uid = (uint32_t)stk_whole(job, "uid"),
                                           .submitted = stk_whole(made, "submitted")};
    struct stk_slurm_import *i;

    if (stk_slurm_import_reused(&known, job))
        return;
    json_incref(job);
    i = stk_slurm_import_add(m, job);
    if (i)
        i->submitted = known.submitted;
    if (i && !i->job) { /* Slurm thinks that it runs */
        stk_slurm_import_own(i, mk);
        i->round = m->round;
        (void)stk_slurm_see(m, job, stk_slurm_import_number(mk, job));
    }
    json_decref(job);
}

void stk_slurm_know(struct stk_engine *e, stk_job_number first, const json_t *made)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    json_int_t slurm = stk_whole(made, "job");
    json_t *job = slurm > 0 && slurm < UINT32_MAX ? unmarked(m, first, (uint32_t)slurm) : NULL;
    struct stk_slurm_mark mk = {.first = first};

    (void)snprintf(mk.tasks, sizeof(mk.tasks), "%s", stk_str(made, "tasks"));
    if (job)
        know_one(m, job, &mk, made);
    for (uint32_t k = m->n_seen; k-- > 0 && mk.tasks[0];) { /* elements that it has started */
        stk_job_number number;

        if (m->seen[k].number != 0 || stk_whole(m->seen[k].job, "array_job") != slurm)
            continue;
        number = stk_slurm_import_number(&mk, m->seen[k].job);
        if (number && m->cfg.lives && m->cfg.lives(m->cfg.ctx, number) &&
            stk_slurm_owned(m, number, m->seen[k].job))
            know_one(m, m->seen[k].job, &mk, made);
    }
}

bool stk_slurm_has(struct stk_engine *e, stk_job_number number, const json_t *made)
{
    const struct stk_slurm *m = (const struct stk_slurm *)e;
    json_int_t slurm = stk_whole(made, "job");
    const struct stk_slurm_job j = {
        .number = number, .imported = slurm > 0 && slurm < UINT32_MAX ? (uint32_t)slurm : 0};
    json_t *id = NULL;
    struct stk_slurm_import *i = stk_slurm_import_find(m, slurm);
    bool has = stk_slurm_import_there(m, &j, &id) != NULL || comes_back(m, number);

    json_decref(id);
    if (i && i->job && i->step != STK_I_OURS && i->submitted == stk_whole(made, "submitted"))
        has = i->missed = true;
    return has;
}

stk_lease_id stk_slurm_import_lease(const struct stk_slurm *m, const json_t *job)
{
    struct stk_slurm_mark mk;

    return stk_slurm_mark_read(stk_str(job, "admin_comment"), m->cfg.mark, &mk) ? mk.pinned : 0;
}

void stk_slurm_import_mark(const struct stk_slurm *m, const json_t *job, stk_lease_id lease,
                           char *buf, size_t size)
{
    struct stk_slurm_mark mk;

    buf[0] = '\0';
    if (!stk_slurm_import_mark_of(m, job, &mk))
        return;
    mk.pinned = lease;
    mk.by_user = false;
    stk_slurm_mark_write(&mk, m->cfg.mark, buf, size);
}
