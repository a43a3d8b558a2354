/* SPDX-License-Identifier: Apache-2.0 */
/* test_wire.c - every event comes back as it was put, and nothing else is taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fixture.h"
#include "model/topology.h"
#include "model/wire.h"

static bool same_lists(const struct stk_demand *a, const struct stk_demand *b)
{
    return a->n_resources == b->n_resources && a->n_speeds == b->n_speeds &&
           memcmp(a->resource, b->resource, sizeof(a->resource)) == 0 &&
           memcmp(a->speed_type, b->speed_type, sizeof(a->speed_type)) == 0 &&
           memcmp(a->speed_milli, b->speed_milli, sizeof(a->speed_milli)) == 0;
}

static bool same_terms(const struct stk_terms *a, const struct stk_terms *b)
{
    return a->deadline == b->deadline && a->min_run == b->min_run && a->queue == b->queue &&
           a->user == b->user && a->group == b->group && a->reservation == b->reservation &&
           a->movable == b->movable && a->plain == b->plain;
}

static bool same_spec(const struct stk_job_spec *a, const struct stk_job_spec *b)
{
    const struct stk_demand *d = &a->demand, *e = &b->demand;
    bool same =
        d->tasks == e->tasks && d->gpus == e->gpus && d->gpu_types == e->gpu_types &&
        d->cpu_milli == e->cpu_milli && d->mem_mib == e->mem_mib && d->cut == e->cut &&
        d->gpu_mem_mib == e->gpu_mem_mib && d->gpu_milli == e->gpu_milli && same_lists(d, e) &&
        d->share == e->share && d->share_max == e->share_max && d->mig == e->mig &&
        d->share_with == e->share_with && d->level_required == e->level_required &&
        d->per_node == e->per_node && d->level_preferred == e->level_preferred &&
        d->exclusive == e->exclusive && d->group == e->group && d->group_level == e->group_level &&
        a->kind == b->kind && a->tier == b->tier && a->priority == b->priority &&
        a->pool.i == b->pool.i && a->tenant == b->tenant && a->tag == b->tag &&
        a->estimate == b->estimate && a->begin == b->begin && a->array == b->array &&
        a->array_index == b->array_index && a->held == b->held && a->n_deps == b->n_deps &&
        memcmp(a->retry, b->retry, sizeof(a->retry)) == 0 && same_terms(&a->terms, &b->terms);

    for (uint32_t i = 0; same && i < a->n_deps; i++)
        same = a->deps[i].on == b->deps[i].on && a->deps[i].whole == b->deps[i].whole &&
               a->deps[i].type == b->deps[i].type;
    return same;
}

static bool same_pieces(const struct stk_event *a, const struct stk_event *b)
{
    bool same = a->u.place.n == b->u.place.n;

    for (uint32_t i = 0; same && i < a->u.place.n; i++) {
        const struct stk_piece *p = &a->u.place.pieces[i], *q = &b->u.place.pieces[i];

        same = p->node.i == q->node.i && p->gpus == q->gpus && p->tasks == q->tasks &&
               p->slot == q->slot && p->mask == q->mask;
    }
    return same;
}

static bool same_booking(const struct stk_booking_spec *a, const struct stk_booking_spec *b)
{
    bool same = a->number == b->number && a->tag == b->tag && a->holder == b->holder &&
                a->holder_id == b->holder_id && a->pool.i == b->pool.i &&
                a->gpu_types == b->gpu_types && a->gpus == b->gpus && a->start == b->start &&
                a->end == b->end && a->grace == b->grace && a->evict == b->evict &&
                a->drain == b->drain && a->n_nodes == b->n_nodes && !a->nodes == !b->nodes;

    for (uint32_t i = 0; same && i < a->n_nodes; i++)
        same = a->nodes[i].node.i == b->nodes[i].node.i && a->nodes[i].gpus == b->nodes[i].gpus;
    return same;
}

static bool same_members(const struct stk_event *a, const struct stk_event *b)
{
    switch (a->type) {
    case STK_EV_SUBMIT:
        return same_spec(a->u.spec, b->u.spec);
    case STK_EV_PLACE:
        return same_pieces(a, b);
    case STK_EV_EVICT:
        return a->u.evict.for_job.i == b->u.evict.for_job.i &&
               a->u.evict.suspend == b->u.evict.suspend &&
               a->u.evict.by_hand == b->u.evict.by_hand && a->u.evict.moved == b->u.evict.moved &&
               a->u.evict.for_number == b->u.evict.for_number &&
               a->u.evict.for_tier == b->u.evict.for_tier;
    case STK_EV_EXITED:
        return a->u.exit.cause == b->u.exit.cause && a->u.exit.code == b->u.exit.code &&
               a->u.exit.lost == b->u.exit.lost && a->u.exit.final == b->u.exit.final &&
               a->u.exit.ended == b->u.exit.ended;
    case STK_EV_UPDATE:
        return a->u.update.priority == b->u.update.priority &&
               a->u.update.estimate == b->u.update.estimate &&
               a->u.update.asked == b->u.update.asked && a->u.update.limit == b->u.update.limit &&
               a->u.update.plain == b->u.update.plain && !a->u.update.spec == !b->u.update.spec &&
               (!a->u.update.spec || same_spec(a->u.update.spec, b->u.update.spec));
    case STK_EV_SET:
        return memcmp(a->u.set, b->u.set, sizeof(*a->u.set)) == 0;
    case STK_EV_ADVISE:
        return a->u.advice.where == b->u.advice.where && a->u.advice.rank == b->u.advice.rank;
    case STK_EV_RESERVE:
        return same_booking(a->u.booking, b->u.booking);
    case STK_EV_UNRESERVE:
        return a->u.unreserve.number == b->u.unreserve.number &&
               a->u.unreserve.why == b->u.unreserve.why;
    case STK_EV_NODES:
        return a->u.nodes->number == b->u.nodes->number && a->u.nodes->n == b->u.nodes->n &&
               memcmp(a->u.nodes->range, b->u.nodes->range,
                      a->u.nodes->n * sizeof(*a->u.nodes->range)) == 0;
    case STK_EV_SWAPPED:
        return a->u.swap.node.i == b->u.swap.node.i && a->u.swap.to.i == b->u.swap.to.i &&
               a->u.swap.had == b->u.swap.had && a->u.swap.has == b->u.swap.has &&
               a->u.swap.with.i == b->u.swap.with.i;
    case STK_EV_NODE_DOWN:
    case STK_EV_NODE_UP:
        return a->u.node.i == b->u.node.i;
    case STK_EV_GPUS_OFF:
        return a->u.off.node.i == b->u.off.node.i && a->u.off.mask == b->u.off.mask &&
               a->u.off.last == b->u.off.last && a->u.off.closed == b->u.off.closed;
    default:
        return true;
    }
}

static const struct stk_booking_spec *random_booking(struct stk_rng *r, struct stk_piece *pieces)
{
    static struct stk_booking_spec k;

    k = (struct stk_booking_spec){.number = (uint32_t)stk_rng_next(r),
                                  .tag = (uint32_t)stk_rng_next(r),
                                  .holder = (enum stk_holder)stk_rng_below(r, STK_HOLDER_MAX),
                                  .holder_id = (uint32_t)stk_rng_next(r),
                                  .pool = {(uint32_t)stk_rng_below(r, 9)},
                                  .gpu_types = stk_rng_next(r),
                                  .gpus = (uint32_t)stk_rng_next(r),
                                  .start = (stk_time)stk_rng_next(r),
                                  .end = (stk_time)stk_rng_next(r),
                                  .grace = (stk_time)stk_rng_next(r),
                                  .evict = stk_rng_below(r, 2),
                                  .drain = stk_rng_below(r, 2),
                                  .n_nodes = (uint32_t)stk_rng_below(r, 5)};
    for (uint32_t i = 0; i < k.n_nodes; i++)
        pieces[i] = (struct stk_piece){.node = {(uint32_t)stk_rng_next(r)},
                                       .gpus = (uint32_t)stk_rng_next(r)};
    k.nodes = k.n_nodes ? pieces : NULL;
    return &k;
}

static void random_spec(struct stk_rng *r, struct stk_job_spec *spec, struct stk_dep *deps)
{
    *spec = fx_job((uint32_t)stk_rng_below(r, 100), (int64_t)stk_rng_below(r, 1000));
    spec->demand.gpu_types = stk_rng_below(r, 2) ? stk_rng_next(r) : STK_ANY_GPU_TYPE;
    spec->demand.cpu_milli = (uint32_t)stk_rng_next(r);
    spec->demand.mem_mib = (uint32_t)stk_rng_next(r);
    spec->demand.gpu_mem_mib = (uint32_t)stk_rng_next(r);
    spec->demand.gpu_milli = (uint16_t)(stk_rng_below(r, 2) * stk_rng_below(r, 1000));
    if (spec->demand.gpu_milli) {
        spec->demand.share = (uint8_t)stk_rng_below(r, STK_SHARE_MAX);
        spec->demand.share_max = (uint8_t)stk_rng_below(r, 256);
        spec->demand.share_with = (uint32_t)stk_rng_below(r, UINT32_MAX);
        spec->demand.mig = (uint16_t)stk_rng_below(r, 65536);
    }
    if (stk_rng_below(r, 2)) {
        spec->demand.level_required = (uint8_t)stk_rng_below(r, STK_AT_FAR);
        spec->demand.level_preferred = (uint8_t)stk_rng_below(r, STK_AT_FAR);
        spec->demand.group_level = (uint8_t)stk_rng_below(r, STK_AT_FAR);
        spec->demand.group = (uint32_t)stk_rng_next(r);
        spec->demand.per_node = (uint32_t)stk_rng_next(r);
        spec->demand.exclusive = stk_rng_below(r, 2);
    }
    for (uint32_t i = 0; i < STK_MAX_RESOURCES && stk_rng_below(r, 2); i++)
        stk_demand_set_resource(&spec->demand, i, (uint32_t)stk_rng_next(r));
    for (uint32_t i = 0; i < STK_MAX_SPEEDS && stk_rng_below(r, 2); i++)
        (void)stk_demand_set_speed(&spec->demand, (uint32_t)stk_rng_below(r, 64),
                                   (uint32_t)stk_rng_below(r, STK_MAX_SPEED));
    spec->kind = (enum stk_job_kind)stk_rng_below(r, STK_KIND_MAX);
    spec->tier = (enum stk_tier)stk_rng_below(r, STK_TIER_MAX);
    spec->priority = (int32_t)stk_rng_next(r);
    spec->pool.i = (uint32_t)stk_rng_below(r, 9);
    spec->tenant = (uint32_t)stk_rng_next(r);
    spec->tag = (uint32_t)stk_rng_next(r);
    spec->begin = (stk_time)stk_rng_next(r);
    spec->array = (uint32_t)stk_rng_next(r);
    spec->array_index = (uint32_t)stk_rng_next(r);
    spec->held = stk_rng_below(r, 2);
    if (stk_rng_below(r, 2))
        spec->terms = (struct stk_terms){
            .deadline = (stk_time)stk_rng_below(r, STK_MAX_DURATION),
            .min_run = (stk_time)stk_rng_below(r, STK_MAX_DURATION),
            .queue = (uint32_t)stk_rng_next(r),
            .user = (uint32_t)stk_rng_next(r),
            .group = (uint32_t)stk_rng_next(r),
            .reservation = (uint32_t)stk_rng_next(r),
            .movable = stk_rng_below(r, 2),
            .plain = stk_rng_below(r, 2),
            .asked = (stk_time)stk_rng_below(r, STK_MAX_DURATION),
            .limit = (stk_time)stk_rng_below(r, STK_MAX_DURATION),
        };
    for (int i = 0; i < STK_RETRY_MAX; i++)
        spec->retry[i] = (uint8_t)stk_rng_next(r);
    spec->n_deps = (uint32_t)stk_rng_below(r, 5);
    spec->deps = deps;
    for (uint32_t i = 0; i < spec->n_deps; i++)
        deps[i] = (struct stk_dep){(uint32_t)stk_rng_next(r),
                                   (enum stk_dep_type)stk_rng_below(r, STK_DEP_TYPE_MAX),
                                   stk_rng_below(r, 2)};
}

static struct stk_event random_event(struct stk_rng *r, enum stk_event_type type,
                                     struct stk_job_spec *spec, struct stk_dep *deps,
                                     struct stk_piece *pieces)
{
    struct stk_event ev = {.at = (stk_time)(stk_rng_next(r) >> stk_rng_below(r, 64)),
                           .type = type,
                           .job = {(uint32_t)(stk_rng_next(r) >> stk_rng_below(r, 64))},
                           .lease = (uint32_t)stk_rng_next(r)};

    if (type == STK_EV_SUBMIT) {
        random_spec(r, spec, deps);
        ev.u.spec = spec;
    } else if (type == STK_EV_PLACE) {
        ev.u.place.n = (uint32_t)stk_rng_below(r, 5);
        ev.u.place.pieces = pieces;
        for (uint32_t i = 0; i < ev.u.place.n; i++)
            pieces[i] = (struct stk_piece){{(uint32_t)stk_rng_next(r)},
                                           (uint32_t)stk_rng_below(r, 65),
                                           (uint32_t)stk_rng_below(r, 9),
                                           (uint32_t)stk_rng_below(r, 8),
                                           stk_rng_next(r)};
    } else if (type == STK_EV_SET) {
        static struct stk_set set;

        memset(&set, 0, sizeof(set));
        set.kind = (enum stk_set_kind)stk_rng_below(r, STK_SET_KIND_MAX);
        set.clear = stk_rng_below(r, 2);
        set.row = (uint32_t)stk_rng_next(r);
        set.column = (uint32_t)stk_rng_next(r);
        set.value = (int64_t)stk_rng_next(r);
        memset(set.name, 'n', stk_rng_below(r, sizeof(set.name)));
        memset(set.text, '1', stk_rng_below(r, sizeof(set.text)));
        ev.u.set = &set;
    } else if (type == STK_EV_RESERVE) {
        ev.u.booking = random_booking(r, pieces);
    } else if (type == STK_EV_UNRESERVE) {
        ev.u.unreserve.number = (uint32_t)stk_rng_next(r);
        ev.u.unreserve.why = (enum stk_over_why)stk_rng_below(r, STK_OVER_MAX);
    } else if (type == STK_EV_NODES) {
        static struct stk_node_range range[3];
        static struct stk_node_set nodes;

        for (uint32_t i = 0; i < 3; i++) {
            range[i].first = (uint32_t)stk_rng_next(r);
            range[i].last = (uint32_t)stk_rng_next(r);
        }
        nodes = (struct stk_node_set){(uint32_t)stk_rng_next(r), 0, range};
        nodes.n = (uint32_t)stk_rng_below(r, 4);
        ev.u.nodes = &nodes;
    } else if (type == STK_EV_SWAPPED) {
        ev.u.swap.node.i = (uint32_t)stk_rng_next(r);
        ev.u.swap.to.i = (uint32_t)stk_rng_next(r);
        ev.u.swap.had = stk_rng_next(r);
        ev.u.swap.has = stk_rng_next(r);
        ev.u.swap.with.i = (uint32_t)stk_rng_next(r);
    } else if (type == STK_EV_EVICT) {
        ev.u.evict.for_job.i = stk_rng_below(r, 2) ? STK_NONE : (uint32_t)stk_rng_next(r);
        ev.u.evict.suspend = stk_rng_below(r, 2);
        ev.u.evict.by_hand = stk_rng_below(r, 2);
        ev.u.evict.moved = stk_rng_below(r, 2);
        ev.u.evict.for_number = (stk_job_number)stk_rng_below(r, UINT32_MAX);
        ev.u.evict.for_tier = (uint8_t)stk_rng_below(r, STK_TIER_MAX + 1);
    } else if (type == STK_EV_EXITED) {
        ev.u.exit.cause = (enum stk_cause)stk_rng_below(r, STK_CAUSE_MAX);
        ev.u.exit.code = (int32_t)stk_rng_next(r);
        ev.u.exit.lost = (stk_time)stk_rng_next(r);
        ev.u.exit.final = stk_rng_below(r, 2);
        ev.u.exit.ended = (stk_time)stk_rng_next(r);
    } else if (type == STK_EV_UPDATE) {
        ev.u.update.priority = (int32_t)stk_rng_next(r);
        ev.u.update.estimate = (stk_time)stk_rng_next(r);
        ev.u.update.asked = (stk_time)stk_rng_next(r);
        ev.u.update.limit = (stk_time)stk_rng_next(r);
        ev.u.update.plain = stk_rng_below(r, 2);
        if (stk_rng_below(r, 2)) {
            random_spec(r, spec, deps);
            spec->n_deps = 0;
            ev.u.update.spec = spec;
        }
    } else if (type == STK_EV_ADVISE) {
        ev.u.advice.where = (uint32_t)stk_rng_next(r);
        ev.u.advice.rank = (int32_t)stk_rng_next(r);
    } else if (type == STK_EV_GPUS_OFF) {
        ev.u.off.node.i = (uint32_t)stk_rng_next(r);
        ev.u.off.mask = stk_rng_next(r);
        ev.u.off.last = stk_rng_next(r);
        ev.u.off.closed = stk_rng_below(r, 2);
    } else {
        ev.u.node.i = (uint32_t)stk_rng_next(r);
    }
    return ev;
}

static void every_event_comes_back(void **state)
{
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_job_spec spec;
    struct stk_piece pieces[8];
    struct stk_dep deps[8];
    struct stk_rng r;
    struct stk_wire w;

    (void)state;
    stk_rng_init(&r, 1);
    stk_wire_init(&w, &mem);
    for (int i = 0; i < 5000; i++) {
        struct stk_event ev =
            random_event(&r, (enum stk_event_type)(i % STK_EV_TYPE_MAX), &spec, deps, pieces);
        unsigned char buf[1024];
        size_t len = 0, less = 0;

        assert_true(stk_wire_bound(&ev) <= sizeof(buf));
        assert_int_equal(stk_wire_put(&ev, buf, stk_wire_bound(&ev), &len), 0);
        assert_int_equal(stk_wire_get(buf, len, &w, NULL), 0);
        assert_true(w.ev.at == ev.at && w.ev.type == ev.type && w.ev.job.i == ev.job.i &&
                    w.ev.lease == ev.lease);
        assert_true(same_members(&ev, &w.ev));
        assert_int_equal(stk_wire_put(&ev, buf, len, &less), 0);
        assert_int_equal(stk_wire_put(&ev, buf, len - 1, &less), -ENOSPC);
        /* cut anywhere, or with something after it, it is no event */
        assert_int_equal(stk_wire_put(&ev, buf, sizeof(buf), &len), 0);
        for (size_t cut = 0; cut < len; cut++)
            assert_int_equal(stk_wire_get(buf, cut, &w, NULL), -EBADMSG);
        buf[len] = 0;
        assert_int_equal(stk_wire_get(buf, len + 1, &w, NULL), -EBADMSG);
    }
    stk_wire_done(&w);
    assert_int_equal(heap.live, 0);
}

static void what_is_no_event_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        int rc;
    } bad[] = {
        {"", 0, -EBADMSG},
        {"\11\1\0\0\0", 5, -EPROTONOSUPPORT},
        {"\0\1\0\0\0", 5, -EPROTONOSUPPORT},
        {"\1\15\0\0\0", 5, -EBADMSG},                    /* type 13 */
        {"\1\200\0\0\0\0", 6, -EBADMSG},                 /* a longer way to write 0 */
        {"\1\7\0\0\1\15\0\0\0", 9, -EBADMSG},            /* cause 13 */
        {"\1\7\0\0\1\1\0\0\2", 9, -EBADMSG},             /* neither true nor false */
        {"\1\4\0\0\1\377\377\377\377\17", 10, -EBADMSG}, /* more pieces than bytes */
        {"\1\4\0\0\1\200\200\200\200\20", 10, -EBADMSG}, /* more than 32 bits */
        {"\3\5\0\0\1\0\4", 7, -EBADMSG},                 /* moved, before there was that */
        {"\1\1\377\377\377\377\377\377\377\377\377\2\0\0", 14, -EBADMSG}, /* than 64 */
    };
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_err err;
    struct stk_wire w;

    (void)state;
    stk_wire_init(&w, &mem);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(stk_wire_get((const unsigned char *)bad[i].bytes, bad[i].len, &w, &err),
                         bad[i].rc);
        assert_true(err.text[0] != '\0');
    }
    stk_wire_done(&w);
    assert_true(heap.live == 0);
}

static void what_cannot_be_said_is_not_put(void **state)
{
    struct stk_job_spec spec = fx_job(1, 1);
    struct stk_event ev = {.type = STK_EV_SUBMIT, .u.spec = &spec};
    const struct stk_event end = {.type = STK_EV_EXITED, .u.exit = {.cause = STK_CAUSE_MAX}};
    const struct stk_event none = {.type = STK_EV_TYPE_MAX};
    unsigned char buf[STK_WIRE_SMALL];
    size_t len;

    (void)state;
    spec.kind = STK_KIND_MAX;
    assert_int_equal(stk_wire_put(&ev, buf, sizeof(buf), &len), -EINVAL);
    spec.kind = STK_KIND_TRAIN;
    spec.n_deps = STK_MAX_DEPS + 1;
    assert_int_equal(stk_wire_put(&ev, buf, sizeof(buf), &len), -EINVAL);
    assert_int_equal(stk_wire_put(&end, buf, sizeof(buf), &len), -EINVAL);
    assert_int_equal(stk_wire_put(&none, buf, sizeof(buf), &len), -EINVAL);
}

/* Journals of old must stay readable: these bytes are for ever. */
static void the_format_stands_still(void **state)
{
    const struct stk_piece piece = {{2}, 3, 1, 4, 0x85};
    const struct stk_event place = {
        .at = 1000000, .type = STK_EV_PLACE, .job = {7}, .lease = 300, .u.place = {&piece, 1}};
    static const unsigned char want[] = {8, 4, 0x80, 0x89, 0x7a, 7,    0xac, 2,
                                         1, 2, 3,    1,    4,    0x85, 1};
    unsigned char buf[STK_WIRE_SMALL];
    size_t len = 0;

    (void)state;
    assert_int_equal(stk_wire_put(&place, buf, sizeof(buf), &len), 0);
    assert_int_equal(len, sizeof(want));
    assert_memory_equal(buf, want, sizeof(want));
}

static void version_1_is_still_read(void **state)
{
    static const unsigned char failed[] = {1, 7, 0, 0, 5, 2, 6, 0, 0},
                               again[] = {1, 7, 0, 0, 5, 2, 6, 0, 1};
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_wire w;

    (void)state;
    stk_wire_init(&w, &mem);
    assert_int_equal(stk_wire_get(failed, sizeof(failed), &w, NULL), 0);
    assert_int_equal(w.ev.u.exit.cause, STK_CAUSE_FAILED);
    assert_int_equal(w.ev.u.exit.code, 3);
    assert_false(w.ev.u.exit.final);
    assert_int_equal(stk_wire_get(again, sizeof(again), &w, NULL), 0);
    assert_int_equal(w.ev.u.exit.cause, STK_CAUSE_EVICTED); /* it was queued again */
    stk_wire_done(&w);
}

/* A job of two GPUs, as version 3 had it. */
static void version_3_is_still_read(void **state)
{
    static const unsigned char submit[] = {3, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 1, 0, 1,
                                           0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_wire w;

    (void)state;
    stk_wire_init(&w, &mem);
    assert_int_equal(stk_wire_get(submit, sizeof(submit), &w, NULL), 0);
    assert_int_equal(w.spec.demand.gpus, 2);
    assert_true(w.spec.demand.cut);
    assert_int_equal(w.spec.demand.level_required, 0);
    assert_int_equal(w.spec.estimate, 1);
    stk_wire_done(&w);
}

/* It had no terms, and no mark that there are none, and no set of nodes. */
static void version_4_is_still_read(void **state)
{
    struct stk_job_spec spec = fx_job(2, 1);
    const struct stk_event ev = {.type = STK_EV_SUBMIT, .u.spec = &spec};
    unsigned char buf[STK_WIRE_SMALL];
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_wire w;
    size_t len = 0;

    (void)state;
    stk_wire_init(&w, &mem);
    assert_int_equal(stk_wire_put(&ev, buf, sizeof(buf), &len), 0);
    buf[0] = 4;
    assert_int_equal(stk_wire_get(buf, len - 2, &w, NULL), 0);
    assert_true(same_spec(&w.spec, &spec));
    assert_false(stk_terms_any(&w.spec.terms));
    stk_wire_done(&w);
}

/* Nobody said how long a job may run though less is expected of it. */
static void version_5_is_still_read(void **state)
{
    static const unsigned char update[] = {5, 13, 0, 0, 0, 14, 8, 0};
    struct stk_job_spec spec = fx_job(2, 1);
    const struct stk_event ev = {.type = STK_EV_SUBMIT, .u.spec = &spec};
    unsigned char buf[STK_WIRE_SMALL];
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_wire w;
    size_t len = 0;

    (void)state;
    stk_wire_init(&w, &mem);
    assert_int_equal(stk_wire_get(update, sizeof(update), &w, NULL), 0);
    assert_int_equal(w.ev.type, STK_EV_UPDATE);
    assert_int_equal(w.ev.u.update.priority, 7);
    assert_int_equal(w.ev.u.update.estimate, 4);
    assert_int_equal(w.ev.u.update.limit, 0);
    spec.terms.movable = true;
    assert_int_equal(stk_wire_put(&ev, buf, sizeof(buf), &len), 0);
    buf[0] = 5;
    assert_int_equal(stk_wire_get(buf, len - 4, &w, NULL), 0); /* the last four are new */
    assert_true(same_spec(&w.spec, &spec));
    stk_wire_done(&w);
}

/* No job was plain. */
static void version_6_is_still_read(void **state)
{
    struct stk_job_spec spec = fx_job(2, 1);
    const struct stk_event ev = {.type = STK_EV_SUBMIT, .u.spec = &spec};
    unsigned char buf[STK_WIRE_SMALL];
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_wire w;
    size_t len = 0;

    (void)state;
    stk_wire_init(&w, &mem);
    spec.terms.movable = true;
    assert_int_equal(stk_wire_put(&ev, buf, sizeof(buf), &len), 0);
    buf[0] = 6;
    assert_int_equal(stk_wire_get(buf, len, &w, NULL), -EBADMSG);
    assert_int_equal(stk_wire_get(buf, len - 1, &w, NULL), 0);
    assert_true(same_spec(&w.spec, &spec));
    stk_wire_done(&w);
}

/* It did not say for whom. */
static void version_7_is_still_read(void **state)
{
    static const unsigned char evict[] = {7, 5, 0, 3, 9, 4, 1};
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_wire w;

    (void)state;
    stk_wire_init(&w, &mem);
    assert_int_equal(stk_wire_get(evict, sizeof(evict), &w, NULL), 0);
    assert_int_equal(w.ev.type, STK_EV_EVICT);
    assert_int_equal(w.ev.u.evict.for_job.i, 4);
    assert_true(w.ev.u.evict.suspend);
    assert_int_equal(w.ev.u.evict.for_number, 0);
    assert_int_equal(w.ev.u.evict.for_tier, 0);
    stk_wire_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_comes_back),
        cmocka_unit_test(what_is_no_event_is_refused),
        cmocka_unit_test(what_cannot_be_said_is_not_put),
        cmocka_unit_test(the_format_stands_still),
        cmocka_unit_test(version_1_is_still_read),
        cmocka_unit_test(version_3_is_still_read),
        cmocka_unit_test(version_4_is_still_read),
        cmocka_unit_test(version_5_is_still_read),
        cmocka_unit_test(version_6_is_still_read),
        cmocka_unit_test(version_7_is_still_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
