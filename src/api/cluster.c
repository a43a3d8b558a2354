/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - the whole at a glance (for the page), and health. */
#include "api/owners.h"
#include "api/show.h"
#include "core/state.h"
#include "live/counts.h"

#define MAX_ROWS 200u   /* of running and of waiting jobs */
#define MAX_SCAN 10000u /* jobs looked at to find them */

/* Jobs that sleep are suspended, also while the core has them wait or held. */
static void take_out_suspended(const struct stk_state *s, struct stk_job_counts *c)
{
    uint32_t asleep = 0;

    for (uint32_t p = 0; p < s->n_pools; p++)
        asleep += s->pools[p].n_asleep;
    for (uint32_t i = 0; i < s->n_jobs && asleep > 0; i++) {
        const struct stk_job *j = &s->jobs[i];
        uint32_t *of = j->state == STK_JOB_WAITING ? &c->waiting : &c->held;

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE || !j->slept)
            continue;
        asleep--;
        if ((j->state == STK_JOB_WAITING || j->state == STK_JOB_HELD) && *of > 0) {
            --*of;
            c->suspended++;
        }
    }
}

struct stk_job_counts stk_count_jobs(const struct stk_api *a)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    struct stk_job_counts c = {.leased = s->n_leased};
    struct stk_live_shown shown;

    stk_live_show(a->cfg.live, &shown);
    c.live = shown.live;
    c.blocked = shown.blocked;
    c.waiting = shown.waiting;
    for (uint32_t p = 0; p < s->n_pools; p++)
        c.stopping += s->pools[p].n_stopping;
    c.held = c.live - c.blocked - c.waiting - c.leased - c.stopping;
    take_out_suspended(s, &c);
    return c;
}

static json_t *show_counts(const struct stk_job_counts *c)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "total", (json_int_t)c->live, "running",
                     (json_int_t)c->leased, "waiting", (json_int_t)c->waiting, "suspended",
                     (json_int_t)c->suspended, "blocked", (json_int_t)c->blocked, "held",
                     (json_int_t)c->held, "stopping", (json_int_t)c->stopping);
}

struct list {
    struct stk_writer text;
    uint32_t n;
};

/* One pass over the jobs; 'running' may be NULL. */
static void list_some(struct stk_api *a, struct list *running, struct list *waiting, bool in_line)
{
    const struct stk_show view = {.api = a};
    const struct stk_core *core = stk_live_core(a->cfg.live);
    const struct stk_entry *e = stk_live_next(a->cfg.live, 0);

    for (uint32_t n = 0; e && n < MAX_SCAN; n++, e = stk_live_next(a->cfg.live, e->number)) {
        uint32_t slot = stk_core_find(core, e->number);
        struct list *list;
        uint32_t place;

        if (slot == STK_NONE)
            continue;
        list = stk_core_state(core)->jobs[slot].lease ? running : waiting;
        place = list == waiting ? stk_line_place(a, slot) : 0;
        if (list == waiting && in_line != (place > 0 && place <= MAX_ROWS))
            continue;
        if (list && list->n++ < MAX_ROWS)
            stk_show_live(&view, &list->text, e);
    }
}

/* A few of the running, and of the others: those that are first in line, then those that have no
 * place in it. */
static void list_jobs(struct stk_api *a, struct list *running, struct list *waiting)
{
    stk_write_open(&running->text, NULL, '[');
    stk_write_open(&waiting->text, NULL, '[');
    list_some(a, running, waiting, true);
    if (waiting->n < MAX_ROWS)
        list_some(a, NULL, waiting, false);
    stk_write_close(&running->text, ']');
    stk_write_close(&waiting->text, ']');
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
    struct stk_job_counts c = stk_count_jobs(a);
    struct list running = {.n = 0}, waiting = {.n = 0};
    struct stk_writer all = {0};
    struct stk_owners v;

    if (stk_owners_look(&v, a, stk_request_who(r)) < 0) {
        stk_request_error(r, 503, "busy", "out of memory");
        return;
    }
    list_jobs(a, &running, &waiting);
    stk_write_open(&all, NULL, '{');
    stk_write_members(&all, json_pack("{s:s,s:s,s:b,s:o,s:I,s:I,s:o,s:o,s:o}", "version",
                                      a->cfg.version, "policy", cfg->policy, "virtual",
                                      a->cfg.virtual_gpus, "now", stk_show_time(stk_api_now(a)),
                                      "seq", (json_int_t)stk_live_seq(a->cfg.live), "nodes",
                                      (json_int_t)cfg->core.n_nodes, "jobs", show_counts(&c),
                                      "gpus", show_gpu_counts(&v), "gpu_list", list_gpus(&v)));
    stk_write_written(&all, "running", &running.text);
    stk_write_written(&all, "waiting", &waiting.text);
    stk_write_close(&all, '}');
    stk_request_written(r, &all);
    stk_owners_done(&v);
}

void stk_do_health(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_who *who = stk_request_who(r);
    stk_time now = stk_api_now(a);
    json_t *o = json_pack("{s:s,s:s,s:s,s:o,s:f,s:I,s:I,s:b,s:s}", "status",
                          a->trouble[0] ? "trouble" : "ok", "version", a->cfg.version, "policy",
                          stk_live_config(a->cfg.live)->policy, "now", stk_show_time(now), "up_s",
                          (double)(now - stk_live_counts(a->cfg.live)->since) / 1e6, "seq",
                          (json_int_t)stk_live_seq(a->cfg.live), "jobs",
                          (json_int_t)stk_live_count(a->cfg.live), "virtual", a->cfg.virtual_gpus,
                          "engine", a->cfg.slurm ? "slurm" : "local");

    (void)json_object_set_new(o, "clock_ahead_s", json_real((double)stk_api_ahead(a) / 1e6));
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
