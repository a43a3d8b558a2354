/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - a period in numbers, for "stoker report". */
#include <math.h>
#include <string.h>

#include "api/show.h"
#include "api/spent.h"

#define WEEK (UINT64_C(7) * 86400)

static int read_by(struct stk_request *r, enum stk_spent_by *ret)
{
    static const struct {
        const char *word;
        enum stk_spent_by by;
    } words[] = {{"tenant", STK_BY_TENANT},
                 {"team", STK_BY_TENANT},
                 {"user", STK_BY_USER},
                 {"queue", STK_BY_QUEUE}};
    const char *by = stk_request_query(r, "by");

    *ret = STK_BY_TENANT;
    for (size_t i = 0; by && i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i].word, by) == 0) {
            *ret = words[i].by;
            return 0;
        }
    if (!by)
        return 0;
    stk_request_error(r, 400, NULL, "by must be tenant, team, user or queue, got \"%.40s\"", by);
    return -EINVAL;
}

json_t *stk_spent_show_whole(const struct stk_api *a, const struct stk_spent *s,
                             const struct stk_spent_heat *h)
{
    const stk_gpu_time total = s->capacity.sum;
    const bool known = s->all.measured > 0 || s->all.allocated == 0;
    const double idle = stk_figures_hours(s->all.measured - s->all.active);

    return json_pack("{s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "gpus",
                     (json_int_t)s->capacity.gpus, "hours",
                     stk_spent_number((double)s->capacity.known / 3.6e9), "gpu_hours",
                     stk_spent_number(stk_figures_hours(total)), "allocated_gpu_hours",
                     stk_spent_number(stk_figures_hours(s->all.allocated)), "measured_gpu_hours",
                     stk_spent_number(stk_figures_hours(s->all.measured)), "active_gpu_hours",
                     stk_spent_number(stk_figures_hours(s->all.active)), "allocated",
                     stk_spent_number(stk_figures_ratio(s->all.allocated, total)), "active",
                     stk_spent_number(known ? stk_figures_ratio(s->all.active, total) : -1), "kwh",
                     stk_spent_number(h->kwh), "idle_gpu_hours", stk_spent_number(idle),
                     "idle_money", stk_spent_number(stk_spent_money(a, idle, 0)));
}

static json_t *show_row(const struct stk_spent_row *w, const char *key)
{
    char advice[200];

    stk_spent_advice(&w->job, advice, sizeof(advice));
    return json_pack("{s:I,s:s,s:s,s:s,s:f,s:o,s:o,s:o,s:o,s:o}", "id", (json_int_t)w->number,
                     "name", w->name, "user", w->user, "tenant", w->tenant, "gpus", w->gpus, key,
                     stk_spent_number(w->value), "gpu_hours", stk_spent_number(w->job.gpu_h),
                     "util", stk_spent_number(w->job.util), "money", stk_spent_number(w->job.money),
                     "advice", advice[0] ? json_string(advice) : json_null());
}

static json_t *show_rows(const struct stk_spent_row *rows, uint32_t n, const char *key)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(list, show_row(&rows[i], key));
    return list;
}

/* Groups, the largest first. */
static json_t *show_groups(const struct stk_api *a, struct stk_spent *s)
{
    json_t *list = json_array();
    bool done[STK_SPENT_GROUPS] = {false};

    for (uint32_t i = 0; i < s->n_groups; i++) {
        uint32_t best = 0;

        while (done[best] && best + 1 < s->n_groups)
            best++;
        for (uint32_t k = best + 1; k < s->n_groups; k++)
            if (!done[k] && s->group[k].allocated > s->group[best].allocated)
                best = k;
        done[best] = true;
        (void)json_array_append_new(list, stk_spent_show_group(a, &s->group[best]));
    }
    return list;
}

static json_t *show(struct stk_api *a, struct stk_spent *s, const struct stk_spent_heat *h)
{
    static const char *const words[] = {"tenant", "user", "queue"};
    const struct stk_live_config *c = stk_live_config(a->cfg.live);
    json_t *o = json_pack("{s:o,s:o,s:s,s:s,s:s,s:b}", "since", stk_show_time(s->since), "until",
                          stk_show_time(s->until), "by", words[s->by], "host", c->nodes[0].name,
                          "policy", c->policy, "truncated", s->truncated);

    (void)json_object_set_new(o, "price", stk_spent_price(a));
    (void)json_object_set_new(o, "cluster", stk_spent_show_whole(a, s, h));
    (void)json_object_set_new(o, "all", stk_spent_show_group(a, &s->all));
    (void)json_object_set_new(o, "groups", show_groups(a, s));
    (void)json_object_set_new(o, "waits", show_rows(s->wait, s->n_wait, "wait_s"));
    (void)json_object_set_new(o, "waste", show_rows(s->waste, s->n_waste, "idle_gpu_hours"));
    (void)json_object_set_new(o, "recommendations", stk_spent_advise(a, s, h));
    return o;
}

void stk_do_summary(void *ctx, struct stk_request *r)
{
    uint64_t now = (uint64_t)(stk_api_now(ctx) / STK_SECOND) + 1, since, until;
    struct stk_look_for what = {.show = show};

    if (read_by(r, &what.by) < 0 ||
        stk_request_number(r, "since", now - WEEK, STK_API_MAX_TIME, &since) < 0 ||
        stk_request_number(r, "until", now, STK_API_MAX_TIME, &until) < 0)
        return;
    if (until <= since) {
        stk_request_error(r, 422, NULL, "until must be after since");
        return;
    }
    what.since = (stk_time)since * STK_SECOND;
    what.until = (stk_time)until * STK_SECOND;
    stk_look(ctx, r, &what);
}
