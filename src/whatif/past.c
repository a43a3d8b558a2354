/* SPDX-License-Identifier: Apache-2.0 */
/* past.c - job records become a trace: those that were submitted in the period, and before them
 * what was there when it began, with what it still had to run.
 *
 * A job runs as long as it really held its GPUs, all its starts together; the rest of its time in
 * the system is its wait. Only jobs that were submitted in the period and have ended count in
 * comparisons (stk_trace_job.recorded): of the others too little is known. What a job asks for
 * comes from its description. A job that said nothing of its run time is told as one of 100 years:
 * the scheduler did not know it either.
 *
 * See: docs/spec/whatif.md.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/trace_extra.h"
#include "spec/spec.h"
#include "whatif/whatif.h"

struct one { /* a record, as far as it is needed */
    stk_job_number number, array;
    uint32_t array_index;
    stk_time submitted, ended, served;
    stk_time run; /* in the period and after it */
    int64_t spec;
    enum stk_cause cause;
    char *user, *queue, *tenant;
};

struct reader {
    struct stk_past *p;
    struct stk_store *st;
    struct one *jobs;
    uint32_t n, cap;
    stk_job_number before; /* of the page */
    uint32_t in_page;
    int64_t spec_id; /* the description that was read last, shared by arrays */
    struct stk_spec spec;
    bool has_spec;
    struct stk_leases leases;
};

/* ---- gathering ---- */

static void one_done(struct one *o)
{
    free(o->user);
    free(o->queue);
    free(o->tenant);
}

/* How long it held its GPUs from the beginning of the period on. */
static int run_of(struct reader *x, const struct stk_record *r, stk_time *ret)
{
    const struct stk_period p = {x->p->since, x->p->now};
    struct stk_job_figures f;
    int rc = stk_leases_read(&x->leases, x->st, r, NULL);

    if (rc < 0)
        return rc;
    stk_figures_of_job(&(struct stk_job_past){.lease = x->leases.list, .n = x->leases.n}, p,
                       x->p->now, &f, NULL);
    *ret = f.run;
    return 0;
}

static int gather(void *ctx, const struct stk_record *r)
{
    struct reader *x = ctx;
    stk_time run = 0;
    struct one *o;

    x->before = r->number;
    x->in_page++;
    if (r->submitted >= x->p->until || r->gpus == 0)
        return 0;
    if (!r->first_started) {
        x->p->never_ran++;
        return 0;
    }
    if (x->n == STK_WHATIF_MAX_JOBS)
        return -E2BIG;
    if (run_of(x, r, &run) < 0)
        return -ENOMEM;
    if (x->n == x->cap) {
        uint32_t cap = x->cap ? x->cap * 2 : 1024;
        struct one *more = realloc(x->jobs, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        x->jobs = more;
        x->cap = cap;
    }
    o = &x->jobs[x->n];
    *o = (struct one){.number = r->number,
                      .array = r->array,
                      .array_index = r->array_index,
                      .submitted = r->submitted,
                      .ended = r->ended,
                      .served = r->served,
                      .run = run,
                      .spec = r->spec,
                      .cause = r->cause,
                      .user = strdup(r->user),
                      .queue = strdup(r->queue),
                      .tenant = strdup(r->tenant)};
    x->n++;
    return o->user && o->queue && o->tenant ? 0 : -ENOMEM;
}

static int gather_all(struct reader *x, struct stk_err *err)
{
    struct stk_history_query q = {.since = x->p->since};
    int rc;

    do {
        x->in_page = 0;
        q.before = x->before;
        rc = stk_store_history(x->st, &q, gather, x, err);
    } while (rc == 0 && x->in_page == STK_STORE_MAX_PAGE);
    rc = rc < 0 ? rc : stk_store_live(x->st, gather, x, err);
    if (rc == -E2BIG)
        return stk_err_set(err, rc, "more than %u jobs: choose a shorter period",
                           STK_WHATIF_MAX_JOBS);
    return rc < 0 && err && !err->text[0] ? stk_err_set(err, rc, "out of memory") : rc;
}

/* What was there when the period began comes first, and of that what ran. */
static int by_arrival(const void *a, const void *b)
{
    const struct one *x = a, *y = b;

    if (x->submitted != y->submitted)
        return x->submitted < y->submitted ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* ---- as jobs of a trace ---- */

static int read_spec(struct reader *x, int64_t id)
{
    char *text = NULL;
    size_t len = 0;
    json_t *json;
    int rc;

    if (x->has_spec && x->spec_id == id)
        return 0;
    if (x->has_spec)
        stk_spec_done(&x->spec);
    x->has_spec = false;
    rc = stk_store_spec_get(x->st, id, &text, &len, NULL);
    json = rc == 0 ? json_loadb(text, len, 0, NULL) : NULL;
    free(text);
    if (!json)
        return rc < 0 ? rc : -EBADMSG;
    x->spec = (struct stk_spec){0};
    rc = stk_spec_parse(json, &x->spec, NULL);
    json_decref(json);
    x->has_spec = rc == 0;
    x->spec_id = id;
    return rc;
}

static int name_number(struct stk_names *names, const char *name, uint32_t max, uint32_t *ret)
{
    int64_t n = stk_names_add(names, name, strlen(name), max);

    if (n < 0)
        return (int)n;
    *ret = (uint32_t)n;
    return 0;
}

/* A type may be part of the full name, as in the daemon. */
static int add_types(struct reader *x, struct stk_trace_job *j, struct stk_trace_extra *extra)
{
    const struct stk_names *known = &x->p->world->cluster.gpu_types;
    struct stk_names *types = &x->p->trace.gpu_types;
    const struct stk_spec *s = &x->spec;
    uint64_t set = 0;

    for (uint32_t k = 0; k < s->n_gpu_types; k++)
        for (uint32_t i = 0; i < known->n; i++) {
            const char *name = stk_names_get(known, i);
            uint32_t number = 0;

            if (!strcasestr(name, s->gpu_types[k]))
                continue;
            if (name_number(types, name, STK_MAX_GPU_TYPES, &number) < 0)
                return -ENOMEM;
            if (!(set >> number & 1) && s->gpu_speeds[k] && s->gpu_speeds[k] != STK_SPEED &&
                extra->n_speeds < STK_MAX_SPEEDS) {
                extra->speed_type[extra->n_speeds] = (uint8_t)number;
                extra->speed_milli[extra->n_speeds++] = (uint16_t)s->gpu_speeds[k];
            }
            set |= UINT64_C(1) << number;
        }
    j->gpu_types = set ? set : STK_ANY_GPU_TYPE;
    return 0;
}

static int add_extra(struct reader *x, struct stk_trace_job *j, struct stk_trace_extra *extra)
{
    const struct stk_spec *s = &x->spec;

    for (uint32_t i = 0; i < s->n_resources; i++) {
        uint32_t number = 0;

        if (name_number(&x->p->trace.resources, s->resources[i], STK_MAX_RESOURCES, &number) < 0)
            continue;
        extra->resource[number] = s->amounts[i];
    }
    extra->min_run = s->job.terms.min_run;
    extra->deadline = s->job.terms.deadline;
    extra->movable = s->job.terms.movable;
    extra->plain = s->job.terms.plain;
    return stk_extra_keep(&x->p->trace, extra, j);
}

static void add_demand(const struct stk_spec *s, struct stk_trace_job *j)
{
    const struct stk_demand *d = &s->job.demand;

    j->gpus = d->gpus;
    j->tasks = d->cut ? 0 : d->tasks;
    j->cpu_milli = d->cpu_milli;
    j->mem_mib = d->mem_mib;
    j->gpu_milli = d->gpu_milli;
    j->gpu_mem_mib = s->by_memory ? 0 : d->gpu_mem_mib;
    j->share_max = d->share_max;
    j->mig = d->mig;
    j->level = d->level_required == STK_AT_LINK ? 0 : d->level_required;
    j->prefer = d->level_preferred;
    j->subgroup = d->group;
    j->subgroup_level = d->group_level;
    j->per_node = d->per_node;
    j->exclusive = d->exclusive;
    if (s->by_memory && !j->gpu_milli)
        j->gpu_milli = 500; /* only the memory was said: half of it, for want of better */
}

static int add_names(struct reader *x, const struct one *o, struct stk_trace_job *j)
{
    struct stk_trace *t = &x->p->trace;
    const struct stk_world *w = x->p->world;
    int rc =
        name_number(&t->tenants, *o->tenant ? o->tenant : o->user, STK_TRACE_MAX_NAMES, &j->tenant);

    rc = rc < 0 ? rc : name_number(&t->groups, STK_NAME_DEFAULT, STK_TRACE_MAX_NAMES, &j->group);
    rc = rc < 0 ? rc : name_number(&t->users, o->user, STK_TRACE_MAX_NAMES, &j->user);
    j->user += rc == 0;
    if (rc == 0 && w->has_tenants &&
        stk_queue_find(w->tenants.teams.queues, w->tenants.teams.n_queues, o->queue) != STK_NONE) {
        rc = name_number(&t->queues, o->queue, STK_TRACE_MAX_NAMES, &j->queue);
        j->queue += rc == 0;
    }
    return rc;
}

/* Priority and tier as its queue gives them. */
static void add_rank(struct reader *x, struct stk_trace_job *j)
{
    const struct stk_teams *teams = &x->p->world->tenants.teams;
    struct stk_spec_queues q = {.queues = teams->queues,
                                .classes = teams->classes,
                                .n_queues = teams->n_queues,
                                .n_classes = teams->n_classes};
    struct stk_spec s = x->spec; /* its own queue is to be asked once for each job */

    if (stk_spec_enqueue(&s, x->p->world->has_tenants ? &q : &stk_spec_standard, NULL) < 0)
        return; /* that queue is no more */
    j->priority = s.job.priority;
    j->tier = (uint8_t)s.job.tier;
}

static void add_times(struct reader *x, const struct one *o, struct stk_trace_job *j)
{
    const struct stk_past *p = x->p;
    bool carried = o->submitted < p->since;

    j->submit = carried ? p->since : o->submitted;
    j->duration = o->run;
    j->estimate = x->spec.job.estimate ? x->spec.job.estimate : STK_MAX_DURATION;
    j->begin = x->spec.job.begin > j->submit ? x->spec.job.begin : 0;
    j->recorded = !carried && o->ended;
    j->waited = o->ended - o->submitted - o->served;
    if (j->waited < 0)
        j->waited = 0;
    x->p->carried += carried;
    x->p->running += !o->ended;
}

/* The record of this number, or of the element with that index of its array; NULL. */
static const struct one *find_number(const struct reader *x, stk_job_number number)
{
    for (uint32_t lo = 0, hi = x->n; lo < hi;) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (x->jobs[mid].number == number)
            return &x->jobs[mid];
        if (x->jobs[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* Only on jobs that are in the trace, and came before: numbers are given in that order. */
static int add_dep(struct reader *x, const struct one *o, const struct stk_spec_dep *d,
                   struct stk_trace_job *j)
{
    const struct one *first = find_number(x, d->job);
    int64_t index = d->corresponding ? (int64_t)o->array_index : d->index;

    for (const struct one *at = first; at && at < x->jobs + x->n && j->n_deps < STK_MAX_DEPS;
         at++) {
        struct stk_trace_dep *dep;

        if (at != first && (first->array == 0 || at->array != first->array))
            break;
        if (at->number >= o->number || (index >= 0 && at->array_index != (uint32_t)index))
            continue;
        dep = stk_trace_push_dep(&x->p->trace);
        if (!dep)
            return -ENOMEM;
        *dep = (struct stk_trace_dep){(uint32_t)(at - x->jobs), d->type};
        j->n_deps++;
    }
    return 0;
}

static int add_job(struct reader *x, const struct one *o)
{
    struct stk_trace_job j = stk_lines_job();
    struct stk_trace_extra extra = {0};
    int rc = read_spec(x, o->spec);

    if (rc == -ENOMEM)
        return rc;
    if (rc < 0)
        j.held = true; /* without its description it cannot be known: it never runs */
    j.id = o->number;
    j.cause = (uint8_t)(o->cause == STK_CAUSE_NONE || o->cause == STK_CAUSE_EVICTED ? STK_CAUSE_OK
                                                                                    : o->cause);
    j.first_dep = x->p->trace.n_deps;
    if (rc == 0) {
        j.kind = (uint8_t)x->spec.job.kind;
        add_demand(&x->spec, &j);
        add_rank(x, &j);
        add_times(x, o, &j);
        rc = add_types(x, &j, &extra);
        rc = rc < 0 ? rc : add_extra(x, &j, &extra);
        for (uint32_t i = 0; rc == 0 && i < x->spec.n_deps; i++)
            rc = add_dep(x, o, &x->spec.deps[i], &j);
    }
    rc = rc == -ENOMEM ? rc : add_names(x, o, &j);
    return rc < 0 ? rc : stk_lines_push(&x->p->trace, &j);
}

int stk_past_read(struct stk_past *p, struct stk_store *st, struct stk_err *err)
{
    struct reader x = {.p = p, .st = st};
    int rc = gather_all(&x, err);

    qsort(x.jobs, x.n, sizeof(*x.jobs), by_arrival);
    for (uint32_t i = 0; rc == 0 && i < x.n; i++)
        if (add_job(&x, &x.jobs[i]) < 0)
            rc = stk_err_set(err, -ENOMEM, "out of memory");
    if (x.has_spec)
        stk_spec_done(&x.spec);
    for (uint32_t i = 0; i < x.n; i++)
        one_done(&x.jobs[i]);
    free(x.jobs);
    stk_leases_done(&x.leases);
    if (rc == 0 && p->trace.n_jobs == 0)
        rc = stk_err_set(err, -ENOENT, "no job with GPUs ran in that period");
    if (rc == 0 && stk_trace_sort(&p->trace) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    return rc;
}
