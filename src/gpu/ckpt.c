/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/ckpt.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/json.h"
#include "gpu/proc.h"

#define START_LIMIT_MS 120000
#define STATE_LIMIT_MS 20000
#define LOCK_MARGIN_MS 10000
#define MOVE_LIMIT_MS 120000
#define ANY_GPU_MIB 262144 /* where the size is not known */
#define SLOWEST_MIB_S 200  /* what is slower than this on top of the limit above is a hang */

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool is_gone(int pid)
{
    struct stk_proc p;

    return (kill(pid, 0) < 0 && errno == ESRCH) ||
           (stk_proc_read(pid, &p) && (p.state == 'Z' || p.state == 'X'));
}

void stk_ckpt_read_state(struct stk_ckpt *c, struct stk_ckpt_proc *p)
{
    int state = 0;

    p->rc = CUDA_SUCCESS;
    if (is_gone(p->pid)) {
        p->state = STK_CKPT_GONE;
        return;
    }
    stk_guard_step(c->g, c->a->timeout_ms ? c->a->timeout_ms : STATE_LIMIT_MS,
                   "asking for the state of process %d", p->pid);
    p->rc = c->cu.call.state(p->pid, &state);
    if (p->rc == CUDA_SUCCESS)
        p->state = state;
    else if (is_gone(p->pid))
        p->state = STK_CKPT_GONE;
    else
        p->state = p->rc == CUDA_NOT_INITIALIZED || p->rc == CUDA_INVALID_VALUE ? STK_CKPT_NONE
                                                                                : STK_CKPT_UNKNOWN;
}

static int open_pairs(struct stk_ckpt *c, struct stk_err *err)
{
    const struct stk_gpu_args *a = c->a;

    if (a->n_moves == 0)
        return 0;
    if (c->cu.version < CUDA_VERSION_MOVE)
        return stk_err_set(err, -ENOSYS,
                           "moving to another GPU needs CUDA 13, the driver has %d.%d",
                           c->cu.version / 1000, c->cu.version % 1000 / 10);
    c->pairs = calloc(a->n_moves, sizeof(*c->pairs));
    if (!c->pairs)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < a->n_moves; i++) {
        (void)stk_cuda_uuid(a->move[i].from, &c->pairs[i].from); /* checked when they were read */
        (void)stk_cuda_uuid(a->move[i].to, &c->pairs[i].to);
    }
    c->n_pairs = a->n_moves;
    return 0;
}

static void add(struct stk_ckpt *c, int pid)
{
    struct stk_ckpt_proc *p = &c->p[c->n];

    for (uint32_t i = 0; i < c->n; i++)
        if (c->p[i].pid == pid)
            return;
    p->pid = pid;
    stk_ckpt_read_state(c, p);
    p->was = p->state;
    c->n++;
}

int stk_ckpt_open(struct stk_ckpt *c, struct stk_guard *g, const struct stk_gpu_args *a,
                  struct stk_err *err)
{
    struct stk_err ignored;
    int rc;

    *c = (struct stk_ckpt){.g = g, .a = a};
    c->p = calloc(a->n_pids, sizeof(*c->p));
    if (!c->p)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_guard_step(g, a->timeout_ms ? a->timeout_ms : START_LIMIT_MS, "starting CUDA");
    rc = stk_cuda_open(&c->cu, err);
    if (rc == 0)
        rc = open_pairs(c, err);
    if (rc < 0)
        return rc;
    stk_guard_step(g, a->timeout_ms ? a->timeout_ms : START_LIMIT_MS, "starting NVML");
    c->has_nvml = stk_nvml_open(&c->nv, &ignored) == 0;
    for (unsigned i = 0; c->has_nvml && i < c->nv.n; i++)
        if (c->nv.call.by_index(i, &c->dev[i]) != NVML_SUCCESS)
            c->dev[i] = NULL;
    for (uint32_t i = 0; i < a->n_pids; i++)
        add(c, a->pids[i]);
    return 0;
}

/* Adds what each process of the set holds on one GPU. */
static void held_on(struct stk_ckpt *c, unsigned gpu, struct stk_nvml_proc *list)
{
    int n = c->dev[gpu] ? stk_nvml_processes(&c->nv, c->dev[gpu], list, STK_PROC_MAX) : 0;

    for (int k = 0; k < n; k++) {
        for (uint32_t i = 0; i < c->n; i++) {
            if ((unsigned)c->p[i].pid != list[k].pid || !list[k].mem_known)
                continue;
            c->p[i].held[gpu] = list[k].mem;
            c->p[i].held_all += list[k].mem;
            c->p[i].held_known = true;
        }
    }
}

void stk_ckpt_read_held(struct stk_ckpt *c)
{
    struct stk_nvml_proc *list = c->has_nvml ? calloc(STK_PROC_MAX, sizeof(*list)) : NULL;

    if (!list)
        return;
    stk_guard_step(c->g, STATE_LIMIT_MS, "reading the memory of the processes");
    for (unsigned g = 0; g < c->nv.n; g++) {
        struct stk_nvml_mem m = {0, 0, 0};

        if (c->dev[g] && stk_nvml_memory(&c->nv, c->dev[g], &m))
            c->used[g] = m.used;
        held_on(c, g, list);
    }
    free(list);
}

bool stk_ckpt_held_now(struct stk_ckpt *c, int pid, uint64_t *ret)
{
    struct stk_nvml_proc *list = c->has_nvml ? calloc(STK_PROC_MAX, sizeof(*list)) : NULL;
    uint64_t sum = 0;

    if (!list)
        return false;
    for (unsigned g = 0; g < c->nv.n; g++) {
        int n = c->dev[g] ? stk_nvml_processes(&c->nv, c->dev[g], list, STK_PROC_MAX) : 0;

        for (int k = 0; k < n; k++)
            if (list[k].pid == (unsigned)pid && list[k].mem_known)
                sum += list[k].mem;
    }
    free(list);
    *ret = sum;
    return true;
}

static int64_t limit_of(const struct stk_ckpt *c, const struct stk_ckpt_proc *p,
                        enum stk_ckpt_step step)
{
    int64_t given = c->a->timeout_ms, mib = (int64_t)(p->held_all >> 20);

    if (step == STK_CKPT_LOCK)
        return c->a->lock_timeout_ms + (given ? given : LOCK_MARGIN_MS);
    if (given)
        return given;
    if (step == STK_CKPT_UNLOCK)
        return STATE_LIMIT_MS;
    for (uint32_t i = 0; !p->held_known && i < c->a->n_needs; i++)
        mib += c->a->need[i].need_mib;
    if (mib == 0)
        mib = ANY_GPU_MIB;
    return MOVE_LIMIT_MS + mib * 1000 / SLOWEST_MIB_S;
}

int stk_ckpt_step(struct stk_ckpt *c, struct stk_ckpt_proc *p, enum stk_ckpt_step step)
{
    static const int after[] = {CUDA_LOCKED, CUDA_CHECKPOINTED, CUDA_LOCKED, CUDA_RUNNING};
    struct cuda_lock lock = {.timeout_ms = (unsigned)c->a->lock_timeout_ms};
    struct cuda_restore restore = {.pairs = c->pairs, .n_pairs = c->n_pairs};
    double start;
    int rc = CUDA_UNKNOWN;

    stk_guard_step(c->g, limit_of(c, p, step), "%s of process %d", stk_ckpt_step_name(step),
                   p->pid);
    start = now_ms();
    if (step == STK_CKPT_LOCK)
        rc = c->cu.call.lock(p->pid, &lock);
    else if (step == STK_CKPT_CHECKPOINT)
        rc = c->cu.call.checkpoint(p->pid, NULL);
    else if (step == STK_CKPT_RESTORE)
        rc = c->cu.call.restore(p->pid, c->n_pairs ? &restore : NULL);
    else
        rc = c->cu.call.unlock(p->pid, NULL);
    p->ms[step] = now_ms() - start;
    if (rc == CUDA_SUCCESS) {
        p->did[step] = true;
        p->state = after[step];
    } else {
        stk_ckpt_read_state(c, p);
    }
    return rc;
}

const char *stk_ckpt_step_name(enum stk_ckpt_step step)
{
    static const char *const names[] = {"lock", "checkpoint", "restore", "unlock"};

    return (unsigned)step < STK_CKPT_STEPS ? names[step] : "?";
}

const char *stk_ckpt_state_name(int state)
{
    switch (state) {
    case STK_CKPT_NONE:
        return "none";
    case STK_CKPT_GONE:
        return "gone";
    default:
        return stk_cuda_state_name(state);
    }
}

void stk_ckpt_put_refusal(const struct stk_ckpt *c, json_t *line, int rc, enum stk_ckpt_step step,
                          int pid)
{
    const char *name = stk_ckpt_step_name(step);
    char why[320];

    stk_json_int(line, "code", rc);
    stk_json_text(line, "name", stk_cuda_error(&c->cu, rc));
    stk_json_int(line, "pid", pid);
    stk_json_text(line, "step", name);
    (void)snprintf(why, sizeof(why), "%s of process %d: %s (%s, %d)", name, pid,
                   stk_cuda_why(rc, name), stk_cuda_error(&c->cu, rc), rc);
    stk_json_text(line, "why", why);
}

uint32_t stk_ckpt_put_left(struct stk_ckpt *c, json_t *line)
{
    json_t *left = json_array();
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        json_t *o;

        if (c->p[i].state == CUDA_RUNNING || c->p[i].state == STK_CKPT_NONE ||
            c->p[i].state == STK_CKPT_GONE)
            continue;
        o = json_object();
        stk_json_int(o, "pid", c->p[i].pid);
        stk_json_text(o, "state", stk_ckpt_state_name(c->p[i].state));
        (void)json_array_append_new(left, o);
        n++;
    }
    (void)json_object_set_new(line, "left", left);
    return n;
}

int stk_ckpt_refuse(struct stk_guard *g, const char *why)
{
    (void)stk_guard_put(g, json_pack("{s:b, s:s}", "ok", 0, "why", why));
    return 1;
}
