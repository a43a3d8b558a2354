/* SPDX-License-Identifier: Apache-2.0 */
/* items.c - the items of a batch: given out once, put back when their worker is interrupted, and
 * each outcome counted once.
 *
 * A batch is a row of jobs, its workers, that share a list in the store. Who has which item is
 * durable before the worker hears of it. Supervisors say outcomes again after a restart, so an
 * outcome counts only for an item that this worker has. An item that failed is done again while the
 * description's "retry" allows it; the workers themselves are not started again for it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"

#define MAX_KNOWN 4096u /* batches whose counts are kept */

stk_job_number stk_live_batch(const struct stk_record *rec)
{
    return rec->array ? rec->array : rec->number;
}

void stk_live_items_forget(struct stk_live *l)
{
    l->items.n = 0;
    stk_map_done(&l->items.by_number, &l->mem);
}

void stk_live_items_free(struct stk_live *l)
{
    stk_live_items_forget(l);
    free(l->items.batches);
    free(l->items.late);
    free(l->items.text);
}

static void forget_one(struct stk_live *l, stk_job_number number)
{
    uint32_t at = stk_map_get(&l->items.by_number, number);

    if (at == UINT32_MAX)
        return;
    stk_map_remove(&l->items.by_number, number);
    l->items.n--;
    if (at == l->items.n)
        return;
    l->items.batches[at] = l->items.batches[l->items.n];
    stk_map_put(&l->items.by_number, l->items.batches[at].number, at);
}

/* The counts of a batch, from the store when they are not known. */
static int find(struct stk_live *l, stk_job_number number, struct stk_live_batch **ret,
                struct stk_err *err)
{
    struct stk_live_items *t = &l->items;
    uint32_t at = stk_map_get(&t->by_number, number);
    struct stk_live_batch b = {.number = number};
    int rc;

    if (at != UINT32_MAX) {
        *ret = &t->batches[at];
        return 0;
    }
    rc = stk_store_items_counts(l->cfg.store, number, b.n, err);
    if (rc != 0)
        return rc < 0 ? rc : -EIO;
    if (t->n >= MAX_KNOWN)
        stk_live_items_forget(l);
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? 2 * t->cap : 16;
        struct stk_live_batch *more = realloc(t->batches, cap * sizeof(*more));

        if (!more)
            return stk_err_set(err, -ENOMEM, "out of memory");
        t->batches = more;
        t->cap = cap;
    }
    if (stk_map_reserve(&t->by_number, &l->mem, t->n + 1) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_map_put(&t->by_number, number, t->n);
    t->batches[t->n] = b;
    *ret = &t->batches[t->n++];
    return 0;
}

int stk_live_item_counts(struct stk_live *l, const struct stk_record *rec,
                         uint32_t ret_n[STK_ITEM_STATE_MAX])
{
    struct stk_live_batch *b = NULL;
    uint32_t total = 0;
    int rc = rec->kind == STK_KIND_BATCH ? find(l, stk_live_batch(rec), &b, NULL) : -ENOENT;

    if (rc < 0 || !b)
        return -ENOENT;
    memcpy(ret_n, b->n, sizeof(b->n));
    for (int i = 0; i < STK_ITEM_STATE_MAX; i++)
        total += b->n[i];
    return total > 0 ? 0 : -ENOENT;
}

/* A transaction of its own: nobody works on what is not durable. */
static int finish(struct stk_live *l, int rc, stk_job_number batch, struct stk_err *err)
{
    rc = rc < 0 ? rc : stk_live_commit(l, err);
    if (rc == 0)
        return 0;
    stk_store_rollback(l->cfg.store);
    l->in_txn = false;
    forget_one(l, batch);
    return rc;
}

/* ---- giving ---- */

struct looking {
    int32_t worker; /* whose; -1: anybody's */
    uint32_t index, attempts;
    char *text;
};

static int take_text(void *ctx, const struct stk_item *it)
{
    struct looking *t = ctx;

    if (t->worker >= 0 && it->worker != t->worker)
        return 0;
    t->index = it->index;
    t->attempts = it->attempts;
    t->text = strdup(it->text);
    return t->text ? 1 : -ENOMEM;
}

/* One that this worker was given and never heard of. */
static int given_before(struct stk_live *l, stk_job_number batch, struct looking *t,
                        struct stk_err *err)
{
    const struct stk_item_query given = {.job = batch, .state = STK_ITEM_GIVEN};

    return stk_store_items(l->cfg.store, &given, take_text, t, err);
}

static int give(struct stk_live *l, struct stk_live_batch *b, stk_job_number worker,
                struct looking *t, struct stk_err *err)
{
    const struct stk_item_query todo = {.job = b->number, .state = STK_ITEM_TODO};
    struct stk_item it = {
        .job = b->number, .state = STK_ITEM_GIVEN, .worker = (int32_t)worker, .given = l->now};
    int rc;

    t->worker = -1;
    rc = stk_store_items(l->cfg.store, &todo, take_text, t, err);
    if (rc < 0)
        return rc;
    if (!t->text)
        return stk_err_set(err, -ENOENT, "no item is left");
    it.index = t->index;
    it.attempts = t->attempts + 1;
    b->n[STK_ITEM_TODO]--;
    b->n[STK_ITEM_GIVEN]++;
    rc = stk_live_begin(l, err);
    rc = rc < 0 ? rc : stk_store_item_set(l->cfg.store, &it, err);
    return finish(l, rc, b->number, err);
}

int stk_live_item_next(struct stk_live *l, stk_job_number number, uint32_t *ret_index,
                       const char **ret_text, struct stk_err *err)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, number);
    struct looking t = {.worker = (int32_t)number};
    struct stk_live_batch *b = NULL;
    int rc;

    if (l->half) {
        l->asked_for = true;
        return stk_err_set(err, -EAGAIN, "a long request is being taken in");
    }
    rc = stk_live_items_flush(l, err); /* it may have said how its last one ended */
    if (rc == 0 && !e)
        return stk_err_set(err, -ENOENT, "there is no job %u", number);
    rc = rc < 0 ? rc : find(l, stk_live_batch(&e->rec), &b, err);
    rc = rc < 0 ? rc : given_before(l, stk_live_batch(&e->rec), &t, err);
    if (rc == 0 && b && !t.text)
        rc = give(l, b, number, &t, err);
    if (rc < 0) {
        free(t.text);
        return rc;
    }
    free(l->items.text);
    l->items.text = t.text;
    *ret_index = t.index;
    *ret_text = t.text;
    return 0;
}

/* ---- ending ---- */

/* What "retry" says of items; read once per batch, the first time one fails. */
static void read_budget(struct stk_live *l, struct stk_live_batch *b, const struct stk_entry *e)
{
    json_t *spec = stk_live_spec(l, e->rec.spec);
    const json_t *retry = json_object_get(spec, "retry"), *error = json_object_get(retry, "error");
    const json_t *codes = json_object_get(retry, "exit_codes");

    b->budget_known = true;
    b->retry = json_is_string(error) ? UINT32_MAX : (uint32_t)json_integer_value(error);
    memset(b->codes, codes ? 0 : 0xff, sizeof(b->codes));
    for (size_t i = 0; i < json_array_size(codes); i++) {
        unsigned code = (unsigned)json_integer_value(json_array_get(codes, i)) & 255;

        b->codes[code / 8] |= (uint8_t)(1u << (code & 7));
    }
    json_decref(spec);
}

static enum stk_item_state state_after(struct stk_live *l, struct stk_live_batch *b,
                                       const struct stk_entry *e, uint32_t attempts, int code)
{
    if (code == 0)
        return STK_ITEM_DONE;
    if (!b->budget_known)
        read_budget(l, b, e);
    if (attempts > b->retry || !(b->codes[(code & 255) / 8] >> (code & 7) & 1))
        return STK_ITEM_FAILED;
    return STK_ITEM_TODO;
}

struct ending {
    uint32_t index, attempts;
    int32_t worker;
    bool given;
};

static int see_given(void *ctx, const struct stk_item *it)
{
    struct ending *g = ctx;

    g->given = it->index == g->index && it->worker == g->worker;
    g->attempts = it->attempts;
    return 1;
}

/* An outcome counts once: only for an item that this worker has. */
static int end_item(struct stk_live *l, const struct stk_live_late *o, struct stk_err *err)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, o->worker);
    struct ending g = {.index = o->index, .worker = (int32_t)o->worker};
    struct stk_item it = {
        .index = o->index, .worker = (int32_t)o->worker, .code = o->code, .ended = l->now};
    struct stk_live_batch *b = NULL;
    int rc;

    if (!e || e->rec.kind != STK_KIND_BATCH)
        return 0;
    it.job = stk_live_batch(&e->rec);
    rc = find(l, it.job, &b, err);
    rc = rc < 0 ? rc
                : stk_store_items(l->cfg.store,
                                  &(struct stk_item_query){
                                      .job = it.job, .state = STK_ITEM_GIVEN, .from = o->index},
                                  see_given, &g, err);
    if (rc < 0 || !g.given || !b)
        return rc;
    it.attempts = g.attempts;
    it.state = state_after(l, b, e, g.attempts, o->code);
    b->n[STK_ITEM_GIVEN]--;
    b->n[it.state]++;
    rc = stk_live_begin(l, err);
    rc = rc < 0 ? rc : stk_store_item_set(l->cfg.store, &it, err);
    return finish(l, rc, it.job, err);
}

int stk_live_items_flush(struct stk_live *l, struct stk_err *err)
{
    struct stk_live_items *t = &l->items;
    uint32_t done = 0;
    int rc = 0;

    if (!l->loop)
        return stk_err_set(err, -EAGAIN, "the state could not be read again");
    while (!l->half && done < t->n_late && rc == 0) {
        rc = end_item(l, &t->late[done], err);
        done += rc == 0;
    }
    t->n_late -= done;
    if (t->n_late > 0)
        memmove(t->late, t->late + done, t->n_late * sizeof(*t->late));
    return rc;
}

void stk_live_item_done(struct stk_live *l, stk_job_number number, uint32_t index, int code)
{
    struct stk_live_items *t = &l->items;
    struct stk_err err = {{0}};

    if (t->n_late == t->cap_late) {
        uint32_t cap = t->cap_late ? 2 * t->cap_late : 16;
        struct stk_live_late *more = realloc(t->late, cap * sizeof(*more));

        if (!more)
            return; /* its supervisor says it again to the next daemon */
        t->late = more;
        t->cap_late = cap;
    }
    t->late[t->n_late++] = (struct stk_live_late){number, index, code};
    if (!l->in_txn && stk_live_items_flush(l, &err) < 0 && l->cfg.log)
        l->cfg.log(l->cfg.ctx, err.text);
}

/* ---- workers ---- */

int stk_live_items_back(struct stk_live *l, const struct stk_job *j, struct stk_err *err)
{
    stk_job_number batch = j->array ? j->array : j->number;

    forget_one(l, batch);
    return stk_store_items_back(l->cfg.store, batch, (int32_t)j->number, err);
}

struct failures {
    int32_t worker;
    uint32_t n;
};

static int count_own(void *ctx, const struct stk_item *it)
{
    struct failures *f = ctx;

    f->n += it->worker == f->worker;
    return 0;
}

void stk_live_items_judge(struct stk_live *l, const struct stk_job *j, struct stk_event *ev)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, j->number);
    struct failures f = {.worker = (int32_t)j->number};
    uint32_t n[STK_ITEM_STATE_MAX];
    char text[200];
    struct stk_err err;

    if (!e || (ev->u.exit.cause != STK_CAUSE_OK && ev->u.exit.cause != STK_CAUSE_FAILED) ||
        stk_live_item_counts(l, &e->rec, n) < 0)
        return;
    if (stk_store_items(
            l->cfg.store,
            &(struct stk_item_query){.job = stk_live_batch(&e->rec), .state = STK_ITEM_FAILED},
            count_own, &f, &err) < 0)
        return; /* as the supervisor has it */
    ev->u.exit.cause = f.n > 0 ? STK_CAUSE_FAILED : STK_CAUSE_OK;
    ev->u.exit.code = f.n > 0;
    if (f.n == 0)
        return;
    if (j->array == 0)
        (void)snprintf(text, sizeof(text), "%u of %u items failed", f.n,
                       n[STK_ITEM_DONE] + n[STK_ITEM_FAILED]);
    else
        (void)snprintf(text, sizeof(text),
                       "%u item%s failed here; of the whole batch %u done, %u failed, %u left", f.n,
                       f.n == 1 ? "" : "s", n[STK_ITEM_DONE], n[STK_ITEM_FAILED],
                       n[STK_ITEM_TODO] + n[STK_ITEM_GIVEN]);
    stk_live_note(l, j->number, text);
}
