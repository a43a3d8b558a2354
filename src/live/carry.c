/* SPDX-License-Identifier: Apache-2.0 */
/* carry.c - names in the store follow the tenants and queues of today.
 *
 * A tenant or queue that says what it "was" takes over the jobs with their descriptions, the
 * reservations and the rules that operators added, all of the old name. The store gets the new
 * name, so that "was" may be dropped from the file afterwards. This is done at each start and
 * reload, in one transaction, and changes nothing where the names agree: what a crash leaves undone
 * is done at the next start.
 *
 * Of a job, the core knows the tenant and the queue by their rows in the tables of today, the
 * record in the store by name: where these differ the row was renamed. */
#include <stdlib.h>
#include <string.h>

#include "core/booking.h"
#include "core/state.h"
#include "live/answer.h"
#include "sys/json.h"

/* The row of the reservation's tenant: by name, or as the core has it. STK_NONE: it has none. */
static uint32_t tenant_of(const struct stk_live *l, const json_t *o)
{
    const struct stk_core_config *c = &l->cfg.core;
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_booking *b = stk_booking_find(s, (uint32_t)stk_whole(o, "window"));
    uint32_t row = stk_tenant_find(c->tenants, c->n_tenants, stk_str(o, "tenant"));

    if (row == STK_NONE && b && b->holder_kind == STK_HOLDER_TENANT)
        row = s->book.holder[b->holder].id;
    return row;
}

/* True: the reservation has another name of its tenant now. */
static bool rename_tenant(const struct stk_live *l, json_t *o)
{
    uint32_t row = *stk_str(o, "tenant") ? tenant_of(l, o) : STK_NONE;
    const char *name = row == STK_NONE ? "" : stk_live_tenant_name(l, row);

    if (!*name || strcmp(name, stk_str(o, "tenant")) == 0)
        return false;
    (void)json_object_set_new(o, "tenant", json_string(name));
    return true;
}

/* True: the core has no window of the reservation any more, and the reservation says so. One that
 * repeats tries its next time. */
static bool note_lost(const struct stk_live *l, json_t *o)
{
    const json_int_t window = stk_whole(o, "window");

    if (window == 0 || stk_booking_find(stk_core_state(l->core), (uint32_t)window))
        return false;
    (void)json_object_set_new(o, "window", json_integer(0));
    (void)json_object_set_new(o, "note",
                              json_string("its GPUs are not set aside any more: the configuration "
                                          "lost its tenant, or has a policy without reservations; "
                                          "remove it, and make it again"));
    return true;
}

static int carry_reservations(struct stk_live *l, struct stk_err *err)
{
    bool changed = false;

    for (size_t i = 0; i < json_array_size(l->reservations); i++) {
        json_t *o = json_array_get(l->reservations, i);

        if (json_object_get(o, "over"))
            continue;
        changed |= rename_tenant(l, o);
        changed |= note_lost(l, o);
    }
    return changed ? stk_live_reserve_keep(l, err) : 0;
}

/* ---- jobs ---- */

int stk_live_stale_add(struct stk_live_stale *t, const struct stk_record *rec)
{
    struct stk_live_old_names *row;

    if (t->n == t->cap) {
        uint32_t cap = t->cap ? 2 * t->cap : 64;
        struct stk_live_old_names *more = realloc(t->rows, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        t->rows = more;
        t->cap = cap;
    }
    row = &t->rows[t->n];
    *row = (struct stk_live_old_names){rec->number, strdup(rec->tenant), strdup(rec->queue)};
    t->n++;
    return row->tenant && row->queue ? 0 : -ENOMEM;
}

void stk_live_stale_done(struct stk_live_stale *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        free(t->rows[i].tenant);
        free(t->rows[i].queue);
    }
    free(t->rows);
    *t = (struct stk_live_stale){0};
}

/* True: the member was the old name. */
static bool rename_member(json_t *o, const char *key, const char *old, const char *now)
{
    if (!*old || !*now || strcmp(old, now) == 0 || strcmp(stk_str(o, key), old) != 0)
        return false;
    (void)json_object_set_new(o, key, json_string(now));
    return true;
}

static bool is_pool(const struct stk_live *l, const char *name)
{
    for (uint32_t i = 0; i < l->cfg.core.n_pools; i++)
        if (strcmp(l->cfg.pools[i], name) == 0)
            return true;
    return false;
}

/* An account, a QOS or a pool may mean a tenant or a queue of that name: from now on the
 * description says which. Jobs that Slurm sent are named there. */
static bool rename_meant(const struct stk_live *l, json_t *spec, const struct stk_live_old_names *o,
                         const struct stk_record *now)
{
    bool changed = false;

    if (json_object_get(spec, "imported"))
        return false;
    if (!json_object_get(spec, "tenant") && *o->tenant && strcmp(o->tenant, now->tenant) != 0 &&
        strcmp(stk_str(spec, "account"), o->tenant) == 0)
        changed = json_object_set_new(spec, "tenant", json_string(now->tenant)) == 0;
    if (json_object_get(spec, "queue") || !*o->queue || strcmp(o->queue, now->queue) == 0)
        return changed;
    if (strcmp(stk_str(spec, "pool"), o->queue) == 0 && !is_pool(l, o->queue))
        (void)json_object_del(spec, "pool");
    else if (strcmp(stk_str(spec, "qos"), o->queue) != 0)
        return changed;
    return json_object_set_new(spec, "queue", json_string(now->queue)) == 0 || changed;
}

/* True: the description has other names now. */
static bool rename_spec(const struct stk_live *l, json_t *spec, const struct stk_live_old_names *o,
                        const struct stk_record *now)
{
    bool changed = rename_meant(l, spec, o, now);

    changed |= rename_member(spec, "tenant", o->tenant, now->tenant);
    changed |= rename_member(spec, "queue", o->queue, now->queue);
    changed |= rename_member(json_object_get(spec, "imported"), "tenant", o->tenant, now->tenant);
    return changed;
}

/* The description with the names of today; *io_spec stays where it names nothing that was renamed.
 */
static int carry_spec(struct stk_live *l, const struct stk_live_old_names *o,
                      const struct stk_record *now, int64_t *io_spec, struct stk_err *err)
{
    json_t *spec = stk_live_spec(l, *io_spec);
    char *last = NULL;
    int rc = 0;

    if (spec && rename_spec(l, spec, o, now))
        rc = stk_live_put_spec(l, spec, &last, io_spec, err);
    free(last);
    json_decref(spec);
    return rc;
}

/* Neighbours that share a description share the new one, too. */
static int carry_jobs(struct stk_live *l, const struct stk_live_stale *t, struct stk_err *err)
{
    int64_t old = 0, now = 0;
    int rc = t->n > 0 ? stk_live_begin(l, err) : 0;

    for (uint32_t i = 0; i < t->n && rc == 0; i++) {
        struct stk_entry *e = stk_entries_find(&l->entries, t->rows[i].number);

        if (!e)
            continue;
        if (i == 0 || e->rec.spec != old) {
            old = now = e->rec.spec;
            rc = carry_spec(l, &t->rows[i], &e->rec, &now, err);
        }
        rc = rc < 0 ? rc : stk_store_job_respec(l->cfg.store, &e->rec, now, err);
        e->rec.spec = now;
    }
    return rc;
}

/* ---- rules ---- */

/* True: a change of the rule names a tenant or a queue by a new name now. */
static bool rename_rule(const struct stk_live *l, const json_t *rule)
{
    const struct stk_core_config *c = &l->cfg.core;
    json_t *o;
    size_t i;
    bool changed = false;

    json_array_foreach(json_object_get(rule, "then"), i, o)
    {
        const char *tenant = stk_str(o, "tenant"), *queue = stk_str(o, "queue");
        uint32_t t = stk_tenant_find(c->tenants, c->n_tenants, tenant),
                 q = stk_queue_find(c->queues, c->n_queues, queue);

        changed |= rename_member(o, "tenant", tenant, stk_live_tenant_name(l, t));
        changed |= rename_member(o, "queue", queue, stk_live_queue_name(l, q));
    }
    return changed;
}

static int carry_rules(struct stk_live *l, struct stk_err *err)
{
    json_t *list = stk_live_kept(l, STK_LIVE_RULES), *rule;
    size_t i;
    bool changed = false;
    int rc = 0;

    json_array_foreach(list, i, rule)
    {
        changed |= rename_rule(l, rule);
    }
    if (changed)
        rc = stk_live_keep(l, STK_LIVE_RULES, list, err);
    json_decref(list);
    return rc;
}

/* What was written becomes durable, or was not written. */
static int settle(struct stk_live *l, int rc, struct stk_err *err)
{
    rc = rc < 0 ? rc : stk_live_commit(l, err);
    if (rc < 0 && l->in_txn) {
        stk_store_rollback(l->cfg.store);
        l->in_txn = false;
    }
    return rc;
}

int stk_live_carry(struct stk_live *l, const struct stk_live_stale *t, struct stk_err *err)
{
    int rc = carry_jobs(l, t, err);

    rc = rc < 0 ? rc : carry_reservations(l, err);
    rc = rc < 0 ? rc : carry_rules(l, err);
    return settle(l, rc, err);
}

int stk_live_carry_sets(struct stk_live *l, struct stk_err *err)
{
    const struct stk_core_config *c = &l->cfg.core;
    bool renamed = false;
    int rc;

    for (uint32_t i = 0; i < c->n_tenants; i++)
        renamed |= c->tenants[i].was != NULL;
    for (uint32_t i = 0; i < c->n_queues; i++)
        renamed |= c->queues[i].was != NULL;
    rc = renamed ? stk_live_rules_keep_sets(l, err) : 0;
    return settle(l, rc, err);
}
