/* SPDX-License-Identifier: Apache-2.0 */
/* suspend.c - "suspend" and "state": takes processes off the GPU, all or none.
 *
 * First all are locked, so that none works on while others are being saved; then all are saved to
 * host memory. On a refusal what was done is undone. A process whose memory cannot be given back
 * because somebody took it meanwhile stays saved, and the answer says so: a restore without room
 * would leave it stuck for ever. Host memory is counted first, since the contents go there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/ckpt.h"
#include "gpu/json.h"
#include "gpu/proc.h"

#define MIB(bytes) ((int64_t)((bytes) >> 20))
#define MIB_BYTES (UINT64_C(1) << 20)

/* Is there room on every GPU for what the process held before? */
static bool room_for(const struct stk_ckpt *c, const struct stk_ckpt_proc *p)
{
    struct stk_nvml_mem m;

    for (unsigned g = 0; c->has_nvml && p->held_known && g < c->nv.n; g++)
        if (p->held[g] > 0 && c->dev[g] && stk_nvml_memory(&c->nv, c->dev[g], &m) &&
            m.free < p->held[g])
            return false;
    return true;
}

static void undo(struct stk_ckpt *c)
{
    for (uint32_t i = c->n; i-- > 0;) {
        struct stk_ckpt_proc *p = &c->p[i];

        if (p->did[STK_CKPT_CHECKPOINT] && p->state == CUDA_CHECKPOINTED && room_for(c, p))
            (void)stk_ckpt_step(c, p, STK_CKPT_RESTORE);
        if (p->state == CUDA_LOCKED)
            (void)stk_ckpt_step(c, p, STK_CKPT_UNLOCK);
    }
}

static int refuse(struct stk_ckpt *c, int rc, enum stk_ckpt_step step, int pid)
{
    json_t *line = json_pack("{s:b}", "ok", 0);

    stk_ckpt_put_refusal(c, line, rc, step, pid);
    undo(c);
    (void)json_object_set_new(line, "undone", json_boolean(stk_ckpt_put_left(c, line) == 0));
    (void)stk_guard_put(c->g, line);
    return 1;
}

/* Refusals before anything is touched. */
static int check(struct stk_ckpt *c)
{
    uint64_t need = 0, have = stk_proc_mem_available();
    uint64_t reserve = (uint64_t)c->a->host_reserve_mib << 20;
    char why[256];

    for (uint32_t i = 0; i < c->n; i++) {
        const struct stk_ckpt_proc *p = &c->p[i];

        if (p->state == STK_CKPT_UNKNOWN) {
            (void)snprintf(why, sizeof(why), "the state of process %d is not known: %s (%s, %d)",
                           p->pid, stk_cuda_why(p->rc, "state"), stk_cuda_error(&c->cu, p->rc),
                           p->rc);
            return stk_ckpt_refuse(c->g, why);
        }
        if (p->state >= CUDA_FAILED) {
            (void)snprintf(why, sizeof(why), "process %d is in state %s%s", p->pid,
                           stk_ckpt_state_name(p->state),
                           p->state == CUDA_FAILED ? ": it can only be started again" : "");
            return stk_ckpt_refuse(c->g, why);
        }
        if (p->state == CUDA_RUNNING || p->state == CUDA_LOCKED)
            need += p->held_all;
    }
    if (have == UINT64_MAX || need == 0 || have >= need + reserve)
        return 0;
    (void)snprintf(why, sizeof(why),
                   "host memory is short: the processes hold %lld MiB on the GPU, the machine has "
                   "%lld MiB available, and %lld MiB must be left",
                   (long long)MIB(need), (long long)MIB(have), (long long)MIB(reserve));
    return stk_ckpt_refuse(c->g, why);
}

static int save_all(struct stk_ckpt *c)
{
    int rc;

    for (uint32_t i = 0; i < c->n; i++) {
        if (c->p[i].state != CUDA_RUNNING)
            continue;
        rc = stk_ckpt_step(c, &c->p[i], STK_CKPT_LOCK);
        if (rc == CUDA_NOT_INITIALIZED)
            c->p[i].state = STK_CKPT_NONE;
        else if (rc != CUDA_SUCCESS && c->p[i].state != STK_CKPT_GONE)
            return refuse(c, rc, STK_CKPT_LOCK, c->p[i].pid);
    }
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->p[i].state != CUDA_LOCKED)
            continue;
        rc = stk_ckpt_step(c, &c->p[i], STK_CKPT_CHECKPOINT);
        if (rc != CUDA_SUCCESS && c->p[i].state != STK_CKPT_GONE)
            return refuse(c, rc, STK_CKPT_CHECKPOINT, c->p[i].pid);
    }
    return 0;
}

static json_t *done_one(struct stk_ckpt *c, const struct stk_ckpt_proc *p)
{
    json_t *o = json_object();
    uint64_t now;

    stk_json_int(o, "pid", p->pid);
    stk_json_text(o, "was", stk_ckpt_state_name(p->was));
    if (p->did[STK_CKPT_LOCK])
        stk_json_real(o, "lock_ms", p->ms[STK_CKPT_LOCK]);
    if (p->did[STK_CKPT_CHECKPOINT])
        stk_json_real(o, "checkpoint_ms", p->ms[STK_CKPT_CHECKPOINT]);
    if (p->did[STK_CKPT_CHECKPOINT] && p->held_known && stk_ckpt_held_now(c, p->pid, &now)) {
        stk_json_int(o, "held_mib", MIB(p->held_all));
        stk_json_int(o, "freed_mib", p->held_all > now ? MIB(p->held_all - now) : 0);
    }
    return o;
}

/* What the processes held on a GPU. Where the driver does not say it by process (it may not know
 * our PIDs in a container), what the GPU has less in use than before. */
static uint64_t held_on(const struct stk_ckpt *c, unsigned g, uint64_t now)
{
    uint64_t sum = 0, less = c->used[g] > now ? c->used[g] - now : 0;
    bool known = true;

    for (uint32_t i = 0; i < c->n; i++) {
        if (!c->p[i].did[STK_CKPT_CHECKPOINT])
            continue;
        sum += c->p[i].held[g];
        known &= c->p[i].held_known;
    }
    return known || sum > less ? sum : less;
}

/* By GPU, so that whoever resumes knows how much must be free where. */
static json_t *held_by_gpu(struct stk_ckpt *c, int64_t *ret_freed_mib)
{
    json_t *all = json_array();

    *ret_freed_mib = 0;
    for (unsigned g = 0; c->has_nvml && g < c->nv.n; g++) {
        char uuid[NVML_UUID_SIZE] = "";
        struct stk_nvml_mem m;
        uint64_t held;
        json_t *o;

        if (!c->dev[g] || !stk_nvml_memory(&c->nv, c->dev[g], &m))
            continue;
        held = held_on(c, g, m.used);
        if (held < MIB_BYTES || !STK_NVML(&c->nv, uuid, c->dev[g], uuid, sizeof(uuid)))
            continue;
        o = json_object();
        stk_json_text(o, "uuid", uuid);
        stk_json_int(o, "held_mib", MIB(held));
        (void)json_array_append_new(all, o);
        *ret_freed_mib += c->used[g] > m.used ? MIB(c->used[g] - m.used) : 0;
    }
    return all;
}

static void put_done(struct stk_ckpt *c)
{
    json_t *line = json_pack("{s:b}", "ok", 1), *done = json_array(), *skipped = json_array();
    int64_t freed_mib;

    stk_guard_step(c->g, 60000, "reading the memory of the GPUs");
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->p[i].state == CUDA_CHECKPOINTED)
            (void)json_array_append_new(done, done_one(c, &c->p[i]));
        else
            (void)json_array_append_new(skipped, json_integer(c->p[i].pid));
    }
    (void)json_object_set_new(line, "processes", done);
    (void)json_object_set_new(line, "skipped", skipped);
    (void)json_object_set_new(line, "gpus", held_by_gpu(c, &freed_mib));
    stk_json_int(line, "freed_mib", freed_mib);
    (void)stk_guard_put(c->g, line);
}

int stk_gpu_suspend(struct stk_guard *g, void *args)
{
    struct stk_ckpt c;
    struct stk_err err;

    if (stk_ckpt_open(&c, g, args, &err) < 0)
        return stk_ckpt_refuse(g, err.text);
    stk_ckpt_read_held(&c);
    if (check(&c) || save_all(&c))
        return 1;
    put_done(&c);
    return 0;
}

int stk_gpu_undo(struct stk_guard *g, void *undo_of)
{
    const struct stk_gpu_undo *u = undo_of;
    json_t *line;
    struct stk_ckpt c;
    struct stk_err err;

    if (stk_ckpt_open(&c, g, u->args, &err) < 0)
        return stk_ckpt_refuse(g, u->why);
    undo(&c);
    line = json_pack("{s:b, s:s}", "ok", 0, "why", u->why);
    (void)json_object_set_new(line, "undone", json_boolean(stk_ckpt_put_left(&c, line) == 0));
    (void)stk_guard_put(g, line);
    return 1;
}

int stk_gpu_state(struct stk_guard *g, void *args)
{
    json_t *line, *all;
    struct stk_ckpt c;
    struct stk_err err;

    if (stk_ckpt_open(&c, g, args, &err) < 0)
        return stk_ckpt_refuse(g, err.text);
    line = json_pack("{s:b}", "ok", 1);
    all = json_array();
    for (uint32_t i = 0; i < c.n; i++) {
        json_t *o = json_object();

        stk_json_int(o, "pid", c.p[i].pid);
        stk_json_text(o, "state", stk_ckpt_state_name(c.p[i].state));
        if (c.p[i].rc != CUDA_SUCCESS)
            stk_json_int(o, "code", c.p[i].rc);
        (void)json_array_append_new(all, o);
    }
    (void)json_object_set_new(line, "processes", all);
    return stk_guard_put(g, line) < 0;
}
