/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_core.c - bytes as a choice of policies, a cluster and a stream of events with time between
 * them, legal and not.
 *
 * After each step the core must be sound and a refused event must have changed nothing. At the end
 * the accepted events are replayed into a second core, which must have the same digest; and when
 * nothing illegal was accepted, every job must have ended once all nodes are up and holds released.
 */
#include "lib/world.h"
#include "policy/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

static uint32_t next(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

static const uint32_t sizes[8] = {1, 2, 3, 4, 8, 12, 16, 0};

static const struct stk_layout halves = {.gpus = 8, .n_islands = 2, .island = {0x0f, 0xf0}};

static void read_cluster(struct world *w, struct input *in)
{
    uint32_t b = next(in), limits = next(in);

    w->setup.patient = limits & 4;
    w->setup.n_pools = 1 + (b & 1);
    w->setup.n_nodes = 2 + (b >> 1 & 3);
    for (uint32_t i = 0; i < w->setup.n_nodes; i++) {
        uint32_t k = next(in);
        struct stk_node_spec *n = &w->nodes[i];

        *n = (struct stk_node_spec){.gpus = sizes[k & 7], .gpu_type = k >> 3 & 1};
        n->pool.i = i < w->setup.n_pools ? i : (k >> 4 & 1) % w->setup.n_pools;
        n->cpu_milli = limits & 1 ? 1000 * (k >> 5) : 0;
        n->mem_mib = limits & 2 ? 1024 * (k >> 5) : 0;
        n->aggregate = w->setup.place[0] == 'c';
        n->rack = limits & 8 ? i / 2 : 0;
        n->zone = n->rack ? 1 : 0;
        n->layout = limits & 16 && n->gpus == 8 && !n->aggregate;
    }
    w->topology = limits & 24;
    w->setup.layouts = &halves;
    w->setup.n_layouts = 1;
    w->setup.nodes = w->nodes;
}

static struct fx *read_setup(struct world *w, struct input *in)
{
    static const char *const params[] = {"",
                                         "",
                                         "round_s=2",
                                         "las.thresholds=4,16",
                                         "las.round_s=3",
                                         "drain.after_s=3 drain.limit_s=20 drain.most=2",
                                         "",
                                         "round_s=2"};
    static uint32_t n;
    uint32_t b;

    while (n == 0 || world_combination(w, n))
        n++;
    b = next(in);
    (void)world_combination(w, (b << 8 | next(in)) % n);
    b = next(in);
    w->setup.params = params[b & 7];
    if ((b & 7) == 5 && stk_preempt_find(w->setup.preempt)->pass)
        w->setup.params = ""; /* it does not go with that */
    w->setup.forget = b >> 3 & 1;
    w->setup.retain = b >> 4 & 3;
    w->setup.cap = b >> 6 & 1 ? 1 : 0;
    w->exact = b >> 7;
    b = next(in);
    w->setup.late_start = (stk_time)(b & 3) * STK_SECOND;
    w->setup.slow_stop = (stk_time)(b >> 2 & 3) * STK_SECOND;
    w->setup.crash_pct = b >> 4 & 1 ? 10 : 0;
    w->setup.final_pct = b >> 4 & 1 ? 5 : 0;
    w->setup.sleep_pct = b & 2 ? 100 : b & 1 ? 50 : 0;
    w->setup.seed = b >> 5;
    read_cluster(w, in);
    return fx_new(&w->setup);
}

static uint32_t read_slot(const struct fx *f, struct input *in)
{
    uint32_t b = next(in);

    return b == 255 || f->s->n_jobs == 0 ? b : b % f->s->n_jobs;
}

static void wish(struct stk_demand *d, uint32_t b, uint32_t c)
{
    d->level_required = b & 7;
    d->level_preferred = b >> 3 & 7;
    d->exclusive = b & 64;
    d->group = c & 3;
    d->group_level = c >> 2 & 7;
    d->per_node = c >> 5;
}

static void submit(const struct world *w, struct fx *f, struct input *in)
{
    uint32_t b = next(in), c = next(in), d = next(in);
    struct stk_job_spec spec = fx_job(sizes[b & 7], 1 + (b >> 3));
    uint32_t on = c & 16 ? read_slot(f, in) : STK_NONE, job = stk_core_next_job(f->core).i;
    const struct stk_dep dep = {on < f->s->n_jobs ? f->s->jobs[on].number : 9999,
                                (enum stk_dep_type)(c >> 5 & 3), false};

    spec.demand.cut = c & 1;
    spec.demand.tasks = c & 1 ? 1 : 1 + (c >> 1 & 3);
    spec.held = (c & 8) != 0 && (d & 1);
    spec.begin = (c & 8) != 0 && !(d & 1) ? f->now + 3 * STK_SECOND : 0;
    spec.deps = &dep;
    spec.n_deps = on != STK_NONE;
    spec.tier = (enum stk_tier)((d >> 1 & 3) % STK_TIER_MAX);
    spec.priority = (int32_t)(d >> 3 & 1) * (int32_t)(d & 32 ? 300 : 800);
    spec.pool.i = d >> 4 & 1;
    spec.demand.gpu_types = c & 128 ? 1 + (d >> 5 & 1) : STK_ANY_GPU_TYPE;
    spec.demand.cpu_milli = 500 * (d >> 5 & 3);
    spec.demand.mem_mib = d & 128 ? 700 : 0;
    spec.retry[STK_RETRY_ERROR] = d & 64 ? 2 : 0;
    if (w->topology)
        wish(&spec.demand, next(in), next(in));
    if (fx_try_submit(f, &spec) == 0 && !w->exact)
        f->work[job].left = spec.estimate / 2 * (1 + (c & 3));
}

static struct stk_booking_spec odd_booking(const struct fx *f, struct input *in, uint32_t b)
{
    const uint32_t c = next(in);

    return (struct stk_booking_spec){
        .number = b & 1 ? f->s->book.next : b,
        .holder = (enum stk_holder)(c % (STK_HOLDER_MAX + 1)),
        .holder_id = c >> 3 & 7,
        .pool.i = b >> 1 & 1,
        .gpu_types = b & 4 ? 1 : STK_ANY_GPU_TYPE,
        .gpus = sizes[b >> 3 & 7],
        .start = f->now + (stk_time)(c & 15) * STK_SECOND,
        .end = f->now + (stk_time)next(in) * STK_SECOND,
        .grace = (stk_time)(c >> 6) * STK_SECOND,
        .evict = b & 64,
        .drain = b & 128,
    };
}

static struct stk_set odd_set(struct input *in, uint32_t b)
{
    const uint32_t c = next(in);

    return (struct stk_set){
        .kind = (enum stk_set_kind)(b % (STK_SET_KIND_MAX + 1)),
        .clear = c & 1,
        .evict = c & 2,
        .row = c >> 2 & 7,
        .column = c >> 5,
        .value = (int64_t)next(in) - 8,
        .name = "las.round_s",
        .text = "3",
    };
}

/* Any event with any numbers. True: it was accepted, and the fake engine knows nothing of it. */
static bool wild(struct fx *f, struct input *in)
{
    struct stk_event ev = {.at = f->now,
                           .type = (enum stk_event_type)(next(in) % (STK_EV_TYPE_MAX + 1))};
    uint32_t slot = read_slot(f, in), b = next(in);
    struct stk_piece pieces[2];
    uint64_t before = fx_digest(f);
    struct stk_job_spec spec = fx_job(b & 31, 5);
    struct stk_booking_spec booking;
    struct stk_set set;
    struct stk_node_range range = {0, 0};
    struct stk_node_set nodes = {.range = &range};

    ev.job.i = slot;
    ev.lease = b & 1 ? b : slot < f->s->n_jobs ? f->s->jobs[slot].lease : 0;
    if (!(b & 1) && ev.lease == 0 && slot < f->s->n_jobs)
        ev.lease = f->s->jobs[slot].slept;
    if (ev.type == STK_EV_SUBMIT) {
        spec.estimate = (stk_time)((uint64_t)next(in) << (b & 63));
        ev.job = stk_core_next_job(f->core);
        ev.u.spec = &spec;
    } else if (ev.type == STK_EV_PLACE) {
        for (int i = 0; i < 2; i++) {
            uint32_t m = next(in);

            pieces[i] =
                (struct stk_piece){{m & 7}, (uint32_t)__builtin_popcount(m), 1 + (b >> 6), 0, m};
        }
        ev.lease = f->s->next_lease;
        ev.u.place.pieces = pieces;
        ev.u.place.n = b >> 2 & 3 ? 1 : 2;
    } else if (ev.type == STK_EV_EXITED) {
        ev.u.exit.cause = (enum stk_cause)(next(in) % (STK_CAUSE_MAX + 1));
        ev.u.exit.final = b & 128;
        ev.u.exit.lost = (stk_time)((uint64_t)next(in) << (next(in) & 63));
    } else if (ev.type == STK_EV_EVICT) {
        ev.u.evict.for_job.i = b & 2 ? read_slot(f, in) : STK_NONE;
        ev.u.evict.suspend = b & 4;
        ev.u.evict.moved = b & 8;
    } else if (ev.type == STK_EV_GPUS_OFF) {
        ev.u.off.node.i = b & 15;
        ev.u.off.mask = next(in);
    } else if (ev.type == STK_EV_NODES) {
        range.first = b & 7;
        range.last = b >> 3 & 15;
        nodes.number = next(in) & 7;
        nodes.n = b >> 7;
        ev.u.nodes = &nodes;
    } else if (ev.type == STK_EV_SWAPPED) {
        ev.u.swap.node.i = b & 7;
        ev.u.swap.to.i = b & 128 ? next(in) & 7 : b & 7;
        ev.u.swap.had = b & 32 ? next(in) : UINT64_C(1) << (b >> 3 & 7);
        ev.u.swap.has = b & 32 ? next(in) : UINT64_C(1) << (next(in) & 15);
        ev.u.swap.with.i = b & 64 ? read_slot(f, in) : STK_NONE;
    } else if (ev.type == STK_EV_RESERVE) {
        booking = odd_booking(f, in, b);
        ev.u.booking = &booking;
    } else if (ev.type == STK_EV_UNRESERVE) {
        ev.u.unreserve.number = b & 7;
        ev.u.unreserve.why = (enum stk_over_why)(b >> 3);
    } else if (ev.type == STK_EV_SET) {
        set = odd_set(in, b);
        ev.u.set = &set;
    } else {
        ev.u.node.i = b & 15;
    }
    if (fx_apply(f, &ev) == 0) {
        f->wild = true;
        return true;
    }
    fx_must(fx_digest(f) == before, "a refused event changes nothing");
    return false;
}

/* A job that has not started asks for something else. */
static void change(struct fx *f, struct input *in)
{
    uint32_t b = next(in), c = next(in);
    struct stk_job_spec spec = fx_job(sizes[b & 7], 1 + (b >> 3));

    spec.demand.cut = c & 1;
    spec.demand.tasks = c & 1 ? 1 : 1 + (c >> 1 & 3);
    spec.begin = c & 8 ? f->now + 3 * STK_SECOND : 0;
    spec.tier = (enum stk_tier)((c >> 4 & 3) % STK_TIER_MAX);
    spec.priority = c & 64 ? 800 : 0;
    spec.pool.i = c >> 7;
    (void)fx_change(f, read_slot(f, in), &spec);
}

static bool step(const struct world *w, struct fx *f, struct input *in)
{
    uint32_t b = next(in);

    switch (b & 15) {
    case 0:
        (void)fx_cancel(f, read_slot(f, in));
        return false;
    case 1:
        (void)fx_job_event(f, STK_EV_HOLD, read_slot(f, in));
        return false;
    case 2:
        (void)fx_job_event(f, STK_EV_RELEASE, read_slot(f, in));
        return false;
    case 3:
        (void)fx_node(f, b >> 5, b & 16);
        return false;
    case 10:
        (void)fx_gpus_off(f, b >> 4, next(in));
        return false;
    case 4:
        fx_run(f, f->now + (stk_time)(b >> 4) * STK_SECOND);
        fx_turn(f);
        return false;
    case 5:
    case 6:
        fx_turn(f);
        return false;
    case 7:
        return wild(f, in);
    case 11:
        if (b & 16)
            change(f, in);
        else
            (void)fx_update(f, read_slot(f, in), (int32_t)(b >> 4) * 100,
                            (stk_time)next(in) * STK_SECOND);
        return false;
    case 8:
        (void)fx_suspend(f, read_slot(f, in));
        return false;
    case 9:
        if (b & 16)
            (void)fx_wake_anew(f, read_slot(f, in));
        else
            (void)fx_kill(f, read_slot(f, in), STK_CAUSE_SIGNAL);
        return false;
    default:
        submit(w, f, in);
        return false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct world w = {.exact = false};
    bool illegal = false;
    struct fx *f;

    if (size > 400)
        return 0;
    f = read_setup(&w, &in);
    while (in.left > 0) {
        illegal |= step(&w, f, &in);
        fx_sound(f);
    }
    if (!illegal) {
        world_calm(f);
        fx_drain(f);
        for (uint32_t i = 0; i < f->s->n_jobs; i++)
            fx_must(fx_state(f, i) == STK_JOB_DONE || fx_state(f, i) == STK_JOB_NONE,
                    "job %u ends (%s)", fx_of(f, i)->number, world_name(&w));
    }
    fx_sound(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
    return 0;
}
