/* SPDX-License-Identifier: Apache-2.0 */
/* test_remedy.c - what would start a job now; tests/property/prop_remedy.c has random worlds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/remedy.h"
#include "lib/fixture.h"

#define S STK_SECOND

/* In slices it is the same, with the same number of forks. */
static void ask_in_slices(struct fx *f, struct stk_remedy_ask q, const struct stk_remedies *want)
{
    struct stk_remedy_tries tries = {.n = 0};
    struct stk_remedies all;
    uint32_t slices = 1;
    int rc;

    q.tries = &tries;
    q.slice = 2;
    while ((rc = stk_core_remedies(f->core, &q, &all, &f->err)) > 0)
        slices++;
    assert_int_equal(rc, 0);
    assert_true(slices == (all.forks > 0 ? (all.forks + 1) / 2 : 1));
    assert_true(all.n == want->n && all.forks == want->forks && all.cut == want->cut &&
                all.soon == want->soon);
    for (uint32_t i = 0; i < all.n; i++)
        assert_true(all.list[i].kind == want->list[i].kind && all.list[i].to == want->list[i].to &&
                    all.list[i].from == want->list[i].from &&
                    all.list[i].evicts == want->list[i].evicts);
}

static struct stk_remedies ask(struct fx *f, uint32_t job, uint32_t most_forks)
{
    const struct stk_remedy_ask q = {.job = {job}, .now = f->now, .most_forks = most_forks};
    struct stk_remedies all;
    uint64_t before = fx_digest(f);

    assert_int_equal(stk_core_remedies(f->core, &q, &all, &f->err), 0);
    assert_true(fx_digest(f) == before);
    assert_true(all.forks <= most_forks);
    ask_in_slices(f, q, &all);
    return all;
}

static const struct stk_remedy *of(const struct stk_remedies *all, enum stk_remedy_kind kind)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->list[i].kind == kind)
            return &all->list[i];
    return NULL;
}

static void a_shorter_time_limit_fits_before_the_promised_start(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "fifo", .backfill = "easy"});
    struct stk_remedies all;
    uint32_t job;

    (void)state;
    (void)fx_submit(f, fx_job(12, 1000));
    fx_turn(f);
    (void)fx_submit(f, fx_job(16, 100)); /* promised the start at 1000 s */
    fx_turn(f);
    f->now = 100 * S;
    job = fx_submit(f, fx_job(4, 5000));
    fx_turn(f);
    assert_int_equal(fx_why(f, job), STK_WHY_RESERVED);
    all = ask(f, job, STK_REMEDY_FORKS);
    assert_non_null(of(&all, STK_REMEDY_TIME));
    assert_true(of(&all, STK_REMEDY_TIME)->to == 900 * S);
    assert_true(of(&all, STK_REMEDY_TIME)->from == 5000 * S);
    assert_true(of(&all, STK_REMEDY_TIME)->spec.estimate == 900 * S);
    fx_finish(f);
}

static void looser_topology_and_another_pool(void **state)
{
    static const struct stk_node_spec nodes[3] = {
        {.gpus = 8, .rack = 1}, {.gpus = 8, .rack = 1}, {.gpus = 16, .pool = {1}}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 3, .n_pools = 2});
    struct stk_job_spec spec = fx_job(1, 100);
    struct stk_remedies all;
    uint32_t job;

    (void)state;
    (void)fx_run_on(f, 0, 4, 0x0f);
    (void)fx_run_on(f, 1, 4, 0x0f);
    spec.demand.cut = false;
    spec.demand.tasks = 8;
    spec.demand.level_required = STK_AT_NODE;
    job = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_why(f, job), STK_WHY_TOPOLOGY);
    all = ask(f, job, STK_REMEDY_FORKS);
    assert_int_equal(of(&all, STK_REMEDY_LEVEL)->to, STK_AT_RACK);
    assert_int_equal(of(&all, STK_REMEDY_POOL)->to, 1);
    assert_int_equal(of(&all, STK_REMEDY_TASKS)->to, 4);
    assert_null(of(&all, STK_REMEDY_GPUS));
    fx_finish(f);
}

static void work_is_bounded_and_says_so(void **state)
{
    struct fx *f = fx_plain();
    struct stk_remedies all;
    uint32_t job;

    (void)state;
    (void)fx_run_on(f, 0, 8, 0xff);
    (void)fx_run_on(f, 1, 6, 0x3f);
    job = fx_submit(f, fx_job(16, 100));
    fx_turn(f);
    all = ask(f, job, 3);
    assert_true(all.cut && all.forks == 3);
    all = ask(f, job, STK_REMEDY_FORKS);
    assert_true(!all.cut && !all.soon);
    assert_int_equal(of(&all, STK_REMEDY_GPUS)->to, 2);
    assert_int_equal(of(&all, STK_REMEDY_GPUS)->evicts, 0);
    fx_finish(f);
}

static void who_gives_way_is_counted_and_comes_last(void **state)
{
    struct fx *f =
        fx_new(&(struct fx_setup){.order = "priority", .backfill = "easy", .preempt = "tier"});
    struct stk_job_spec spec = fx_job(16, 100);
    struct stk_remedies all;
    uint32_t job;

    (void)state;
    (void)fx_submit(f, fx_job(10, 1000));
    fx_turn(f);
    job = fx_submit(f, spec);
    fx_turn(f);
    all = ask(f, job, STK_REMEDY_FORKS);
    assert_int_equal(all.list[0].kind, STK_REMEDY_GPUS);
    assert_int_equal(all.list[0].to, 6);
    assert_int_equal(of(&all, STK_REMEDY_TIER)->evicts, 1);
    assert_int_equal(of(&all, STK_REMEDY_PRIORITY)->to, 300); /* the next class */
    assert_int_equal(of(&all, STK_REMEDY_PRIORITY)->evicts, 1);
    fx_finish(f);
}

static void of_jobs_that_do_not_wait_nothing_is_said(void **state)
{
    struct fx *f = fx_plain();
    const struct stk_dep dep = {.on = 1, .type = STK_DEP_AFTEROK};
    struct stk_job_spec spec = fx_job(1, 100);
    struct stk_remedies all;
    const struct stk_remedy_ask nobody = {.job = {99}};
    uint32_t running = fx_run_on(f, 0, 8, 0xff);

    (void)state;
    assert_int_equal(ask(f, running, 9).n, 0);
    spec.deps = &dep;
    spec.n_deps = 1;
    assert_int_equal(ask(f, fx_submit(f, spec), 9).n, 0);
    spec.n_deps = 0;
    spec.held = true;
    all = ask(f, fx_submit(f, spec), 9);
    assert_int_equal(all.list[0].kind, STK_REMEDY_RELEASE);
    spec.held = false;
    all = ask(f, fx_submit(f, spec), 9); /* nothing was decided yet */
    assert_true(all.soon && all.n == 0);
    assert_int_equal(stk_core_remedies(f->core, &nobody, &all, &f->err), -ENOENT);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shorter_time_limit_fits_before_the_promised_start),
        cmocka_unit_test(looser_topology_and_another_pool),
        cmocka_unit_test(work_is_bounded_and_says_so),
        cmocka_unit_test(who_gives_way_is_counted_and_comes_last),
        cmocka_unit_test(of_jobs_that_do_not_wait_nothing_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
