/* SPDX-License-Identifier: Apache-2.0 */
/* idle.c - looks after jobs that hold GPUs and do nothing: warns, lends their GPUs to others for as
 * long as those wait, and ends them where that was asked for. idleness.c decides; this reads and
 * acts. Which jobs sleep because of us is kept in the store, so that a restarted daemon wakes them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/say.h"
#include "base/map.h"
#include "core/part.h"
#include "core/sets.h"
#include "core/state.h"
#include "daemon/idle_look.h"
#include "sys/big.h"

#define LOOK_MS 1000u
#define META "idle.asleep" /* numbers of the jobs we have put to sleep, with commas between */

struct idler { /* a job that has processes */
    stk_job_number number;
    stk_lease_id lease;
    bool has_rule, may_suspend;
    bool asleep; /* because of us */
    bool told;   /* something was asked for, and has not happened yet */
    bool here;   /* seen in this round */
    stk_time slept_at;
    struct stk_idle_rule rule;
    struct stk_idle idle;
};

struct stk_idlers {
    struct stk_daemon *d;
    uv_timer_t timer;
    struct stk_mem mem;
    struct idler *list;
    uint32_t n, cap;
    struct stk_map by_number;
    uint32_t *lendable; /* by node: GPUs of jobs that could be put to sleep, this round */
    bool changed;       /* who sleeps because of us */
    char *asleep;       /* as it was kept by the daemon before this one */
};

static const struct stk_job *job_of(const struct stk_idlers *w, stk_job_number number)
{
    const struct stk_core *core = stk_live_core(w->d->live);
    uint32_t slot = stk_core_find(core, number);

    return slot == STK_NONE ? NULL : &stk_core_state(core)->jobs[slot];
}

/* Where its GPUs are, or were when it went to sleep; the first of several nodes. */
static struct stk_piece place_of(const struct stk_idlers *w, const struct stk_job *j)
{
    const struct stk_state *s = stk_core_state(stk_live_core(w->d->live));
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    if (j->lease && j->n_pieces)
        return s->pieces[j->first_piece];
    return (struct stk_piece){.node = {d->pin ? d->pin - 1 : 0}, .mask = d->pin_mask};
}

/* A job on several nodes cannot sleep (core/run.c): it would be stopped instead. */
static bool on_one_node(const struct stk_job *j)
{
    return !j->lease || j->n_pieces == 1;
}

/* ---- the table ---- */

static bool slept_before(const struct stk_idlers *w, stk_job_number number)
{
    char text[16];
    const char *at = w->asleep ? w->asleep : "";
    int n = snprintf(text, sizeof(text), "%u", number);

    for (; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, text, (size_t)n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

static void meet(void *ctx, stk_job_number number)
{
    struct stk_idlers *w = ctx;
    uint32_t at = stk_map_get(&w->by_number, number);
    const struct stk_entry *e = stk_live_entry(w->d->live, number);
    struct stk_idle_words words = {0};
    struct idler *i;

    if (at != UINT32_MAX) {
        w->list[at].here = true;
        return;
    }
    if (!e || stk_map_reserve(&w->by_number, &w->mem, w->n + 1) < 0 ||
        stk_mem_grow(&w->mem, &w->list, &w->cap, w->n + 1, sizeof(*w->list)) < 0)
        return; /* next time */
    i = &w->list[w->n];
    *i = (struct idler){.number = number, .here = true};
    i->has_rule = stk_idle_words(w->d, e, &words);
    i->rule = words.rule;
    i->may_suspend = words.may_suspend;
    i->asleep = slept_before(w, number);
    i->slept_at = stk_daemon_elapsed(w->d);
    stk_idle_begin(&i->idle, i->slept_at);
    stk_map_put(&w->by_number, number, w->n++);
}

static void sweep(struct stk_idlers *w)
{
    for (uint32_t i = 0; i < w->n;) {
        if (w->list[i].here) {
            w->list[i++].here = false;
            continue;
        }
        w->changed |= w->list[i].asleep;
        stk_map_remove(&w->by_number, w->list[i].number);
        w->list[i] = w->list[--w->n];
        if (i < w->n)
            stk_map_put(&w->by_number, w->list[i].number, i);
    }
}

/* ---- acting ---- */

static void ignore(void *ctx, int status, json_t *take_body)
{
    (void)ctx;
    (void)status;
    json_decref(take_body);
}

static void ask(struct stk_idlers *w, struct idler *i, const char *verb)
{
    const struct stk_asker us = {{.role = STK_ROLE_ADMIN, .user = "stoker"}, ignore, NULL};

    i->told = stk_live_act(w->d->live, &us, verb, &i->number, 1, json_object()) == 0;
}

static void say_consequence(const struct stk_idlers *w, const struct idler *i, char *buf,
                            size_t size)
{
    const struct stk_job *j = job_of(w, i->number);
    char suspend[40], end[40];

    stk_say_span(i->rule.suspend_s * STK_SECOND, suspend, sizeof(suspend));
    stk_say_span(i->rule.end_s * STK_SECOND, end, sizeof(end));
    buf[0] = '\0';
    if (i->rule.suspend_s > 0 && i->may_suspend && j && on_one_node(j))
        (void)snprintf(buf, size, "; after %s its GPUs are lent to jobs that wait for some",
                       suspend);
    if (i->rule.end_s > 0)
        (void)snprintf(buf + strlen(buf), size - strlen(buf), "; after %s it is ended", end);
}

static void act(struct stk_idlers *w, struct idler *i, enum stk_idle_step step, stk_time now)
{
    char span[40], more[160], text[400];

    stk_say_span(now - i->idle.since, span, sizeof(span));
    switch (step) {
    case STK_IDLE_NOTHING:
        return;
    case STK_IDLE_WARN:
        say_consequence(w, i, more, sizeof(more));
        (void)snprintf(text, sizeof(text), "no activity for %s%s", span, more);
        stk_live_warn(w->d->live, i->number, STK_WARN_IDLE, text);
        stk_api_tell(w->d->api, i->number, "warning", text);
        break;
    case STK_IDLE_CLEAR:
        stk_live_warn(w->d->live, i->number, STK_WARN_IDLE, NULL);
        return;
    case STK_IDLE_SUSPEND:
        (void)snprintf(text, sizeof(text),
                       "suspended after %s without activity, its GPUs are lent to others; it goes "
                       "on when they are no longer needed, or with: stoker resume %u",
                       span, i->number);
        stk_live_note(w->d->live, i->number, text);
        stk_live_warn(w->d->live, i->number, STK_WARN_IDLE, NULL);
        stk_api_tell(w->d->api, i->number, "warning", text);
        i->asleep = w->changed = true;
        i->slept_at = now;
        ask(w, i, "suspend");
        break;
    case STK_IDLE_WAKE:
        ask(w, i, "resume");
        return;
    case STK_IDLE_END:
        (void)snprintf(text, sizeof(text), "ended after %s without activity", span);
        stk_live_blame(w->d->live, i->number, text);
        ask(w, i, "cancel");
        break;
    }
    stk_log(STK_LOG_INFO, "job %u: %s", i->number, text);
}

/* ---- looking ---- */

static bool accepts(const struct stk_state *s, const struct stk_job *j, uint32_t node)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const struct stk_node *n = &s->nodes[node];

    return n->up && n->pool == j->pool && (d->gpu_types >> n->gpu_type & 1) &&
           stk_sets_allow(s, d, node);
}

/* Whether the job would have enough GPUs with what is lendable, on this node among others. */
static bool would_fit(const struct stk_idlers *w, const struct stk_job *j, uint32_t node,
                      const uint32_t *lendable)
{
    const struct stk_state *s = stk_core_state(stk_live_core(w->d->live));
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint64_t tasks = 0, gpus = 0;
    bool there = false;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        uint32_t free = s->nodes[i].gpus_free + (lendable ? lendable[i] : 0);

        if (!accepts(s, j, i) || free == 0)
            continue;
        there = there || i == node;
        tasks += d->gpus ? free / d->gpus : 0;
        gpus += free;
    }
    return there && (tasks >= d->tasks || (d->cut && gpus >= j->gpus));
}

/* A waiting job could start with the lendable GPUs, those of this node included. */
static bool wanted(const struct stk_idlers *w, uint32_t node, const uint32_t *lendable)
{
    const struct stk_state *s = stk_core_state(stk_live_core(w->d->live));

    if (s->n_waiting == 0)
        return false;
    for (const struct stk_entry *e = stk_live_next(w->d->live, 0); e;
         e = stk_live_next(w->d->live, e->number)) {
        const struct stk_job *j = e->rec.gpus > 0 ? job_of(w, e->number) : NULL;

        if (j && j->state == STK_JOB_WAITING && would_fit(w, j, node, lendable))
            return true;
    }
    return false;
}

/* A job waits for part of a GPU of this node. */
static bool part_wanted(const struct stk_idlers *w, uint32_t node)
{
    const struct stk_state *s = stk_core_state(stk_live_core(w->d->live));

    for (const struct stk_entry *e = stk_live_next(w->d->live, 0); e && s->n_waiting > 0;
         e = stk_live_next(w->d->live, e->number)) {
        const struct stk_job *j = e->rec.gpu_milli > 0 ? job_of(w, e->number) : NULL;

        if (j && j->state == STK_JOB_WAITING && accepts(s, j, node))
            return true;
    }
    return false;
}

/* Whether what a sleeping job had is free. */
static bool place_free(const struct stk_state *s, const struct stk_demand *d,
                       const struct stk_piece *at)
{
    const struct stk_node *n = &s->nodes[at->node.i];
    const uint64_t mask = at->mask;

    if (!d->gpu_milli || d->mig)
        return !((n->mask_used | n->mask_off) & mask);
    for (uint64_t left = mask; left; left &= left - 1)
        if (stk_part_left(s, n, (uint32_t)__builtin_ctzll(left)) < d->gpu_milli)
            return false;
    return true;
}

/* Its GPUs as they are read; virtual ones are not, and stay what they are. */
static uint64_t of_machine(const struct stk_daemon *d, const struct stk_piece *at)
{
    return d->machine.is_virtual ? at->mask
                                 : stk_machine_read_mask(&d->machine, at->node.i, at->mask);
}

/* Whether it has another lease, sleeps or runs since the last look. */
static void follow(struct stk_idlers *w, struct idler *i, const struct stk_job *j, stk_time now)
{
    stk_lease_id lease = j->lease ? j->lease : j->slept;

    if (lease != i->lease) { /* started, or woken */
        stk_idle_begin(&i->idle, now);
        stk_live_warn(w->d->live, i->number, STK_WARN_IDLE, NULL);
        w->changed |= i->asleep && i->lease != 0;
        i->asleep = i->asleep && i->lease == 0; /* known from before a restart */
        i->lease = lease;
    }
    if (i->asleep && j->state == STK_JOB_RUNNING && !i->told) {
        i->asleep = false;
        w->changed = true;
    }
    if (j->state != STK_JOB_RUNNING)
        i->told = i->told && j->state == STK_JOB_STOPPING;
}

static void look(struct stk_idlers *w, struct idler *i, struct stk_procs *procs, stk_time now)
{
    const struct stk_job *j = job_of(w, i->number);
    const struct stk_state *s = stk_core_state(stk_live_core(w->d->live));
    struct stk_idle_around a = {0};
    struct stk_idle_reading r;
    const struct stk_demand *of;
    struct stk_idle_on on;
    struct stk_piece at;

    if (!j)
        return;
    follow(w, i, j, now);
    of = &s->shapes[j->shape].demand;
    at = place_of(w, j);
    on = (struct stk_idle_on){of_machine(w->d, &at), of->gpu_milli && of->share != STK_SHARE_TIME};
    if (j->state == STK_JOB_RUNNING && !i->told) {
        stk_idle_look(w->d, i->number, &on, procs, &r);
        stk_idle_see(&i->idle, &i->rule, &r, now);
        a.may_suspend = on.mask && i->may_suspend && on_one_node(j) && of->share != STK_SHARE_MPS &&
                        stk_idle_due(&i->idle, &i->rule, now) && stk_idle_can_sleep(w->d, on.mask);
        if (w->lendable && a.may_suspend && !of->gpu_milli)
            w->lendable[at.node.i] += j->gpus;
        a.wanted = a.may_suspend &&
                   (of->gpu_milli ? part_wanted(w, at.node.i) : wanted(w, at.node.i, w->lendable));
    } else if (j->state == STK_JOB_HELD && j->slept && i->asleep && !i->told) {
        stk_idle_look(w->d, i->number, &on, procs, &r);
        a.asleep = true;
        a.typed = r.pty_known && now - r.pty_idle_s * STK_SECOND > i->slept_at + STK_SECOND;
        a.gpus_free = place_free(s, of, &at);
        a.wanted = wanted(w, at.node.i, NULL);
    } else {
        return;
    }
    act(w, i, stk_idle_next(&i->idle, &i->rule, &a, now), now);
}

/* ---- what is kept ---- */

static void keep(struct stk_idlers *w)
{
    char *text = malloc((size_t)w->n * 11 + 1);
    size_t n = 0;

    if (!text)
        return; /* next time */
    text[0] = '\0';
    for (uint32_t i = 0; i < w->n; i++)
        if (w->list[i].asleep)
            n += (size_t)sprintf(text + n, "%s%u", n ? "," : "", w->list[i].number);
    w->changed = stk_daemon_keep(w->d, META, text) < 0;
    free(text);
}

static void on_timer(uv_timer_t *t)
{
    struct stk_idlers *w = t->data;
    struct stk_procs procs = {0};
    stk_time now = stk_daemon_elapsed(w->d); /* whatever is done to the machine's clock */

    if (!stk_live_core(w->d->live))
        return; /* the daemon is about to stop */
    stk_local_each(w->d->engine, meet, w);
    sweep(w);
    free(w->asleep); /* all that were there have been met */
    w->asleep = NULL;
    w->lendable = calloc(stk_core_state(stk_live_core(w->d->live))->n_nodes, sizeof(*w->lendable));
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->list[i].has_rule)
            look(w, &w->list[i], &procs, now);
        stk_live_lent(w->d->live, w->list[i].number, w->list[i].asleep);
    }
    free(procs.list);
    free(w->lendable);
    w->lendable = NULL;
    if (w->changed)
        keep(w);
}

int stk_idlers_new(struct stk_daemon *d, struct stk_idlers **ret, struct stk_err *err)
{
    struct stk_idlers *w = calloc(1, sizeof(*w));
    size_t len;

    *ret = w;
    if (!w)
        return stk_err_set(err, -ENOMEM, "out of memory");
    w->d = d;
    w->mem = stk_big_mem;
    (void)stk_store_meta_get(d->store, META, &w->asleep, &len, NULL);
    (void)uv_timer_init(&d->loop, &w->timer);
    w->timer.data = w;
    (void)uv_timer_start(&w->timer, on_timer, LOOK_MS, LOOK_MS);
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    struct stk_idlers *w = h->data;

    stk_map_done(&w->by_number, &w->mem);
    stk_mem_drop(&w->mem, &w->list, &w->cap, sizeof(*w->list));
    free(w->asleep);
    free(w);
}

void stk_idlers_free(struct stk_idlers *w)
{
    if (w)
        uv_close((uv_handle_t *)&w->timer, on_closed);
}
