/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - a description is read and checked: the draft of its jobs. make.c makes them, take.c
 * goes through the descriptions of a request. */
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "core/state.h"
#include "live/answer.h"

const struct stk_user *stk_live_user(struct stk_live *l, uint32_t uid)
{
    const struct stk_user *u;

    (void)stk_live_users_get(&l->users, uid, l->now, &u);
    return u;
}

/* Jobs are run as their users, with their groups: where we could, nobody is taken for another. */
int stk_live_know(struct stk_live *l, uint32_t uid, struct stk_err *err)
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
static int sign(json_t *job, const struct stk_user *u, bool plain)
{
    json_t *groups = json_array();

    if (plain && json_object_set_new(job, "plain", json_true()) < 0) {
        json_decref(groups);
        return -ENOMEM;
    }

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

/* Memory of the GPUs that it may use: of those that have enough the smallest, so that its part is
 * large enough on each; else the largest. 0: not known. */
static uint64_t find_gpu_memory(const struct stk_live *l, const struct stk_demand *d)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint64_t least = UINT64_MAX, most = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        uint64_t mib = s->nodes[i].gpu_mem_mib;

        if (!((d->gpu_types >> s->nodes[i].gpu_type) & 1) || mib == 0)
            continue;
        most = mib > most ? mib : most;
        least = mib >= d->gpu_mem_mib && mib < least ? mib : least;
    }
    return least != UINT64_MAX ? least : most;
}

/* Part of a GPU by memory: as much of it as of its memory, rounded up. */
static int by_memory(const struct stk_live *l, struct stk_demand *d, struct stk_err *err)
{
    uint64_t all = find_gpu_memory(l, d);

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
        d->gpu_mem_mib = (uint32_t)(find_gpu_memory(l, d) * d->gpu_milli / 1000);
    return 0;
}

/* Whatever could be wrong with the dependencies of any job of the draft must be found here: once
 * jobs are being made, an error would undo the whole turn. */
static int check_deps(struct stk_live *l, const struct stk_draft *d, struct stk_err *err)
{
    const struct stk_spec *s = &d->spec;
    int rc;

    l->effort_one = 0;
    rc = stk_live_find_deps(l, s, 0, &l->deps, err);
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
    if (ret->job.begin > 0)
        ret->job.begin = stk_live_named(l, ret->job.begin);
    if (ret->job.terms.deadline > 0)
        ret->job.terms.deadline = stk_live_named(l, ret->job.terms.deadline);
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

/* What a description says is checked once, before the first job of its request is made. */
static int check_words(struct stk_live *l, const struct stk_draft *d, struct stk_err *err)
{
    int rc = l->making ? 0 : stk_spec_check(d->json, err);

    return rc == 0 && !l->making && l->cfg.can_run ? l->cfg.can_run(l->cfg.ctx, d->json, err) : rc;
}

int stk_live_draft(struct stk_live *l, const struct stk_who *owner, const struct stk_who *who,
                   struct stk_draft *d, struct stk_err *err)
{
    int rc = check_words(l, d, err);

    if (rc == 0 && !d->runs_already)
        rc = stk_live_share_cpus(l, d->json, err);
    rc = rc < 0 ? rc : stk_live_read(l, owner->uid, d->json, &d->spec, err);
    if (rc == 0 && l->making) /* it was allowed, and is not refused now */
        d->spec.job.terms.plain = !stk_live_rights(l, who, owner->uid, &d->spec.job).preempt;
    else if (rc == 0)
        rc = stk_live_allow(l, who, owner->uid, &d->spec.job, err);
    if (rc < 0)
        return rc;
    d->each = false;
    for (uint32_t i = 0; i < d->spec.n_deps; i++)
        d->each |= d->spec.deps[i].corresponding;
    d->makes = d->spec.scheduled ? d->spec.n_indices : 0;
    if (d->spec.scheduled) { /* what it makes has them */
        d->spec.n_indices = d->spec.n_items = d->spec.array_limit = 0;
        d->spec.job.held = true;
    }
    if (!l->making) {
        rc = d->spec.scheduled ? stk_live_cron_room(l, who, 1, err) : 0;
        rc = rc < 0 ? rc : check_deps(l, d, err);
        rc = rc < 0 ? rc : stk_core_check(l->core, &d->spec.job, err);
    }
    rc = rc < 0 ? rc : limit_time(d, err);
    if (rc == 0 && sign(d->json, stk_live_user(l, owner->uid), d->spec.job.terms.plain) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    d->n = d->spec.n_indices > 0 ? d->spec.n_indices : 1;
    if (d->spec.n_items > 0) { /* no more workers than items */
        d->n = d->spec.workers < d->spec.n_items ? d->spec.workers : d->spec.n_items;
        d->spec.job.retry[STK_RETRY_ERROR] = 0; /* items are done again, not workers: items.c */
    }
    return rc;
}

int stk_live_submit_made(struct stk_live *l, struct stk_live_request *r,
                         const struct stk_who *owner, const char *key, json_t *take_value,
                         struct stk_err *err)
{
    struct stk_draft d = {.json = r->body, .runs_already = r->kind == STK_REQ_ADOPT};
    struct stk_who who = r->kind == STK_REQ_ADOPT ? r->who : stk_live_owner(l, owner->uid);
    struct stk_err why = {{0}};
    char *last = NULL;
    int64_t id = 0;
    int rc = r->kind == STK_REQ_ADOPT ? 0 : stk_live_know(l, owner->uid, &why);

    rc = rc < 0 ? rc : stk_live_draft(l, owner, &who, &d, &why);
    if (rc == 0 && stk_live_room(l, owner, d.n, &why) < 0)
        rc = stk_answer_refuse(r, 429, "queue_full", why.text);
    else if (rc < 0)
        rc = stk_answer_error(r, rc, &why);
    else if (r->kind == STK_REQ_ADOPT)
        rc = stk_live_adopt_limits(l, r, &d.spec.job, err);
    if (rc != 0)
        json_decref(take_value);
    else if (json_object_set_new(r->body, key, take_value) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc != 0 ? rc : stk_live_begin(l, err);
    rc = rc != 0 ? rc : stk_live_put_spec(l, r->body, &last, &id, err);
    rc = rc != 0 ? rc : stk_live_make_all(l, owner, &d, id, err);
    free(last);
    stk_spec_done(&d.spec);
    return rc;
}
