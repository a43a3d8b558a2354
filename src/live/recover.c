/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c - the state as the store has it: the latest snapshot, the events since, the records of
 * jobs that have not ended. Used at start, after a commit that failed, and for a new policy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/save.h"
#include "core/state.h"
#include "live/state.h"
#include "model/wire.h"

static stk_time no_time(void *ctx)
{
    const struct stk_live *l = ctx;

    return l->first || l->open || l->off_changed || l->sets.look || l->n_saved > 0 || l->defrag ||
                   l->cron_wake <= stk_live_wall(l) || l->rules_wake <= stk_live_wall(l) ||
                   stk_live_waiting_due(l, l->now)
               ? 0
               : STK_NEVER_TIME;
}

/* Kept with the job: while the engine takes over after a restart it looks at all of them. */
static const char *spec_text(void *ctx, stk_job_number number)
{
    struct stk_live *l = ctx;
    struct stk_entry *e = stk_entries_find(&l->entries, number);
    struct stk_err err;
    size_t len;

    if (!e)
        return NULL;
    if (!e->text && stk_store_spec_get(l->cfg.store, e->rec.spec, &e->text, &len, &err) < 0)
        return NULL;
    return e->text;
}

static const struct stk_source_ops source_ops = {.next = no_time, .feed = stk_live_feed};
static const struct stk_watch_ops watch_ops = {.report = stk_live_reported,
                                               .event = stk_live_journal,
                                               .commit = stk_live_commit,
                                               .spec = spec_text};

void stk_live_drop(struct stk_live *l)
{
    stk_live_outlook_stop(l);
    stk_loop_free(l->loop);
    stk_core_free(l->core);
    stk_entries_done(&l->entries);
    stk_live_items_forget(l);
    stk_live_cron_forget(l);
    stk_live_rules_forget(l);
    stk_live_sets_forget(l);
    l->n_waiting = 0; /* the engine reports them again */
    l->loop = NULL;
    l->core = NULL;
    l->done_number = 0;
}

/* Events know resources by their numbers: those of the names that are kept in the store. */
static void name_resources(const struct stk_live *l, char *buf, size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < l->cfg.core.n_resources && len < size; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? "," : "",
                                l->cfg.core.resource_names[i]);
}

static int keep_names(struct stk_live *l, const char *names, struct stk_err *err)
{
    int rc = stk_store_begin(l->cfg.store, err);

    rc = rc < 0 ? rc : stk_store_meta_set(l->cfg.store, "resources", names, strlen(names), err);
    return rc < 0 ? rc : stk_store_commit(l->cfg.store, err);
}

struct tables {
    struct stk_live_tables old; /* that the journal was written under */
    struct stk_bytes now;       /* those of today */
    bool changed;
};

/* A core with the tables of the journal. Policies may not go with their limits any more: then
 * without them, for what was accepted then is accepted now. */
static int open_tables(struct stk_live *l, struct tables *t, struct stk_err *err)
{
    struct stk_core_config cfg = l->cfg.core;
    char *was = NULL;
    size_t len = 0;
    int rc = 0;

    t->now = (struct stk_bytes){.mem = &l->mem};
    stk_live_tables_put(&cfg, &t->now);
    if (t->now.failed)
        return stk_err_set(err, -ENOMEM, "out of memory");
    (void)stk_store_meta_get(l->cfg.store, "teams", &was, &len, NULL);
    t->changed = was ? len != t->now.n || memcmp(was, t->now.data, len) != 0
                     : cfg.n_tenants + cfg.n_queues > 0;
    if (!t->changed) {
        free(was);
        return stk_core_new(&cfg, &l->mem, &l->core, err);
    }
    if (was)
        rc = stk_live_tables_get((const unsigned char *)was, len, &t->old);
    free(was);
    if (rc < 0)
        return stk_err_set(err, rc == -ENOMEM ? rc : -EUCLEAN,
                           "the tables of tenants and queues in the store cannot be read");
    cfg.tenants = t->old.tenants;
    cfg.n_tenants = t->old.n_tenants;
    cfg.queues = t->old.queues;
    cfg.n_queues = t->old.n_queues;
    if (stk_core_new(&cfg, &l->mem, &l->core, err) == 0)
        return 0;
    stk_live_tables_free_of_limits(&t->old);
    return stk_core_new(&cfg, &l->mem, &l->core, err);
}

struct replay {
    struct stk_live *l;
    struct tables tables;
    char *was; /* names of resources when they are others now; NULL: they are not */
    struct stk_wire wire;
    struct stk_err err;
    uint64_t n;
};

static int replay_one(void *ctx, const struct stk_row *row)
{
    struct replay *r = ctx;
    int rc = 0;

    if (r->was)
        return stk_err_set(
            &r->err, -ENODEV,
            "the names under resources were \"%.100s\" when the daemon last ran, and "
            "it was not ended well: start it with those first, and end it",
            r->was);
    rc = stk_wire_get(row->bytes, row->len, &r->wire, &r->err);

    rc = rc < 0 ? rc : stk_core_apply(r->l->core, &r->wire.ev, &r->err);
    if (rc == -EINVAL && r->wire.ev.type == STK_EV_SET)
        rc = 0; /* what it names is not in the configuration any more; rules see to the rest */
    if (rc < 0) {
        struct stk_err more;

        (void)stk_err_set(&more, rc, "event %llu of the journal cannot be replayed: %.180s",
                          (unsigned long long)row->seq, r->err.text);
        r->err = more;
        return rc;
    }
    r->l->seq = row->seq;
    r->n++;
    return 0;
}

static int load_snapshot(struct stk_live *l, struct stk_err *err)
{
    struct stk_snapshot snap = {0};
    struct stk_err warning = {{0}};
    int rc = stk_store_snapshot_get(l->cfg.store, &snap, &warning, err);

    if (warning.text[0] != '\0' && l->cfg.log)
        l->cfg.log(l->cfg.ctx, warning.text);
    if (rc == 0 && snap.bytes)
        rc = stk_core_load(l->core, snap.bytes, snap.len, err);
    if (rc == 0)
        l->seq = snap.seq;
    free(snap.bytes);
    return rc;
}

struct loading {
    struct stk_live *l;
    struct stk_live_stale stale;
};

static int load_entry(void *ctx, const struct stk_record *rec)
{
    struct loading *x = ctx;
    struct stk_live *l = x->l;
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t slot = stk_core_find(l->core, rec->number);
    struct stk_record now = *rec;
    struct stk_entry *e;

    if (slot == STK_NONE)
        return 0;                                             /* reported by check_entries */
    now.queue = stk_live_queue_name(l, s->terms[slot].queue); /* it may have another name now */
    now.tenant = stk_live_tenant_name(l, s->jobs[slot].tenant);
    if ((strcmp(now.queue, rec->queue) != 0 || strcmp(now.tenant, rec->tenant) != 0) &&
        stk_live_stale_add(&x->stale, rec) < 0)
        return -ENOMEM;
    if (stk_entries_add(&l->entries, &now, &e) < 0)
        return -ENOMEM;
    stk_live_lease_load(l, e);
    return 0;
}

/* The core and the records must agree on which jobs have not ended. */
static int check_entries(const struct stk_live *l, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);

    if (l->entries.live != s->n_live)
        return stk_err_set(err, -EUCLEAN,
                           "the store disagrees with itself: %u jobs by the journal, %u by the "
                           "records; run: stoker store check --state %s",
                           s->n_live, l->entries.live, stk_store_dir(l->cfg.store));
    return 0;
}

static void load_drained(struct stk_live *l)
{
    for (uint32_t i = 0; i < l->cfg.core.n_nodes; i++) {
        char key[64], *value = NULL;
        size_t len;

        l->off[i].drained = 0;
        (void)snprintf(key, sizeof(key), "drained.%u", i);
        if (stk_store_meta_get(l->cfg.store, key, &value, &len, NULL) == 0)
            l->off[i].drained = strtoull(value, NULL, 16);
        free(value);
        l->off[i].applied = stk_core_state(l->core)->nodes[i].mask_off;
        l->off[i].applied_last = stk_core_state(l->core)->nodes[i].mask_last;
        l->off[i].closed = stk_core_state(l->core)->nodes[i].closed;
    }
    l->off_changed = true;
}

static int make(struct stk_live *l, struct stk_err *err)
{
    const struct stk_loop_config loop = {.core = l->core,
                                         .engine = l->cfg.engine,
                                         .source = &source_ops,
                                         .source_ctx = l,
                                         .watch = &watch_ops,
                                         .watch_ctx = l};

    return stk_loop_new(&loop, &l->mem, &l->loop, err);
}

/* All that was written has been replayed: the state moves into a core with the tables of today, and
 * what comes next is written under these. */
static int change_tables(struct stk_live *l, struct replay *r, struct stk_err *err)
{
    struct stk_bytes bytes = {.mem = &l->mem}, now = {.mem = &l->mem};
    struct stk_core *core = NULL;
    int rc;

    if (!r->tables.changed)
        return 0;
    rc = stk_live_renamed_check(l, &r->tables.old, err);
    rc = rc < 0 ? rc : stk_core_save(l->core, &bytes, err);
    rc = rc < 0 ? rc : stk_core_new(&l->cfg.core, &l->mem, &core, err);
    rc = rc < 0 ? rc : stk_core_load(core, bytes.data, bytes.n, err);
    rc = rc < 0 ? rc : stk_core_save(core, &now, err); /* by the names of today */
    rc = rc < 0 ? rc : stk_store_begin(l->cfg.store, err);
    if (rc == 0 && l->seq > 0)
        rc = stk_store_snapshot_put(
            l->cfg.store,
            &(struct stk_snapshot){l->seq, stk_core_state(core)->now, now.data, now.n}, err);
    rc = rc < 0
             ? rc
             : stk_store_meta_set(l->cfg.store, "teams", r->tables.now.data, r->tables.now.n, err);
    rc = rc < 0 ? rc : stk_store_commit(l->cfg.store, err);
    stk_bytes_done(&bytes);
    stk_bytes_done(&now);
    if (rc < 0) {
        stk_core_free(core);
        return rc;
    }
    stk_core_free(l->core);
    l->core = core;
    l->since_snapshot = 0;
    return 0;
}

/* Jobs that have not ended, with what is kept beside them. */
static int load_jobs(struct stk_live *l, struct stk_err *err)
{
    struct loading x = {.l = l};
    int rc = stk_store_live(l->cfg.store, load_entry, &x, err);

    rc = rc < 0 ? rc : check_entries(l, err);
    rc = rc < 0 ? rc : stk_live_carry(l, &x.stale, err);
    rc = rc < 0 ? rc : stk_live_cron_load(l, err);
    stk_live_stale_done(&x.stale);
    return rc < 0 ? rc : stk_live_sets_load(l, err);
}

int stk_live_recover(struct stk_live *l, struct stk_err *err)
{
    struct replay *r = calloc(1, sizeof(*r));
    char names[STK_MAX_RESOURCES * STK_MAX_RESOURCE_NAME];
    bool known = false;
    size_t len;
    int rc;

    if (!r)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_live_drop(l);
    l->seq = 0;
    r->l = l;
    stk_wire_init(&r->wire, &l->mem);
    rc = open_tables(l, &r->tables, err);
    rc = rc < 0 ? rc : load_snapshot(l, err);
    name_resources(l, names, sizeof(names));
    if (stk_store_meta_get(l->cfg.store, "resources", &r->was, &len, NULL) == 0 &&
        strcmp(r->was, names) == 0) {
        free(r->was);
        r->was = NULL;
        known = true;
    }
    if (rc == 0) {
        rc = stk_store_read(l->cfg.store, l->seq, replay_one, r, err);
        if (rc < 0 && r->err.text[0] != '\0')
            *err = r->err;
    }
    l->durable = l->seq;
    l->since_snapshot = r->n;
    stk_live_reserve_load(l);
    rc = rc < 0 ? rc : change_tables(l, r, err);
    stk_live_tables_done(&r->tables.old);
    stk_bytes_done(&r->tables.now);
    if (rc == 0 && !known && (r->was || names[0] != '\0'))
        rc = keep_names(l, names, err);
    stk_wire_done(&r->wire);
    free(r->was);
    free(r);
    rc = rc < 0 ? rc : load_jobs(l, err);
    rc = rc < 0 ? rc : make(l, err);
    if (rc < 0)
        return rc;
    load_drained(l);
    if (l->cfg.clock_raise)
        l->cfg.clock_raise(l->cfg.ctx, stk_live_clock_least(l));
    l->now = l->cfg.clock(l->cfg.ctx);
    if (l->now < stk_core_state(l->core)->now)
        l->now = stk_core_state(l->core)->now;
    if (l->counts.since == 0)
        l->counts.since = l->now;
    stk_live_doubt_load(l);
    rc = stk_live_rules_load(l, err);
    rc = rc < 0 ? rc : stk_live_carry_sets(l, err);
    rc = rc < 0 ? rc : stk_live_capacity_load(l, err);
    if (rc == 0)
        stk_live_quota_tell(l);
    if (rc < 0)
        return rc;
    return stk_loop_adopt(l->loop, l->now, err);
}
