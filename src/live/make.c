/* SPDX-License-Identifier: Apache-2.0 */
/* make.c - the jobs of one draft are made, one after the other: so that the caller may stop between
 * two of them.
 *
 * One description may make many jobs: an array, or the workers of a batch. They share one stored
 * description; so do neighbours in a request that are word for word the same.
 */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/answer.h"

#define ITEMS 500u /* written at a time */

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

static int make_one(struct stk_making *m, uint32_t i, struct stk_err *err)
{
    struct stk_live *l = m->l;
    const struct stk_spec *s = &m->d->spec;
    struct stk_job_spec job = s->job;
    stk_job_number number = stk_core_state(l->core)->next_number;
    struct stk_live_deps *deps = &m->deps;
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

/* The next of its items, some at a time. */
static int put_items(struct stk_making *m, struct stk_err *err)
{
    const json_t *items = json_object_get(m->d->json, "items");
    const uint32_t left = m->d->spec.n_items - m->items, n = left < ITEMS ? left : ITEMS;
    const char *texts[ITEMS];
    int rc;

    for (uint32_t i = 0; i < n; i++)
        texts[i] = json_string_value(json_array_get(items, m->items + i));
    rc = stk_store_items_put(m->l->cfg.store, m->first, m->items, texts, n, err);
    m->items += n;
    return rc;
}

int stk_live_make_begin(struct stk_making *m, struct stk_live *l, const struct stk_who *who,
                        struct stk_draft *d, int64_t spec_id, struct stk_err *err)
{
    int rc;

    *m = (struct stk_making){.l = l,
                             .who = who,
                             .d = d,
                             .spec_id = spec_id,
                             .first = stk_core_state(l->core)->next_number};
    l->effort_one = 0;
    rc = stk_live_find_deps(l, &d->spec, 0, &m->deps, err);
    if (d->spec.singleton)
        m->after = same_name(l, who->uid, d->spec.name);
    return rc;
}

int stk_live_make_next(struct stk_making *m, struct stk_err *err)
{
    const struct stk_spec *s = &m->d->spec;
    int rc;

    if (m->made < m->d->n) {
        rc = make_one(m, m->made, err);
        m->made += rc == 0;
    } else {
        rc = put_items(m, err);
    }
    if (rc < 0 || m->made < m->d->n || m->items < s->n_items)
        return rc < 0 ? rc : 1;
    return s->scheduled ? stk_live_cron_add(m->l, m->first, &s->cron, err) : 0;
}

int stk_live_make_all(struct stk_live *l, const struct stk_who *who, struct stk_draft *d,
                      int64_t spec_id, struct stk_err *err)
{
    struct stk_making *m = malloc(sizeof(*m));
    int rc;

    if (!m)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = stk_live_make_begin(m, l, who, d, spec_id, err);
    while (rc == 0 && (rc = stk_live_make_next(m, err)) > 0)
        rc = 0;
    free(m);
    return rc;
}

int stk_live_put_spec(struct stk_live *l, const json_t *json, char **last, int64_t *id,
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

int stk_live_room(const struct stk_live *l, const struct stk_who *who, uint64_t more,
                  struct stk_err *err)
{
    const uint64_t own = more + stk_entries_of(&l->entries, who->uid);

    if (l->entries.live + more > l->cfg.limits.max_jobs)
        return stk_err_set(err, -EDQUOT, "the queue is full: %u jobs have not ended, at most %u",
                           l->entries.live, l->cfg.limits.max_jobs);
    if (own > l->cfg.limits.max_jobs_per_user && who->role < STK_ROLE_OPERATOR)
        return stk_err_set(
            err, -EDQUOT,
            "user %s may have at most %u jobs that have not ended, and has %u; with these "
            "it would be %llu: submit fewer, or wait until some have ended "
            "(limits.jobs_per_user)",
            who->user, l->cfg.limits.max_jobs_per_user,
            (unsigned)stk_entries_of(&l->entries, who->uid), (unsigned long long)own);
    return 0;
}
