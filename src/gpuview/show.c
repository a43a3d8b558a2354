/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - a GPU as JSON: what is not known is not there. */
#include "gpuview/gpuview.h"
#include "gpuview/xid.h"

static void put(json_t *o, const char *key, json_t *take)
{
    (void)json_object_set_new(o, key, take);
}

static void put_text(json_t *o, const char *key, const char *text)
{
    if (text[0] != '\0')
        put(o, key, json_string(text));
}

static void put_value(json_t *o, const char *key, struct stk_gpu_value v)
{
    if (v.known && v.v == (double)(int64_t)v.v)
        put(o, key, json_integer((int64_t)v.v));
    else if (v.known)
        put(o, key, json_real(v.v));
}

static json_t *show_proc(const struct stk_gpu_sample *s, const struct stk_gpu_proc *p)
{
    json_t *o = json_object();

    put(o, "pid", json_integer(p->pid));
    if (p->uid != UINT32_MAX)
        put(o, "uid", json_integer(p->uid));
    put_text(o, "user", p->user);
    put_text(o, "name", p->name);
    put(o, "type", json_string(p->compute ? "compute" : "graphics"));
    put_value(o, "mem_mib", p->mem_mib);
    put_value(o, "sm", p->sm);
    put_value(o, "age_s", p->age_s);
    if (p->idle_us > 0)
        put(o, "idle_s", json_real((double)(s->at_us - p->idle_us) / 1e6));
    return o;
}

static json_t *show_xids(const struct stk_gpu *g)
{
    uint64_t n = g->n_xids < STK_GPUVIEW_XIDS ? g->n_xids : STK_GPUVIEW_XIDS;
    json_t *all = json_array();

    for (uint64_t i = g->n_xids - n; i < g->n_xids; i++) {
        uint32_t code = g->xid[i % STK_GPUVIEW_XIDS].code;
        const struct stk_xid *x = stk_xid_find(code);

        (void)json_array_append_new(
            all, json_pack("{s:I, s:f, s:s, s:s}", "code", (json_int_t)code, "at",
                           (double)g->xid[i % STK_GPUVIEW_XIDS].at_us / 1e6, "class",
                           stk_xid_class_name(x->kind), "text", x->text));
    }
    return all;
}

static void show_sample(json_t *o, const struct stk_gpu_sample *s)
{
    put(o, "at", json_real((double)s->at_us / 1e6));
    for (unsigned m = 0; m < STK_GPU_METRIC_MAX; m++)
        put_value(o, stk_gpu_metric_name((enum stk_gpu_metric)m), s->value[m]);
    put_text(o, "lost", s->lost);
    put_text(o, "recovery", s->recovery);
    put_text(o, "throttle", s->throttle);
}

static void show_procs(json_t *o, const struct stk_gpu_sample *s, uint32_t gpu,
                       stk_gpu_owner_fn owner, void *ctx)
{
    json_t *all = json_array(), *foreign = json_array();

    for (uint32_t i = 0; i < s->n_procs; i++) {
        struct stk_gpu_owner own = {0};
        json_t *p = show_proc(s, &s->proc[i]);

        if (owner)
            own = owner(ctx, gpu, &s->proc[i]);
        if (own.job != 0)
            put(p, "job", json_integer((json_int_t)own.job));
        if (!own.given && s->proc[i].compute)
            (void)json_array_append(foreign, p);
        (void)json_array_append_new(all, p);
    }
    put(o, "processes", all);
    put(o, "foreign", foreign);
}

json_t *stk_gpuview_show(const struct stk_gpus *t, uint32_t gpu, const struct stk_gpu_verdict *v,
                         stk_gpu_owner_fn owner, void *ctx)
{
    const struct stk_gpu *g = &t->gpu[gpu];
    json_t *o = json_object();

    put(o, "index", json_integer(gpu));
    put_text(o, "uuid", g->uuid);
    put_text(o, "name", g->name);
    put_text(o, "pci", g->pci);
    put_text(o, "error", g->error);
    if (g->mem_mib > 0)
        put(o, "mem_mib", json_integer((json_int_t)g->mem_mib));
    if (g->numa >= 0)
        put(o, "numa", json_integer(g->numa));
    put(o, "mig", json_boolean(g->mig));
    if (v) {
        put(o, "state", json_string(stk_gpu_state_name(v->state)));
        if (v->off)
            put(o, "off", json_string(v->text));
        if (v->last)
            put(o, "last", json_string(v->text));
        put(o, "state_text", json_string(v->text));
        put_text(o, "release", v->release);
    }
    if (g->now.at_us > 0)
        show_sample(o, &g->now);
    if (g->now.procs_known)
        show_procs(o, &g->now, gpu, owner, ctx);
    put(o, "xids", show_xids(g));
    return o;
}
