/* SPDX-License-Identifier: Apache-2.0 */
/* remedy.c - what would start a job now (core/remedy.h), for jobs that have a description: a change
 * is what "update" would make of it. */
#include "core/remedy.h"
#include "core/state.h"
#include "core/tenant.h"
#include "live/state.h"
#include "model/queue.h"

/* A try copies the state: of a large one there are fewer. */
#define LEAST_FORKS 24u
#define FORKED_JOBS 400000u /* in all tries together; */
#define SLICE_JOBS 100000u  /* in those of a slice */
#define SHAPE_JOBS 8u       /* jobs that cost as much as one more size of job */

struct described {
    struct stk_live *l;
    const struct stk_who *who; /* asks */
    uint32_t uid;              /* its owner */
    json_t *json;
    struct stk_spec spec;
};

static int part(void *ctx, struct stk_job_spec *io)
{
    const struct described *d = ctx;
    struct stk_spec s = d->spec;
    int rc;

    s.job = *io;
    s.by_memory = false;
    rc = stk_live_resolve_part(d->l, &s, NULL);
    *io = s.job;
    return rc;
}

/* The description with another value of this member, as this user's job. */
static int with(const struct described *d, const char *key, const char *value,
                struct stk_job_spec *ret)
{
    json_t *json = json_copy(d->json);
    struct stk_spec s = {0};
    int rc = -ENOMEM;

    if (json && json_object_set_new(json, key, json_string(value)) == 0)
        rc = stk_live_read(d->l, d->uid, json, &s, NULL);
    if (rc == 0)
        *ret = s.job;
    stk_spec_done(&s);
    json_decref(json);
    return rc;
}

static int queue(void *ctx, uint32_t to, struct stk_job_spec *ret)
{
    const struct described *d = ctx;

    return with(d, "queue", stk_core_state(d->l->core)->queues[to].name, ret);
}

static int tenant(void *ctx, uint32_t to, struct stk_job_spec *ret)
{
    const struct described *d = ctx;

    return with(d, "tenant", stk_core_state(d->l->core)->tenants[to].name, ret);
}

static int allow(void *ctx, struct stk_job_spec *io)
{
    const struct described *d = ctx;
    const struct stk_job_spec *is = &d->spec.job;

    if (d->who->role >= STK_ROLE_OPERATOR && io->priority == is->priority && io->tier == is->tier &&
        io->terms.queue == is->terms.queue && io->tenant == is->tenant)
        return 0; /* it stays plain, if it is */
    return stk_live_allow(d->l, d->who, d->uid, io, NULL);
}

/* How many tries take some milliseconds: each copies the state, and decides. */
static uint32_t slice_of(const struct stk_state *s)
{
    uint64_t size = s->n_jobs + 1;

    for (uint32_t i = 0; i < s->n_pools; i++)
        size += (uint64_t)SHAPE_JOBS * s->pools[i].n_shapes;
    return size < SLICE_JOBS ? (uint32_t)(SLICE_JOBS / size) : 1;
}

int stk_live_remedies(struct stk_live *l, const struct stk_who *who, const struct stk_entry *e,
                      struct stk_remedy_tries *tries, struct stk_remedies *ret, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t slot = stk_core_find(l->core, e->number), forks = FORKED_JOBS / (s->n_jobs + 1);
    struct described d = {
        .l = l, .who = who, .uid = e->rec.uid, .json = stk_live_spec(l, e->rec.spec)};
    struct stk_remedy_ask ask = {.job = {slot},
                                 .now = l->now > s->now ? l->now : s->now,
                                 .tries = tries,
                                 .slice = slice_of(s),
                                 .part = part,
                                 .queue = queue,
                                 .tenant = tenant,
                                 .allow = allow,
                                 .ctx = &d};
    int rc = d.json ? stk_live_read(l, d.uid, d.json, &d.spec, err)
                    : stk_err_set(err, -ENOMEM, "out of memory");

    if (slot == STK_NONE)
        rc = stk_err_set(err, -ENOENT, "there is no job %u", e->number);
    if (rc == 0 && !stk_live_may(who, e->rec.uid))
        rc = stk_err_set(err, -EACCES, "job %u belongs to %s", e->number, e->rec.user);
    ask.most_priority = rc < 0 ? 0 : stk_live_rights(l, who, d.uid, &d.spec.job).most;
    ask.spec = &d.spec.job;
    ask.most_forks = forks > STK_REMEDY_FORKS ? STK_REMEDY_FORKS
                     : forks < LEAST_FORKS    ? LEAST_FORKS
                                              : forks;
    rc = rc < 0 ? rc : stk_core_remedies(l->core, &ask, ret, err);
    stk_spec_done(&d.spec);
    json_decref(d.json);
    return rc;
}
