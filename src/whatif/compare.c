/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - one past three times: as it was recorded, simulated in the world as it was, and
 * simulated in the changed one. The difference between the first two is the simulation's own error;
 * that between the last two is what the change does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/out_json.h"
#include "sim/recorded.h"
#include "sim/run.h"
#include "sim/stats.h"
#include "whatif/whatif.h"

#define STEP 0.01

struct watch {
    const struct stk_whatif *q;
    const char *what;
    double from, part, told; /* of all the work */
    stk_time first, last;
};

/* How far it is by the clock of the trace; what comes after its last job is not counted. */
static int after_turn(void *ctx, struct stk_core *core, stk_time now, struct stk_err *err)
{
    struct watch *w = ctx;
    double done = w->last > w->first ? (double)(now - w->first) / (double)(w->last - w->first) : 1;

    (void)core;
    (void)err;
    done = done < 0 ? 0 : done > 1 ? 1 : done;
    if (w->q->tell && done - w->told >= STEP) {
        w->told = done;
        w->q->tell(w->q->ctx, w->from + w->part * done, w->what);
    }
    return 0;
}

static int as_json(const struct stk_run_result *r, json_t **ret, struct stk_err *err)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct stk_emit e;
    int rc = f ? 0 : -ENOMEM;

    if (f) {
        stk_emit_init(&e, f);
        stk_emit_text(&e, "{");
        stk_out_json_members(&e, r);
        stk_emit_text(&e, "}");
        rc = stk_emit_end(&e);
        (void)fclose(f);
    }
    *ret = rc == 0 ? json_loadb(text, len, 0, NULL) : NULL;
    free(text);
    if (!*ret)
        return stk_err_set(err, -ENOMEM, "out of memory");
    (void)json_object_del(*ret, "digest"); /* of this program: cpu_s and rss_mib are, too */
    (void)json_object_del(*ret, "cpu_s");
    (void)json_object_del(*ret, "rss_mib");
    (void)json_object_set_new(*ret, "gpus", json_integer((json_int_t)r->gpus));
    return 0;
}

static int prepare(const struct stk_whatif *q, struct stk_world *w, struct stk_flat_tenants *flat,
                   struct stk_run_options *o, struct stk_err *err)
{
    int rc = 0;

    *o = (struct stk_run_options){.lenient = true, .recorded = true, .last_id = UINT32_MAX};
    if (w->has_tenants) {
        o->tenants = &w->tenants;
        if (!w->tenants.of_trace)
            rc = stk_tenants_match(&w->tenants, q->trace, err);
    }
    rc = rc < 0 ? rc : stk_flat_tenants_make(flat, q->trace, err);
    o->flat = flat;
    return rc;
}

static int simulate(struct watch watch, struct stk_world *w, json_t **ret, struct stk_err *err)
{
    const struct stk_whatif *q = watch.q;
    const struct stk_trace *t = q->trace;
    const struct stk_run_guest guest = {.ctx = &watch, .after = after_turn};
    struct stk_flat_tenants flat = {0};
    struct stk_run_result r = {0};
    struct stk_run_options o;
    int rc = prepare(q, w, &flat, &o, err);

    o.guest = &guest;
    rc = rc < 0 ? rc : stk_sim_run(t, &w->cluster, &w->setup, &o, &r, err);
    if (rc == 0) {
        r.recorded_only = true;
        stk_run_result_sum(&r, t, 0, UINT32_MAX);
        rc = as_json(&r, ret, err);
        stk_run_result_done(&r);
    }
    stk_flat_tenants_free(&flat);
    return rc;
}

static int recorded(const struct stk_whatif *q, json_t **ret, struct stk_err *err)
{
    struct stk_flat_tenants flat = {0};
    struct stk_run_result r = {0};
    struct stk_run_options o;
    int rc = prepare(q, q->before, &flat, &o, err);

    rc = rc < 0 ? rc : stk_recorded_run(q->trace, &q->before->cluster, &o, &r, err);
    if (rc == 0) {
        rc = as_json(&r, ret, err);
        stk_run_result_done(&r);
    }
    stk_flat_tenants_free(&flat);
    return rc;
}

int stk_whatif_compare(const struct stk_whatif *q, json_t **ret, struct stk_err *err)
{
    json_t *past = NULL, *before = NULL, *after = NULL;
    double part = q->after ? 0.45 : 0.9;
    struct watch watch = {.q = q,
                          .what = "the past as it was",
                          .from = 0.1,
                          .part = part,
                          .first = q->trace->jobs[0].submit,
                          .last = q->trace->jobs[q->trace->n_jobs - 1].submit};
    int rc = recorded(q, &past, err);

    rc = rc < 0 ? rc : simulate(watch, q->before, &before, err);
    if (rc == 0 && q->after) {
        watch.what = "the past with the changes";
        watch.from += part;
        rc = simulate(watch, q->after, &after, err);
    }
    if (rc < 0) {
        json_decref(past);
        json_decref(before);
        return rc;
    }
    *ret = json_pack("{s:o,s:o,s:o}", "recorded", past, "before", before, "after",
                     after ? after : json_null());
    return *ret ? 0 : stk_err_set(err, -ENOMEM, "out of memory");
}
