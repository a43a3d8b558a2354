/* SPDX-License-Identifier: Apache-2.0 */
/* test_lifecycle.c - every state against every event, on a real core.
 *
 * A job is brought into each state by real events, in each way that makes a difference later; then
 * every event that names a job is tried in every variant. It must be refused exactly when the table
 * of core/lifecycle.c has nothing for it, changing nothing, and otherwise lead into the table's
 * set. At the end every target of the table must have been seen: a target nobody can reach is a
 * lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/lifecycle.h"
#include "lib/fixture.h"

#define HOUR (3600 * STK_SECOND)

static const struct fx_setup setups[] = {
    {.order = "fifo"},
    {.order = "priority", .backfill = "easy", .preempt = "tier"},
    {.order = "fifo", .backfill = "conservative", .place = "spread"},
    {.order = "las", .preempt = "afresh"},
    {.order = "srsf", .preempt = "lucid", .place = "first_fit"},
    {.order = "fifo", .backfill = "none", .forget = true, .retain = 1},
    {.order = "advised", .preempt = "advised"},
};
#define N_SETUPS (sizeof(setups) / sizeof(*setups))

static unsigned reached[STK_JOB_STATE_MAX][STK_EV_TYPE_MAX];

/* ---- into a state ---- */

static uint32_t place_one(struct fx *f, uint32_t job)
{
    const struct stk_piece piece = {{0}, 1, 1, 0, 1};

    assert_int_equal(fx_place(f, job, &piece, 1), 0);
    return job;
}

static uint32_t run_one(struct fx *f, uint32_t job)
{
    (void)place_one(f, job);
    assert_int_equal(fx_job_event(f, STK_EV_STARTED, job), 0);
    return job;
}

/* Its processes sleep; it waits, or is held. */
static uint32_t sleep_one(struct fx *f, bool held)
{
    uint32_t job = run_one(f, fx_submit(f, fx_job(1, 10)));
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_EVICT,
                                 .job = {job},
                                 .lease = fx_of(f, job)->lease,
                                 .u.evict = {.for_job = {STK_NONE}, .suspend = true}};

    assert_int_equal(fx_apply(f, &ev), 0);
    if (held)
        assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), 0);
    assert_int_equal(fx_of(f, job)->slept, ev.lease);
    return job;
}

static uint32_t in_none(struct fx *f, int way)
{
    uint32_t job;

    if (way == 0)
        return stk_core_next_job(f->core).i; /* never used */
    job = fx_submit(f, fx_job(1, 10));
    assert_int_equal(fx_cancel(f, job), 0);
    assert_int_equal(fx_cancel(f, fx_submit(f, fx_job(1, 10))), 0); /* with retain 1, forgets it */
    return stk_core_next_job(f->core).i;
}

static uint32_t in_held(struct fx *f, int way)
{
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_dep dep = {1, STK_DEP_AFTERANY, false};
    uint32_t job;

    if (way >= 4)
        return sleep_one(f, true);
    if (way == 2) { /* on hold, and depends on a job that runs */
        (void)run_one(f, fx_submit(f, fx_job(1, 10)));
        spec.deps = &dep;
        spec.n_deps = 1;
    }
    spec.begin = way == 1 ? f->now + HOUR : 0;
    spec.held = way != 3;
    job = fx_submit(f, spec);
    if (way == 3)
        assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
    return job;
}

static uint32_t in_blocked(struct fx *f, int way)
{
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_dep dep = {1, STK_DEP_AFTEROK, false};

    if (way == 0)
        spec.begin = f->now + HOUR;
    else
        (void)run_one(f, fx_submit(f, fx_job(1, 10)));
    spec.deps = &dep;
    spec.n_deps = way != 0;
    return fx_submit(f, spec);
}

/* Told to sleep, and then perhaps cancelled or held; or asleep, and being ended. */
static uint32_t in_stopping_asleep(struct fx *f, int way)
{
    uint32_t job;

    if (way >= 4) {
        job = sleep_one(f, way & 1);
        assert_int_equal(fx_job_event(f, way & 2 ? STK_EV_CANCEL : STK_EV_EVICT, job), 0);
        return job;
    }
    job = run_one(f, fx_submit(f, fx_job(1, 10)));
    assert_int_equal(
        fx_apply(f, &(struct stk_event){.at = f->now,
                                        .type = STK_EV_EVICT,
                                        .job = {job},
                                        .lease = fx_of(f, job)->lease,
                                        .u.evict = {.for_job = {STK_NONE}, .suspend = true}}),
        0);
    if (way & 1)
        assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
    if (way & 2)
        assert_int_equal(fx_job_event(f, STK_EV_CANCEL, job), 0);
    return job;
}

static uint32_t in_stopping(struct fx *f, int way)
{
    uint32_t job;

    if (way >= 8)
        return in_stopping_asleep(f, way - 8);
    job = fx_submit(f, fx_job(1, 10));
    (void)(way & 1 ? run_one(f, job) : place_one(f, job));
    assert_int_equal(fx_job_event(f, way & 2 ? STK_EV_CANCEL : STK_EV_EVICT, job), 0);
    if (way & 4)
        assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
    return job;
}

static uint32_t in_done(struct fx *f, int way)
{
    uint32_t job = fx_submit(f, fx_job(1, 10));

    if (way == 0)
        assert_int_equal(fx_cancel(f, job), 0);
    else
        assert_int_equal(fx_exit(f, run_one(f, job), STK_CAUSE_FAILED), 0);
    return job;
}

static int ways(enum stk_job_state s)
{
    static const int n[STK_JOB_STATE_MAX] = {2, 5, 2, 2, 2, 1, 16, 2};

    return n[s];
}

static uint32_t bring(struct fx *f, enum stk_job_state s, int way)
{
    switch (s) {
    case STK_JOB_NONE:
        return in_none(f, way);
    case STK_JOB_HELD:
        return in_held(f, way);
    case STK_JOB_BLOCKED:
        return in_blocked(f, way);
    case STK_JOB_WAITING:
        return way == 1 ? sleep_one(f, false) : fx_submit(f, fx_job(1, 10));
    case STK_JOB_PLACED:
        return place_one(f, way == 1 ? sleep_one(f, false) : fx_submit(f, fx_job(1, 10)));
    case STK_JOB_RUNNING:
        return run_one(f, fx_submit(f, fx_job(1, 10)));
    case STK_JOB_STOPPING:
        return in_stopping(f, way);
    case STK_JOB_DONE:
        return in_done(f, way);
    case STK_JOB_STATE_MAX:
        break;
    }
    abort();
}

/* ---- an event ---- */

static int variants(enum stk_event_type t)
{
    return t == STK_EV_SUBMIT   ? 4
           : t == STK_EV_UPDATE ? 3
           : t == STK_EV_EXITED ? STK_CAUSE_MAX - 1
                                : 1;
}

/* A job that has failed, for a dependency that cannot be met. */
static stk_job_number failed_job(struct fx *f)
{
    uint32_t job = fx_submit(f, fx_job(1, 10));
    stk_job_number number = fx_of(f, job)->number;

    assert_int_equal(fx_cancel(f, job), 0);
    return number;
}

static int try_submit(struct fx *f, uint32_t *job, int variant)
{
    struct stk_job_spec spec = fx_job(1, 10);
    struct stk_dep dep = {0, STK_DEP_AFTEROK, false};
    struct stk_event ev = {.at = f->now, .type = STK_EV_SUBMIT, .u.spec = &spec};

    spec.held = variant == 1;
    spec.begin = variant == 2 ? f->now + HOUR : 0;
    if (variant == 3 && fx_state(f, *job) == STK_JOB_NONE) {
        dep.on = failed_job(f);
        spec.deps = &dep;
        spec.n_deps = 1;
        *job = stk_core_next_job(f->core).i;
    }
    ev.job.i = *job;
    return fx_apply(f, &ev);
}

/* Its rank, or all it asks for: to begin at once, or later. */
static int try_update(struct fx *f, uint32_t job, int variant)
{
    struct stk_job_spec spec = fx_job(1, 10);

    spec.begin = variant == 2 ? f->now + HOUR : 0;
    return variant == 0 ? fx_update(f, job, 0, 0) : fx_change(f, job, &spec);
}

/* Its first GPU for one that is free. */
static int try_swap(struct fx *f, uint32_t job)
{
    struct stk_event ev = {.at = f->now, .type = STK_EV_SWAPPED, .job = {job}};

    if (fx_state(f, job) && fx_of(f, job)->lease) {
        const struct stk_piece *p = &f->s->pieces[fx_of(f, job)->first_piece];

        ev.lease = fx_of(f, job)->lease;
        ev.u.swap.node = ev.u.swap.to = p->node;
        ev.u.swap.had = p->mask & -p->mask;
        ev.u.swap.has = f->s->nodes[p->node.i].mask_free & -f->s->nodes[p->node.i].mask_free;
        ev.u.swap.with.i = STK_NONE;
    }
    return fx_apply(f, &ev);
}

static int try_event(struct fx *f, uint32_t *job, enum stk_event_type t, int variant)
{
    const struct stk_piece piece = {
        {fx_state(f, *job) && fx_of(f, *job)->slept ? 0 : 1}, 1, 1, 0, 1};

    if (t == STK_EV_SUBMIT)
        return try_submit(f, job, variant);
    if (t == STK_EV_UPDATE)
        return try_update(f, *job, variant);
    if (t == STK_EV_PLACE)
        return fx_place(f, *job, &piece, 1);
    if (t == STK_EV_EXITED)
        return fx_exit(f, *job, (enum stk_cause)(variant + 1));
    if (t == STK_EV_SWAPPED)
        return try_swap(f, *job);
    if (t == STK_EV_NODES)
        return fx_nodes(f, 1, 1);
    if (t == STK_EV_SET)
        return fx_set(f, &(struct stk_set){.kind = STK_SET_PRIORITY, .value = 10});
    if (t == STK_EV_RESERVE || t == STK_EV_UNRESERVE) {
        int rc = fx_reserve(f, fx_booking(1, 100, 200));

        return rc < 0 || t == STK_EV_RESERVE ? rc : fx_unreserve(f, 1);
    }
    return fx_job_event(f, t, *job);
}

static bool names_a_job(enum stk_event_type t)
{
    return t != STK_EV_NODE_DOWN && t != STK_EV_NODE_UP && t != STK_EV_NODE_OFF &&
           t != STK_EV_GPUS_OFF && t != STK_EV_TICK && t != STK_EV_SET && t != STK_EV_RESERVE &&
           t != STK_EV_NODES && t != STK_EV_UNRESERVE;
}

/* What the table allows only to a job whose processes sleep, or that was told to sleep. */
static int refusal(const struct fx *f, uint32_t job, enum stk_event_type t, int variant)
{
    const struct stk_job *j = fx_of(f, job);

    if (t == STK_EV_UPDATE && variant > 0 && (j->slept || j->lease || j->state == STK_JOB_STOPPING))
        return -EPROTO;
    if (t == STK_EV_ADVISE && !f->s->order->advised)
        return -EINVAL;
    if (t == STK_EV_SUSPENDED && j->lease && !j->suspend_wanted)
        return -EINVAL;
    if ((t == STK_EV_SUSPENDED || t == STK_EV_STARTED || t == STK_EV_CHECKPOINT ||
         t == STK_EV_SWAPPED) &&
        !j->lease)
        return -EPROTO;
    return (t == STK_EV_EXITED || t == STK_EV_EVICT) && !j->lease && !j->slept ? -EPROTO : 0;
}

static void try_one(const struct fx_setup *setup, enum stk_job_state from, int way,
                    enum stk_event_type t, int variant)
{
    struct fx *f = fx_new(setup);
    uint32_t job = bring(f, from, way);
    unsigned may = stk_lifecycle_next(from, t);
    uint64_t before = fx_digest(f);
    int rc, no = may && from != STK_JOB_NONE ? refusal(f, job, t, variant) : 0;

    assert_int_equal(fx_state(f, job), from);
    rc = try_event(f, &job, t, variant);
    if (!names_a_job(t)) {
        assert_int_equal(may, 0);
        /* what these nodes draw is not known: they are not switched off (test_power.c) */
        bool not_here = t == STK_EV_NODE_OFF ||
                        ((t == STK_EV_RESERVE || t == STK_EV_UNRESERVE) && f->s->preempt->pass);

        assert_int_equal(rc, not_here ? -EINVAL : 0);
        assert_int_equal(fx_state(f, job), from);
    } else if (may == 0) {
        assert_int_equal(rc, t == STK_EV_SUBMIT ? -EINVAL : -EPROTO);
        assert_int_equal(fx_state(f, job), from);
        assert_true(fx_digest(f) == before);
    } else if (no < 0) {
        assert_int_equal(rc, no);
        assert_true(fx_digest(f) == before);
    } else {
        assert_int_equal(rc, 0);
        assert_true(fx_digest(f) != before);
        assert_true(may & STK_STATE_BIT(fx_state(f, job)));
        reached[from][t] |= STK_STATE_BIT(fx_state(f, job));
    }
    fx_sound(f);
    fx_drain(f);
    fx_sound(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static void every_state_against_every_event(void **state)
{
    (void)state;
    for (size_t u = 0; u < N_SETUPS; u++)
        for (unsigned s = 0; s < STK_JOB_STATE_MAX; s++)
            for (unsigned t = 0; t < STK_EV_TYPE_MAX; t++)
                for (int way = 0; way < ways((enum stk_job_state)s); way++)
                    for (int v = 0; v < variants((enum stk_event_type)t); v++)
                        try_one(&setups[u], (enum stk_job_state)s, way, (enum stk_event_type)t, v);
}

static void every_target_of_the_table_is_reached(void **state)
{
    (void)state;
    for (unsigned s = 0; s < STK_JOB_STATE_MAX; s++)
        for (unsigned t = 0; t < STK_EV_TYPE_MAX; t++)
            assert_int_equal(reached[s][t],
                             stk_lifecycle_next((enum stk_job_state)s, (enum stk_event_type)t));
}

static void outside_the_table_nothing_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(stk_lifecycle_next(STK_JOB_STATE_MAX, STK_EV_HOLD), 0);
    assert_int_equal(stk_lifecycle_next(STK_JOB_WAITING, STK_EV_TYPE_MAX), 0);
    assert_int_equal(stk_lifecycle_next((enum stk_job_state)1000, (enum stk_event_type)1000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_against_every_event),
        cmocka_unit_test(every_target_of_the_table_is_reached),
        cmocka_unit_test(outside_the_table_nothing_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
