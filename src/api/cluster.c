/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - the whole at a glance (for the page), health, and metrics for Prometheus. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/owners.h"
#include "api/show.h"
#include "core/state.h"

#define MAX_ROWS 200u   /* of running and of waiting jobs */
#define MAX_SCAN 10000u /* jobs looked at to find them */

struct counts {
    uint32_t live, held, blocked, waiting, leased, stopping;
};

static struct counts count_jobs(const struct stk_api *a)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    struct counts c = {
        .live = s->n_live, .blocked = s->n_blocked, .waiting = s->n_waiting, .leased = s->n_leased};

    for (uint32_t p = 0; p < s->n_pools; p++)
        c.stopping += s->pools[p].n_stopping;
    c.held = c.live - c.blocked - c.waiting - c.leased - c.stopping;
    return c;
}

static json_t *show_counts(const struct counts *c)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "total", (json_int_t)c->live, "running",
                     (json_int_t)c->leased, "waiting", (json_int_t)c->waiting, "blocked",
                     (json_int_t)c->blocked, "held", (json_int_t)c->held, "stopping",
                     (json_int_t)c->stopping);
}

/* A few of the running and of the others, oldest first. */
static void list_jobs(struct stk_api *a, json_t *running, json_t *waiting)
{
    const struct stk_show view = {.api = a};
    const struct stk_core *core = stk_live_core(a->cfg.live);
    const struct stk_entry *e = stk_live_next(a->cfg.live, 0);

    for (uint32_t n = 0; e && n < MAX_SCAN; n++, e = stk_live_next(a->cfg.live, e->number)) {
        uint32_t slot = stk_core_find(core, e->number);
        json_t *list;

        if (slot == STK_NONE)
            continue;
        list = stk_core_state(core)->jobs[slot].lease ? running : waiting;
        if (json_array_size(list) < MAX_ROWS)
            (void)json_array_append_new(list, stk_show_live(&view, e));
    }
}

static json_t *list_gpus(const struct stk_owners *v)
{
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));
    json_t *list = json_array();

    for (uint32_t n = 0; n < s->n_nodes && json_array_size(list) < STK_API_MAX_PAGE; n++)
        for (uint32_t g = 0; g < s->nodes[n].gpus && g < STK_MAX_NODE_GPUS; g++)
            (void)json_array_append_new(list, stk_owners_show(v, n, g));
    return list;
}

static json_t *show_gpu_counts(const struct stk_owners *v)
{
    struct stk_owner_counts c;

    stk_owners_count(v, &c);
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "total", (json_int_t)c.total, "busy",
                     (json_int_t)c.busy, "free", (json_int_t)(c.total - c.busy - c.off - c.drained),
                     "off", (json_int_t)c.off, "drained", (json_int_t)c.drained);
}

void stk_do_cluster(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);
    struct counts c = count_jobs(a);
    json_t *running = json_array(), *waiting = json_array();
    struct stk_owners v;

    if (stk_owners_look(&v, a, stk_request_who(r)) < 0) {
        json_decref(running);
        json_decref(waiting);
        stk_request_error(r, 503, "busy", "out of memory");
        return;
    }
    list_jobs(a, running, waiting);
    stk_request_json(r, 200,
                     json_pack("{s:s,s:s,s:b,s:o,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "version",
                               a->cfg.version, "policy", cfg->policy, "virtual",
                               a->cfg.virtual_gpus, "now", stk_show_time(stk_api_now(a)), "seq",
                               (json_int_t)stk_live_seq(a->cfg.live), "nodes",
                               (json_int_t)cfg->core.n_nodes, "jobs", show_counts(&c), "gpus",
                               show_gpu_counts(&v), "gpu_list", list_gpus(&v), "running", running,
                               "waiting", waiting));
    stk_api_stay_logged_in(a, r);
    stk_owners_done(&v);
}

void stk_do_health(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_who *who = stk_request_who(r);
    stk_time now = stk_api_now(a);
    json_t *o = json_pack(
        "{s:s,s:s,s:s,s:o,s:f,s:I,s:I,s:b}", "status", a->trouble[0] ? "trouble" : "ok", "version",
        a->cfg.version, "policy", stk_live_config(a->cfg.live)->policy, "now", stk_show_time(now),
        "up_s", (double)(now - a->opened) / 1e6, "seq", (json_int_t)stk_live_seq(a->cfg.live),
        "jobs", (json_int_t)stk_live_count(a->cfg.live), "virtual", a->cfg.virtual_gpus);

    (void)json_object_set_new(o, "trouble", a->trouble[0] ? json_string(a->trouble) : json_null());
    if (who) {
        static const char *const roles[] = {"user", "operator", "admin"};

        (void)json_object_set_new(o, "state_dir", json_string(a->cfg.state_dir));
        (void)json_object_set_new(o, "you",
                                  json_pack("{s:s,s:I,s:s}", "user", who->user, "uid",
                                            (json_int_t)who->uid, "role", roles[who->role]));
    }
    stk_request_json(r, 200, o);
}

/* ---- metrics ---- */

struct text {
    char *s;
    size_t len, cap;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (t->cap - t->len < 1024) {
        char *s = realloc(t->s, t->cap + 16384);

        if (!s)
            return;
        t->s = s;
        t->cap += 16384;
    }
    va_start(ap, fmt);
    n = vsnprintf(t->s + t->len, t->cap - t->len, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < t->cap - t->len)
        t->len += (size_t)n;
}

static void head(struct text *t, const char *name, const char *type, const char *help)
{
    put(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_jobs(struct text *t, const struct stk_api *a)
{
    struct counts c = count_jobs(a);

    head(t, "stoker_jobs", "gauge", "Jobs that have not ended, by state.");
    put(t, "stoker_jobs{state=\"running\"} %u\n", c.leased);
    put(t, "stoker_jobs{state=\"waiting\"} %u\n", c.waiting);
    put(t, "stoker_jobs{state=\"blocked\"} %u\n", c.blocked);
    put(t, "stoker_jobs{state=\"held\"} %u\n", c.held);
    put(t, "stoker_jobs{state=\"stopping\"} %u\n", c.stopping);
}

static void put_gpus(struct text *t, const struct stk_owners *v)
{
    static const struct {
        const char *name, *key, *help;
        double scale;
    } rows[] = {
        {"stoker_gpu_utilization_ratio", "util", "Share of time a kernel ran.", 0.01},
        {"stoker_gpu_memory_used_bytes", "mem_used_mib", "Memory in use.", 1048576},
        {"stoker_gpu_power_watts", "power_w", "Power drawn.", 1},
        {"stoker_gpu_temperature_celsius", "temp_c", "Temperature.", 1},
    };
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));
    uint32_t n_gpus = s->n_nodes ? s->nodes[0].gpus : 0;
    struct stk_owner_counts c;

    stk_owners_count(v, &c);
    head(t, "stoker_gpus", "gauge", "GPUs, by state.");
    put(t, "stoker_gpus{state=\"busy\"} %" PRIu64 "\n", c.busy);
    put(t, "stoker_gpus{state=\"free\"} %" PRIu64 "\n", c.total - c.busy - c.off - c.drained);
    put(t, "stoker_gpus{state=\"off\"} %" PRIu64 "\n", c.off);
    put(t, "stoker_gpus{state=\"drained\"} %" PRIu64 "\n", c.drained);
    for (size_t i = 0; v->api->sample && i < sizeof(rows) / sizeof(*rows); i++) {
        head(t, rows[i].name, "gauge", rows[i].help);
        for (uint32_t g = 0; g < n_gpus; g++) {
            const json_t *x = json_object_get(stk_owners_sample(v->api, g), rows[i].key);

            if (json_is_number(x))
                put(t, "%s{gpu=\"%u\"} %.6g\n", rows[i].name, g,
                    json_number_value(x) * rows[i].scale);
        }
    }
}

static void put_daemon(struct text *t, const struct stk_api *a)
{
    struct stk_http_stats h;
    uint64_t turns = 0;
    double switch_s = 0;

    stk_http_stats(a->http, &h);
    head(t, "stoker_info", "gauge", "What runs.");
    put(t, "stoker_info{version=\"%s\",policy=\"%s\"} 1\n", a->cfg.version,
        stk_live_config(a->cfg.live)->policy);
    head(t, "stoker_trouble", "gauge", "1 when the daemon cannot do its work.");
    put(t, "stoker_trouble %d\n", a->trouble[0] != '\0');
    head(t, "stoker_up_seconds", "gauge", "Time since the daemon was started.");
    put(t, "stoker_up_seconds %.3f\n", (double)(stk_api_now(a) - a->opened) / 1e6);
    head(t, "stoker_events_total", "counter", "Events in the journal.");
    put(t, "stoker_events_total %" PRIu64 "\n", stk_live_seq(a->cfg.live));
    if (a->cfg.turns)
        a->cfg.turns(a->cfg.ctx, &turns, &switch_s);
    head(t, "stoker_turns_total", "counter", "Turns given to jobs that share a GPU in turns.");
    put(t, "stoker_turns_total %" PRIu64 "\n", turns);
    head(t, "stoker_turn_switch_seconds_total", "counter", "Time that went into switching.");
    put(t, "stoker_turn_switch_seconds_total %.3f\n", switch_s);
    head(t, "stoker_http_requests_total", "counter", "Requests since the daemon was started.");
    put(t, "stoker_http_requests_total %" PRIu64 "\n", h.requests);
    head(t, "stoker_http_connections_total", "counter", "Connections since then.");
    put(t, "stoker_http_connections_total %" PRIu64 "\n", h.connections);
    head(t, "stoker_http_dropped_total", "counter", "Connections closed for age or want of room.");
    put(t, "stoker_http_dropped_total %" PRIu64 "\n", h.refused);
    head(t, "stoker_http_connections", "gauge", "Open connections.");
    put(t, "stoker_http_connections %u\n", h.open);
    head(t, "stoker_http_waiting", "gauge", "Requests that wait or stream.");
    put(t, "stoker_http_waiting %u\n", h.held);
}

void stk_do_metrics(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct text t = {0};
    struct stk_owners v;

    put_daemon(&t, a);
    put_jobs(&t, a);
    if (stk_owners_look(&v, a, NULL) == 0) {
        put_gpus(&t, &v);
        stk_owners_done(&v);
    }
    if (t.s)
        stk_request_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", t.s, t.len);
    else
        stk_request_error(r, 503, "busy", "out of memory");
    free(t.s);
}
