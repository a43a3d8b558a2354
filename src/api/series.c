/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - measurements over time. One answer has the same points for every series in it; a
 * column is a field, null where nothing is known. */
#include "series/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"
#include "core/state.h"
#include "core/tenant.h"

#define HOUR 3600u

/* Not more digits than a float has. */
static json_t *number(float v)
{
    char text[32];

    if (!isfinite(v))
        return json_null();
    (void)snprintf(text, sizeof(text), "%.7g", (double)v);
    return json_real(strtod(text, NULL));
}

static json_t *column(const struct stk_series_result *r, uint32_t member, uint32_t field)
{
    const float *v = &r->value[((size_t)member * r->fields + field) * r->points];
    json_t *list = json_array();

    for (uint32_t i = 0; i < r->points; i++)
        (void)json_array_append_new(list, number(v[i]));
    return list;
}

/* What those that started waited, in the mean. */
static json_t *waits(const struct stk_series_result *r, uint32_t started, uint32_t waited)
{
    const float *n = &r->value[(size_t)started * r->points];
    const float *s = &r->value[(size_t)waited * r->points];
    json_t *list = json_array();

    for (uint32_t i = 0; i < r->points; i++)
        (void)json_array_append_new(list,
                                    isfinite(n[i]) && n[i] > 0 ? number(s[i] / n[i]) : json_null());
    return list;
}

static void add_columns(json_t *o, enum stk_series_kind kind, const struct stk_series_result *r,
                        uint32_t member)
{
    const struct stk_series_field *f = stk_series_fields[kind];

    for (uint32_t i = 0; f[i].name; i++)
        if (strcmp(f[i].name, "waited_s") == 0) /* right behind those that started */
            (void)json_object_set_new(o, "wait_s", waits(r, i - 1, i));
        else
            (void)json_object_set_new(o, f[i].name, column(r, member, i));
}

struct answer {
    struct stk_api *a;
    struct stk_request *r;
    struct stk_series_query q;
    json_t *list;
};

/* < 0: the request has been answered. */
static int fail(struct answer *w, int rc, const struct stk_err *err)
{
    stk_api_fail(w->r, rc, err);
    json_decref(w->list);
    return rc;
}

/* One group, of which one member or all (UINT32_MAX) are wanted; 'label' says of whom it is. */
static int add_group(struct answer *w, uint32_t member, json_t *take_label)
{
    struct stk_series_result res = {0};
    struct stk_err err = {""};
    int rc = stk_series_read(w->a->series, stk_live_store(w->a->cfg.live), &w->q, &res, &err);

    for (uint32_t m = 0; m < res.members && rc == 0; m++) {
        json_t *o;

        if (member != UINT32_MAX && m != member)
            continue;
        o = json_copy(take_label);
        if (w->q.kind == STK_SERIES_GPU || w->q.kind == STK_SERIES_JOB_GPU)
            (void)json_object_set_new(o, w->q.kind == STK_SERIES_GPU ? "gpu" : "member",
                                      json_integer(m));
        add_columns(o, w->q.kind, &res, m);
        (void)json_array_append_new(w->list, o);
    }
    free(res.value);
    json_decref(take_label);
    return rc < 0 ? fail(w, rc, &err) : 0;
}

static int refuse(struct answer *w, const char *what, const char *name)
{
    stk_request_error(w->r, 404, NULL, "there is no %s \"%.60s\"", what, name);
    json_decref(w->list);
    return -ENOENT;
}

static int add_gpus(struct answer *w)
{
    const struct stk_live_config *c = stk_live_config(w->a->cfg.live);
    const struct stk_state *s = stk_core_state(stk_live_core(w->a->cfg.live));
    const char *node = stk_request_query(w->r, "node");
    bool found = false;
    uint64_t gpu;
    int rc = stk_request_number(w->r, "gpu", UINT32_MAX, UINT32_MAX, &gpu);

    if (rc < 0) {
        json_decref(w->list);
        return rc;
    }
    for (uint32_t n = 0; n < s->n_nodes && rc == 0; n++) {
        if (node && strcmp(node, c->nodes[n].name) != 0)
            continue;
        found = true;
        w->q.id = stk_series_id(c->nodes[n].name);
        rc = add_group(w, (uint32_t)gpu, json_pack("{s:s}", "node", c->nodes[n].name));
    }
    return rc == 0 && !found ? refuse(w, "node", node ? node : "") : rc;
}

static int add_job(struct answer *w)
{
    uint64_t id;
    int rc = stk_request_number(w->r, "id", 0, UINT32_MAX - 1, &id);

    if (rc < 0) {
        json_decref(w->list);
        return rc;
    }
    if (id == 0) {
        stk_request_error(w->r, 422, NULL, "of=%s needs the job's number: id=12",
                          stk_series_kind_name(w->q.kind));
        json_decref(w->list);
        return -EINVAL;
    }
    w->q.id = (int64_t)id;
    return add_group(w, UINT32_MAX, json_pack("{s:I}", "id", (json_int_t)id));
}

static int add_tenants(struct answer *w)
{
    const struct stk_state *s = stk_core_state(stk_live_core(w->a->cfg.live));
    const char *name = stk_request_query(w->r, "name");
    bool found = !name;
    int rc = 0;

    for (uint32_t i = 0; i < s->n_tenants && rc == 0; i++) {
        if (name && strcmp(name, s->tenants[i].name) != 0)
            continue;
        found = true;
        w->q.id = stk_series_id(s->tenants[i].name);
        rc = add_group(w, UINT32_MAX, json_pack("{s:s}", "name", s->tenants[i].name));
    }
    return rc == 0 && !found ? refuse(w, "tenant", name) : rc;
}

/* How many series the answer has, for its bound. */
static uint32_t how_many(const struct answer *w)
{
    const struct stk_live_config *c = stk_live_config(w->a->cfg.live);
    const char *node = stk_request_query(w->r, "node");
    const struct stk_state *s = stk_core_state(stk_live_core(w->a->cfg.live));
    uint32_t n = 0;

    if (w->q.kind == STK_SERIES_TENANT)
        return stk_request_query(w->r, "name") ? 1 : s->n_tenants;
    if (w->q.kind == STK_SERIES_JOB_GPU)
        return STK_USAGE_GPUS;
    if (w->q.kind != STK_SERIES_GPU)
        return 1;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (!node || strcmp(node, c->nodes[i].name) == 0)
            n += s->nodes[i].gpus;
    return n;
}

static int read_query(struct answer *w)
{
    const char *of = stk_request_query(w->r, "of");
    int kind = of ? stk_series_kind_of(of) : -1;
    uint64_t now = (uint64_t)(stk_api_now(w->a) / STK_SECOND), since, until, step;
    struct stk_err err = {""};
    int rc;

    if (kind < 0) {
        stk_request_error(w->r, 400, NULL, "of must be gpu, job, job_gpu, tenant or cluster");
        return -EINVAL;
    }
    if (stk_request_number(w->r, "since", now - HOUR, STK_API_MAX_TIME, &since) < 0 ||
        stk_request_number(w->r, "until", now, STK_API_MAX_TIME, &until) < 0 ||
        stk_request_number(w->r, "step", 0, 31622400, &step) < 0)
        return -EINVAL;
    w->q = (struct stk_series_query){.kind = (enum stk_series_kind)kind,
                                     .since = (stk_time)since * STK_SECOND,
                                     .until = (stk_time)until * STK_SECOND,
                                     .step = (stk_time)step * STK_SECOND,
                                     .now = (stk_time)now * STK_SECOND};
    rc = stk_series_fit(w->a->series, &w->q, how_many(w), &err);
    if (rc < 0)
        stk_api_fail(w->r, rc, &err);
    return rc;
}

void stk_do_series(void *ctx, struct stk_request *r)
{
    struct answer w = {.a = ctx, .r = r};
    int rc;

    if (read_query(&w) < 0)
        return;
    w.list = json_array();
    switch (w.q.kind) {
    case STK_SERIES_GPU:
        rc = add_gpus(&w);
        break;
    case STK_SERIES_JOB:
    case STK_SERIES_JOB_GPU:
        rc = add_job(&w);
        break;
    case STK_SERIES_TENANT:
        rc = add_tenants(&w);
        break;
    case STK_SERIES_CLUSTER:
    case STK_SERIES_KIND_MAX:
    default:
        rc = add_group(&w, UINT32_MAX, json_object());
        break;
    }
    if (rc < 0)
        return;
    stk_request_json(r, 200,
                     json_pack("{s:s,s:I,s:o,s:o,s:o}", "of", stk_series_kind_name(w.q.kind),
                               "step_s", (json_int_t)(w.q.step / STK_SECOND), "since",
                               stk_show_time(w.q.since), "until", stk_show_time(w.q.until),
                               "series", w.list));
}
