/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c - "resume": puts suspended processes back on the GPU, all or none.
 *
 * A restore that finds too little GPU memory leaves the process stuck for ever. So memory is looked
 * at first, for as long as the caller will wait, and where it lacks nothing is touched. When one of
 * several restores fails, those done before are saved again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/ckpt.h"
#include "gpu/json.h"

#define POLL_MS 100
#define READ_LIMIT_MS 20000

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* True: every GPU has what is needed. Otherwise a sentence, and whether waiting can help. */
static bool has_room(struct stk_ckpt *c, char *why, size_t size, bool *ret_wait)
{
    *ret_wait = false;
    for (uint32_t i = 0; i < c->a->n_needs; i++) {
        const char *uuid = c->a->need[i].uuid;
        struct stk_nvml_mem m;
        void *dev;

        if (!c->has_nvml || !STK_NVML(&c->nv, by_uuid, uuid, &dev) ||
            !stk_nvml_memory(&c->nv, dev, &m)) {
            (void)snprintf(why, size, "the free memory of %s cannot be read", uuid);
            return false;
        }
        if ((int64_t)(m.free >> 20) >= c->a->need[i].need_mib)
            continue;
        (void)snprintf(why, size, "%s has %lld MiB free, %lld MiB are needed; nothing was touched",
                       uuid, (long long)(m.free >> 20), (long long)c->a->need[i].need_mib);
        *ret_wait = true;
        return false;
    }
    return true;
}

/* 0, or the exit code after the refusal was said. */
static int wait_for_room(struct stk_ckpt *c)
{
    const struct timespec pause = {0, POLL_MS * 1000000L};
    int64_t until = now_ms() + c->a->wait_ms;
    char why[256];
    bool wait;

    for (;;) {
        stk_guard_step(c->g, READ_LIMIT_MS, "reading free memory");
        if (has_room(c, why, sizeof(why), &wait))
            return 0;
        if (!wait || now_ms() >= until)
            break;
        (void)nanosleep(&pause, NULL);
    }
    (void)stk_guard_put(c->g,
                        json_pack("{s:b, s:b, s:s}", "ok", 0, "no_room", wait ? 1 : 0, "why", why));
    return 1;
}

static int check(struct stk_ckpt *c)
{
    bool saved = false;
    char why[160];

    for (uint32_t i = 0; i < c->n; i++) {
        saved |= c->p[i].state == CUDA_CHECKPOINTED;
        if (c->p[i].state < CUDA_FAILED && c->p[i].state != STK_CKPT_UNKNOWN)
            continue;
        (void)snprintf(why, sizeof(why), "process %d is in state %s%s", c->p[i].pid,
                       stk_ckpt_state_name(c->p[i].state),
                       c->p[i].state == CUDA_FAILED ? ": it can only be started again" : "");
        return stk_ckpt_refuse(c->g, why);
    }
    return saved ? wait_for_room(c) : 0;
}

static int refuse(struct stk_ckpt *c, int rc, enum stk_ckpt_step step, int pid)
{
    json_t *line = json_pack("{s:b}", "ok", 0);

    stk_ckpt_put_refusal(c, line, rc, step, pid);
    for (uint32_t i = 0; step == STK_CKPT_RESTORE && i < c->n; i++)
        if (c->p[i].did[STK_CKPT_RESTORE] && c->p[i].state == CUDA_LOCKED)
            (void)stk_ckpt_step(c, &c->p[i], STK_CKPT_CHECKPOINT);
    (void)stk_ckpt_put_left(c, line);
    (void)stk_guard_put(c->g, line);
    return 1;
}

static int restore_all(struct stk_ckpt *c)
{
    int rc;

    for (uint32_t i = 0; i < c->n; i++) {
        if (c->p[i].state != CUDA_CHECKPOINTED)
            continue;
        rc = stk_ckpt_step(c, &c->p[i], STK_CKPT_RESTORE);
        if (rc != CUDA_SUCCESS && c->p[i].state != STK_CKPT_GONE)
            return refuse(c, rc, STK_CKPT_RESTORE, c->p[i].pid);
    }
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->p[i].state != CUDA_LOCKED)
            continue;
        rc = stk_ckpt_step(c, &c->p[i], STK_CKPT_UNLOCK);
        if (rc != CUDA_SUCCESS && c->p[i].state != STK_CKPT_GONE)
            return refuse(c, rc, STK_CKPT_UNLOCK, c->p[i].pid);
    }
    return 0;
}

static void put_done(struct stk_ckpt *c)
{
    json_t *line = json_pack("{s:b}", "ok", 1), *done = json_array(), *skipped = json_array();

    for (uint32_t i = 0; i < c->n; i++) {
        const struct stk_ckpt_proc *p = &c->p[i];
        json_t *o;

        if (p->state != CUDA_RUNNING) {
            (void)json_array_append_new(skipped, json_integer(p->pid));
            continue;
        }
        o = json_object();
        stk_json_int(o, "pid", p->pid);
        stk_json_text(o, "was", stk_ckpt_state_name(p->was));
        if (p->did[STK_CKPT_RESTORE])
            stk_json_real(o, "restore_ms", p->ms[STK_CKPT_RESTORE]);
        if (p->did[STK_CKPT_UNLOCK])
            stk_json_real(o, "unlock_ms", p->ms[STK_CKPT_UNLOCK]);
        (void)json_array_append_new(done, o);
    }
    (void)json_object_set_new(line, "processes", done);
    (void)json_object_set_new(line, "skipped", skipped);
    (void)stk_guard_put(c->g, line);
}

int stk_gpu_resume(struct stk_guard *g, void *args)
{
    struct stk_ckpt c;
    struct stk_err err;

    if (stk_ckpt_open(&c, g, args, &err) < 0)
        return stk_ckpt_refuse(g, err.text);
    if (check(&c) || restore_all(&c))
        return 1;
    put_done(&c);
    return 0;
}
