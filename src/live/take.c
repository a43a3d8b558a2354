/* SPDX-License-Identifier: Apache-2.0 */
/* take.c - the descriptions of a request become jobs: all of them, or none.
 *
 * A request may have 200,000 descriptions, and the one thread answers no other request while it
 * works on it. So it works in slices of some milliseconds (stk_live_late()); between two slices the
 * loop polls, and requests that only read are answered. A submission is one transaction all the
 * same: nothing else changes until it is done, the jobs made so far are hidden, and when it fails,
 * or the daemon dies, none of them was ever there.
 *
 * Descriptions are gone through up to three times, and parsed each time: parsed they would take too
 * much memory. First for the hash of the request, if it has an idempotency key; then all are
 * checked; then their jobs are made, and nothing is refused any more.
 */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/answer.h"
#include "live/take.h"
#include "store/sha.h"

#define KEPT 1000u                  /* drafts that stay, for what is foreseen of them, */
#define KEPT_BYTES (1u << 20)       /* and the text of all of them */
#define JOB_EDGES 20u               /* dependencies that take as long as a job; */
#define SMALL 2000u                 /* jobs that are made without a slice's end */
#define MAX_EDGES UINT64_C(2000000) /* dependencies of the jobs of one user */

enum phase { HASH, CHECK, FORESEE, MAKE, DONE };

struct stk_taking {
    enum phase phase;
    uint32_t at;                 /* the description at hand */
    struct stk_sha sha;          /* of those before it */
    uint64_t jobs, edges, items; /* that those before it make */
    uint64_t edges_before;       /* dependencies that the user's jobs have already, once counted */
    bool edges_counted;
    uint32_t schedules;     /* that those before it make */
    struct stk_draft *kept; /* the first */
    uint32_t n_kept, cap_kept;
    size_t kept_bytes;
    json_t *later; /* deadlines of the others; null where there is none */
    bool any_later;
    json_t *deadlines;
    struct stk_draft draft; /* its jobs are being made */
    struct stk_making making;
    bool begun; /* it is in use */
    char *last; /* the description that was stored last */
    int64_t spec_id;
    stk_job_number first;
    json_t *ids;
};

static void drop_draft(struct stk_draft *d)
{
    stk_spec_done(&d->spec);
    json_decref(d->json);
    *d = (struct stk_draft){0};
}

void stk_live_taking_free(struct stk_taking *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n_kept; i++)
        drop_draft(&t->kept[i]);
    free(t->kept);
    drop_draft(&t->draft);
    json_decref(t->later);
    json_decref(t->deadlines);
    json_decref(t->ids);
    free(t->last);
    free(t);
}

static int answer_bad_json(struct stk_live_request *r, int rc, const struct stk_err *err)
{
    return rc == -ENOMEM ? stk_answer_refuse(r, 503, "no_memory", err->text)
                         : stk_answer_refuse(r, 400, "bad_request", err->text);
}

/* ---- the hash, and a key that was used before ---- */

static int check_key(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_once use;
    int rc = stk_store_key_get(l->cfg.store, r->who.uid, r->key, l->now, &use, err);

    if (rc == 0 && memcmp(use.body, r->hash, sizeof(use.body)) != 0)
        return stk_answer_refuse(r, 409, "key_reused",
                                 "this idempotency key was used for another request");
    if (rc == 0) {
        r->status = 200;
        r->answer = json_pack("{s:I, s:I, s:b}", "id", (json_int_t)use.first, "count",
                              (json_int_t)use.count, "repeated", 1);
        return 1;
    }
    return rc == -ENOENT ? 0 : rc;
}

/* The hash is that of the list in one form: [a,b,c]. */
static int hash_one(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_taking *t = r->taking;
    struct stk_err why = {{0}};
    json_t *j;
    char *text;
    int rc;

    if (t->at == 0)
        stk_sha_init(&t->sha);
    j = stk_many_get(&r->jobs, t->at, &rc, &why);
    if (!j)
        return answer_bad_json(r, rc, &why);
    text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    json_decref(j);
    if (!text)
        return stk_answer_refuse(r, 503, "no_memory", "out of memory");
    stk_sha_add(&t->sha, t->at == 0 ? "[" : ",", 1);
    stk_sha_add(&t->sha, text, strlen(text));
    free(text);
    if (++t->at < r->jobs.n)
        return 0;
    stk_sha_add(&t->sha, "]", 1);
    stk_sha_end(&t->sha, r->hash);
    t->at = 0;
    t->phase = CHECK;
    return check_key(l, r, err);
}

/* ---- checking ---- */

/* Dependencies of one user's jobs that have not been met. */
static uint64_t edges_of(const struct stk_live *l, uint32_t uid)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint64_t n = 0;

    for (const struct stk_entry *e = stk_entries_next(&l->entries, 0); e;
         e = stk_entries_next(&l->entries, e->number)) {
        const uint32_t slot = e->rec.uid == uid ? stk_core_find(l->core, e->number) : STK_NONE;

        n += slot != STK_NONE ? s->jobs[slot].unmet : 0;
    }
    return n;
}

static int check_edges(const struct stk_live *l, struct stk_live_request *r)
{
    struct stk_taking *t = r->taking;
    struct stk_err err = {{0}};

    if (t->edges == 0 || r->who.role >= STK_ROLE_OPERATOR ||
        t->edges + stk_core_state(l->core)->n_edges <= MAX_EDGES)
        return 0;
    if (!t->edges_counted)
        t->edges_before = edges_of(l, r->who.uid);
    t->edges_counted = true;
    if (t->edges + t->edges_before <= MAX_EDGES)
        return 0;
    (void)stk_err_set(&err, -EDQUOT,
                      "the jobs of user %s may have at most %llu dependencies that are not met, "
                      "together; let them depend on an array, or on fewer jobs",
                      r->who.user, (unsigned long long)MAX_EDGES);
    return stk_answer_refuse(r, 429, "queue_full", err.text);
}

/* Whether one request may make so many jobs. */
static int check_most(struct stk_live_request *r, uint64_t jobs)
{
    const bool trusted = r->who.role >= STK_ROLE_OPERATOR;
    const uint32_t most = trusted ? STK_MAX_JOBS_TRUSTED : STK_MAX_JOBS_USER;
    struct stk_err err = {{0}};

    if (jobs <= most)
        return 0;
    (void)stk_err_set(
        &err, -EFBIG,
        "one request of %s may make at most %u jobs, and this one makes %llu or more; "
        "submit them in several requests",
        trusted ? "an operator" : "a user", most, (unsigned long long)jobs);
    return stk_answer_refuse(r, 413, "too_many", err.text);
}

static int check_room(struct stk_live *l, struct stk_live_request *r, uint64_t jobs)
{
    struct stk_err err = {{0}};
    const int rc = check_most(r, jobs);

    if (rc != 0)
        return rc;
    return stk_live_room(l, &r->who, jobs, &err) < 0
               ? stk_answer_refuse(r, 429, "queue_full", err.text)
               : 0;
}

static int check_draft(struct stk_live *l, struct stk_live_request *r, struct stk_draft *d,
                       struct stk_err *err)
{
    int rc = stk_live_know(l, r->who.uid, err);

    rc = rc < 0 ? rc : stk_live_draft(l, &r->who, &r->who, d, err);
    if (rc == 0 && d->spec.scheduled)
        rc = stk_live_cron_room(l, &r->who, ++r->taking->schedules, err);
    return rc < 0
               ? rc
               : stk_live_limit_allowed(
                     l, &r->who,
                     &(struct stk_live_last){.pool = d->spec.pool, .is = d->spec.time_limit}, err);
}

static int refuse_one(struct stk_live_request *r, int rc, const struct stk_err *err)
{
    struct stk_err which = *err;

    if (r->jobs.n > 1)
        (void)stk_err_set(&which, rc, "job %u of %u: %.200s", r->taking->at + 1, r->jobs.n,
                          err->text);
    return stk_answer_error(r, rc, &which);
}

/* What is foreseen of the first; of the others it is only said whether their time is over. */
static int keep_draft(struct stk_live *l, struct stk_live_request *r, struct stk_draft *d)
{
    struct stk_taking *t = r->taking;
    const size_t bytes = r->jobs.list ? 0 : r->jobs.cuts[t->at].len;
    int rc = 0;

    if (t->at == 0 || (t->n_kept == t->at && t->n_kept < t->cap_kept &&
                       t->kept_bytes + bytes <= KEPT_BYTES && !r->dry_run)) {
        t->kept[t->n_kept++] = *d;
        t->kept_bytes += bytes;
        return 0;
    }
    if (!t->later)
        t->later = json_array();
    rc = stk_live_answer_later(l, r, d, t->at, t->later);
    t->any_later |= d->spec.job.terms.deadline != 0;
    drop_draft(d);
    return rc;
}

static int check_one(struct stk_live *l, struct stk_live_request *r)
{
    struct stk_taking *t = r->taking;
    struct stk_draft d = {0};
    struct stk_err err = {{0}};
    int rc;

    d.json = stk_many_get(&r->jobs, t->at, &rc, &err);
    if (!d.json)
        return answer_bad_json(r, rc, &err);
    rc = check_draft(l, r, &d, &err);
    if (rc < 0) {
        rc = refuse_one(r, rc, &err);
        drop_draft(&d);
        return rc;
    }
    t->jobs += d.n;
    rc = check_most(r, d.makes);
    if (rc != 0) {
        drop_draft(&d);
        return rc;
    }
    t->edges += (uint64_t)d.n * d.spec.n_deps;
    t->items += d.spec.n_items;
    rc = check_room(l, r, t->jobs);
    rc = rc != 0 ? rc : check_edges(l, r);
    if (rc != 0) {
        drop_draft(&d);
        return rc;
    }
    rc = keep_draft(l, r, &d);
    if (++t->at == r->jobs.n && rc == 0) {
        t->at = 0;
        t->phase = FORESEE;
    }
    return rc;
}

/* ---- what is foreseen ---- */

static int foresee(struct stk_live *l, struct stk_live_request *r)
{
    struct stk_taking *t = r->taking;
    int rc;

    l->effort = 0; /* the same again, for what is made */
    t->phase = r->dry_run ? DONE : MAKE;
    if (r->schedule) /* nobody waits for an answer */
        return 0;
    rc = stk_live_answer_deadlines(l, r, t->kept, t->n_kept, &t->deadlines);
    if (rc != 0)
        return rc;
    if (t->any_later && !t->deadlines) {
        t->deadlines = json_array();
        for (uint32_t i = 0; i < t->n_kept; i++)
            (void)json_array_append_new(t->deadlines, json_null());
    }
    if (t->deadlines && t->later)
        (void)json_array_extend(t->deadlines, t->later);
    return r->dry_run ? stk_live_answer_dry(l, r, &t->kept[0]) : 0;
}

/* ---- making ---- */

static int begin_draft(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_taking *t = r->taking;
    int rc;

    if (t->at == 0)
        t->first = stk_core_state(l->core)->next_number;
    if (!t->ids && r->jobs.n > 1)
        t->ids = json_array();
    if (t->ids)
        (void)json_array_append_new(t->ids, json_integer(stk_core_state(l->core)->next_number));
    if (t->at < t->n_kept) {
        t->draft = t->kept[t->at];
        t->kept[t->at] = (struct stk_draft){0};
    } else {
        t->draft.json = stk_many_get(&r->jobs, t->at, &rc, err);
        rc = t->draft.json ? stk_live_draft(l, &r->who, &r->who, &t->draft, err) : rc;
        if (rc < 0)
            return rc;
    }
    rc = stk_live_begin(l, err);
    if (r->schedule)
        (void)json_object_set_new(t->draft.json, "schedule_id", json_integer(r->schedule));
    rc = rc < 0 ? rc : stk_live_put_spec(l, t->draft.json, &t->last, &t->spec_id, err);
    rc = rc < 0 ? rc : stk_live_make_begin(&t->making, l, &r->who, &t->draft, t->spec_id, err);
    t->begun = rc == 0;
    return rc;
}

static int keep_key(struct stk_live *l, const struct stk_live_request *r, struct stk_err *err)
{
    const stk_job_number first = r->taking->first;
    struct stk_once use = {
        .first = first, .count = stk_core_state(l->core)->next_number - first, .at = l->now};

    memcpy(use.body, r->hash, sizeof(use.body));
    return stk_store_key_put(l->cfg.store, r->who.uid, r->key, &use, err);
}

static int answer_made(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_taking *t = r->taking;

    t->phase = DONE;
    r->status = 201;
    r->answer = json_pack("{s:I, s:I}", "id", (json_int_t)t->first, "count",
                          (json_int_t)(stk_core_state(l->core)->next_number - t->first));
    if (t->ids)
        (void)json_object_set(r->answer, "ids", t->ids);
    return r->key ? keep_key(l, r, err) : 0;
}

static int make_some(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_taking *t = r->taking;
    int rc = 0;

    l->making = true;
    if (!t->begun)
        rc = begin_draft(l, r, err);
    rc = rc < 0 ? rc : stk_live_make_next(&t->making, err);
    l->making = false;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    drop_draft(&t->draft);
    t->begun = false;
    return ++t->at < r->jobs.n ? 0 : answer_made(l, r, err);
}

/* ---- */

static int begin(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    int rc = check_room(l, r, r->jobs.n); /* it will not be less */

    if (r->schedule && !stk_entries_find(&l->entries, r->schedule))
        rc = stk_answer_refuse(r, 409, "not_possible", "the schedule was cancelled");
    if (rc != 0)
        return rc;
    r->taking = calloc(1, sizeof(*r->taking));
    if (!r->taking)
        return stk_err_set(err, -ENOMEM, "out of memory");
    r->taking->cap_kept = r->jobs.n < KEPT ? r->jobs.n : KEPT;
    r->taking->kept = calloc(r->taking->cap_kept, sizeof(*r->taking->kept));
    if (!r->taking->kept)
        return stk_err_set(err, -ENOMEM, "out of memory");
    r->taking->phase = r->key ? HASH : CHECK;
    l->effort = 0;
    return 0;
}

static int step(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    switch (r->taking->phase) {
    case HASH:
        return hash_one(l, r, err);
    case CHECK:
        return check_one(l, r);
    case FORESEE:
        return foresee(l, r);
    default:
        return make_some(l, r, err);
    }
}

static void add_deadlines(struct stk_live_request *r)
{
    const struct stk_taking *t = r->taking;

    if (t->deadlines && r->answer && t->phase == DONE)
        (void)json_object_set(r->answer, r->jobs.n == 1 ? "deadline" : "deadlines",
                              r->jobs.n == 1 ? json_array_get(t->deadlines, 0) : t->deadlines);
}

static bool has_written(const struct stk_taking *t)
{
    return t->phase == MAKE && (t->at > 0 || t->begun);
}

/* It may take more than a slice to make its jobs. */
static bool is_large(const struct stk_taking *t)
{
    return JOB_EDGES * t->jobs + t->edges + t->items > SMALL;
}

/* What others have done before it must be durable when they are let in while it goes on; what it
 * does itself is hidden. Where both are in one transaction it must go on: it is small then. */
static int settle(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    const struct stk_taking *t = r->taking;
    const bool now = t->phase == MAKE && is_large(t);

    return r->settled || has_written(t) || !(now || stk_live_late(l)) ? 0
                                                                      : stk_live_settle(l, r, err);
}

int stk_live_do_submit(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    int rc = r->taking ? 0 : begin(l, r, err);

    while (rc == 0 && r->taking->phase != DONE) {
        rc = step(l, r, err);
        if (rc == 0 && r->taking->phase != DONE)
            rc = settle(l, r, err);
        if (rc == 0 && r->taking->phase != DONE && r->settled && stk_live_late(l))
            return 1;
    }
    if (rc == 0)
        add_deadlines(r);
    if (rc >= 0 && r->schedule)
        rc = stk_live_cron_done(l, r, rc == 0 && r->taking ? r->taking->first : 0, err);
    stk_live_taking_free(r->taking);
    r->taking = NULL;
    return rc < 0 ? rc : 0;
}
