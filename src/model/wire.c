/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - version, type, time, job and lease first; then what the type has, in a fixed order. */
#include "model/wire.h"

#include <string.h>

#include "model/topology.h"

/* Each piece is at least this long, so that a count can be checked before memory is asked for. */
#define LEAST_PIECE 4
#define LEAST_DEP 2
#define LEAST_NODE 2
#define LEAST_RANGE 2

size_t stk_wire_bound(const struct stk_event *ev)
{
    size_t n = STK_WIRE_SMALL;

    if (ev->type == STK_EV_SUBMIT)
        n += (size_t)ev->u.spec->n_deps * 3 * STK_MAX_VARINT;
    if (ev->type == STK_EV_PLACE)
        n += (size_t)ev->u.place.n * 5 * STK_MAX_VARINT;
    if (ev->type == STK_EV_RESERVE)
        n += (size_t)ev->u.booking->n_nodes * 2 * STK_MAX_VARINT;
    if (ev->type == STK_EV_NODES)
        n += (size_t)ev->u.nodes->n * 2 * STK_MAX_VARINT;
    return n;
}

/* ---- writing ---- */

/* A mark, and behind it what most demands do not have. */
static void put_topology(struct stk_bytes *b, const struct stk_demand *d)
{
    stk_put_u(b, stk_demand_near(d));
    if (!stk_demand_near(d))
        return;
    stk_put_u(b, d->level_required);
    stk_put_u(b, d->level_preferred);
    stk_put_u(b, d->exclusive);
    stk_put_u(b, d->per_node);
    stk_put_u(b, d->group);
    stk_put_u(b, d->group_level);
}

/* Named resources and speeds. */
static void put_lists(struct stk_bytes *b, const struct stk_demand *d)
{
    stk_put_u(b, d->n_resources);
    for (uint32_t i = 0; i < d->n_resources; i++)
        stk_put_u(b, d->resource[i]);
    stk_put_u(b, d->n_speeds);
    for (uint32_t i = 0; i < d->n_speeds; i++) {
        stk_put_u(b, d->speed_type[i]);
        stk_put_u(b, d->speed_milli[i]);
    }
}

void stk_wire_put_demand(struct stk_bytes *b, const struct stk_demand *d)
{
    stk_put_u(b, d->tasks);
    stk_put_u(b, d->gpus);
    stk_put_u(b, ~d->gpu_types); /* any: short */
    stk_put_u(b, d->cpu_milli);
    stk_put_u(b, d->mem_mib);
    stk_put_u(b, d->gpu_mem_mib);
    stk_put_u(b, d->gpu_milli);
    if (d->gpu_milli) {
        stk_put_u(b, d->share);
        stk_put_u(b, d->share_max);
        stk_put_u(b, d->mig);
        stk_put_u(b, d->share_with);
    } else {
        stk_put_u(b, d->share_max);
    }
    stk_put_u(b, d->cut);
    stk_put_u(b, d->slo_milli);
    stk_put_u(b, d->row);
    put_topology(b, d);
    put_lists(b, d);
}

/* A mark, and behind it what most jobs do not have. */
void stk_wire_put_terms(struct stk_bytes *b, const struct stk_terms *t)
{
    stk_put_u(b, stk_terms_any(t));
    if (!stk_terms_any(t))
        return;
    stk_put_s(b, t->deadline);
    stk_put_s(b, t->min_run);
    stk_put_u(b, t->queue);
    stk_put_u(b, t->user);
    stk_put_u(b, t->group);
    stk_put_u(b, t->reservation);
    stk_put_u(b, t->movable);
    stk_put_u(b, t->group_min);
    stk_put_u(b, t->signals);
    stk_put_u(b, t->no_sleep);
    stk_put_s(b, t->asked);
    stk_put_s(b, t->limit);
    stk_put_u(b, t->plain);
}

static int put_spec(struct stk_bytes *b, const struct stk_job_spec *j)
{
    if ((unsigned)j->kind >= STK_KIND_MAX || (unsigned)j->tier >= STK_TIER_MAX ||
        j->n_deps > STK_MAX_DEPS)
        return -EINVAL;
    stk_wire_put_demand(b, &j->demand);
    stk_put_u(b, j->kind);
    stk_put_u(b, j->tier);
    stk_put_s(b, j->priority);
    stk_put_u(b, j->pool.i);
    stk_put_u(b, j->tenant);
    stk_put_u(b, j->tag);
    stk_put_s(b, j->estimate);
    stk_put_s(b, j->begin);
    stk_put_u(b, j->array);
    stk_put_u(b, j->array_index);
    for (int i = 0; i < STK_RETRY_MAX; i++)
        stk_put_u(b, j->retry[i]);
    stk_put_u(b, j->held);
    stk_put_u(b, j->n_deps);
    for (uint32_t i = 0; i < j->n_deps; i++) {
        if ((unsigned)j->deps[i].type >= STK_DEP_TYPE_MAX)
            return -EINVAL;
        stk_put_u(b, j->deps[i].on);
        stk_put_u(b, j->deps[i].type);
        stk_put_u(b, j->deps[i].whole);
    }
    stk_wire_put_terms(b, &j->terms);
    stk_put_u(b, j->demand.nodes);
    return 0;
}

static void put_pieces(struct stk_bytes *b, const struct stk_piece *p, uint32_t n)
{
    stk_put_u(b, n);
    for (uint32_t i = 0; i < n; i++) {
        stk_put_u(b, p[i].node.i);
        stk_put_u(b, p[i].gpus);
        stk_put_u(b, p[i].tasks);
        stk_put_u(b, p[i].slot);
        stk_put_u(b, p[i].mask);
    }
}

static int put_update(struct stk_bytes *b, const struct stk_event *ev)
{
    const struct stk_job_spec *spec = ev->u.update.spec;

    stk_put_s(b, ev->u.update.priority);
    stk_put_s(b, ev->u.update.estimate);
    stk_put_s(b, ev->u.update.asked);
    stk_put_s(b, ev->u.update.limit);
    stk_put_u(b, ev->u.update.plain);
    stk_put_u(b, spec != NULL);
    return !spec ? 0 : spec->n_deps > 0 ? -EINVAL : put_spec(b, spec);
}

/* Of text as much as there is, without its end. */
static int put_text(struct stk_bytes *b, const char *s, size_t size)
{
    const char *end = memchr(s, '\0', size);

    if (!end)
        return -EINVAL;
    stk_put_u(b, (uint64_t)(end - s));
    stk_put_raw(b, s, (uint32_t)(end - s));
    return 0;
}

static int put_set(struct stk_bytes *b, const struct stk_set *e)
{
    if ((unsigned)e->kind >= STK_SET_KIND_MAX)
        return -EINVAL;
    stk_put_u(b, e->kind);
    stk_put_u(b, (uint64_t)e->clear | (uint64_t)e->evict << 1);
    stk_put_u(b, e->row);
    stk_put_u(b, e->column);
    stk_put_s(b, e->value);
    return put_text(b, e->name, sizeof(e->name)) < 0 ? -EINVAL
                                                     : put_text(b, e->text, sizeof(e->text));
}

int stk_wire_put_booking(struct stk_bytes *b, const struct stk_booking_spec *k)
{
    if ((unsigned)k->holder >= STK_HOLDER_MAX)
        return -EINVAL;
    stk_put_u(b, k->number);
    stk_put_u(b, k->tag);
    stk_put_u(b, k->holder);
    stk_put_u(b, k->holder_id);
    stk_put_u(b, k->pool.i);
    stk_put_u(b, ~k->gpu_types);
    stk_put_u(b, k->gpus);
    stk_put_s(b, k->start);
    stk_put_s(b, k->end);
    stk_put_s(b, k->grace);
    stk_put_u(b, (uint64_t)k->evict | (uint64_t)k->drain << 1);
    stk_put_u(b, k->n_nodes);
    for (uint32_t i = 0; i < k->n_nodes; i++) {
        stk_put_u(b, k->nodes[i].node.i);
        stk_put_u(b, k->nodes[i].gpus);
    }
    return 0;
}

static int put_swap(struct stk_bytes *b, const struct stk_event *ev)
{
    stk_put_u(b, ev->u.swap.node.i);
    stk_put_u(b, ev->u.swap.to.i);
    stk_put_u(b, ev->u.swap.had);
    stk_put_u(b, ev->u.swap.has);
    stk_put_u(b, ev->u.swap.with.i);
    return 0;
}

static int put_nodes(struct stk_bytes *b, const struct stk_node_set *set)
{
    stk_put_u(b, set->number);
    stk_put_u(b, set->n);
    for (uint32_t i = 0; i < set->n; i++) {
        stk_put_u(b, set->range[i].first);
        stk_put_u(b, set->range[i].last);
    }
    return 0;
}

static int put_evict(struct stk_bytes *b, const struct stk_event *ev)
{
    stk_put_u(b, ev->u.evict.for_job.i);
    stk_put_u(b, (uint64_t)ev->u.evict.suspend | (uint64_t)ev->u.evict.by_hand << 1 |
                     (uint64_t)ev->u.evict.moved << 2 | (uint64_t)ev->u.evict.kill << 3);
    stk_put_u(b, ev->u.evict.for_number);
    stk_put_u(b, ev->u.evict.for_tier);
    return 0;
}

static int put_members(struct stk_bytes *b, const struct stk_event *ev)
{
    switch (ev->type) {
    case STK_EV_SUBMIT:
        return put_spec(b, ev->u.spec);
    case STK_EV_PLACE:
        put_pieces(b, ev->u.place.pieces, ev->u.place.n);
        return 0;
    case STK_EV_EVICT:
        return put_evict(b, ev);
    case STK_EV_EXITED:
        if ((unsigned)ev->u.exit.cause >= STK_CAUSE_MAX)
            return -EINVAL;
        stk_put_u(b, ev->u.exit.cause);
        stk_put_s(b, ev->u.exit.code);
        stk_put_s(b, ev->u.exit.lost);
        stk_put_u(b, ev->u.exit.final);
        stk_put_s(b, ev->u.exit.ended);
        return 0;
    case STK_EV_ADVISE:
        stk_put_u(b, ev->u.advice.where);
        stk_put_s(b, ev->u.advice.rank);
        return 0;
    case STK_EV_UPDATE:
        return put_update(b, ev);
    case STK_EV_NODE_DOWN:
    case STK_EV_NODE_UP:
    case STK_EV_NODE_OFF:
        stk_put_u(b, ev->u.node.i);
        return 0;
    case STK_EV_GPUS_OFF:
        stk_put_u(b, ev->u.off.node.i);
        stk_put_u(b, ev->u.off.mask);
        stk_put_u(b, ev->u.off.last);
        stk_put_u(b, ev->u.off.closed);
        return 0;
    case STK_EV_SET:
        return put_set(b, ev->u.set);
    case STK_EV_RESERVE:
        return stk_wire_put_booking(b, ev->u.booking);
    case STK_EV_UNRESERVE:
        stk_put_u(b, ev->u.unreserve.number);
        stk_put_u(b, ev->u.unreserve.why);
        return 0;
    case STK_EV_SWAPPED:
        return put_swap(b, ev);
    case STK_EV_NODES:
        return put_nodes(b, ev->u.nodes);
    case STK_EV_HOLD:
    case STK_EV_RELEASE:
    case STK_EV_CANCEL:
    case STK_EV_STARTED:
    case STK_EV_SUSPENDED:
    case STK_EV_CHECKPOINT:
    case STK_EV_TICK:
        return 0;
    case STK_EV_TYPE_MAX:
        break;
    }
    return -EINVAL;
}

int stk_wire_put(const struct stk_event *ev, unsigned char *buf, size_t cap, size_t *ret_len)
{
    struct stk_bytes b = {.data = buf, .cap = cap > UINT32_MAX ? UINT32_MAX : (uint32_t)cap};
    int rc;

    if ((unsigned)ev->type >= STK_EV_TYPE_MAX)
        return -EINVAL;
    stk_put_u(&b, STK_WIRE_VERSION);
    stk_put_u(&b, ev->type);
    stk_put_s(&b, ev->at);
    stk_put_u(&b, ev->job.i);
    stk_put_u(&b, ev->lease);
    rc = put_members(&b, ev);
    if (rc < 0 || b.failed)
        return rc < 0 ? rc : b.failed;
    *ret_len = b.n;
    return 0;
}

/* ---- reading ---- */

void stk_wire_init(struct stk_wire *w, const struct stk_mem *mem)
{
    *w = (struct stk_wire){.mem = *mem};
}

void stk_wire_done(struct stk_wire *w)
{
    if (!w->mem.resize)
        return;
    stk_mem_drop(&w->mem, &w->deps, &w->cap_deps, sizeof(*w->deps));
    stk_mem_drop(&w->mem, &w->ranges, &w->cap_ranges, sizeof(*w->ranges));
    stk_mem_drop(&w->mem, &w->pieces, &w->cap_pieces, sizeof(*w->pieces));
}

static void get_topology(struct stk_reader *r, struct stk_demand *ret)
{
    if (!stk_get_bool(r))
        return;
    ret->level_required = (uint8_t)stk_get_u(r, STK_AT_REGION);
    ret->level_preferred = (uint8_t)stk_get_u(r, STK_AT_REGION);
    ret->exclusive = stk_get_bool(r);
    ret->per_node = stk_get_u32(r);
    ret->group = stk_get_u32(r);
    ret->group_level = (uint8_t)stk_get_u(r, STK_AT_REGION);
    r->bad |= !stk_demand_near(ret); /* there is one way to say it */
}

static void get_lists(struct stk_reader *r, struct stk_demand *ret)
{
    ret->n_resources = (uint8_t)stk_get_u(r, STK_MAX_RESOURCES);
    for (uint32_t i = 0; i < ret->n_resources; i++)
        ret->resource[i] = stk_get_u32(r);
    ret->n_speeds = (uint8_t)stk_get_u(r, STK_MAX_SPEEDS);
    for (uint32_t i = 0; i < ret->n_speeds; i++) {
        ret->speed_type[i] = (uint8_t)stk_get_u(r, STK_MAX_GPU_TYPES - 1);
        ret->speed_milli[i] = (uint16_t)stk_get_u(r, STK_MAX_SPEED);
    }
}

void stk_wire_get_demand(struct stk_reader *r, struct stk_demand *ret, uint64_t version)
{
    *ret = (struct stk_demand){.tasks = stk_get_u32(r)};
    ret->gpus = stk_get_u32(r);
    ret->gpu_types = ~stk_get_u(r, UINT64_MAX);
    ret->cpu_milli = stk_get_u32(r);
    ret->mem_mib = stk_get_u32(r);
    if (version > 2) {
        ret->gpu_mem_mib = stk_get_u32(r);
        ret->gpu_milli = (uint16_t)stk_get_u(r, 999);
    }
    if (ret->gpu_milli) {
        ret->share = (uint8_t)stk_get_u(r, STK_SHARE_MAX - 1);
        ret->share_max = (uint8_t)stk_get_u(r, UINT8_MAX);
        ret->mig = (uint16_t)stk_get_u(r, UINT16_MAX);
        ret->share_with = version > 3 ? stk_get_u32(r) : 0;
    } else if (version > 3) {
        ret->share_max = (uint8_t)stk_get_u(r, UINT8_MAX);
    }
    ret->cut = stk_get_bool(r);
    if (version < 4)
        return;
    ret->slo_milli = (uint16_t)stk_get_u(r, 1000);
    ret->row = stk_get_u32(r);
    get_topology(r, ret);
    get_lists(r, ret);
}

void stk_wire_get_terms(struct stk_reader *r, struct stk_terms *ret, uint64_t version)
{
    *ret = (struct stk_terms){0};
    if (version < 5 || !stk_get_bool(r))
        return;
    ret->deadline = stk_get_i(r, 0, STK_MAX_DURATION);
    ret->min_run = stk_get_i(r, 0, STK_MAX_DURATION);
    ret->queue = stk_get_u32(r);
    ret->user = stk_get_u32(r);
    ret->group = stk_get_u32(r);
    ret->reservation = stk_get_u32(r);
    ret->movable = stk_get_bool(r);
    ret->group_min = stk_get_u32(r);
    ret->signals = stk_get_bool(r);
    ret->no_sleep = stk_get_bool(r);
    if (version > 5) {
        ret->asked = stk_get_i(r, 0, STK_MAX_DURATION);
        ret->limit = stk_get_i(r, 0, STK_MAX_DURATION);
    }
    ret->plain = version > 6 && stk_get_bool(r);
    r->bad |= !stk_terms_any(ret); /* there is one way to say it */
}

static int32_t get_i32(struct stk_reader *r)
{
    return (int32_t)stk_get_i(r, INT32_MIN, INT32_MAX);
}

/* A count of things of at least this many bytes each. */
static uint32_t get_count(struct stk_reader *r, uint64_t max, uint32_t least)
{
    uint64_t n = stk_get_u(r, max);

    if (n > (uint64_t)(r->end - r->at) / least) {
        r->bad = true;
        return 0;
    }
    return (uint32_t)n;
}

static int get_spec(struct stk_reader *r, struct stk_wire *w, uint64_t version)
{
    struct stk_job_spec *j = &w->spec;

    *j = (struct stk_job_spec){.kind = STK_KIND_TRAIN};
    stk_wire_get_demand(r, &j->demand, version);
    j->kind = (enum stk_job_kind)stk_get_u(r, STK_KIND_MAX - 1);
    j->tier = (enum stk_tier)stk_get_u(r, STK_TIER_MAX - 1);
    j->priority = get_i32(r);
    j->pool.i = stk_get_u32(r);
    j->tenant = stk_get_u32(r);
    j->tag = stk_get_u32(r);
    j->estimate = stk_get_s(r);
    j->begin = stk_get_s(r);
    j->array = stk_get_u32(r);
    j->array_index = stk_get_u32(r);
    for (int i = 0; i < STK_RETRY_MAX; i++)
        j->retry[i] = (uint8_t)stk_get_u(r, UINT8_MAX);
    j->held = stk_get_bool(r);
    j->n_deps = get_count(r, STK_MAX_DEPS, LEAST_DEP);
    if (stk_mem_grow(&w->mem, &w->deps, &w->cap_deps, j->n_deps, sizeof(*w->deps)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < j->n_deps; i++) {
        w->deps[i].on = stk_get_u32(r);
        w->deps[i].type = (enum stk_dep_type)stk_get_u(r, STK_DEP_TYPE_MAX - 1);
        w->deps[i].whole = version > 1 && stk_get_bool(r);
    }
    stk_wire_get_terms(r, &j->terms, version);
    j->demand.nodes = version > 5 ? (uint16_t)stk_get_u(r, STK_MAX_NODE_SETS) : 0;
    j->deps = w->deps;
    return 0;
}

static int get_pieces(struct stk_reader *r, struct stk_wire *w, uint64_t version)
{
    uint32_t n = get_count(r, UINT32_MAX, LEAST_PIECE);

    if (stk_mem_grow(&w->mem, &w->pieces, &w->cap_pieces, n, sizeof(*w->pieces)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        w->pieces[i].node.i = stk_get_u32(r);
        w->pieces[i].gpus = stk_get_u32(r);
        w->pieces[i].tasks = stk_get_u32(r);
        w->pieces[i].slot = version > 2 ? stk_get_u32(r) : 0;
        w->pieces[i].mask = stk_get_u(r, UINT64_MAX);
    }
    w->ev.u.place.pieces = w->pieces;
    w->ev.u.place.n = n;
    return 0;
}

int stk_wire_get_booking(struct stk_reader *r, struct stk_wire *w)
{
    struct stk_booking_spec *k = &w->booking;
    uint32_t how;

    *k = (struct stk_booking_spec){.number = stk_get_u32(r)};
    k->tag = stk_get_u32(r);
    k->holder = (enum stk_holder)stk_get_u(r, STK_HOLDER_MAX - 1);
    k->holder_id = stk_get_u32(r);
    k->pool.i = stk_get_u32(r);
    k->gpu_types = ~stk_get_u(r, UINT64_MAX);
    k->gpus = stk_get_u32(r);
    k->start = stk_get_s(r);
    k->end = stk_get_s(r);
    k->grace = stk_get_s(r);
    how = (uint32_t)stk_get_u(r, 3);
    k->evict = how & 1;
    k->drain = how & 2;
    k->n_nodes = get_count(r, UINT32_MAX, LEAST_NODE);
    if (stk_mem_grow(&w->mem, &w->pieces, &w->cap_pieces, k->n_nodes, sizeof(*w->pieces)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < k->n_nodes; i++) {
        w->pieces[i] = (struct stk_piece){.node = {stk_get_u32(r)}};
        w->pieces[i].gpus = stk_get_u32(r);
    }
    k->nodes = k->n_nodes ? w->pieces : NULL;
    return 0;
}

/* In version 1 a mark said that the job is queued again whatever its budget: as an eviction is. */
static void get_exit(struct stk_reader *r, struct stk_event *ev, uint64_t version)
{
    bool mark;

    ev->u.exit.cause = (enum stk_cause)stk_get_u(r, STK_CAUSE_MAX - 1);
    ev->u.exit.code = get_i32(r);
    ev->u.exit.lost = stk_get_s(r);
    mark = stk_get_bool(r);
    if (version > 1) {
        ev->u.exit.final = mark;
        ev->u.exit.ended = stk_get_s(r);
    } else if (mark) {
        ev->u.exit.cause = STK_CAUSE_EVICTED;
    }
}

static int get_update(struct stk_reader *r, struct stk_wire *w, uint64_t version)
{
    struct stk_event *ev = &w->ev;
    int rc;

    ev->u.update.priority = get_i32(r);
    ev->u.update.estimate = stk_get_i(r, INT64_MIN, INT64_MAX);
    if (version > 5) {
        ev->u.update.asked = stk_get_s(r);
        ev->u.update.limit = stk_get_s(r);
    }
    ev->u.update.plain = version > 6 && stk_get_bool(r);
    if (version < 5 || !stk_get_bool(r))
        return 0;
    rc = get_spec(r, w, version);
    r->bad |= w->spec.n_deps > 0;
    ev->u.update.spec = &w->spec;
    return rc;
}

static void get_text(struct stk_reader *r, char *ret, size_t size)
{
    uint32_t len = (uint32_t)stk_get_u(r, size - 1);
    const unsigned char *s = stk_get_raw(r, len);

    if (!s || memchr(s, '\0', len)) {
        r->bad = true;
        return;
    }
    memcpy(ret, s, len);
}

static void get_set(struct stk_reader *r, struct stk_wire *w)
{
    struct stk_set *e = &w->set;
    unsigned how;

    *e = (struct stk_set){.kind = (enum stk_set_kind)stk_get_u(r, STK_SET_KIND_MAX - 1)};
    how = (unsigned)stk_get_u(r, 3);
    e->clear = how & 1;
    e->evict = how & 2;
    e->row = stk_get_u32(r);
    e->column = stk_get_u32(r);
    e->value = stk_get_i(r, INT64_MIN, INT64_MAX);
    get_text(r, e->name, sizeof(e->name));
    get_text(r, e->text, sizeof(e->text));
    w->ev.u.set = e;
}

static int get_swap(struct stk_reader *r, struct stk_event *ev)
{
    ev->u.swap.node.i = stk_get_u32(r);
    ev->u.swap.to.i = stk_get_u32(r);
    ev->u.swap.had = stk_get_u(r, UINT64_MAX);
    ev->u.swap.has = stk_get_u(r, UINT64_MAX);
    ev->u.swap.with.i = stk_get_u32(r);
    return 0;
}

static int get_nodes(struct stk_reader *r, struct stk_wire *w)
{
    w->nodes = (struct stk_node_set){.number = stk_get_u32(r)};
    w->nodes.n = get_count(r, UINT32_MAX, LEAST_RANGE);
    if (stk_mem_grow(&w->mem, &w->ranges, &w->cap_ranges, w->nodes.n, sizeof(*w->ranges)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < w->nodes.n; i++) {
        w->ranges[i].first = stk_get_u32(r);
        w->ranges[i].last = stk_get_u32(r);
    }
    w->nodes.range = w->ranges;
    w->ev.u.nodes = &w->nodes;
    return 0;
}

static int get_evict(struct stk_reader *r, struct stk_event *ev, uint64_t version)
{
    unsigned how;

    ev->u.evict.for_job.i = stk_get_u32(r);
    how = (unsigned)stk_get_u(r, version > 4 ? 15 : version > 3 ? 7 : 3);
    ev->u.evict.suspend = how & 1;
    ev->u.evict.by_hand = how & 2;
    ev->u.evict.moved = how & 4;
    ev->u.evict.kill = how & 8;
    ev->u.evict.for_number = version > 7 ? stk_get_u32(r) : 0;
    ev->u.evict.for_tier = version > 7 ? (uint8_t)stk_get_u(r, STK_TIER_MAX) : 0;
    return 0;
}

static int get_members(struct stk_reader *r, struct stk_wire *w, uint64_t version)
{
    struct stk_event *ev = &w->ev;

    switch (ev->type) {
    case STK_EV_SUBMIT:
        ev->u.spec = &w->spec;
        return get_spec(r, w, version);
    case STK_EV_PLACE:
        return get_pieces(r, w, version);
    case STK_EV_ADVISE:
        ev->u.advice.where = stk_get_u32(r);
        ev->u.advice.rank = get_i32(r);
        return 0;
    case STK_EV_UPDATE:
        return get_update(r, w, version);
    case STK_EV_EVICT:
        return get_evict(r, ev, version);
    case STK_EV_EXITED:
        get_exit(r, ev, version);
        return 0;
    case STK_EV_SET:
        get_set(r, w);
        return 0;
    case STK_EV_NODE_DOWN:
    case STK_EV_NODE_UP:
    case STK_EV_NODE_OFF:
        ev->u.node.i = stk_get_u32(r);
        return 0;
    case STK_EV_GPUS_OFF:
        ev->u.off.node.i = stk_get_u32(r);
        ev->u.off.mask = stk_get_u(r, UINT64_MAX);
        ev->u.off.last = version > 1 ? stk_get_u(r, UINT64_MAX) : 0;
        ev->u.off.closed = version > 5 && stk_get_bool(r);
        return 0;
    case STK_EV_RESERVE:
        ev->u.booking = &w->booking;
        return stk_wire_get_booking(r, w);
    case STK_EV_UNRESERVE:
        ev->u.unreserve.number = stk_get_u32(r);
        ev->u.unreserve.why = (enum stk_over_why)stk_get_u(r, STK_OVER_MAX - 1);
        return 0;
    case STK_EV_SWAPPED:
        return get_swap(r, ev);
    case STK_EV_NODES:
        return get_nodes(r, w);
    case STK_EV_HOLD:
    case STK_EV_RELEASE:
    case STK_EV_CANCEL:
    case STK_EV_STARTED:
    case STK_EV_SUSPENDED:
    case STK_EV_CHECKPOINT:
    case STK_EV_TICK:
    case STK_EV_TYPE_MAX:
        break;
    }
    return 0;
}

int stk_wire_get(const unsigned char *buf, size_t len, struct stk_wire *ret, struct stk_err *err)
{
    struct stk_reader r = {buf, buf + len, false};
    uint64_t version = stk_get_u(&r, UINT64_MAX);
    int rc;

    if (!r.bad && (version == 0 || version > STK_WIRE_VERSION))
        return stk_err_set(err, -EPROTONOSUPPORT,
                           "event of format %llu; this program reads up to %d",
                           (unsigned long long)version, STK_WIRE_VERSION);
    ret->ev = (struct stk_event){.type = (enum stk_event_type)stk_get_u(&r, STK_EV_TYPE_MAX - 1)};
    ret->ev.at = stk_get_s(&r);
    ret->ev.job.i = stk_get_u32(&r);
    ret->ev.lease = stk_get_u32(&r);
    rc = r.bad ? 0 : get_members(&r, ret, version);
    if (rc < 0)
        return stk_err_set(err, rc, "out of memory for an event of %zu bytes", len);
    if (r.bad || r.at != r.end)
        return stk_err_set(err, -EBADMSG, "not an event: %s at byte %zu of %zu",
                           r.bad ? "a number is wrong" : "something is left over",
                           (size_t)(r.at - buf), len);
    return 0;
}
