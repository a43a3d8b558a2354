/* SPDX-License-Identifier: Apache-2.0 */
/* suspend.c - putting a job to sleep so that its GPUs are free, and waking it.
 *
 *   suspend: ask the shim for the processes -> stoker-gpu moves what they have on GPUs into host
 *            memory -> the shim stops them -> SUSPENDED
 *   resume:  the shim wakes them -> stoker-gpu moves it back -> STARTED
 *
 * A GPU that has no room for what was saved is tried again, later each time; nothing was touched,
 * and the job goes back to sleep in between. It keeps its lease: nobody else could use that GPU
 * either, and whoever is to have it tells the job to sleep, as at any time.
 *
 * Without a real GPU the middle step is left out. What cannot be suspended is stopped like any
 * other job: its checkpoint signal, SIGTERM, SIGKILL. Each step can be done again: a daemon that
 * died in the middle goes on from the shim's state, and a stoker-gpu that died is run again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/local/inner.h"

#define DEFAULT_LOCK_MS 10000
#define MAX_ARGS 4096
#define FIRST_PAUSE_MS 500
#define MAX_PAUSE_MS 300000
#define MAX_RUNS 3           /* of a stoker-gpu that dies without an answer */
#define ROOM_WAIT_MS "60000" /* for GPU memory that another is just giving back */

static void order(struct stk_local_job *j, const char *op, json_t *take_memo)
{
    json_t *msg = json_pack("{s:s,s:I,s:o}", "op", op, "lease", (json_int_t)j->lease, "gpus",
                            stk_local_gpu_list(j));

    if (take_memo)
        (void)json_object_set_new(msg, "memo", take_memo);
    (void)stk_local_send(j, msg);
}

/* Somebody was at work on what it has on its GPUs and did not finish: it is made to run, whatever
 * it does now. */
void stk_local_make_sure(struct stk_local_job *j)
{
    j->unsure = true;
    j->where = STK_W_THAWING;
    order(j, "prepare", NULL); /* for the pids */
}

/* It cannot be suspended: it is stopped instead, or keeps its turn. */
static void fall_back(struct stk_local_job *j, const char *why)
{
    if (stk_local_turn_kept(j, why)) {
        j->where = STK_W_RUNNING;
        return;
    }
    stk_local_note(j, "not suspended: %s; stopped instead", why);
    j->stop.suspend = false;
    j->where = STK_W_RUNNING;
    stk_local_do_stop(j);
}

/* A restore that fails leaves a process that can never go on: it is ended, and the job is queued
 * again like any other that had to make room. */
static void give_up(struct stk_local_job *j, const char *why)
{
    j->final_cause = STK_CAUSE_EVICTED;
    (void)snprintf(j->sentence, sizeof(j->sentence), "could not be resumed: %s; it starts anew",
                   why);
    j->where = STK_W_STOPPING;
    (void)stk_local_send(
        j, json_pack("{s:s,s:s,s:b}", "op", "stop", "cause", "evicted", "at_once", 1));
}

void stk_local_suspend(struct stk_local_job *j)
{
    if (j->share == STK_SHARE_MPS) {
        fall_back(j, "it shares its GPU by MPS, whose clients CUDA cannot suspend");
        return;
    }
    j->where = STK_W_PREPARING;
    order(j, "prepare", NULL);
}

static uint64_t host_free_mib(void)
{
    static const char key[] = "MemAvailable:";
    unsigned long long kib = 0;
    char line[256];
    FILE *f = fopen("/proc/meminfo", "re");

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, sizeof(key) - 1) == 0) {
            kib = strtoull(line + sizeof(key) - 1, NULL, 10);
            break;
        }
    if (f)
        (void)fclose(f);
    return kib / 1024;
}

/* What the job holds on its GPUs goes into host memory. stoker-gpu counts it too, and better; this
 * saves locking a job that cannot be saved. */
static bool fits(const struct stk_local_job *j, char *why, size_t size)
{
    const struct stk_local_config *c = &j->m->cfg;
    uint64_t need = c->gpu_used_mib ? c->gpu_used_mib(c->ctx, j->mask) : 0, have = host_free_mib();

    (void)snprintf(why, size, "%llu MiB of GPU memory do not fit into %llu MiB of memory",
                   (unsigned long long)need, (unsigned long long)have);
    return need < have;
}

struct args {
    char *word[MAX_ARGS];
    size_t n;
};

static void add(struct args *a, const char *s)
{
    char *word = a->n + 1 < MAX_ARGS ? strdup(s) : NULL;

    if (word)
        a->word[a->n++] = word;
}

static void add_pids(struct args *a, const json_t *pids)
{
    const json_t *v;
    char text[32];
    size_t i;

    json_array_foreach(pids, i, v)
    {
        (void)snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
        add(a, text);
    }
}

static int run(struct stk_local_job *j, struct args *a,
               void (*done)(struct stk_local_job *j, const json_t *answer))
{
    int rc = stk_local_helper(j, a->word, done);

    for (size_t i = 0; i < a->n; i++)
        free(a->word[i]);
    return rc;
}

/* Which GPUs it was on and what it held there: what a resume needs to know, kept by the shim. */
static json_t *memo_of(const struct stk_local_job *j, const json_t *answer)
{
    const json_t *held = json_object_get(answer, "gpus"), *h;
    json_t *list = json_array();
    size_t k;

    for (uint32_t i = 0; i < j->m->cfg.n_gpus; i++) {
        const char *uuid = j->m->gpus[i].uuid, *other;
        json_int_t mib = 0;

        if (!(j->mask >> i & 1))
            continue;
        json_array_foreach(held, k, h)
        {
            other = json_string_value(json_object_get(h, "uuid"));
            if (other && strcmp(other, uuid) == 0)
                mib = json_integer_value(json_object_get(h, "held_mib"));
        }
        (void)json_array_append_new(list, json_pack("{s:s,s:I}", "uuid", uuid, "mib", mib));
    }
    return list;
}

/* How long the driver took, whatever we did around it. */
static double driver_s(const json_t *answer, const char *step1, const char *step2)
{
    const json_t *list = json_object_get(answer, "processes"), *p;
    double ms = 0;
    size_t i;

    json_array_foreach(list, i, p) ms +=
        json_number_value(json_object_get(p, step1)) + json_number_value(json_object_get(p, step2));
    return ms / 1000;
}

/* It died before it had answered. */
static bool once_more(struct stk_local_job *j, const json_t *answer)
{
    j->helper_runs = answer ? 0 : (j->helper_runs + 1) % MAX_RUNS;
    return j->helper_runs > 0;
}

/* Nobody has changed their mind since it was told to sleep. */
static bool shall_sleep(const struct stk_local_job *j)
{
    return j->stopping ? j->stop.suspend : j->yielding;
}

static void not_saved(struct stk_local_job *j, const json_t *answer)
{
    const char *why = json_string_value(json_object_get(answer, "why"));
    bool left = !answer || json_array_size(json_object_get(answer, "left")) > 0;

    fall_back(j, why ? why : "stoker-gpu gave no answer");
    if (j->where == STK_W_RUNNING && left)
        stk_local_make_sure(j);
}

static void saved(struct stk_local_job *j, const json_t *answer)
{
    if (j->where != STK_W_SAVING)
        return; /* its shim is gone */
    if (shall_sleep(j) && once_more(j, answer)) {
        stk_local_suspend(j);
        return;
    }
    if (!json_is_true(json_object_get(answer, "ok"))) {
        not_saved(j, answer);
        return;
    }
    if (!shall_sleep(j)) { /* cancelled meanwhile */
        j->where = STK_W_ASLEEP;
        stk_local_do_stop(j);
        return;
    }
    if (!j->yielding)
        stk_local_note(
            j, "suspended: the driver moved %lld MiB of GPU memory to host memory in %.1f s",
            (long long)json_integer_value(json_object_get(answer, "freed_mib")),
            driver_s(answer, "lock_ms", "checkpoint_ms"));
    j->where = STK_W_FREEZING;
    order(j, "freeze", memo_of(j, answer));
}

static void save(struct stk_local_job *j, const json_t *pids)
{
    const struct stk_local_config *c = &j->m->cfg;
    struct args a = {.n = 0};
    char text[128];

    if (!c->gpu_helper) {
        fall_back(j, "there is no stoker-gpu");
        return;
    }
    if (!fits(j, text, sizeof(text))) {
        fall_back(j, text);
        return;
    }
    add(&a, "suspend");
    add(&a, "--lock-timeout-ms");
    (void)snprintf(text, sizeof(text), "%u",
                   c->lock_timeout_ms ? c->lock_timeout_ms : DEFAULT_LOCK_MS);
    add(&a, text);
    add_pids(&a, pids);
    j->where = STK_W_SAVING;
    if (run(j, &a, saved) < 0)
        fall_back(j, "stoker-gpu cannot be run");
}

static void try_later(struct stk_local_job *j, const char *why)
{
    if (j->stopping && !j->stop.suspend) {
        j->where = STK_W_ASLEEP;
        stk_local_do_stop(j);
        return;
    }
    j->pause_ms = j->pause_ms ? 2 * j->pause_ms : FIRST_PAUSE_MS;
    j->pause_ms = j->pause_ms < MAX_PAUSE_MS ? j->pause_ms : MAX_PAUSE_MS;
    j->again_at = (int64_t)uv_now(j->m->cfg.loop) + j->pause_ms;
    stk_local_note(j, "not resumed yet: %s; tried again in %lld s", why,
                   (long long)(j->pause_ms + 999) / 1000);
    j->where = STK_W_FREEZING;
    order(j, "freeze", json_incref(j->run.memo));
}

bool stk_local_resume_due(struct stk_local_job *j, int64_t now)
{
    if (j->again_at == 0 || j->where != STK_W_ASLEEP)
        return false;
    if (now < j->again_at)
        return true;
    stk_local_resume(j);
    return false;
}

static void restored(struct stk_local_job *j, const json_t *answer)
{
    const char *why = json_string_value(json_object_get(answer, "why"));

    if (j->where != STK_W_RESTORING)
        return; /* its shim is gone */
    if (json_object_get(answer, "no_room")) {
        try_later(j, why ? why : "the GPU has no room");
        return;
    }
    if (once_more(j, answer)) {
        j->where = STK_W_THAWING;
        order(j, "prepare", NULL); /* for the pids */
        return;
    }
    if (!json_is_true(json_object_get(answer, "ok"))) {
        give_up(j, why ? why : "stoker-gpu gave no answer");
        return;
    }
    if (!j->seat)
        stk_local_note(j, "resumed: the driver moved its GPU memory back in %.1f s",
                       driver_s(answer, "restore_ms", "unlock_ms"));
    j->where = STK_W_RUNNING;
    j->pause_ms = 0;
    j->unsure = false;
    stk_local_turn_began(j);
    stk_local_emit_started(j);
    if (j->stopping)
        stk_local_do_stop(j);
}

/* The GPUs it gets, in the order of those it had; it is moved when they are not the same. */
static void add_gpus(const struct stk_local_job *j, struct args *a)
{
    size_t k = 0, n = json_array_size(j->run.memo);
    bool moved = false;
    char text[256];

    for (int pass = 0; pass < 2; pass++) {
        k = 0;
        for (uint32_t i = 0; i < j->m->cfg.n_gpus && k < n; i++) {
            const json_t *had = json_array_get(j->run.memo, k);
            const char *old = json_string_value(json_object_get(had, "uuid"));
            json_int_t mib = json_integer_value(json_object_get(had, "mib"));

            if (!(j->mask >> i & 1) || !old)
                continue;
            k++;
            moved = moved || strcmp(old, j->m->gpus[i].uuid) != 0;
            if (pass == 0 && mib > 0) {
                add(a, "--gpu");
                add(a, j->m->gpus[i].uuid);
                add(a, "--need-mib");
                (void)snprintf(text, sizeof(text), "%lld", (long long)mib);
                add(a, text);
            } else if (pass == 1 && moved) {
                add(a, "--move");
                (void)snprintf(text, sizeof(text), "%s=%s", old, j->m->gpus[i].uuid);
                add(a, text);
            }
        }
    }
}

static void restore(struct stk_local_job *j, const json_t *pids)
{
    struct args a = {.n = 0};

    if (!j->m->cfg.gpu_helper) {
        give_up(j, "there is no stoker-gpu");
        return;
    }
    add(&a, "resume");
    if (!j->unsure) /* else it may hold already what it needs */
        add_gpus(j, &a);
    add(&a, "--wait-ms");
    add(&a, ROOM_WAIT_MS);
    add_pids(&a, pids);
    j->where = STK_W_RESTORING;
    if (run(j, &a, restored) < 0)
        give_up(j, "stoker-gpu cannot be run");
}

/* The shim's answer to "prepare", before a suspend and before a restore. */
void stk_local_prepared(struct stk_local_job *j, const json_t *rec)
{
    const char *why = json_string_value(json_object_get(rec, "why"));
    const json_t *pids = json_object_get(rec, "pids");

    if (j->where == STK_W_THAWING) {
        restore(j, pids);
        return;
    }
    if (j->where != STK_W_PREPARING)
        return;
    if (!json_is_true(json_object_get(rec, "ok"))) {
        fall_back(j, why ? why : "its supervisor refuses");
    } else if (j->real_gpus) {
        save(j, pids);
    } else {
        j->where = STK_W_FREEZING;
        order(j, "freeze", NULL);
    }
}

void stk_local_asleep(struct stk_local_job *j)
{
    const struct stk_event ev = {
        .at = stk_local_now(j->m), .type = STK_EV_SUSPENDED, .job = j->id, .lease = j->lease};

    /* an order of a daemon before us may have come through late */
    if (j->where != STK_W_FREEZING && j->where != STK_W_ASLEEP &&
        !(j->seat && (j->where == STK_W_RUNNING || j->where == STK_W_PREPARING)))
        return;
    j->where = STK_W_ASLEEP;
    if (j->again_at)
        stk_local_timer_need(j->m);
    stk_local_turn_slept(j);
    if (!j->stopping || !j->stop.suspend)
        return;
    j->again_at = 0;
    j->stopping = false;
    j->asleep_wanted = true;
    stk_local_emit_started(j); /* if nobody knows of it: from here on it is too late */
    (void)snprintf(j->sentence, sizeof(j->sentence), "suspended");
    j->m->base.emit(j->m->base.emit_ctx, &ev);
}

void stk_local_awake(struct stk_local_job *j, const char *why)
{
    if (j->where == STK_W_FREEZING && j->again_at && !j->stopping) {
        stk_local_asleep(j); /* its GPU part sleeps, which is enough until the next try */
        return;
    }
    if (j->where == STK_W_FREEZING && stk_local_turn_kept(j, why ? why : "it did not stop")) {
        j->where = STK_W_RUNNING;
        if (j->real_gpus)
            stk_local_make_sure(j);
        return;
    }
    if (j->where == STK_W_FREEZING) { /* it could not be stopped */
        if (j->real_gpus)
            j->where = STK_W_ASLEEP; /* what is saved is lost with it */
        else
            j->where = STK_W_RUNNING;
        stk_local_note(j, "not suspended: %s; stopped instead", why ? why : "it did not stop");
        j->stop.suspend = false;
        stk_local_do_stop(j);
        return;
    }
    if (j->where != STK_W_THAWING)
        return;
    if (j->real_gpus) {
        order(j, "prepare", NULL); /* for the pids */
        return;
    }
    j->where = STK_W_RUNNING;
    stk_local_turn_began(j);
    stk_local_emit_started(j);
    if (j->stopping)
        stk_local_do_stop(j);
}

void stk_local_resume(struct stk_local_job *j)
{
    j->sentence[0] = 0;
    j->asleep_wanted = false;
    j->again_at = 0;
    if (j->where == STK_W_ORPHANED) {
        stk_local_orphan_wake(j);
        stk_local_turn_began(j);
        stk_local_emit_started(j);
        return;
    }
    j->where = STK_W_THAWING;
    order(j, "thaw", NULL);
}
