/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - see answer.h.
 *
 * Deadlines: all descriptions of the request are submitted to one fork, in their order, and one
 * forecast is made of that. Of an array the last element is meant. Bounded: of very many jobs only
 * the first are submitted, and of very many descriptions only the first are answered; of the others
 * it is not known.
 */
#include "live/answer.h"

#include <stdlib.h>

#include "core/state.h"
#include "core/try.h"
#include "forecast/deadline.h"

#define MOST_JOBS 1000u     /* that are submitted to the fork */
#define MOST_DEADLINES 100u /* that are answered */

int stk_answer_refuse(struct stk_live_request *r, int status, const char *code, const char *text)
{
    r->status = status;
    r->answer = stk_live_error(code, text);
    return 1;
}

int stk_answer_error(struct stk_live_request *r, int rc, const struct stk_err *err)
{
    if (rc == -EAGAIN)
        return stk_answer_refuse(r, 503, "unknown_user", err->text);
    if (rc == -EPERM)
        return stk_answer_refuse(r, 403, "not_allowed", err->text);
    if (rc == -ENOMEM)
        return stk_answer_refuse(r, 503, "no_memory", err->text);
    return stk_answer_refuse(r, rc == -EBADMSG ? 400 : 422,
                             rc == -EBADMSG ? "bad_job" : "unprocessable", err->text);
}

/* ---- only tried ---- */

static json_t *gpu_list(uint64_t mask)
{
    json_t *list = json_array();

    for (uint32_t i = 0; list && i < STK_MAX_NODE_GPUS; i++)
        if ((mask >> i) & 1)
            (void)json_array_append_new(list, json_integer(i));
    return list;
}

static int answer_scheduled(struct stk_live *l, struct stk_live_request *r,
                            const struct stk_draft *d)
{
    r->status = 200;
    r->answer =
        json_pack("{s:b, s:s, s:b, s:I, s:i}", "dry_run", 1, "answer", "later", "starts_now", 0,
                  "expected_start",
                  (json_int_t)stk_cron_next(&d->spec.cron, &l->zone, stk_live_wall(l) / STK_SECOND),
                  "evicts", 0);
    return r->answer ? 0 : stk_answer_refuse(r, 503, "no_memory", "out of memory");
}

int stk_live_answer_dry(struct stk_live *l, struct stk_live_request *r, struct stk_draft *d)
{
    static const char *const words[] = {"now", "later", "unknown", "never"};
    struct stk_try t;
    struct stk_err err = {{0}};
    int rc;

    if (d->spec.scheduled)
        return answer_scheduled(l, r, d);
    rc = stk_live_find_deps(l, &d->spec, 0, &l->deps, &err);
    d->spec.job.deps = l->deps.deps;
    d->spec.job.n_deps = l->deps.n;
    rc = rc < 0 ? rc : stk_core_try(l->core, &d->spec.job, l->now, &t, &err);
    if (rc < 0)
        return stk_answer_error(r, rc, &err);
    r->status = 200;
    r->answer = json_pack("{s:b, s:s, s:b, s:o, s:I}", "dry_run", 1, "answer", words[t.answer],
                          "starts_now", t.answer == STK_TRY_NOW, "expected_start",
                          t.at > 0 ? json_real((double)t.at / 1e6) : json_null(), "evicts",
                          (json_int_t)t.evicts);
    if (!r->answer)
        return stk_answer_refuse(r, 503, "no_memory", "out of memory");
    if (t.answer == STK_TRY_NOW && t.n_pieces > 0)
        (void)json_object_set_new(r->answer, "gpu_indices", gpu_list(t.pieces[0].mask));
    if (t.answer == STK_TRY_LATER || t.answer == STK_TRY_UNKNOWN)
        (void)json_object_set_new(r->answer, "reason", json_string(stk_reason_name(t.why.code)));
    return 0;
}

/* ---- deadlines ---- */

struct asked { /* about the jobs of a fork */
    size_t draft[MOST_DEADLINES];
    uint32_t slot[MOST_DEADLINES];
    struct stk_expected when[MOST_DEADLINES];
    uint32_t n, jobs;
};

static bool has_deadline(const struct stk_draft *d)
{
    return d->spec.job.terms.deadline != 0 && !d->spec.scheduled;
}

/* Submits what the description makes, as far as there is room. */
static int submit_to(struct stk_live *l, struct stk_core *fork, struct stk_draft *d,
                     struct asked *q, stk_job_id *ret_last, struct stk_err *err)
{
    struct stk_job_spec job = d->spec.job;
    struct stk_event ev = {.at = l->now, .type = STK_EV_SUBMIT, .u.spec = &job};
    int rc = stk_live_find_deps(l, &d->spec, 0, &l->deps, err);

    job.deps = l->deps.deps;
    job.n_deps = l->deps.n;
    for (uint32_t i = 0; i < d->n && q->jobs < MOST_JOBS && rc == 0; i++, q->jobs++) {
        ev.job = stk_core_next_job(fork);
        rc = stk_core_apply(fork, &ev, err);
    }
    *ret_last = ev.job;
    return rc;
}

static int foresee(struct stk_live *l, struct stk_draft *drafts, size_t n, struct asked *q,
                   struct stk_err *err)
{
    struct stk_core *fork = NULL;
    int rc = stk_core_fork(l->core, &fork, err);

    for (size_t i = 0; i < n && q->jobs < MOST_JOBS && rc == 0; i++) {
        stk_job_id last;

        if (drafts[i].spec.scheduled)
            continue;
        rc = submit_to(l, fork, &drafts[i], q, &last, err);
        if (rc < 0 || !has_deadline(&drafts[i]) || q->n == MOST_DEADLINES ||
            stk_core_state(fork)->jobs[last.i].state == STK_JOB_DONE)
            continue;
        q->when[q->n] = (struct stk_expected){.end_p50 = STK_NEVER_TIME, .end_p90 = STK_NEVER_TIME};
        q->draft[q->n] = i;
        q->slot[q->n++] = last.i;
    }
    if (rc == 0 && q->n > 0)
        rc = stk_live_foresee(l, fork, q->slot, q->n, q->when, err);
    stk_core_free(fork);
    return rc;
}

/* > 0: it would not end in time, and is refused for that. */
static int insist(struct stk_live_request *r, const struct stk_draft *d,
                  const struct stk_deadline *when, size_t at, size_t n)
{
    struct stk_err err = {{0}};
    char earliest[64], which[64] = "it";

    if (!d->spec.deadline_required ||
        (when->answer != STK_DEADLINE_INFEASIBLE && when->answer != STK_DEADLINE_LATE))
        return 0;
    if (n > 1)
        (void)snprintf(which, sizeof(which), "job %zu of %zu", at + 1, n);
    stk_live_say_time(when->earliest, earliest, sizeof(earliest));
    (void)stk_err_set(&err, -ERANGE,
                      "%s would not end by its deadline; the earliest that it would keep is %s "
                      "(without deadline_required it is taken all the same)",
                      which, earliest);
    return stk_answer_refuse(r, 409, "deadline", err.text);
}

int stk_live_answer_later(struct stk_live *l, struct stk_live_request *r, const struct stk_draft *d,
                          size_t at, json_t *list)
{
    struct stk_deadline when;

    if (!has_deadline(d)) {
        (void)json_array_append_new(list, json_null());
        return 0;
    }
    when = stk_live_judge_deadline(l, d->spec.job.terms.deadline, l->now, NULL);
    (void)json_array_append_new(list, stk_live_show_deadline(&when));
    return insist(r, d, &when, at, r->jobs.n);
}

int stk_live_answer_deadlines(struct stk_live *l, struct stk_live_request *r,
                              struct stk_draft *drafts, size_t n, json_t **ret)
{
    struct asked q = {.n = 0};
    struct stk_err err = {{0}};
    uint32_t at = 0;
    size_t some = 0;
    int rc = 0;

    while (some < n && !has_deadline(&drafts[some]))
        some++;
    if (some == n)
        return 0;
    rc = foresee(l, drafts, n, &q, &err);
    if (rc < 0)
        return stk_answer_error(r, rc, &err);
    *ret = json_array();
    for (size_t i = 0; i < n && rc == 0; i++) {
        const bool asked = at < q.n && q.draft[at] == i;
        struct stk_deadline when;

        if (!has_deadline(&drafts[i])) {
            (void)json_array_append_new(*ret, json_null());
            continue;
        }
        when = stk_live_judge_deadline(l, drafts[i].spec.job.terms.deadline, l->now,
                                       asked ? &q.when[at] : NULL);
        at += asked;
        (void)json_array_append_new(*ret, stk_live_show_deadline(&when));
        rc = insist(r, &drafts[i], &when, i, r->jobs.n);
    }
    return rc;
}
