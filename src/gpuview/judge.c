/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - from readings to a state, and a sentence that says who, since when, and what would
 * help.
 *
 * A hardware fault wins over everything. Memory errors by themselves do not make a GPU faulty where
 * the driver can say whether it needs a reset: rows that failed are put out of use, and the GPU
 * works on. Where it cannot say, an error that was not corrected counts as a fault until the driver
 * was loaded anew.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpuview/gpuview.h"
#include "gpuview/text.h"
#include "gpuview/xid.h"

#define UNSEEN_ROUNDS 3 /* memory of a process that is just ending is not somebody's */
#define NAMED 8         /* PIDs in the command at most */

const char *stk_gpu_state_name(enum stk_gpu_state s)
{
    static const char *const names[] = {"unknown",      "faulty",  "mig", "foreign-busy",
                                        "foreign-idle", "managed", "free"};

    return (unsigned)s < STK_GPU_STATE_MAX ? names[s] : "?";
}

const char *stk_foreign_name(enum stk_foreign f)
{
    static const char *const names[] = {"block", "pack", "ignore"};

    return (unsigned)f < STK_FOREIGN_MAX ? names[f] : "?";
}

bool stk_foreign_find(const char *name, enum stk_foreign *ret)
{
    for (unsigned i = 0; i < STK_FOREIGN_MAX; i++) {
        if (strcmp(name, stk_foreign_name((enum stk_foreign)i)) == 0) {
            *ret = (enum stk_foreign)i;
            return true;
        }
    }
    return false;
}

static void say(struct stk_gpu_verdict *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds to the sentence; what does not fit is cut. */
static void say(struct stk_gpu_verdict *v, const char *fmt, ...)
{
    size_t at = strlen(v->text);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(v->text + at, sizeof(v->text) - at, fmt, ap);
    va_end(ap);
}

/* Fills the sentence and returns true when the GPU is not to be trusted. */
static bool is_faulty(const struct stk_gpu *g, struct stk_gpu_verdict *v)
{
    const struct stk_gpu_sample *s = &g->now;
    const struct stk_gpu_value *ecc = &s->value[STK_GPU_ECC_VOLATILE_UNCORRECTED];
    const struct stk_gpu_value *rows = &s->value[STK_GPU_ROWS_FAILED];
    bool advised = s->recovery[0] != '\0';

    if (!g->present)
        say(v, " does not answer: %s", g->error[0] ? g->error : "no reason given");
    else if (s->lost[0] != '\0')
        say(v, " is lost: %s", s->lost);
    else if (g->fault_xid != 0)
        say(v, " had a hardware error, XID %u: %s", g->fault_xid, stk_xid_find(g->fault_xid)->text);
    else if (advised && strcmp(s->recovery, "none") != 0)
        say(v, " is not well, the driver advises: %s", s->recovery);
    else if (rows->known && rows->v > 0)
        say(v, " has bad memory that could not be put out of use");
    else if (!advised && ecc->known && ecc->v > 0)
        say(v, " has had %.0f memory errors that were not corrected; reset it", ecc->v);
    else
        return false;
    return true;
}

/* What the foreign processes come to. */
struct foreign {
    const struct stk_gpu_proc *largest;
    int64_t idle_us; /* the latest start of idleness among them; 0: one is active */
};

static void count(const struct stk_gpu_sample *s, stk_gpu_owner_fn owner, void *ctx,
                  struct stk_gpu_verdict *v, struct foreign *f)
{
    bool active = false;
    size_t at = 0;

    *f = (struct foreign){.largest = NULL};
    for (uint32_t i = 0; i < s->n_procs; i++) {
        const struct stk_gpu_proc *p = &s->proc[i];

        if (owner && owner(ctx, p) != 0) {
            v->n_ours++;
            continue;
        }
        if (!p->compute)
            continue;
        v->n_foreign++;
        v->foreign_mib += p->mem_mib.known ? p->mem_mib.v : 0;
        active |= p->idle_us == 0;
        f->idle_us = p->idle_us > f->idle_us ? p->idle_us : f->idle_us;
        if (!f->largest || p->mem_mib.v > f->largest->mem_mib.v)
            f->largest = p;
        if (v->n_foreign <= NAMED && p->uid != UINT32_MAX)
            at += (size_t)snprintf(v->release + at, sizeof(v->release) - at, "%s %d",
                                   at ? "" : "kill", p->pid);
    }
    if (active)
        f->idle_us = 0;
}

static void name_process(const struct stk_gpu_proc *p, struct stk_gpu_verdict *v)
{
    char age[48];

    if (p->user[0] != '\0')
        say(v, " is used by %s", p->user);
    else if (p->uid != UINT32_MAX)
        say(v, " is used by user %u", p->uid);
    else
        say(v, " is used by somebody who cannot be seen from here");
    say(v, ": process %d", p->pid);
    if (p->name[0] != '\0')
        say(v, " (%s)", p->name);
    if (p->mem_mib.known)
        say(v, " holds %.0f MiB", p->mem_mib.v);
    if (p->age_s.known) {
        stk_gpu_text_age(age, sizeof(age), p->age_s.v);
        say(v, ", started %s ago", age);
    }
}

static void judge_foreign(const struct stk_gpu *g, const struct stk_gpu_rule *rule,
                          const struct foreign *f, struct stk_gpu_verdict *v)
{
    double idle_s = f->idle_us ? (double)(g->now.at_us - f->idle_us) / 1e6 : 0;
    bool stale = f->idle_us && idle_s >= rule->stale_s;
    char age[48];

    v->state = stale ? STK_GPU_FOREIGN_IDLE : STK_GPU_FOREIGN_BUSY;
    name_process(f->largest, v);
    if (stale) {
        stk_gpu_text_age(age, sizeof(age), idle_s);
        say(v, ", no GPU activity for %s", age);
    }
    if (v->n_foreign > 1)
        say(v, ", and %u more", v->n_foreign - 1 + g->now.more_procs);
    if (v->release[0] == '\0')
        return;
    if (v->n_foreign == 1 && f->largest->user[0] != '\0' && strcmp(f->largest->user, "root") != 0)
        say(v, "; %s or root can release it with: %s", f->largest->user, v->release);
    else
        say(v, "; root can release it with: %s", v->release);
}

static void judge_unseen(const struct stk_gpu *g, struct stk_gpu_verdict *v)
{
    double sum = 0;

    for (uint32_t i = 0; i < g->now.n_procs; i++)
        sum += g->now.proc[i].mem_mib.v;
    v->state = STK_GPU_FOREIGN_BUSY;
    v->foreign_mib = g->now.value[STK_GPU_MEM_USED_MIB].v - sum;
    say(v,
        " has %.0f MiB in use by processes that cannot be seen from here (a virtual machine or "
        "another container?)",
        v->foreign_mib);
}

static bool is_off(const struct stk_gpu *g, const struct stk_gpu_rule *rule,
                   const struct stk_gpu_verdict *v)
{
    const struct stk_gpu_value *free_mib = &g->now.value[STK_GPU_MEM_FREE_MIB];

    if (v->state == STK_GPU_FAULTY || v->state == STK_GPU_MIG)
        return true;
    if (rule->foreign == STK_FOREIGN_IGNORE)
        return false;
    if (v->state == STK_GPU_UNKNOWN)
        return true;
    if (v->state != STK_GPU_FOREIGN_BUSY && v->state != STK_GPU_FOREIGN_IDLE && v->n_foreign == 0)
        return false;
    return rule->foreign == STK_FOREIGN_BLOCK || !free_mib->known ||
           free_mib->v < rule->min_free_mib;
}

void stk_gpuview_judge(const struct stk_gpus *t, uint32_t gpu, const struct stk_gpu_rule *rule,
                       stk_gpu_owner_fn owner, void *ctx, struct stk_gpu_verdict *ret)
{
    const struct stk_gpu *g = &t->gpu[gpu];
    struct foreign f;

    *ret = (struct stk_gpu_verdict){.state = STK_GPU_FREE};
    say(ret, "GPU %u", gpu);
    count(&g->now, owner, ctx, ret, &f);
    if (is_faulty(g, ret)) {
        ret->state = STK_GPU_FAULTY;
    } else if (g->now.at_us == 0) {
        ret->state = STK_GPU_UNKNOWN;
        say(ret, " has not been read yet");
    } else if (g->mig) {
        ret->state = STK_GPU_MIG;
        say(ret, " is split by MIG (%u instances), which are not scheduled", g->n_instances);
    } else if (f.largest) {
        judge_foreign(g, rule, &f, ret);
    } else if (g->unseen_rounds >= UNSEEN_ROUNDS) {
        judge_unseen(g, ret);
    } else if (ret->n_ours > 0) {
        ret->state = STK_GPU_MANAGED;
        say(ret, " is used by our jobs");
    } else {
        say(ret, " is free");
    }
    ret->off = is_off(g, rule, ret);
}

uint64_t stk_gpuview_off(const struct stk_gpus *t, const struct stk_gpu_rule *rules,
                         stk_gpu_owner_fn owner, void *ctx)
{
    struct stk_gpu_verdict v;
    uint64_t mask = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        stk_gpuview_judge(t, i, &rules[i], owner, ctx, &v);
        if (v.off)
            mask |= UINT64_C(1) << i;
    }
    return mask;
}
