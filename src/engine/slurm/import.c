/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - jobs that users send to our partitions with sbatch become ours.
 *
 * Such a job waits in Slurm, held for us: by the plugin, or by us when we see it. It is described
 * in our words (wish.c), handed to the daemon, and marked with the number it got (marks.h); from
 * then on the core decides when it starts, and start.c says to Slurm where. Until it does, Slurm's
 * record is its user's: what is changed there is changed here, what holds it there holds it here
 * (the user's own hold, dependencies, which Slurm looks after), and when it is gone there it is
 * here.
 *
 * An array waits in Slurm as one record, of which elements come off one by one as they are started
 * or changed; each element is a job of ours. The mark says which elements there were at first.
 *
 * What the daemon was told once it is not told twice: it knows jobs by Slurm's number and the time
 * of their submission, so a mark that was lost with one of the two daemons is made again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "engine/slurm/allowed.h"
#include "engine/slurm/import.h"
#include "sys/json.h"

#define REFUSED_MS 60000
#define MAX_REFUSED_MS 3600000

/* The row of the first of its partitions that is ours; UINT32_MAX: none is. */
static uint32_t partition_of(const struct stk_slurm *m, const json_t *job)
{
    for (const char *s = stk_str(job, "partition"); *s;) {
        size_t n = strcspn(s, ",");

        for (uint32_t i = 0; m->names[i]; i++)
            if (strlen(m->names[i]) == n && strncmp(m->names[i], s, n) == 0)
                return i;
        s += n + (s[n] == ',');
    }
    return UINT32_MAX;
}

static void gone(struct stk_slurm *m, const struct stk_slurm_mark *mk, const json_t *job,
                 const char *sentence)
{
    struct stk_slurm_numbers l = stk_slurm_import_numbers(mk, job);

    for (uint32_t i = 0; i < l.n; i++)
        if (!stk_slurm_find(m, l.list[i]))
            m->cfg.gone(m->cfg.ctx, l.list[i], sentence);
    free(l.list);
}

static void refuse(struct stk_slurm *m, struct stk_slurm_import *i, const char *sentence)
{
    struct stk_slurm_claim c = {0};
    char words[700], short_one[512];

    i->step = STK_I_NEW;
    i->refused = true;
    (void)snprintf(short_one, sizeof(short_one), "cannot take it: %.480s", sentence);
    (void)stk_slurm_claim_read(stk_str(i->job, "admin_comment"), &c);
    stk_slurm_claim_write(&c, short_one, words, sizeof(words));
    if (strcmp(stk_str(i->job, "admin_comment"), words) == 0)
        return;
    stk_slurm_log(m, true, "Slurm job %u cannot be taken: %s", i->slurm, sentence);
    stk_slurm_import_comment(m, i->job, words, true, 0);
}

/* ---- what it asks for ---- */

/* It is where Slurm starts jobs, and not we. */
bool stk_slurm_import_is_away(const struct stk_slurm *m, const json_t *job)
{
    return *stk_str(job, "reservation") || partition_of(m, job) == UINT32_MAX;
}

/* Why Slurm itself holds it, in words; "": it does not. */
void stk_slurm_import_reason(const struct stk_slurm *m, const json_t *job,
                             const struct stk_slurm_mark *mk, bool by_time, char *buf, size_t size)
{
    buf[0] = '\0';
    if (*stk_str(job, "reservation"))
        (void)snprintf(buf, size, "is in Slurm's reservation %.100s, and left to Slurm",
                       stk_str(job, "reservation"));
    else if (stk_slurm_import_is_away(m, job))
        (void)snprintf(buf, size, "is in Slurm's partition %.100s, and left to Slurm",
                       stk_str(job, "partition"));
    else if (*stk_str(job, "dependency"))
        (void)snprintf(buf, size, "waits in Slurm for other jobs: %.200s",
                       stk_str(job, "dependency"));
    else if ((mk->by_user && stk_yes(job, "held")) ||
             (by_time && !mk->by_user && stk_whole(job, "begin") >= STK_SLURM_HELD_UNTIL))
        (void)snprintf(buf, size, "is held by its user in Slurm; scontrol release lets it go on");
}

static uint64_t digest_of(const json_t *wish)
{
    char *s = json_dumps(wish, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t h = 1;

    for (const char *p = s; p && *p; p++)
        h = stk_hash_mix(h, (unsigned char)*p);
    free(s);
    return h | 1;
}

static struct stk_slurm_room room_of(const struct stk_slurm *m, uint32_t row)
{
    struct stk_slurm_room room = {0, 0};

    for (uint32_t i = 0; i < m->n_nodes; i++)
        if (m->nodes[i].partition == row) {
            room.gpus = m->nodes[i].gpus > room.gpus ? m->nodes[i].gpus : room.gpus;
            room.cpus = m->nodes[i].cpus > room.cpus ? m->nodes[i].cpus : room.cpus;
        }
    return room;
}

json_t *stk_slurm_import_later(const struct stk_slurm *m, const json_t *job, struct stk_err *err)
{
    const struct stk_slurm_room room = room_of(m, partition_of(m, job));
    json_t *wish = json_object();

    stk_slurm_wish_later(job, false, wish);
    if (stk_slurm_wish_shape(job, &room, wish, err) == 0)
        return wish;
    json_decref(wish);
    return NULL;
}

static json_t *wish_of(const struct stk_slurm *m, const json_t *job, struct stk_err *err)
{
    struct stk_slurm_claim c = {0};
    uint32_t row = partition_of(m, job);
    const struct stk_slurm_room room = room_of(m, row);
    json_t *wish;

    if (row == UINT32_MAX) { /* ours, and moved out */
        (void)stk_err_set(err, -EINVAL, "its partition \"%.100s\" is not one of stoker's",
                          stk_str(job, "partition"));
        return NULL;
    }
    (void)stk_slurm_claim_read(stk_str(job, "admin_comment"), &c);
    wish = stk_slurm_wish(job, &room, &c, err);
    if (wish && stk_slurm_allow(m, job, wish, err) < 0) {
        json_decref(wish);
        return NULL;
    }
    if (wish) {
        (void)json_object_set_new(wish, "pool", json_string(m->names[row]));
        stk_slurm_import_signal(stk_slurm_import_find(m, stk_whole(job, "job")), wish);
    }
    return wish;
}

/* ---- taking it in ---- */

static void ask(struct stk_slurm *m, struct stk_slurm_import *i, json_t *take_wish, bool by_user)
{
    struct stk_slurm_mark mk = {.by_user = by_user};
    char reason[300], key[160];
    json_t *made = json_pack("{s:I,s:I,s:s}", "job", (json_int_t)i->slurm, "submitted",
                             (json_int_t)i->submitted, "tasks", i->tasks ? i->tasks : "");

    stk_slurm_import_reason(m, i->job, &mk, true, reason, sizeof(reason));
    if (reason[0])
        (void)json_object_set_new(take_wish, "hold", json_true());
    (void)snprintf(key, sizeof(key), "slurm %s %u %lld", m->cfg.mark, i->slurm,
                   (long long)i->submitted);
    i->step = STK_I_ASKED;
    i->by_user = by_user;
    m->cfg.bring(m->cfg.ctx, (uint32_t)stk_whole(i->job, "uid"), take_wish, key, made);
}

/* Elements that are still in the array's own record, without how many may run at a time. */
static bool keep_tasks(struct stk_slurm_import *i)
{
    const char *tasks = stk_str(i->job, "array_tasks");

    free(i->tasks);
    i->tasks = stk_slurm_import_several(i->job) ? strndup(tasks, strcspn(tasks, "%")) : NULL;
    return !stk_slurm_import_several(i->job) || i->tasks;
}

/* ---- jobs that are moved into our partitions ---- */

/* The plugin holds a job as it comes from another partition, and can say no more than that. One
 * that waited there, and was not held, is not held by its user. */
static void note_elsewhere(struct stk_slurm *m, const json_t *job)
{
    uint32_t slurm = (uint32_t)stk_whole(job, "job");

    if (!stk_slurm_pending(job) || stk_yes(job, "held"))
        stk_map_remove(&m->elsewhere, slurm);
    else if (stk_map_reserve(&m->elsewhere, &m->mem, m->elsewhere.n + 1) == 0)
        stk_map_put(&m->elsewhere, slurm, (uint32_t)stk_whole(job, "submitted"));
}

static bool was_moved(const struct stk_slurm *m, const struct stk_slurm_import *i)
{
    uint32_t at = stk_map_get(&m->elsewhere, i->slurm);

    return at != UINT32_MAX && at == (uint32_t)i->submitted;
}

/* Slurm started it before we saw it, its node refused to launch it, and Slurm holds it for people
 * to look at. That is no hold of its user's: we start it. */
static bool fell_back(const json_t *job)
{
    return strncmp(stk_str(job, "reason"), "launch failed", 13) == 0;
}

static void consider(struct stk_slurm *m, struct stk_slurm_import *i)
{
    struct stk_slurm_claim c = {0};
    struct stk_err err = {""};
    bool claimed = stk_slurm_claim_read(stk_str(i->job, "admin_comment"), &c);
    uint64_t digest;
    json_t *wish;

    if (!m->open || i->step != STK_I_NEW)
        return;
    if (*stk_str(i->job, "reservation")) {
        stk_slurm_import_let_go(m, i, &c);
        return;
    }
    if (!stk_yes(i->job, "held")) {
        char words[64];

        i->bare = true;
        stk_slurm_claim_write(&c, NULL, words, sizeof(words));
        if (stk_slurm_import_may_hold(m, i))
            stk_slurm_import_comment(m, i->job, words, true, 0);
        return;
    }
    i->bare |= !claimed;
    if (!stk_slurm_import_script(m, i))
        return;
    wish = wish_of(m, i->job, &err);
    if (!wish || !keep_tasks(i)) {
        json_decref(wish);
        refuse(m, i, wish ? "out of memory" : err.text);
        return;
    }
    digest = digest_of(wish);
    if (i->refused && i->digest == digest && (!i->ask_at || stk_slurm_ms() < i->ask_at)) {
        json_decref(wish);
        return;
    }
    i->ask_at = 0;
    i->digest = digest;
    i->refused = false;
    ask(m, i, wish, !claimed && !was_moved(m, i) && !fell_back(i->job));
}

/* What stoker refuses it may take a minute later, when a queue has room again. */
static void not_now(struct stk_slurm *m, struct stk_slurm_import *i)
{
    i->pause_ms = i->pause_ms ? i->pause_ms * 2 : REFUSED_MS;
    i->pause_ms = i->pause_ms < MAX_REFUSED_MS ? i->pause_ms : MAX_REFUSED_MS;
    i->ask_at = stk_slurm_ms() + i->pause_ms;
    m->again = i->again = true;
}

void stk_slurm_brought(struct stk_engine *e, const json_t *made, stk_job_number first,
                       uint32_t count, const char *sentence)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_import *i = stk_slurm_import_find(m, stk_whole(made, "job"));
    struct stk_slurm_mark mk = {.first = first};
    char reason[300];

    if (i && (i->submitted != stk_whole(made, "submitted") || i->step != STK_I_ASKED))
        i = NULL;
    if (sentence) {
        if (i && i->job) {
            refuse(m, i, sentence);
            not_now(m, i);
        } else if (i)
            i->step = STK_I_NEW;
        return;
    }
    if (!i || !i->job) { /* it is gone meanwhile */
        for (uint32_t k = 0; k < count; k++)
            m->cfg.gone(m->cfg.ctx, first + k, "is gone from Slurm");
        return;
    }
    i->step = STK_I_OURS;
    i->missed = false;
    i->first = first;
    (void)snprintf(mk.tasks, sizeof(mk.tasks), "%s", stk_str(made, "tasks"));
    free(i->tasks);
    i->tasks = mk.tasks[0] ? strdup(mk.tasks) : NULL;
    mk.by_user = i->by_user;
    stk_slurm_import_reason(m, i->job, &mk, true, reason, sizeof(reason));
    mk.held = reason[0] != '\0';
    stk_slurm_import_put_mark(m, i->job, &mk, false);
    i->told_at = stk_slurm_ms();
    if (!stk_slurm_import_several(i->job))
        (void)stk_slurm_see(m, i->job, first);
    if (reason[0])
        stk_slurm_import_holds(m, i->job, &mk, reason);
    for (uint32_t k = 0; k < count; k++) { /* those that were placed at once */
        struct stk_slurm_job *j = stk_slurm_find(m, first + k);

        if (j && j->where == STK_S_UNSENT)
            stk_slurm_send(m, j);
    }
}

/* ---- while it waits ---- */

void stk_slurm_import_holds(struct stk_slurm *m, const json_t *job, const struct stk_slurm_mark *mk,
                            const char *reason)
{
    struct stk_slurm_numbers l = stk_slurm_import_numbers(mk, job);

    if (l.n > 0)
        m->cfg.hold(m->cfg.ctx, l.list, l.n, *reason ? reason : NULL);
    free(l.list);
}

static void tell_changes(struct stk_slurm *m, struct stk_slurm_import *i,
                         const struct stk_slurm_mark *mk)
{
    struct stk_err err = {""};
    json_t *wish = mk->pinned ? stk_slurm_import_later(m, i->job, &err) : wish_of(m, i->job, &err);
    struct stk_slurm_numbers l;
    uint64_t digest;

    if (!wish) {
        stk_slurm_log(m, true, "Slurm job %u was changed to what cannot be: %s", i->slurm,
                      err.text);
        return;
    }
    (void)json_object_del(wish, "array"); /* elements come off it */
    (void)json_object_del(wish, "keep_up");
    digest = digest_of(wish);
    l = stk_slurm_import_numbers(mk, i->job);
    if (digest != i->digest && l.n > 0 && m->cfg.wishes)
        m->cfg.wishes(m->cfg.ctx, l.list, l.n, wish);
    i->digest = digest;
    free(l.list);
    json_decref(wish);
}

/* What is left of an array is one element, which we have released: Slurm has made no record of its
 * own for it yet. */
static bool is_started(const struct stk_slurm *m, const struct stk_slurm_import *i,
                       const struct stk_slurm_mark *mk)
{
    struct stk_slurm_numbers l = stk_slurm_import_numbers(mk, i->job);
    const struct stk_slurm_job *j = l.n == 1 ? stk_slurm_find(m, l.list[0]) : NULL;

    free(l.list);
    return j && (j->where == STK_S_ASKED || j->where == STK_S_SENT) && !j->stopping && !j->back[0];
}

/* Its user released it, or somebody else did: it is ours to start. */
static void hold_again(struct stk_slurm *m, struct stk_slurm_import *i, struct stk_slurm_mark *mk)
{
    bool told = mk->held, released = mk->by_user;
    char reason[300];

    if (!stk_slurm_import_may_hold(m, i))
        return;
    mk->by_user = false;
    stk_slurm_import_reason(m, i->job, mk, !released, reason, sizeof(reason));
    mk->held = reason[0] != '\0';
    stk_slurm_import_put_mark(m, i->job, mk, released);
    if (told != mk->held)
        stk_slurm_import_holds(m, i->job, mk, reason);
}

/* A record of ours that waits, and that the core has not placed. */
static void waits(struct stk_slurm *m, struct stk_slurm_import *i, struct stk_slurm_mark mk)
{
    bool marked = stk_slurm_mark_read(stk_str(i->job, "admin_comment"), m->cfg.mark, &mk);
    bool was_held = mk.held;
    char reason[300];

    if (!m->open)
        return;
    stk_slurm_import_reason(m, i->job, &mk, true, reason, sizeof(reason));
    if (stk_slurm_import_is_away(m, i->job)) {
        stk_slurm_import_let_ours_go(m, i, &mk, reason);
        return;
    }
    if (!stk_yes(i->job, "held")) {
        if (!is_started(m, i, &mk))
            hold_again(m, i, &mk);
        return;
    }
    /* With a hold of its user's goes a time that never comes; the plugin takes away that alone. */
    if (marked && mk.by_user && stk_whole(i->job, "begin") < STK_SLURM_HELD_UNTIL) {
        mk.by_user = false; /* and when that is seen, it is not held here any more */
        if (stk_slurm_import_may_tell(m, i))
            stk_slurm_import_put_mark(m, i->job, &mk, false);
        return;
    }
    if (reason[0] || mk.held || i->held_here)
        stk_slurm_import_holds(m, i->job, &mk, reason);
    i->held_here = mk.held = reason[0] != '\0';
    if ((!marked && stk_slurm_import_may_tell(m, i)) || was_held != mk.held)
        stk_slurm_import_put_mark(m, i->job, &mk, false);
    tell_changes(m, i, &mk);
}

/* ---- news ---- */

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
        consider(m, i);
        return;
    }
    i->step = STK_I_OURS;
    i->first = mk->first;
    if (stk_slurm_import_reused(i, job)) /* it was put back */
        i->submitted = stk_whole(job, "submitted");
    if (mk->tasks[0] && !i->tasks)
        i->tasks = strdup(mk->tasks);
    if (i->stray)
        stk_slurm_import_is_back(m, i, mk);
    j = stk_slurm_find(m, stk_slurm_import_number(mk, job));
    if (!j || stk_slurm_import_several(job)) {
        waits(m, i, *mk);
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
        stk_slurm_mark_read(stk_str(job, "admin_comment"), m->cfg.mark, &mk))
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
    if (partition_of(m, job) != UINT32_MAX)
        return !stk_slurm_import_is_let_go(job);
    note_elsewhere(m, job);
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
            consider(m, i);
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
