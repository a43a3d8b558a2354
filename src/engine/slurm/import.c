/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - jobs that users send to our partitions with sbatch become ours.
 *
 * Such a job waits in Slurm, held for us: by the plugin, or by us when we see it. It is described
 * in our words (wish.c), handed to the daemon, and marked with the number it got (marks.h); from
 * then on the core decides when it starts, and start.c says to Slurm where. Until it does, Slurm's
 * record is its user's: what is changed there is changed here, what holds it there holds it here
 * (the user's own hold, dependencies, which Slurm looks after), and when it is gone there it is
 * here. import_news.c hears of all that; what is done about it is here.
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

uint32_t stk_slurm_import_partition(const struct stk_slurm *m, const json_t *job)
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
    return *stk_str(job, "reservation") || stk_slurm_import_partition(m, job) == UINT32_MAX;
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
        if (row < m->n_partitions && (m->nodes[i].in >> row & 1)) {
            room.gpus = m->nodes[i].gpus > room.gpus ? m->nodes[i].gpus : room.gpus;
            room.cpus = m->nodes[i].cpus > room.cpus ? m->nodes[i].cpus : room.cpus;
        }
    return room;
}

json_t *stk_slurm_import_later(const struct stk_slurm *m, const json_t *job, struct stk_err *err)
{
    const struct stk_slurm_room room = room_of(m, stk_slurm_import_partition(m, job));
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
    uint32_t row = stk_slurm_import_partition(m, job);
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
void stk_slurm_import_elsewhere(struct stk_slurm *m, const json_t *job)
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

void stk_slurm_import_consider(struct stk_slurm *m, struct stk_slurm_import *i)
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

void stk_slurm_import_waits(struct stk_slurm *m, struct stk_slurm_import *i,
                            struct stk_slurm_mark mk)
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
        stk_slurm_import_put_mark(m, i->job, &mk, !marked && stk_whole(i->job, "restarts") > 0);
    tell_changes(m, i, &mk);
}
