/* SPDX-License-Identifier: Apache-2.0 */
/* run_feed.c - the source of a run: its jobs are submitted when their times come, windows of rules
 * and reservations open and close, and the adviser speaks once a round. A job that is refused ends
 * the run, or is left out where whoever runs it says so. */
#include <stdio.h>
#include <stdlib.h>

#include "hetero/hetero.h"
#include "sim/running.h"
#include "sys/big.h"

/* The next arrival, the next round of the adviser, or what the guest has to say. */
static stk_time next_submit(void *ctx)
{
    const struct stk_running *x = ctx;
    const struct stk_run_guest *g = stk_running_guest(x);
    stk_time at = x->next_job < x->t->n_jobs ? x->t->jobs[x->next_job].submit : STK_NEVER_TIME;
    stk_time round = g->next ? g->next(g->ctx) : STK_NEVER_TIME;

    at = round < at ? round : at;
    round = STK_NEVER_TIME;
    /* rules alone do not keep it going, but at the start */
    if (x->ruled && (at < STK_NEVER_TIME || x->s->n_live > 0))
        round = stk_ruled_next(x->ruled);
    if (x->booked && (at < STK_NEVER_TIME || x->s->n_live > 0)) {
        stk_time window = stk_booked_next(x->booked);

        round = window < round ? window : round;
    }
    at = round < at ? round : at;
    round = STK_NEVER_TIME;

    if (x->adviser && x->s->n_live > 0) {
        round = (x->s->now + x->s->round - 1) / x->s->round * x->s->round;
        if (round <= x->advised)
            round = x->advised + x->s->round;
    }
    return at < round ? at : round;
}

/* The GPU types it runs on at all. */
static uint64_t types_it_runs_on(const struct stk_running *x, const struct stk_trace_job *j)
{
    uint64_t types = 0;

    if (!stk_running_steps(x, j))
        return STK_ANY_GPU_TYPE;
    for (uint32_t t = 0; t < x->speeds.s.types; t++)
        if (stk_speed_alone(&x->speeds.s, j->speed_row, t, false) > 0)
            types |= UINT64_C(1) << t;
    return types;
}

static int fill_deps(struct stk_running *x, const struct stk_trace_job *j,
                     struct stk_job_spec *spec)
{
    if (stk_mem_grow(&stk_big_mem, &x->deps, &x->cap_deps, j->n_deps, sizeof(*x->deps)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < j->n_deps; i++) {
        const struct stk_trace_dep *d = &x->t->deps[j->first_dep + i];

        x->deps[i] = (struct stk_dep){.on = x->numbers[d->on], .type = d->type};
    }
    spec->deps = x->deps;
    spec->n_deps = j->n_deps;
    return 0;
}

/* The job's id as the trace has it. */
static const char *id_of(const struct stk_trace *t, uint32_t i, char buf[64])
{
    uint64_t id = t->jobs[i].id;

    if (id & STK_TRACE_ID_NAME)
        (void)snprintf(buf, 64, "%s", stk_names_get(&t->ids, (uint32_t)(id & ~STK_TRACE_ID_NAME)));
    else
        (void)snprintf(buf, 64, "%llu", (unsigned long long)id);
    return buf;
}

/* Whose reservations it may use. */
static int book(const struct stk_running *x, uint32_t i, struct stk_terms *terms,
                struct stk_err *err)
{
    const struct stk_trace_job *j = &x->t->jobs[i];
    const uint32_t named = j->extra ? x->t->extras[j->extra - 1].reservation : 0;
    const char *name = named ? stk_names_get(&x->t->reservations, named - 1) : NULL;
    char id[64];

    if (!x->booked)
        return 0;
    terms->user = terms->user ? terms->user : j->user;
    terms->reservation = stk_booked_id(x->booked, name, id_of(x->t, i, id));
    return name && terms->reservation == 0
               ? stk_err_set(err, -ENOENT, "there is no reservation \"%.60s\"", name)
               : 0;
}

#define MAX_RANGES 256

/* "0-3,7": ranges of node numbers, in order. How many; < 0: they are not. */
static int read_ranges(const char *s, struct stk_node_range *ret)
{
    int n = 0;

    while (*s) {
        char *end;
        unsigned long from = strtoul(s, &end, 10), to = from;

        if (end == s || n == MAX_RANGES)
            return -EINVAL;
        if (*end == '-') {
            s = end + 1;
            to = strtoul(s, &end, 10);
        }
        if (end == s || (*end && *end != ',') || from > UINT32_MAX || to > UINT32_MAX)
            return -EINVAL;
        ret[n++] = (struct stk_node_range){(uint32_t)from, (uint32_t)to};
        s = end + (*end == ',');
    }
    return n;
}

/* The core's set of the nodes that it names; sets are numbered as the lists of the trace. */
static int confine(struct stk_running *x, struct stk_loop *loop, const struct stk_trace_job *j,
                   struct stk_demand *d, struct stk_err *err)
{
    const uint32_t number = j->extra ? x->t->extras[j->extra - 1].nodes : 0;

    while (x->s->n_sets < number) {
        const char *list = stk_names_get(&x->t->node_lists, x->s->n_sets);
        struct stk_node_range range[MAX_RANGES];
        struct stk_node_set set = {.number = x->s->n_sets + 1, .range = range};
        const struct stk_event ev = {
            .at = j->submit, .type = STK_EV_NODES, .job = {STK_NONE}, .u.nodes = &set};
        int n = read_ranges(list, range);

        set.n = n > 0 ? (uint32_t)n : 0;
        if (n < 0 || stk_loop_apply(loop, &ev, err) < 0)
            return stk_err_set(err, -EINVAL,
                               "nodelist \"%.60s\" is not numbers of nodes in order, 0 to %u", list,
                               x->s->n_nodes - 1);
    }
    d->nodes = (uint16_t)number;
    return 0;
}

static int submit(struct stk_running *x, struct stk_loop *loop, uint32_t i, struct stk_err *err)
{
    const struct stk_trace_job *j = &x->t->jobs[i];
    struct stk_job_spec spec = {
        .demand = stk_trace_demand(x->t, j, &x->map),
        .kind = (enum stk_job_kind)j->kind,
        .tier = (enum stk_tier)j->tier,
        .priority = j->priority,
        .pool = x->pool_of_group ? x->pool_of_group[j->group] : (stk_pool_id){0},
        .tag = i,
        .begin = j->begin,
        .array_index = j->array_index,
        .held = j->held,
    };
    const struct stk_event ev = {
        .at = j->submit, .type = STK_EV_SUBMIT, .job = stk_core_next_job(x->core), .u.spec = &spec};

    stk_tenants_place(x->o->tenants, j, &spec);
    if (x->flat)
        spec.tenant = x->flat->of_trace[j->tenant];
    spec.demand.gpu_types &= types_it_runs_on(x, j);
    stk_trace_terms(x->t, j, x->signals, &spec.terms);
    if (book(x, i, &spec.terms, err) < 0)
        return -ENOENT;
    if (confine(x, loop, j, &spec.demand, err) < 0)
        return -EINVAL;
    stk_sim_estimate_set(&x->told, j, &spec);
    if (stk_running_steps(x, j)) /* measured */
        spec.demand.n_speeds = 0;
    spec.demand.row = stk_running_steps(x, j) ? j->speed_row + 1 : 0;
    if (j->n_deps > 0 && fill_deps(x, j, &spec) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (x->numbers) {
        spec.array = j->array ? x->numbers[j->array - 1] : 0;
        x->numbers[i] = x->s->next_number;
    }
    return stk_loop_apply(loop, &ev, err);
}

/* 0: it is left out. */
static int refuse(struct stk_running *x, uint32_t i, int rc, const struct stk_err *why,
                  struct stk_err *err)
{
    const struct stk_run_guest *g = stk_running_guest(x);
    char id[64];

    if (x->numbers)
        x->numbers[i] = 0;
    if (g->refused)
        g->refused(g->ctx, i, why->text);
    if (x->o->lenient)
        return 0;
    return stk_err_set(err, rc, "job %s %.150s; --lenient leaves such jobs out", id_of(x->t, i, id),
                       why->text);
}

static int feed_jobs(struct stk_running *x, struct stk_loop *loop, stk_time now,
                     struct stk_err *err)
{
    while (x->next_job < x->t->n_jobs && x->t->jobs[x->next_job].submit <= now) {
        uint32_t i = x->next_job++;
        struct stk_err why = {{0}};
        char id[64];
        int rc = submit(x, loop, i, &why);

        if (rc == -ERANGE || rc == -ENOENT || (rc == -EINVAL && stk_running_guest(x)->refused))
            rc = refuse(x, i, rc, &why, err);
        else if (rc < 0)
            rc = stk_err_set(err, rc, "job %s: %.180s", id_of(x->t, i, id), why.text);
        if (rc < 0)
            return rc;
    }
    return 0;
}

struct window_feed {
    struct stk_running *x;
    struct stk_loop *loop;
};

static int apply_window(void *ctx, const struct stk_event *ev, struct stk_err *err)
{
    const struct window_feed *f = ctx;
    const struct stk_run_guest *g = stk_running_guest(f->x);
    int rc = stk_loop_apply(f->loop, ev, err);

    if (rc < 0 && g->refused_window)
        g->refused_window(g->ctx, ev->u.booking->tag - 1, err->text);
    return rc;
}

static int feed(void *ctx, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    struct stk_running *x = ctx;
    const struct stk_run_guest *g = stk_running_guest(x);
    struct window_feed f = {x, loop};
    const struct stk_booked_to to = {apply_window, &f};
    int rc = 0;

    if (x->booked && stk_booked_next(x->booked) <= now)
        rc = stk_booked_feed(x->booked, stk_core_next_booking(x->core), now, &to, err);
    rc = rc < 0 ? rc : feed_jobs(x, loop, now, err);
    if (rc == 0 && g->feed && g->next(g->ctx) <= now)
        rc = g->feed(g->ctx, loop, x->core, now, err);
    if (rc < 0)
        return rc;
    if (x->ruled && stk_ruled_next(x->ruled) <= now)
        rc = stk_ruled_feed(x->ruled, loop, x->s, now, err);
    if (rc < 0)
        return rc;
    if (x->adviser && now % x->s->round == 0 && now > x->advised) {
        x->advised = now;
        return stk_adviser_round(x->adviser, loop, now, err);
    }
    return 0;
}

const struct stk_source_ops stk_running_source = {next_submit, feed};
