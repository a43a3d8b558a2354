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

static void say_fault(const struct stk_gpu *g, const struct stk_gpu_rule *rule,
                      struct stk_gpu_verdict *v)
{
    char quiet[48];

    say(v, " had a hardware error, XID %u: %s", g->fault_xid, stk_xid_find(g->fault_xid)->text);
    if (rule->quiet_s > 0 && stk_xid_recovers(g->fault_xid)) {
        stk_gpu_text_age(quiet, sizeof(quiet), rule->quiet_s);
        say(v, "; it is used again after %s without another", quiet);
    }
    say(v, "; when it is well again: stoker undrain --gpu %s", g->label);
}

bool stk_gpuview_is_well(const struct stk_gpus *t, uint32_t gpu, double quiet_s)
{
    const struct stk_gpu *g = &t->gpu[gpu];
    const struct stk_gpu_sample *s = &g->now;
    const struct stk_gpu_value *v = s->value;
    bool advised = s->recovery[0] != '\0';

    if (g->fault_xid == 0 || !stk_xid_recovers(g->fault_xid) || !g->present || s->lost[0] != '\0')
        return false;
    if ((double)(s->at_us - g->fault_us) < quiet_s * 1e6)
        return false;
    if (v[STK_GPU_ROWS_FAILED].v > 0)
        return false;
    if (advised)
        return strcmp(s->recovery, "none") == 0;
    return v[STK_GPU_ECC_VOLATILE_UNCORRECTED].v <= 0 && v[STK_GPU_ROWS_PENDING].v <= 0;
}

/* Fills the sentence and returns true when the GPU is not to be trusted. */
static bool is_faulty(const struct stk_gpu *g, const struct stk_gpu_rule *rule,
                      struct stk_gpu_verdict *v)
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
        say_fault(g, rule, v);
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
    uint64_t job;    /* of the largest; 0: none of ours */
    int64_t idle_us; /* the latest start of idleness among them; 0: one is active */
};

static void count(const struct stk_gpu_sample *s, uint32_t gpu, stk_gpu_owner_fn owner, void *ctx,
                  struct stk_gpu_verdict *v, struct foreign *f)
{
    bool active = false;
    size_t at = 0;

    *f = (struct foreign){.largest = NULL};
    for (uint32_t i = 0; i < s->n_procs; i++) {
        const struct stk_gpu_proc *p = &s->proc[i];
        struct stk_gpu_owner own = {0};

        if (owner)
            own = owner(ctx, gpu, p);
        if (own.given) {
            v->n_ours++;
            continue;
        }
        if (!p->compute)
            continue;
        if (own.job != 0)
            v->stray = own.job;
        v->n_foreign++;
        v->foreign_mib += p->mem_mib.known ? p->mem_mib.v : 0;
        active |= p->idle_us == 0;
        f->idle_us = p->idle_us > f->idle_us ? p->idle_us : f->idle_us;
        if (!f->largest || p->mem_mib.v > f->largest->mem_mib.v) {
            f->largest = p;
            f->job = own.job;
        }
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
    if (v->stray != 0)
        say(v, "; job %llu uses it and was not given it", (unsigned long long)v->stray);
    if (v->release[0] == '\0' || f->job != 0)
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

/* Whether foreign processes leave enough memory for work beside them. */
static bool has_room(const struct stk_gpu *g, const struct stk_gpu_rule *rule,
                     const struct stk_gpu_verdict *v)
{
    const struct stk_gpu_value *total = &g->now.value[STK_GPU_MEM_TOTAL_MIB];

    return total->known && total->v - v->foreign_mib >= rule->min_free_mib;
}

static void decide(const struct stk_gpu *g, const struct stk_gpu_rule *rule,
                   struct stk_gpu_verdict *v)
{
    bool idle = v->state == STK_GPU_FOREIGN_IDLE,
         foreign = idle || v->state == STK_GPU_FOREIGN_BUSY;

    if (v->state == STK_GPU_FAULTY || v->state == STK_GPU_MIG ||
        (v->state == STK_GPU_UNKNOWN && rule->foreign != STK_FOREIGN_IGNORE)) {
        v->off = true;
    } else if (foreign && rule->foreign != STK_FOREIGN_IGNORE) {
        v->last = (rule->foreign == STK_FOREIGN_PACK || idle) && has_room(g, rule, v);
        v->off = !v->last;
    }
}

void stk_gpuview_judge(const struct stk_gpus *t, uint32_t gpu, const struct stk_gpu_rule *rule,
                       stk_gpu_owner_fn owner, void *ctx, struct stk_gpu_verdict *ret)
{
    const struct stk_gpu *g = &t->gpu[gpu];
    struct foreign f;

    *ret = (struct stk_gpu_verdict){.state = STK_GPU_FREE};
    say(ret, "GPU %s", g->label);
    count(&g->now, gpu, owner, ctx, ret, &f);
    if (is_faulty(g, rule, ret)) {
        ret->state = STK_GPU_FAULTY;
    } else if (g->now.at_us == 0) {
        ret->state = STK_GPU_UNKNOWN;
        say(ret, " has not been read yet");
    } else if (g->mig && !rule->instances) {
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
    decide(g, rule, ret);
}
