/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - puts the routes behind the server, and wakes those who wait. */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/slices.h"

#define TICK_MS 250

static void on_tick(uv_timer_t *t)
{
    struct stk_api *a = t->data;

    stk_wait_tick(a);
    stk_feed_tick(a);
    stk_tail_tick(a);
    stk_pass_tick(a);
    if (!a->waits && !a->feeds && !a->tails)
        (void)uv_timer_stop(t);
}

void stk_api_need_tick(struct stk_api *a)
{
    if (!uv_is_active((uv_handle_t *)a->tick))
        (void)uv_timer_start(a->tick, on_tick, TICK_MS, TICK_MS);
}

void stk_api_after_turn(struct stk_api *a)
{
    stk_wait_turn(a);
    stk_feed_turn(a);
    stk_tail_turn(a);
}

static void on_http_log(void *ctx, const char *line)
{
    struct stk_api *a = ctx;

    if (a->cfg.log)
        a->cfg.log(a->cfg.ctx, line);
}

static void on_http_warn(void *ctx, const char *line)
{
    struct stk_api *a = ctx;

    if (a->cfg.warn)
        a->cfg.warn(a->cfg.ctx, line);
}

int stk_api_new(const struct stk_api_config *cfg, struct stk_api **ret_api, struct stk_err *err)
{
    struct stk_api *a = calloc(1, sizeof(*a));
    uv_timer_t *tick = calloc(1, sizeof(*tick)), *feed = calloc(1, sizeof(*feed));
    struct stk_http_config http = {.loop = cfg->loop,
                                   .routes = stk_api_routes,
                                   .ctx = a,
                                   .identify = stk_api_identify,
                                   .log = on_http_log,
                                   .warn = on_http_warn,
                                   .hosts = cfg->hosts,
                                   .own_user_only = cfg->own_user_only};
    int rc;

    if (!a || !tick || !feed) {
        free(a);
        free(tick);
        free(feed);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    a->cfg = *cfg;
    rc = stk_http_new(&http, &a->http, err);
    if (rc < 0) {
        free(a);
        free(tick);
        free(feed);
        return rc;
    }
    (void)uv_timer_init(cfg->loop, tick);
    (void)uv_timer_init(cfg->loop, feed);
    tick->data = feed->data = a;
    a->tick = tick;
    a->feed_timer = feed;
    *ret_api = a;
    return 0;
}

struct stk_http *stk_api_http(struct stk_api *a)
{
    return a->http;
}

void stk_api_set_names(struct stk_api *a, const char *const *admins, const char *const *operators,
                       const char *const *hosts)
{
    a->cfg.admins = admins;
    a->cfg.operators = operators;
    a->cfg.hosts = hosts;
    stk_http_set_hosts(a->http, hosts);
}

void stk_api_take_sample(struct stk_api *a, json_t *take_sample)
{
    json_decref(a->sample);
    a->sample = take_sample;
}

void stk_api_set_series(struct stk_api *a, const struct stk_series *series)
{
    a->series = series;
}

void stk_api_set_cost(struct stk_api *a, const struct stk_api_cost *cost)
{
    a->cost = *cost;
}

void stk_api_set_alerts(struct stk_api *a, json_t *take)
{
    json_decref(a->alerts);
    a->alerts = take;
}

void stk_do_alerts(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;

    stk_request_json(r, 200,
                     a->alerts ? json_incref(a->alerts)
                               : json_pack("{s:[],s:[],s:f}", "alerts", "rules", "idle_gpus", 0.0));
}

void stk_api_set_trouble(struct stk_api *a, const char *sentence)
{
    (void)snprintf(a->trouble, sizeof(a->trouble), "%s", sentence ? sentence : "");
}

void stk_api_stop(struct stk_api *a)
{
    stk_http_stop(a->http);
}

static void free_handle(uv_handle_t *h)
{
    free(h);
}

void stk_api_free(struct stk_api *a)
{
    if (!a)
        return;
    stk_api_questions_free(a);
    stk_http_free(a->http);
    stk_looks_free(a);
    stk_slices_free(a->whys);
    stk_slices_free(a->listings);
    stk_leases_done(&a->leases);
    uv_close((uv_handle_t *)a->tick, free_handle);
    uv_close((uv_handle_t *)a->feed_timer, free_handle);
    json_decref(a->sample);
    json_decref(a->alerts);
    free(a->feed_text.text);
    stk_line_free(a->line);
    free(a);
}

/* ---- for handlers ---- */

stk_time stk_api_now(const struct stk_api *a)
{
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);

    return cfg->clock(cfg->ctx);
}

stk_time stk_api_ahead(const struct stk_api *a)
{
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);

    return cfg->ahead ? cfg->ahead(cfg->ctx) : 0;
}

struct element { /* of an array: what is looked for, and what was found */
    stk_job_number array;
    bool in_array;
    uint32_t index;
};

static int see_element(void *ctx, const struct stk_record *rec)
{
    struct element *e = ctx;

    e->in_array = rec->array == e->array;
    e->index = rec->array_index;
    return 1;
}

/* The job of an array with that index. Its jobs have numbers in a row and rising indices, so the
 * one with index i is at most i numbers behind the first. */
static stk_job_number find_element(struct stk_api *a, stk_job_number array, uint32_t index)
{
    uint64_t lo = array, hi = (uint64_t)array + index;

    hi = hi < UINT32_MAX ? hi : UINT32_MAX - 1;
    while (lo <= hi) {
        stk_job_number mid = (stk_job_number)((lo + hi) / 2);
        const struct stk_entry *live = stk_live_entry(a->cfg.live, mid);
        struct element e = {.array = array};

        if (live)
            (void)see_element(&e, &live->rec);
        else
            (void)stk_store_job_get(stk_live_store(a->cfg.live), mid, see_element, &e, NULL);
        if (e.in_array && e.index == index)
            return mid;
        if (e.in_array && e.index < index)
            lo = (uint64_t)mid + 1;
        else
            hi = (uint64_t)mid - 1;
    }
    return 0;
}

/* "1234" or "1234_5", as Slurm has it. */
static int their_number(struct stk_api *a, struct stk_request *r, const char *text,
                        stk_job_number *ret)
{
    char *end = NULL;
    unsigned long long v = 0, index = 0;
    stk_job_number first;

    if (*text >= '0' && *text <= '9' && strlen(text) <= 21)
        v = strtoull(text, &end, 10);
    first =
        v > 0 && v < UINT32_MAX && a->cfg.by_theirs ? a->cfg.by_theirs(a->cfg.ctx, (uint32_t)v) : 0;
    *ret = first;
    if (first && *end == '_') {
        index = end[1] >= '0' && end[1] <= '9' ? strtoull(end + 1, &end, 10) : UINT32_MAX;
        *ret = index < INT32_MAX ? find_element(a, first, (uint32_t)index) : 0;
    }
    if (*ret && *end == '\0')
        return 0;
    stk_request_error(r, 404, NULL,
                      "Slurm's job \"%.40s\" is not known here; of one that has ended \"sacct -j "
                      "%llu -o AdminComment\" has its number here, the third word",
                      text, v);
    return -ENOENT;
}

int stk_api_job_number(struct stk_api *a, struct stk_request *r, stk_job_number *ret)
{
    const char *text = stk_request_path(r, "id");
    unsigned long long v = 0, index;
    char *end = NULL;

    if (strncmp(text, "slurm:", 6) == 0)
        return their_number(a, r, text + 6, ret);
    if (*text >= '0' && *text <= '9' && strlen(text) <= 21)
        v = strtoull(text, &end, 10);
    if (v < 1 || v >= UINT32_MAX || (*end != '\0' && *end != '_')) {
        stk_request_error(r, 404, NULL, "there is no job \"%.40s\"; a job has a number", text);
        return -ENOENT;
    }
    *ret = (stk_job_number)v;
    if (*end == '\0')
        return 0;
    text = end + 1;
    index = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : UINT32_MAX;
    *ret =
        index < INT32_MAX && *end == '\0' ? find_element(a, (stk_job_number)v, (uint32_t)index) : 0;
    if (*ret > 0)
        return 0;
    stk_request_error(r, 404, NULL, "array %llu has no element \"%.20s\"", v, text);
    return -ENOENT;
}

int stk_api_limit(struct stk_request *r, uint32_t *ret)
{
    uint64_t v;
    int rc = stk_request_number(r, "limit", STK_API_PAGE, STK_API_MAX_PAGE, &v);

    if (rc < 0)
        return rc;
    *ret = v > 0 ? (uint32_t)v : STK_API_PAGE;
    return 0;
}

void stk_api_fail(struct stk_request *r, int rc, const struct stk_err *err)
{
    int status = 500;

    switch (-rc) {
    case ENOENT:
        status = 404;
        break;
    case EACCES:
    case EPERM:
        status = 403;
        break;
    case EBADMSG:
        status = 400;
        break;
    case EPROTO:
    case EEXIST:
    case EBUSY:
        status = 409;
        break;
    case EFBIG:
    case E2BIG:
        status = 413;
        break;
    case EINVAL:
    case ERANGE:
        status = 422;
        break;
    case EAGAIN:
    case ENOMEM:
        stk_request_error(r, 503, rc == -ENOMEM ? "no_memory" : "busy", "%s",
                          err->text[0] ? err->text : strerror(-rc));
        return;
    case ENOSPC:
    case EROFS:
    case EIO:
        status = 507;
        break;
    default:
        break;
    }
    stk_request_error(r, status, NULL, "%s", err->text[0] ? err->text : strerror(-rc));
}

int stk_api_begin(struct stk_api *a, struct stk_err *err)
{
    struct stk_err why = {""};
    int rc = 0;

    if (stk_live_pending(a->cfg.live) && !stk_live_is_open(a->cfg.live))
        rc = stk_live_turn(a->cfg.live, &why);
    if (rc == 0 && stk_live_is_open(a->cfg.live))
        rc = stk_err_set(&why, -EAGAIN,
                         "a large request is being taken in, and nothing else is written "
                         "meanwhile; try again in some seconds");
    if (rc < 0)
        return stk_err_set(err, rc, "%s", why.text);
    stk_api_after_turn(a);
    return stk_store_begin(stk_live_store(a->cfg.live), err);
}

int stk_api_end(struct stk_api *a, int rc, struct stk_err *err)
{
    struct stk_store *st = stk_live_store(a->cfg.live);

    if (rc == 0)
        return stk_store_commit(st, err);
    stk_store_rollback(st);
    return rc;
}

void stk_api_reply(void *ctx, int status, json_t *take_body)
{
    stk_request_json(ctx, status, take_body ? take_body : json_object());
}
