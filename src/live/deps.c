/* SPDX-License-Identifier: Apache-2.0 */
/* deps.c - what a description says it depends on, as the jobs the core knows.
 *
 * The number of an array means all its elements: those that have not ended are one dependency on
 * the array, those that have are looked at here. "aftercorr" means, for each element of the new
 * array, the one with the same index. Jobs that have ended and that the core has forgotten are
 * settled from history: met ones go, unmet ones refuse the submission.
 */
#include "live/state.h"
#include "spec/ending.h"

#define MAX_EFFORT UINT64_C(100000000)   /* entries looked at for a request, in slices, */
#define MAX_EFFORT_ONE UINT64_C(2000000) /* and for a description, in one: some 0.1 s */
#define STORE_EFFORT 16                  /* what a look into the store is worth */

int stk_live_effort(struct stk_live *l, uint64_t more, struct stk_err *err)
{
    l->effort += more;
    l->effort_one += more;
    if (!l->making && (l->effort > MAX_EFFORT || l->effort_one > MAX_EFFORT_ONE))
        return stk_err_set(
            err, -E2BIG, "too many jobs must be looked at for its dependencies; split the request");
    return 0;
}

/* What is known of a job, live or ended. -ENOENT: there is none. */
static int look(struct stk_live *l, stk_job_number number, struct stk_outcome *ret,
                struct stk_err *err)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, number);
    int rc = stk_live_effort(l, e ? 1 : STORE_EFFORT, err);

    if (rc < 0)
        return rc;
    if (!e)
        return stk_store_job_outcome(l->cfg.store, number, ret, err);
    *ret = (struct stk_outcome){e->rec.array, e->rec.array_index, e->rec.cause, e->rec.ended != 0};
    return 0;
}

static int add_one(struct stk_live *l, struct stk_live_deps *d, enum stk_dep_type type,
                   stk_job_number on, const struct stk_outcome *s, struct stk_err *err)
{
    char how[48];

    if (stk_core_find(l->core, on) == STK_NONE && !l->making) {
        if (!stk_dep_met(type, s->cause)) {
            stk_end_already(s->cause, how, sizeof(how));
            return stk_err_set(err, -EINVAL, "job %u %s: %s can never be met", on, how,
                               stk_dep_type_name(type));
        }
        return 0;
    }
    if (d->n == STK_MAX_DEPS)
        return stk_err_set(err, -EINVAL, "has more than %d dependencies", STK_MAX_DEPS);
    d->deps[d->n++] = (struct stk_dep){.on = on, .type = type};
    return 0;
}

/* All elements of an array, of which 's' is the first. */
static int add_array(struct stk_live *l, struct stk_live_deps *d, const struct stk_spec_dep *w,
                     struct stk_outcome s, struct stk_err *err)
{
    bool open = false, dead = false;
    int rc = 0;

    for (stk_job_number on = w->job; rc == 0 && s.array == w->job; on++) {
        open |= !s.ended;
        if (s.ended && !dead && !stk_dep_met(w->type, s.cause)) {
            dead = true; /* one is enough */
            rc = add_one(l, d, w->type, on, &s, err);
        }
        s.array = 0;
        rc = rc < 0 ? rc : look(l, on + 1, &s, err);
    }
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (!open)
        return 0;
    if (d->n == STK_MAX_DEPS)
        return stk_err_set(err, -EINVAL, "has more than %d dependencies", STK_MAX_DEPS);
    d->deps[d->n++] = (struct stk_dep){.on = w->job, .type = w->type, .whole = true};
    return 0;
}

/* The element of an array with that index; '*ret' is its first one before, and the one found after.
 * Its jobs have numbers in a row and rising indices, so the one with index i is at most i numbers
 * behind index 0, and exactly there where no index is left out: we look there first, then halve.
 * -ENOENT: there is none. */
static int find_element(struct stk_live *l, stk_job_number array, uint32_t index,
                        stk_job_number *ret_on, struct stk_outcome *ret, struct stk_err *err)
{
    uint64_t lo = array, hi, mid;

    if (index < ret->index)
        return -ENOENT;
    hi = mid = (uint64_t)array + index - ret->index;
    for (; lo <= hi; mid = (lo + hi) / 2) {
        int rc = mid < UINT32_MAX ? look(l, (stk_job_number)mid, ret, err) : -ENOENT;

        if (rc < 0 && rc != -ENOENT)
            return rc;
        if (rc < 0 || ret->array != array || ret->index > index) {
            hi = mid - 1; /* lo is never 0 */
        } else if (ret->index < index) {
            lo = mid + 1;
        } else {
            *ret_on = (stk_job_number)mid;
            return 0;
        }
    }
    return -ENOENT;
}

/* Of an array of which 's' is the first. */
static int add_element(struct stk_live *l, const struct stk_spec_dep *w, uint32_t index,
                       struct stk_outcome s, struct stk_live_deps *d, struct stk_err *err)
{
    stk_job_number on;
    int rc = find_element(l, w->job, index, &on, &s, err);

    if (rc == -ENOENT && w->corresponding)
        return 0; /* it has no counterpart */
    if (rc == -ENOENT)
        return stk_err_set(err, -EINVAL, "depends on job %u_%u, which does not exist", w->job,
                           index);
    return rc < 0 ? rc : add_one(l, d, w->type, on, &s, err);
}

/* One word of the description; 'own': this job's index, for aftercorr. */
static int add_word(struct stk_live *l, const struct stk_spec_dep *w, uint32_t own,
                    struct stk_live_deps *d, struct stk_err *err)
{
    struct stk_outcome s;
    int rc = look(l, w->job, &s, err);

    if (rc == -ENOENT)
        return stk_err_set(err, -EINVAL, "depends on job %u, which does not exist", w->job);
    if (rc < 0)
        return rc;
    if (s.array != w->job) { /* a job of its own, or one element */
        if (w->index >= 0)
            return stk_err_set(err, -EINVAL, "depends on job %u_%lld, but job %u is not an array",
                               w->job, (long long)w->index, w->job);
        return add_one(l, d, w->type, w->job, &s, err);
    }
    if (w->corresponding || w->index >= 0)
        return add_element(l, w, w->corresponding ? own : (uint32_t)w->index, s, d, err);
    return add_array(l, d, w, s, err);
}

int stk_live_find_deps(struct stk_live *l, const struct stk_spec *spec, uint32_t own,
                       struct stk_live_deps *ret, struct stk_err *err)
{
    int rc = 0;

    ret->n = 0;
    for (uint32_t i = 0; i < spec->n_deps && rc == 0; i++)
        rc = add_word(l, &spec->deps[i], own, ret, err);
    return rc;
}

/* What ends a job at once is an unmet dependency; so the job that ended last has ended badly, is
 * still known, and can stand for one that is not. */
void stk_live_renew_deps(struct stk_live *l, struct stk_live_deps *d)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < d->n; i++) {
        struct stk_dep dep = d->deps[i];
        struct stk_outcome s = {.cause = STK_CAUSE_UNKNOWN};

        if (!dep.whole && stk_core_find(l->core, dep.on) == STK_NONE) {
            (void)stk_store_job_outcome(l->cfg.store, dep.on, &s, NULL);
            if (stk_dep_met(dep.type, s.cause) || l->done_number == 0)
                continue;
            dep = (struct stk_dep){.on = l->done_number, .type = STK_DEP_AFTEROK};
        }
        d->deps[kept++] = dep;
    }
    d->n = kept;
}
