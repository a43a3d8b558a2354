/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what a job says of itself, and what it is told: the two sides of the Python SDK. */
#include <math.h>
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"
#include "core/state.h"

#define MAX_METRICS 64u
#define PRIOR_PER_H 0.05 /* interruptions per hour of a job nothing is known of */
#define GRACE_S 30       /* from being told to stop to being killed, when the job does not say */

static bool is_number(const json_t *j)
{
    return !j || (json_is_number(j) && fabs(json_number_value(j)) <= 1e18);
}

static bool is_checkpoint(const json_t *c)
{
    const json_t *step = json_object_get(c, "step"), *seconds = json_object_get(c, "seconds");

    return json_is_object(c) && is_number(step) && is_number(seconds) &&
           json_object_size(c) == (size_t)(step != NULL) + (size_t)(seconds != NULL);
}

/* A sentence about what is wrong with a report, or NULL. */
static const char *check(json_t *b)
{
    json_t *c = json_object_get(b, "checkpoint"), *m = json_object_get(b, "metrics"), *v;
    const char *key;

    if (!json_is_object(b))
        return "a report must be an object";
    json_object_foreach(b, key, v)
    {
        if (strcmp(key, "step") != 0 && strcmp(key, "total") != 0 &&
            strcmp(key, "checkpoint") != 0 && strcmp(key, "metrics") != 0)
            return "a report has step, total, checkpoint and metrics";
    }
    if (!is_number(json_object_get(b, "step")) || !is_number(json_object_get(b, "total")))
        return "step and total must be numbers within +-1e18";
    if (c && !is_checkpoint(c))
        return "checkpoint must be {\"step\": number, \"seconds\": number}";
    if (m && (!json_is_object(m) || json_object_size(m) > MAX_METRICS))
        return "metrics must be an object with at most 64 numbers";
    json_object_foreach(m, key, v)
    {
        if (!is_number(v) || strlen(key) > 64)
            return "metrics must be numbers within +-1e18, their names at most 64 characters";
    }
    return NULL;
}

void stk_do_report(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_err err = {""};
    stk_job_number number;
    const char *wrong;
    json_t *body;
    int rc;

    if (stk_api_job_number(ctx, r, &number) < 0 || stk_request_body(r, &body) < 0)
        return;
    wrong = check(body);
    if (wrong) {
        json_decref(body);
        stk_request_error(r, 400, NULL, "%s", wrong);
        return;
    }
    rc = stk_live_report(a->cfg.live, stk_request_who(r), number, body, &err);
    if (rc < 0)
        stk_api_fail(r, rc, &err);
    else
        stk_do_control(ctx, r);
}

/* How often jobs like this one are interrupted, from what happened to it so far. */
static double interrupt_rate(const struct stk_job *j, stk_time now)
{
    double hours = (double)stk_job_served(j, now) / 3.6e9;

    return (j->preemptions + j->restarts + PRIOR_PER_H) / (hours + 1.0);
}

void stk_do_control(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_core *core = stk_live_core(a->cfg.live);
    const struct stk_entry *e;
    const struct stk_job *j;
    stk_job_number number;
    json_t *spec, *grace;
    bool stop;

    if (stk_api_job_number(ctx, r, &number) < 0)
        return;
    e = stk_live_entry(a->cfg.live, number);
    if (!e || stk_core_find(core, number) == STK_NONE) {
        stk_request_error(r, 404, NULL, "job %u has ended, or never was", number);
        return;
    }
    if (!stk_live_may(stk_request_who(r), e->rec.uid)) {
        stk_request_error(r, 403, NULL, "job %u is somebody else's", number);
        return;
    }
    j = &stk_core_state(core)->jobs[stk_core_find(core, number)];
    stop = j->state == STK_JOB_STOPPING;
    spec = stk_live_spec(a->cfg.live, e->rec.spec);
    grace = json_object_get(spec, "grace_s");
    stk_request_json(r, 200,
                     json_pack("{s:b,s:o,s:o,s:f}", "checkpoint", stop, "reason",
                               !stop              ? json_null()
                               : j->cancel_wanted ? json_string("the job was cancelled")
                               : j->by_hand       ? json_string("somebody asked for it")
                                            : json_string("its GPUs are needed by another job"),
                               "grace_s",
                               json_is_number(grace) ? json_incref(grace) : json_integer(GRACE_S),
                               "interrupt_rate_per_h", interrupt_rate(j, stk_api_now(a))));
    json_decref(spec);
}
