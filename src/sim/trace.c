/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - the workload in memory: growing it, putting it in order, freeing it.
 *
 * Jobs refer to each other by index (dependencies, arrays), so sorting moves the references too.
 * The sort is a bottom-up merge over (submit, index) pairs: stable, no worse than n log n, and
 * skipped when the file was in order, as most are.
 */
#include "sim/trace.h"
#include "sim/speeds.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_JOBS 1024u
#define FIRST_DEPS 64u

struct stk_trace_job *stk_trace_push(struct stk_trace *t)
{
    struct stk_trace_job *j;

    if (t->n_jobs >= STK_TRACE_MAX_JOBS)
        return NULL;
    if (t->n_jobs == t->cap_jobs) {
        uint32_t cap = t->cap_jobs ? t->cap_jobs * 2 : FIRST_JOBS;
        struct stk_trace_job *jobs = realloc(t->jobs, cap * sizeof(*jobs));

        if (!jobs)
            return NULL;
        t->jobs = jobs;
        t->cap_jobs = cap;
    }
    j = &t->jobs[t->n_jobs++];
    memset(j, 0, sizeof(*j));
    return j;
}

struct stk_trace_dep *stk_trace_push_dep(struct stk_trace *t)
{
    if (t->n_deps == t->cap_deps) {
        uint32_t cap = t->cap_deps ? t->cap_deps * 2 : FIRST_DEPS;
        struct stk_trace_dep *deps =
            cap > t->cap_deps ? realloc(t->deps, cap * sizeof(*deps)) : NULL;

        if (!deps)
            return NULL;
        t->deps = deps;
        t->cap_deps = cap;
    }
    memset(&t->deps[t->n_deps], 0, sizeof(*t->deps));
    return &t->deps[t->n_deps++];
}

uint32_t stk_trace_push_extra(struct stk_trace *t, const struct stk_trace_extra *x)
{
    if (t->n_extras == t->cap_extras) {
        uint32_t cap = t->cap_extras ? t->cap_extras * 2 : FIRST_DEPS;
        struct stk_trace_extra *extras = realloc(t->extras, cap * sizeof(*extras));

        if (!extras)
            return 0;
        t->extras = extras;
        t->cap_extras = cap;
    }
    t->extras[t->n_extras] = *x;
    return ++t->n_extras;
}

void stk_trace_done(struct stk_trace *t)
{
    free(t->jobs);
    free(t->deps);
    free(t->extras);
    stk_names_done(&t->ids);
    stk_names_done(&t->tenants);
    stk_names_done(&t->groups);
    stk_names_done(&t->gpu_types);
    stk_names_done(&t->types_texts);
    stk_names_done(&t->resources);
    stk_names_done(&t->queues);
    stk_names_done(&t->users);
    stk_names_done(&t->keep_groups);
    stk_names_done(&t->reservations);
    stk_names_done(&t->node_lists);
    stk_speed_table_free(t->speeds);
    *t = (struct stk_trace){0};
}

struct key {
    stk_time submit;
    uint32_t index;
};

/* Merges the sorted runs [lo, mid) and [mid, hi) of 'from' into 'to'. */
static void merge(const struct key *from, struct key *to, size_t lo, size_t mid, size_t hi)
{
    size_t a = lo, b = mid;

    for (size_t i = lo; i < hi; i++) {
        bool left = b == hi || (a < mid && from[a].submit <= from[b].submit);

        to[i] = from[left ? a++ : b++];
    }
}

/* Returns whichever of the two buffers holds the result. */
static struct key *sort_keys(struct key *keys, struct key *spare, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        struct key *swap = keys;

        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n;
            size_t hi = lo + 2 * width < n ? lo + 2 * width : n;

            merge(keys, spare, lo, mid, hi);
        }
        keys = spare;
        spare = swap;
    }
    return keys;
}

static bool in_order(const struct stk_trace *t)
{
    for (uint32_t i = 1; i < t->n_jobs; i++)
        if (t->jobs[i].submit < t->jobs[i - 1].submit)
            return false;
    return true;
}

/* 'keys' says which old job goes to each place; 'moved' is scratch for the inverse. */
static void reorder(struct stk_trace *t, struct stk_trace_job *jobs, const struct key *keys,
                    uint32_t *moved)
{
    for (uint32_t i = 0; i < t->n_jobs; i++) {
        jobs[i] = t->jobs[keys[i].index];
        moved[keys[i].index] = i;
    }
    for (uint32_t i = 0; i < t->n_jobs; i++)
        if (jobs[i].array)
            jobs[i].array = moved[jobs[i].array - 1] + 1;
    for (uint32_t i = 0; i < t->n_deps; i++)
        t->deps[i].on = moved[t->deps[i].on];
    free(t->jobs);
    t->jobs = jobs;
    t->cap_jobs = t->n_jobs;
}

int stk_trace_sort(struct stk_trace *t)
{
    struct stk_trace_job *jobs;
    struct key *keys;
    uint32_t *moved;
    size_t n = t->n_jobs;

    if (in_order(t))
        return 0;
    jobs = malloc(n * sizeof(*jobs));
    keys = malloc(2 * n * sizeof(*keys));
    moved = malloc(n * sizeof(*moved));
    if (!jobs || !keys || !moved) {
        free(jobs);
        free(keys);
        free(moved);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (struct key){t->jobs[i].submit, i};
    reorder(t, jobs, sort_keys(keys, keys + n, n), moved);
    free(keys);
    free(moved);
    return 0;
}
