/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - descriptions become jobs. Every description of a request is checked before the first
 * job is made, so that a request is taken whole or not at all.
 *
 * One description may make many jobs: an array, or the workers of a batch. They share one stored
 * description; so do neighbours in a request that are word for word the same.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "core/state.h"
#include "live/answer.h"
#include "store/sha.h"

#define MAX_JOBS_PER_REQUEST 200000

const struct stk_user *stk_live_user(struct stk_live *l, uint32_t uid)
{
    const struct stk_user *u;

    (void)stk_live_users_get(&l->users, uid, l->now, &u);
    return u;
}

/* Jobs are run as their users, with their groups: where we could, nobody is taken for another. */
static int know(struct stk_live *l, uint32_t uid, struct stk_err *err)
{
    const struct stk_user *u;
    int rc = geteuid() == 0 ? stk_live_users_get(&l->users, uid, l->now, &u) : 0;

    return rc < 0 ? stk_err_set(err, -EAGAIN,
                                "who user %u is cannot be looked up on this machine%s; try again, "
                                "or ask an operator (getent passwd %u)",
                                uid, rc == -ENOENT ? ": there is no such user" : "", uid)
                  : 0;
}

/* What the server knows better than the user: who, and where from. */
static int sign(json_t *job, const struct stk_user *u)
{
    json_t *groups = json_array();

    for (uint32_t i = 0; groups && i < u->n_groups; i++)
        (void)json_array_append_new(groups, json_integer(u->groups[i]));
    if (json_object_set_new(job, "uid", json_integer(u->uid)) < 0 ||
        json_object_set_new(job, "gid", json_integer(u->gid)) < 0 ||
        json_object_set_new(job, "groups", groups) < 0 ||
        json_object_set_new(job, "user", json_string(u->name)) < 0 ||
        json_object_set_new(job, "home", json_string(u->home)) < 0 ||
        json_object_set_new(job, "shell", json_string(u->shell)) < 0)
        return -ENOMEM;
    if (!json_object_get(job, "workdir") &&
        json_object_set_new(job, "workdir", json_string(u->home)) < 0)
        return -ENOMEM;
    return 0;
}

/* Part of a GPU by memory: as much of it as of its memory, rounded up. */
static int by_memory(const struct stk_live *l, struct stk_demand *d, struct stk_err *err)
{
    uint64_t all = stk_core_state(l->core)->nodes[0].gpu_mem_mib;

    if (all == 0)
        return stk_err_set(err, -EINVAL,
                           "gpu_mem_mib: the memory of the GPUs here is not known; say which part "
                           "of a GPU, such as gpus 0.5");
    if (d->gpu_mem_mib > all)
        return stk_err_set(err, -EINVAL,
                           "gpu_mem_mib: a GPU here has %llu MiB of memory, %u are asked for",
                           (unsigned long long)all, d->gpu_mem_mib);
    d->gpu_milli = (uint16_t)((d->gpu_mem_mib * UINT64_C(1000) + all - 1) / all);
    d->gpu_milli = d->gpu_milli > 999 ? 999 : d->gpu_milli;
    return 0;
}

/* What a part of a GPU leaves open. */
int stk_live_resolve_part(const struct stk_live *l, struct stk_spec *s, struct stk_err *err)
{
    struct stk_demand *d = &s->job.demand;

    if (s->by_memory && by_memory(l, d, err) < 0)
        return -EINVAL;
    if (d->gpu_milli && !d->mig && !s->share_said)
        d->share = (uint8_t)l->cfg.share;
    if (d->share == STK_SHARE_MPS && l->cfg.no_mps)
        return stk_err_set(err, -EINVAL, "share: there is no MPS here: %s", l->cfg.no_mps);
    if (d->share == STK_SHARE_MPS && d->tasks > 1 && s->launch_once)
        return stk_err_set(
            err, -EINVAL,
            "share: one process cannot use several GPUs by MPS; say launch tasks, or "
            "share none");
    if (d->share == STK_SHARE_MPS) /* an MPS server serves one user */
        d->share_with = s->job.terms.user;
    if (d->gpu_milli && !d->mig && !d->gpu_mem_mib && d->share != STK_SHARE_TIME)
        d->gpu_mem_mib = (uint32_t)((uint64_t)stk_core_state(l->core)->nodes[0].gpu_mem_mib *
                                    d->gpu_milli / 1000);
    return 0;
}

/* Whatever could be wrong with the dependencies of any job of the draft must be found here: once
 * jobs are being made, an error would undo the whole turn. */
static int check_deps(struct stk_live *l, const struct stk_draft *d, struct stk_err *err)
{
    const struct stk_spec *s = &d->spec;
    int rc = stk_live_find_deps(l, s, 0, &l->deps, err);

    for (uint32_t i = 0; d->each && i < s->n_indices && rc == 0; i++)
        rc = stk_live_find_deps(l, s, s->indices[i], &l->deps, err);
    if (rc == 0 && s->singleton)
        rc = stk_live_effort(l, l->entries.n, err); /* for the search for its name */
    return rc;
}

/* Groups are each user's own. */
static uint32_t group_number(uint32_t uid, const char *name)
{
    uint64_t h = stk_hash_mix(0, uid);

    for (; *name; name++)
        h = stk_hash_mix(h, (unsigned char)*name);
    return (uint32_t)h ? (uint32_t)h : 1;
}

int stk_live_read(struct stk_live *l, uint32_t uid, const json_t *checked, struct stk_spec *ret,
                  struct stk_err *err)
{
    int rc = stk_spec_parse(checked, ret, err);

    if (rc < 0)
        return rc;
    ret->job.terms.user = uid + 1;
    if (ret->keep_up)
        ret->job.terms.group = group_number(uid, ret->keep_up);
    if (ret->reservation) {
        ret->job.terms.reservation = stk_live_reservation_id(l, ret->reservation);
        if (!ret->job.terms.reservation)
            return stk_err_set(err, -EINVAL,
                               "reservation: there is no \"%.60s\" (stoker reserve list)",
                               ret->reservation);
    }
    rc = stk_live_tenant(l, stk_live_user(l, uid), ret, err);
    rc = rc < 0 ? rc : stk_live_resolve(l, ret, err);
    rc = rc < 0 ? rc : stk_live_resolve_part(l, ret, err);
    if (rc == 0)
        stk_live_expect_run(l, uid, ret);
    return rc;
}

/* A limit that its queue gave it is kept by its supervisor, as one of its own. */
static int limit_time(struct stk_draft *d, struct stk_err *err)
{
    if (d->spec.time_limit == 0 || json_integer_value(json_object_get(d->json, "time_limit_s")) > 0)
        return 0;
    return json_object_set_new(d->json, "time_limit_s",
                               json_integer(d->spec.time_limit / STK_SECOND)) < 0
               ? stk_err_set(err, -ENOMEM, "out of memory")
               : 0;
}

static int draft_one(struct stk_live *l, const struct stk_who *who, struct stk_draft *d,
                     struct stk_err *err)
{
    int rc = stk_spec_check(d->json, err);

    if (rc == 0 && l->cfg.can_run)
        rc = l->cfg.can_run(l->cfg.ctx, d->json, err);
    rc = rc < 0 ? rc : stk_live_read(l, who->uid, d->json, &d->spec, err);
    if (rc < 0)
        return rc;
    d->each = false;
    for (uint32_t i = 0; i < d->spec.n_deps; i++)
        d->each |= d->spec.deps[i].corresponding;
    if (d->spec.scheduled) { /* what it makes has them */
        d->spec.n_indices = d->spec.n_items = d->spec.array_limit = 0;
        d->spec.job.held = true;
    }
    rc = d->spec.scheduled ? stk_live_cron_room(l, err) : 0;
    rc = rc < 0 ? rc : check_deps(l, d, err);
    rc = rc < 0 ? rc : stk_core_check(l->core, &d->spec.job, err);
    rc = rc < 0 ? rc : limit_time(d, err);
    if (rc == 0 && sign(d->json, stk_live_user(l, who->uid)) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    d->n = d->spec.n_indices > 0 ? d->spec.n_indices : 1;
    if (d->spec.n_items > 0) { /* no more workers than items */
        d->n = d->spec.workers < d->spec.n_items ? d->spec.workers : d->spec.n_items;
        d->spec.job.retry[STK_RETRY_ERROR] = 0; /* items are done again, not workers: items.c */
    }
    return rc;
}

/* The newest earlier job of the same name and user, for singleton jobs; 0: none. One is enough,
 * because each of them waits for the one before. */
static stk_job_number same_name(const struct stk_live *l, uint32_t uid, const char *name)
{
    const struct stk_entries *t = &l->entries;

    for (uint32_t i = t->n; i-- > 0;) {
        const struct stk_entry *e = t->slots[i].entry;

        if (e && e->rec.uid == uid && strcmp(e->rec.name, name) == 0)
            return e->number;
    }
    return 0;
}

struct making { /* jobs being made from one draft */
    struct stk_live *l;
    const struct stk_who *who;
    struct stk_draft *d;
    int64_t spec_id;
    stk_job_number first;
    stk_job_number after; /* singleton: the job of this name before it; 0: none */
};

static int make_one(struct making *m, uint32_t i, struct stk_err *err)
{
    struct stk_live *l = m->l;
    const struct stk_spec *s = &m->d->spec;
    struct stk_job_spec job = s->job;
    stk_job_number number = stk_core_state(l->core)->next_number;
    struct stk_live_deps *deps = &l->deps;
    struct stk_record rec = {.number = number,
                             .uid = m->who->uid,
                             .gid = stk_live_user(l, m->who->uid)->gid,
                             .user = stk_live_user(l, m->who->uid)->name,
                             .name = s->name,
                             .kind = job.kind,
                             .array = m->d->n > 1 || s->n_indices > 0 ? m->first : 0,
                             .array_index = s->n_indices > 0 ? s->indices[i] : i,
                             .submitted = l->now,
                             .gpus = job.demand.gpus * job.demand.tasks,
                             .gpu_milli = job.demand.gpu_milli,
                             .tasks = job.demand.tasks,
                             .spec = m->spec_id,
                             .queue = stk_live_queue_name(l, job.terms.queue),
                             .tenant = stk_live_tenant_name(l, job.tenant),
                             .comment = json_string_value(json_object_get(m->d->json, "comment"))};
    struct stk_event ev = {.at = l->now, .type = STK_EV_SUBMIT, .u.spec = &job};
    struct stk_live_logs logs;
    uint32_t shared; /* dependencies of all jobs of the draft */
    int rc = m->d->each ? stk_live_find_deps(l, s, rec.array_index, deps, err) : 0;

    if (rc < 0)
        return rc;
    stk_live_renew_deps(l, deps);
    shared = deps->n;
    if (s->array_limit > 0 && i >= s->array_limit && deps->n < STK_MAX_DEPS &&
        stk_core_find(l->core, number - s->array_limit) != STK_NONE)
        deps->deps[deps->n++] =
            (struct stk_dep){.on = number - s->array_limit, .type = STK_DEP_AFTERANY};
    if (m->after && deps->n < STK_MAX_DEPS && stk_core_find(l->core, m->after) != STK_NONE)
        deps->deps[deps->n++] = (struct stk_dep){.on = m->after, .type = STK_DEP_AFTERANY};
    job.deps = deps->deps;
    job.n_deps = deps->n;
    if (!s->scheduled)
        stk_live_name_logs(&rec, m->d->json, l->cfg.nodes[0].name, &logs);
    job.array = rec.array;
    job.array_index = rec.array_index;
    ev.job = stk_core_next_job(l->core);
    l->submitting = &rec;
    rc = stk_loop_apply(l->loop, &ev, err);
    l->submitting = NULL;
    deps->n = shared;
    return rc;
}

static int put_items(struct stk_live *l, stk_job_number job, const json_t *items,
                     struct stk_err *err)
{
    size_t n = json_array_size(items);
    const char **texts = calloc(n, sizeof(*texts));
    int rc;

    if (!texts)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        texts[i] = json_string_value(json_array_get(items, i));
    rc = stk_store_items_put(l->cfg.store, job, texts, (uint32_t)n, err);
    free(texts);
    return rc;
}

/* Every job of one draft. */
static int make_all(struct stk_live *l, const struct stk_who *who, struct stk_draft *d,
                    int64_t spec_id, struct stk_err *err)
{
    struct making m = {.l = l,
                       .who = who,
                       .d = d,
                       .spec_id = spec_id,
                       .first = stk_core_state(l->core)->next_number};
    int rc = stk_live_find_deps(l, &d->spec, 0, &l->deps, err);

    if (d->spec.singleton)
        m.after = same_name(l, who->uid, d->spec.name);
    for (uint32_t i = 0; i < d->n && rc == 0; i++)
        rc = make_one(&m, i, err);
    if (rc == 0 && d->spec.scheduled)
        rc = stk_live_cron_add(l, m.first, &d->spec.cron, err);
    if (rc == 0 && d->spec.n_items > 0)
        rc = put_items(l, m.first, json_object_get(d->json, "items"), err);
    return rc;
}

/* The id of the stored description; that of the one before when they are the same. */
static int store_spec(struct stk_live *l, const json_t *json, char **last, int64_t *id,
                      struct stk_err *err)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    int rc = 0;

    if (!text)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (!*last || strcmp(*last, text) != 0)
        rc = stk_store_spec_put(l->cfg.store, text, strlen(text), id, err);
    free(*last);
    *last = text;
    return rc;
}

static int make_jobs(struct stk_live *l, struct stk_live_request *r, struct stk_draft *drafts,
                     size_t n, struct stk_err *err)
{
    json_t *ids = n > 1 ? json_array() : NULL;
    char *last = NULL;
    int64_t spec_id = 0;
    stk_job_number first = stk_core_state(l->core)->next_number;
    int rc = stk_live_begin(l, err);

    for (size_t i = 0; i < n && rc == 0; i++) {
        stk_job_number id = stk_core_state(l->core)->next_number;

        if (ids)
            (void)json_array_append_new(ids, json_integer(id));
        rc = store_spec(l, drafts[i].json, &last, &spec_id, err);
        rc = rc < 0 ? rc : make_all(l, &r->who, &drafts[i], spec_id, err);
    }
    free(last);
    r->status = 201;
    r->answer = json_pack("{s:I, s:I}", "id", (json_int_t)first, "count",
                          (json_int_t)(stk_core_state(l->core)->next_number - first));
    if (ids)
        (void)json_object_set_new(r->answer, "ids", ids);
    return rc;
}

static int check_room(const struct stk_live *l, const struct stk_who *who, uint64_t more,
                      struct stk_err *err)
{
    uint64_t own = more;

    if (l->entries.live + more > l->cfg.limits.max_jobs)
        return stk_err_set(err, -EDQUOT, "the queue is full: %u jobs have not ended, at most %u",
                           l->entries.live, l->cfg.limits.max_jobs);
    if (l->entries.live + more <= l->cfg.limits.max_jobs_per_user)
        return 0;
    for (const struct stk_entry *e = stk_entries_next(&l->entries, 0); e;
         e = stk_entries_next(&l->entries, e->number))
        own += e->rec.uid == who->uid;
    if (own > l->cfg.limits.max_jobs_per_user)
        return stk_err_set(err, -EDQUOT,
                           "user %s may have at most %u jobs that have not ended (%llu with these)",
                           who->user, l->cfg.limits.max_jobs_per_user, (unsigned long long)own);
    return 0;
}

static int check_all(struct stk_live *l, struct stk_live_request *r, struct stk_draft *drafts,
                     size_t n)
{
    struct stk_err err = {{0}};
    uint64_t jobs = 0;
    int rc;

    for (size_t i = 0; i < n; i++) {
        drafts[i].json = json_array_get(r->body, i);
        rc = know(l, r->who.uid, &err);
        rc = rc < 0 ? rc : draft_one(l, &r->who, &drafts[i], &err);
        if (rc == 0)
            rc = stk_live_limit_allowed(l, &r->who,
                                        &(struct stk_live_last){.pool = drafts[i].spec.pool,
                                                                .is = drafts[i].spec.time_limit},
                                        &err);
        if (rc < 0 && n > 1) {
            struct stk_err more;

            (void)stk_err_set(&more, rc, "job %zu of %zu: %.200s", i + 1, n, err.text);
            err = more;
        }
        if (rc < 0)
            return stk_answer_error(r, rc, &err);
        jobs += drafts[i].n;
        if (jobs > MAX_JOBS_PER_REQUEST)
            return stk_answer_refuse(r, 413, "too_many",
                                     "one request may make at most 200000 jobs");
    }
    rc = check_room(l, &r->who, jobs, &err);
    return rc < 0 ? stk_answer_refuse(r, 429, "queue_full", err.text) : 0;
}

int stk_live_submit_made(struct stk_live *l, struct stk_live_request *r,
                         const struct stk_who *owner, const char *key, json_t *take_value,
                         struct stk_err *err)
{
    struct stk_draft d = {.json = r->body};
    struct stk_err why = {{0}};
    char *last = NULL;
    int64_t id = 0;
    int rc = r->kind == STK_REQ_ADOPT ? 0 : know(l, owner->uid, &why);

    rc = rc < 0 ? rc : draft_one(l, owner, &d, &why);
    if (rc == 0 && check_room(l, owner, d.n, &why) < 0)
        rc = stk_answer_refuse(r, 429, "queue_full", why.text);
    else if (rc < 0)
        rc = stk_answer_error(r, rc, &why);
    if (rc != 0)
        json_decref(take_value);
    else if (json_object_set_new(r->body, key, take_value) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc != 0 ? rc : stk_live_begin(l, err);
    rc = rc != 0 ? rc : store_spec(l, r->body, &last, &id, err);
    rc = rc != 0 ? rc : make_all(l, owner, &d, id, err);
    free(last);
    stk_spec_done(&d.spec);
    return rc;
}

/* A key that was used before gets the same answer again. > 0: answered. */
static int check_key(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_once use;
    char *text;
    int rc;

    if (!r->key)
        return 0;
    text = json_dumps(r->body, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_sha256(text, strlen(text), r->hash);
    free(text);
    rc = stk_store_key_get(l->cfg.store, r->who.uid, r->key, l->now, &use, err);
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

static int keep_key(struct stk_live *l, const struct stk_live_request *r, stk_job_number first,
                    struct stk_err *err)
{
    struct stk_once use = {
        .first = first, .count = stk_core_state(l->core)->next_number - first, .at = l->now};

    memcpy(use.body, r->hash, sizeof(use.body));
    return stk_store_key_put(l->cfg.store, r->who.uid, r->key, &use, err);
}

int stk_live_do_submit(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    size_t n = json_array_size(r->body);
    stk_job_number first = stk_core_state(l->core)->next_number;
    struct stk_draft *drafts;
    json_t *deadlines = NULL;
    int rc;

    if (n == 0 || n > MAX_JOBS_PER_REQUEST) {
        (void)stk_answer_refuse(r, 400, "bad_request",
                                "a request has 1 to 200000 job descriptions");
        return 0;
    }
    l->effort = 0;
    rc = check_key(l, r, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    drafts = calloc(n, sizeof(*drafts));
    if (!drafts)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = check_all(l, r, drafts, n);
    l->effort = 0; /* the same again, for what is made */
    if (rc == 0)
        rc = stk_live_answer_deadlines(l, r, drafts, n, &deadlines);
    if (rc == 0 && r->dry_run)
        rc = stk_live_answer_dry(l, r, &drafts[0]);
    else if (rc == 0) {
        l->making = true;
        rc = make_jobs(l, r, drafts, n, err);
        l->making = false;
    }
    if (rc == 0 && deadlines && r->answer)
        (void)json_object_set(r->answer, n == 1 ? "deadline" : "deadlines",
                              n == 1 ? json_array_get(deadlines, 0) : deadlines);
    json_decref(deadlines);
    if (rc == 0 && r->key && !r->dry_run)
        rc = keep_key(l, r, first, err);
    for (size_t i = 0; i < n; i++)
        stk_spec_done(&drafts[i].spec);
    free(drafts);
    return rc < 0 ? rc : 0;
}
