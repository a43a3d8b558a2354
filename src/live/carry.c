/* SPDX-License-Identifier: Apache-2.0 */
/* carry.c - names in the store follow the tenants and queues of today.
 *
 * A tenant or queue that says what it "was" takes over the jobs and reservations of the old name.
 * The store gets the new name, so that "was" may be dropped from the file afterwards. This is done
 * at each start and reload, in one transaction, and changes nothing where the names agree: what a
 * crash leaves undone is done at the next start.
 *
 * Of a job, the core knows the tenant and the queue by their rows in the tables of today, the
 * record in the store by name: where these differ the row was renamed. */
#include <stdlib.h>
#include <string.h>

#include "core/booking.h"
#include "core/state.h"
#include "live/state.h"
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

static int carry_jobs(struct stk_live *l, const struct stk_live_stale *t, struct stk_err *err)
{
    int rc = t->n > 0 ? stk_live_begin(l, err) : 0;

    for (uint32_t i = 0; i < t->n && rc == 0; i++) {
        const struct stk_entry *e = stk_entries_find(&l->entries, t->rows[i].number);

        if (e)
            rc = stk_store_job_respec(l->cfg.store, &e->rec, e->rec.spec, err);
    }
    return rc;
}

int stk_live_carry(struct stk_live *l, const struct stk_live_stale *t, struct stk_err *err)
{
    int rc = carry_jobs(l, t, err);

    rc = rc < 0 ? rc : carry_reservations(l, err);
    rc = rc < 0 ? rc : stk_live_commit(l, err);
    if (rc < 0 && l->in_txn) {
        stk_store_rollback(l->cfg.store);
        l->in_txn = false;
    }
    return rc;
}
