/* SPDX-License-Identifier: Apache-2.0 */
#include "foresee.h"

#include <stdlib.h>
#include <string.h>

#include "core/claim.h"
#include "core/lending.h"
#include "core/remedy.h"
#include "core/state.h"
#include "core/tenant.h"
#include "forecast/deadline.h"
#include "model/queue.h"

#define MOST_EVENTS 20000u

/* ---- deadlines ---- */

static bool deadline(const struct scn_look *l, const struct scn_step *step, char *got, size_t size)
{
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_forecast_config cfg = {.now = l->now,
                                            .predict = l->predict,
                                            .limited = true,
                                            .draws = STK_FORECAST_DRAWS,
                                            .most_events = MOST_EVENTS,
                                            .seed = 1};
    struct stk_expected when;
    struct stk_deadline d;
    char earliest[32], margin[32];

    if (stk_forecast(l->core, &cfg, &l->slot, 1, &when, NULL) < 0)
        return false;
    d = stk_deadline_judge(s->terms[l->slot].deadline, l->now, &when);
    (void)snprintf(got, size, "its deadline is %s, earliest %s, with %s to spare",
                   stk_deadline_name(d.answer), scn_show_time(d.earliest, earliest),
                   scn_show_time(d.margin, margin));
    return strcmp(stk_deadline_name(d.answer), step->text) == 0 &&
           (step->time == STK_NEVER_TIME || step->time == d.earliest) &&
           (step->number < 0 || step->number == d.margin);
}

/* ---- what would start it ---- */

/* "gpus 2", "queue express", "preemptible". */
static void say_remedy(const struct scn_look *l, const struct stk_remedy *r, char *buf, size_t size)
{
    const struct stk_state *s = stk_core_state(l->core);
    const char *name = stk_remedy_name(r->kind);
    char t[32];

    if (r->kind == STK_REMEDY_TYPE)
        (void)snprintf(buf, size, "%s %s", name,
                       stk_names_get(&l->cluster->gpu_types, (uint32_t)r->to));
    else if (r->kind == STK_REMEDY_QUEUE)
        (void)snprintf(buf, size, "%s %s", name, s->queues[r->to].name);
    else if (r->kind == STK_REMEDY_TENANT)
        (void)snprintf(buf, size, "%s %s", name, s->tenants[r->to].name);
    else if (r->kind == STK_REMEDY_TIME)
        (void)snprintf(buf, size, "%s %s", name, scn_show_time(r->to, t));
    else if (r->kind == STK_REMEDY_TIER)
        (void)snprintf(buf, size, "%s %s", name, stk_tier_name((enum stk_tier)r->to));
    else if (r->kind == STK_REMEDY_CPU)
        (void)snprintf(buf, size, "%s %g", name, (double)r->to / 1000);
    else if (r->kind == STK_REMEDY_PREEMPTIBLE || r->kind == STK_REMEDY_RELEASE)
        (void)snprintf(buf, size, "%s", name);
    else
        (void)snprintf(buf, size, "%s %lld", name, (long long)r->to);
}

static bool would(const struct scn_look *l, const struct scn_step *step, char *got, size_t size)
{
    const struct stk_remedy_ask ask = {
        .job = {l->slot}, .now = l->now, .most_forks = STK_REMEDY_FORKS};
    struct stk_remedies all;
    bool found = false;
    size_t used = 0;

    if (stk_core_remedies(l->core, &ask, &all, NULL) < 0)
        return false;
    (void)snprintf(got, size, "would start with nothing");
    for (uint32_t i = 0; i < all.n; i++) {
        char one[128];

        say_remedy(l, &all.list[i], one, sizeof(one));
        found |= strcmp(one, step->text) == 0;
        if (used < size)
            used += (size_t)snprintf(got + used, size - used, "%s%s",
                                     used ? ", " : "would start with ", one);
    }
    return found || (all.n == 0 && strcmp(step->text, "nothing") == 0);
}

/* ---- what it is entitled to, and who lends ---- */

static bool claims(const struct scn_look *l, const struct scn_step *step, char *got, size_t size)
{
    static const char *const titles[] = {"nothing", "guarantee of", "share of"};
    const struct stk_state *s = stk_core_state(l->core);
    struct stk_claim c;

    stk_core_claim(l->core, (stk_job_id){l->slot}, &c);
    (void)snprintf(got, size, "%s%s%s", titles[c.title], c.title ? " " : "",
                   c.title ? s->tenants[c.tenant].name : "");
    return strcmp(got, step->text) == 0;
}

static uint32_t tenant_of(const struct stk_state *s, const char *name, size_t len)
{
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (strlen(s->tenants[i].name) == len && memcmp(s->tenants[i].name, name, len) == 0)
            return i;
    return STK_NONE;
}

/* The text is "LENDER BORROWER". */
static bool lends(const struct scn_look *l, const struct scn_step *step, char *got, size_t size)
{
    const struct stk_state *s = stk_core_state(l->core);
    struct stk_lending *rows = calloc(s->n_tenants + 1u, sizeof(*rows));
    const size_t len = strcspn(step->text, " ");
    const uint32_t from = tenant_of(s, step->text, len),
                   to = tenant_of(s, step->text + len + 1, strlen(step->text + len + 1));
    uint64_t milli = 0;

    if (rows && from != STK_NONE && to != STK_NONE &&
        s->tenants[from].parent == s->tenants[to].parent) {
        const uint32_t up = s->tenants[from].parent;

        stk_lending(s, STK_ALL_TYPES, rows);
        milli = stk_lending_between(
            rows, from, to,
            stk_lending_all(s, rows, up ? s->tenants[up - 1].child : s->first_tenant));
    }
    free(rows);
    (void)snprintf(got, size, "lends %g", (double)milli / 1000);
    return milli == (uint64_t)step->number;
}

bool scn_look(const struct scn_look *l, const struct scn_step *step, char *got, size_t size)
{
    if (step->verb == SCN_LENDS)
        return lends(l, step, got, size);
    if (l->slot == STK_NONE) {
        (void)snprintf(got, size, "is not there");
        return false;
    }
    if (step->verb == SCN_WOULD)
        return would(l, step, got, size);
    return step->verb == SCN_CLAIMS ? claims(l, step, got, size) : deadline(l, step, got, size);
}
