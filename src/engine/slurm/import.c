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

#define AGAIN_MS 2000 /* Slurm is told again what it has not done by then */

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static json_int_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static bool yes(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

static bool pending(const json_t *job)
{
    return strcmp(text(job, "state"), "pending") == 0 && !yes(job, "completing");
}

/* The row of the first of its partitions that is ours; UINT32_MAX: none is. */
static uint32_t partition_of(const struct stk_slurm *m, const json_t *job)
{
    for (const char *s = text(job, "partition"); *s;) {
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

/* ---- telling Slurm ---- */

/* Not before it has had time for what it was told last. */
static bool may_tell(struct stk_slurm *m, struct stk_slurm_import *i)
{
    int64_t now = stk_slurm_ms();

    if (i->told_at && now - i->told_at < AGAIN_MS) {
        m->again = i->again = true;
        return false;
    }
    i->told_at = now;
    return true;
}

/* 'begin' 0: as it is. */
static void comment(struct stk_slurm *m, const json_t *job, const char *words, bool hold,
                    int64_t begin)
{
    json_t *o = json_pack("{s:s,s:o,s:s}", "op", "update", "job", stk_slurm_id(job),
                          "admin_comment", words);

    if (hold)
        (void)json_object_set_new(o, "hold", json_true());
    if (begin)
        (void)json_object_set_new(o, "begin", json_integer(begin));
    if (hold && !json_is_true(json_object_get(job, "held"))) /* before Slurm starts it */
        (void)stk_slurm_ask(m, o, NULL, NULL);
    else
        stk_slurm_ask_later(m, o);
}

/* A hold that is its user's own is left to the user; so that Slurm does not start the job when it
 * goes, it also waits for a time that never comes. */
static void put_mark(struct stk_slurm *m, const json_t *job, const struct stk_slurm_mark *mk,
                     bool released)
{
    char words[STK_SLURM_MARK_LEN];

    stk_slurm_mark_write(mk, m->cfg.mark, words, sizeof(words));
    comment(m, job, words, !mk->by_user,
            mk->by_user ? STK_SLURM_HELD_UNTIL
            : released  ? m->cfg.now(m->cfg.ctx) / STK_SECOND
                        : 0);
}

static void refuse(struct stk_slurm *m, struct stk_slurm_import *i, const char *sentence)
{
    struct stk_slurm_claim c = {0};
    char words[700], short_one[512];

    i->step = STK_I_NEW;
    i->refused = true;
    (void)snprintf(short_one, sizeof(short_one), "cannot take it: %.480s", sentence);
    (void)stk_slurm_claim_read(text(i->job, "admin_comment"), &c);
    stk_slurm_claim_write(&c, short_one, words, sizeof(words));
    if (strcmp(text(i->job, "admin_comment"), words) == 0)
        return;
    stk_slurm_log(m, true, "Slurm job %u cannot be taken: %s", i->slurm, sentence);
    comment(m, i->job, words, true, 0);
}

/* ---- what it asks for ---- */

/* Why Slurm itself holds it, in words; "": it does not. */
void stk_slurm_import_reason(const json_t *job, const struct stk_slurm_mark *mk, bool by_time,
                             char *buf, size_t size)
{
    buf[0] = '\0';
    if (*text(job, "dependency"))
        (void)snprintf(buf, size, "waits in Slurm for other jobs: %.200s", text(job, "dependency"));
    else if ((mk->by_user && yes(job, "held")) ||
             (by_time && !mk->by_user && whole(job, "begin") >= STK_SLURM_HELD_UNTIL))
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

static json_t *wish_of(const struct stk_slurm *m, const json_t *job, struct stk_err *err)
{
    struct stk_slurm_claim c = {0};
    struct stk_slurm_room room = {0, 0};
    uint32_t row = partition_of(m, job);
    json_t *wish;

    for (uint32_t i = 0; i < m->n_nodes; i++)
        if (m->nodes[i].partition == row) {
            room.gpus = m->nodes[i].gpus > room.gpus ? m->nodes[i].gpus : room.gpus;
            room.cpus = m->nodes[i].cpus > room.cpus ? m->nodes[i].cpus : room.cpus;
        }
    (void)stk_slurm_claim_read(text(job, "admin_comment"), &c);
    wish = stk_slurm_wish(job, &room, &c, err);
    if (wish && stk_slurm_allow(m, job, wish, err) < 0) {
        json_decref(wish);
        return NULL;
    }
    if (wish) {
        (void)json_object_set_new(wish, "pool", json_string(m->names[row]));
        stk_slurm_import_signal(stk_slurm_import_find(m, whole(job, "job")), wish);
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

    stk_slurm_import_reason(i->job, &mk, true, reason, sizeof(reason));
    if (reason[0])
        (void)json_object_set_new(take_wish, "hold", json_true());
    (void)snprintf(key, sizeof(key), "slurm %s %u %lld", m->cfg.mark, i->slurm,
                   (long long)i->submitted);
    i->step = STK_I_ASKED;
    i->by_user = by_user;
    m->cfg.bring(m->cfg.ctx, (uint32_t)whole(i->job, "uid"), take_wish, key, made);
}

/* Elements that are still in the array's own record, without how many may run at a time. */
static bool keep_tasks(struct stk_slurm_import *i)
{
    const char *tasks = text(i->job, "array_tasks");

    free(i->tasks);
    i->tasks = stk_slurm_import_several(i->job) ? strndup(tasks, strcspn(tasks, "%")) : NULL;
    return !stk_slurm_import_several(i->job) || i->tasks;
}

static void consider(struct stk_slurm *m, struct stk_slurm_import *i)
{
    struct stk_slurm_claim c = {0};
    struct stk_err err = {""};
    bool claimed = stk_slurm_claim_read(text(i->job, "admin_comment"), &c);
    uint64_t digest;
    json_t *wish;

    if (!m->open || i->step != STK_I_NEW)
        return;
    if (!yes(i->job, "held")) {
        char words[64];

        i->bare = true;
        stk_slurm_claim_write(&c, NULL, words, sizeof(words));
        if (may_tell(m, i))
            comment(m, i->job, words, true, 0);
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
    if (i->refused && i->digest == digest) {
        json_decref(wish);
        return;
    }
    i->digest = digest;
    i->refused = false;
    ask(m, i, wish, !claimed);
}

void stk_slurm_brought(struct stk_engine *e, const json_t *made, stk_job_number first,
                       uint32_t count, const char *sentence)
{
    struct stk_slurm *m = (struct stk_slurm *)e;
    struct stk_slurm_import *i = stk_slurm_import_find(m, whole(made, "job"));
    struct stk_slurm_mark mk = {.first = first};
    char reason[300];

    if (i && (i->submitted != whole(made, "submitted") || i->step != STK_I_ASKED))
        i = NULL;
    if (sentence) {
        if (i && i->job)
            refuse(m, i, sentence);
        else if (i)
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
    (void)snprintf(mk.tasks, sizeof(mk.tasks), "%s", text(made, "tasks"));
    free(i->tasks);
    i->tasks = mk.tasks[0] ? strdup(mk.tasks) : NULL;
    mk.by_user = i->by_user;
    stk_slurm_import_reason(i->job, &mk, true, reason, sizeof(reason));
    mk.held = reason[0] != '\0';
    put_mark(m, i->job, &mk, false);
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
    json_t *wish = mk->pinned ? json_object() : wish_of(m, i->job, &err);
    struct stk_slurm_numbers l;
    uint64_t digest;

    if (!wish) {
        stk_slurm_log(m, true, "Slurm job %u was changed to what cannot be: %s", i->slurm,
                      err.text);
        return;
    }
    if (mk->pinned)
        stk_slurm_wish_later(i->job, false, wish);
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

/* A record of ours that waits, and that the core has not placed. */
static void waits(struct stk_slurm *m, struct stk_slurm_import *i, struct stk_slurm_mark mk)
{
    bool marked = stk_slurm_mark_read(text(i->job, "admin_comment"), m->cfg.mark, &mk);
    char reason[300];

    if (!m->open)
        return;
    if (!yes(i->job,
             "held")) { /* its user released it, or somebody else did: it is ours to start */
        bool told = mk.held, released = mk.by_user;

        if (!may_tell(m, i))
            return;
        mk.by_user = false;
        stk_slurm_import_reason(i->job, &mk, !released, reason, sizeof(reason));
        mk.held = reason[0] != '\0';
        put_mark(m, i->job, &mk, released);
        if (told != mk.held)
            stk_slurm_import_holds(m, i->job, &mk, reason);
        return;
    }
    stk_slurm_import_reason(i->job, &mk, true, reason, sizeof(reason));
    if (reason[0] || mk.held)
        stk_slurm_import_holds(m, i->job, &mk, reason);
    if ((!marked && may_tell(m, i)) || mk.held != (reason[0] != '\0')) {
        mk.held = reason[0] != '\0';
        put_mark(m, i->job, &mk, false);
    }
    tell_changes(m, i, &mk);
}

/* ---- news ---- */

static void pending_news(struct stk_slurm *m, json_t *job, bool ours,
                         const struct stk_slurm_mark *mk)
{
    struct stk_slurm_import *i = stk_slurm_import_add(m, job);

    if (!i)
        return;
    stk_slurm_import_keep(i, job);
    i->round = m->round;
    if (!ours) {
        if (i->step == STK_I_OURS)
            i->step = STK_I_NEW;
        consider(m, i);
        return;
    }
    i->step = STK_I_OURS;
    i->first = mk->first;
    i->submitted = whole(job, "submitted");
    if (mk->tasks[0] && !i->tasks)
        i->tasks = strdup(mk->tasks);
    if (stk_slurm_import_several(job) || !stk_slurm_find(m, stk_slurm_import_number(mk, job)))
        waits(m, i, *mk);
}

/* It does not wait any more, and not because we had it started. */
static void left(struct stk_slurm *m, const json_t *job, const struct stk_slurm_mark *mk)
{
    const char *state = text(job, "state");
    char sentence[200];

    if (strcmp(state, "cancelled") == 0)
        (void)snprintf(sentence, sizeof(sentence), "was cancelled in Slurm");
    else if (strcmp(state, "running") == 0)
        (void)snprintf(sentence, sizeof(sentence),
                       "was started by Slurm, and not by stoker; it runs on there as others' do");
    else
        (void)snprintf(sentence, sizeof(sentence), "ended in Slurm: %.60s", state);
    gone(m, mk, job, sentence);
}

bool stk_slurm_import_news(struct stk_slurm *m, json_t *job, stk_job_number *ret_number)
{
    struct stk_slurm_import *i = stk_slurm_import_find(m, whole(job, "job"));
    struct stk_slurm_mark mk = {0};
    bool ours = stk_slurm_import_mark_of(m, job, &mk);

    *ret_number = 0;
    if (!m->cfg.bring ||
        (!ours && (partition_of(m, job) == UINT32_MAX || *text(job, "reservation"))))
        return false;
    *ret_number = ours && !stk_slurm_import_several(job) ? stk_slurm_import_number(&mk, job) : 0;
    if (i)
        stk_slurm_import_compare(m, i, job);
    if (pending(job)) {
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
    if (m->open && !(*ret_number && stk_slurm_find(m, *ret_number)) && !yes(job, "completing")) {
        left(m, job, &mk);
        *ret_number = 0;
    }
    return stk_slurm_import_several(job);
}

void stk_slurm_import_forget(struct stk_slurm *m, uint32_t slurm)
{
    struct stk_slurm_import *i = stk_slurm_import_find(m, slurm);
    struct stk_slurm_mark mk;

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
        i->again = false;
        if (i->job)
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
        if (!m->seen[k - 1].number || pending(job) || yes(job, "completing") ||
            stk_slurm_find(m, m->seen[k - 1].number) || !stk_slurm_import_mark_of(m, job, &mk))
            continue;
        left(m, job, &mk);
        if (strcmp(text(job, "state"), "running") == 0) { /* another is in its place now */
            stk_slurm_revived_theirs(m, job);
            k--;
        }
    }
}

void stk_slurm_open(struct stk_engine *e)
{
    stk_slurm_import_open((struct stk_slurm *)e);
}
