/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/idle_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/json.h"

#define STALE_US INT64_C(60000000) /* a reading older than this says nothing */
#define MAX_DEPTH 64

static int64_t said(const json_t *idle, const char *key, uint64_t other)
{
    const json_t *v = json_object_get(idle, key);

    return json_is_integer(v) ? json_integer_value(v) : (int64_t)other;
}

/* Half of what comes next, where nobody says when to warn. */
static int64_t half(const struct stk_idle_rule *r)
{
    int64_t next =
        r->suspend_s > 0 && (r->end_s == 0 || r->suspend_s < r->end_s) ? r->suspend_s : r->end_s;

    return (next + 1) / 2;
}

bool stk_idle_words(struct stk_daemon *d, const struct stk_entry *e, struct stk_idle_words *ret)
{
    const struct stk_config *c = &d->config;
    json_t *spec = e->text ? stk_json_loads(e->text) : stk_live_spec(d->live, e->rec.spec);
    const json_t *idle = json_object_get(spec, "idle");
    const char *suspend = json_string_value(json_object_get(spec, "suspend"));
    bool shell = json_is_true(json_object_get(spec, "interactive"));
    struct stk_idle_rule *r = &ret->rule;

    *r = (struct stk_idle_rule){
        .warn_s = said(idle, "warn_s", shell ? c->idle.shell_warn_s : c->idle.warn_s),
        .suspend_s = said(idle, "suspend_s", shell ? c->idle.shell_suspend_s : c->idle.suspend_s),
        .end_s = said(idle, "end_s", shell ? c->idle.shell_end_s : c->idle.end_s),
        .below_pct = (double)said(idle, "below_pct", 0)};
    if (r->warn_s == 0 && !json_object_get(idle, "warn_s"))
        r->warn_s = half(r);
    ret->may_suspend = !suspend || strcmp(suspend, "never") != 0;
    json_decref(spec);
    return r->warn_s > 0 || r->suspend_s > 0 || r->end_s > 0;
}

/* ---- readings ---- */

static void larger(struct stk_idle_reading *r, const struct stk_gpu_value *v)
{
    if (!v->known)
        return;
    r->gpu_pct = !r->gpu_known || v->v > r->gpu_pct ? v->v : r->gpu_pct;
    r->gpu_known = true;
}

static void look_gpus(const struct stk_daemon *d, uint64_t mask, struct stk_idle_reading *r)
{
    static const enum stk_gpu_metric shares[] = {STK_GPU_UTIL, STK_GPU_MEM_UTIL, STK_GPU_SM_ACTIVE,
                                                 STK_GPU_DRAM_ACTIVE};
    const struct stk_gpus *t = &d->machine.gpus;

    r->on_gpus = true;
    for (; mask; mask &= mask - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(mask);
        const struct stk_gpu_sample *s = g < t->n ? &t->gpu[g].now : NULL;

        if (!s || s->at_us == 0 || d->clock.wall - s->at_us > STALE_US) {
            r->gpu_known = r->power_known = false; /* one that is not known may be at work */
            return;
        }
        for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++)
            larger(r, &s->value[shares[i]]);
        if (s->value[STK_GPU_POWER_W].known && s->value[STK_GPU_POWER_W].v > r->power_w)
            r->power_w = s->value[STK_GPU_POWER_W].v;
        r->power_known |= s->value[STK_GPU_POWER_W].known;
    }
}

/* What its processes do on GPUs that it shares. One that is not listed does nothing there. */
static void look_shared(struct stk_daemon *d, stk_job_number number, uint64_t mask,
                        struct stk_idle_reading *r)
{
    const struct stk_gpus *t = &d->machine.gpus;

    r->on_gpus = r->gpu_known = true;
    for (; mask; mask &= mask - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(mask);
        const struct stk_gpu_sample *s = g < t->n ? &t->gpu[g].now : NULL;

        if (!s || s->at_us == 0 || d->clock.wall - s->at_us > STALE_US || !s->procs_known ||
            s->more_procs > 0) {
            r->gpu_known = false;
            return;
        }
        for (uint32_t i = 0; i < s->n_procs; i++) {
            if (stk_daemon_job_of(d, s->proc[i].pid, s->proc[i].uid) != number)
                continue;
            r->gpu_known = r->gpu_known && s->proc[i].sm.known;
            larger(r, &s->proc[i].sm);
        }
        if (!r->gpu_known)
            return;
    }
}

static bool below(const struct stk_procs *p, const struct stk_proc *it, pid_t root)
{
    for (int depth = 0; it && depth < MAX_DEPTH; depth++) {
        if (it->pid == root)
            return true;
        it = stk_proc_find(p->list, p->n, it->ppid);
    }
    return false;
}

/* The supervisor's own time counts: those of its children that have ended are in it. */
static void look_cpu(struct stk_daemon *d, stk_job_number number, struct stk_procs *p,
                     struct stk_idle_reading *r)
{
    struct stk_local_info info;
    uint64_t ticks = 0;

    if (stk_local_info(d->engine, number, &info) < 0)
        return;
    if (!p->known)
        p->known = stk_proc_list(&p->list, &p->n) == 0;
    for (size_t i = 0; p->known && i < p->n; i++) {
        bool ours = info.shim > 0 && below(p, &p->list[i], info.shim);

        for (uint32_t k = 0; k < info.n_tasks && !ours; k++) /* adopted: not below it */
            ours = info.tasks[k].pid > 0 && !info.tasks[k].ended &&
                   below(p, &p->list[i], info.tasks[k].pid);
        ticks += ours ? p->list[i].cpu : 0;
    }
    r->cpu_known = p->known && info.n_tasks > 0;
    r->cpu_s = (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

void stk_idle_look(struct stk_daemon *d, stk_job_number number, const struct stk_idle_on *on,
                   struct stk_procs *procs, struct stk_idle_reading *ret)
{
    struct stk_local_info info;
    struct stk_local_turn turn;

    *ret = (struct stk_idle_reading){0};
    if (stk_local_turn(d->engine, number, &turn) && !turn.has)
        return; /* it may do nothing: what its GPU does is another's work */
    if (on->mask && !d->machine.is_virtual && on->shared)
        look_shared(d, number, on->mask, ret);
    else if (on->mask && !d->machine.is_virtual)
        look_gpus(d, on->mask, ret);
    else
        look_cpu(d, number, procs, ret);
    if (stk_local_info(d->engine, number, &info) == 0 && info.idle_s >= 0) {
        ret->pty_known = true;
        ret->pty_idle_s = info.idle_s;
    }
}

bool stk_idle_can_sleep(const struct stk_daemon *d, uint64_t mask)
{
    const struct stk_gpus *t = &d->machine.gpus;
    unsigned long long kib = 0;
    double need = 0;
    char line[256];
    FILE *f;

    if (!mask || d->machine.is_virtual)
        return mask != 0;
    if (!t->suspend)
        return false;
    for (; mask; mask &= mask - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(mask);

        if (g >= t->n || !t->gpu[g].now.value[STK_GPU_MEM_USED_MIB].known)
            return false;
        need += t->gpu[g].now.value[STK_GPU_MEM_USED_MIB].v;
    }
    f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = strtoull(line + 13, NULL, 10);
    if (f)
        (void)fclose(f);
    return need * 1.2 < (double)kib / 1024;
}
