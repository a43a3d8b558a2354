/* SPDX-License-Identifier: Apache-2.0 */
/* test_booking.c - GPUs that are set aside are there when their time comes, for their holder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/booking.h"
#include "lib/world.h"

static struct stk_job_spec named(uint32_t gpus, int64_t seconds, uint32_t reservation)
{
    struct stk_job_spec j = fx_job(gpus, seconds);

    j.terms.reservation = reservation;
    return j;
}

static void sound_turn(struct fx *f, void *ctx)
{
    (void)ctx;
    fx_sound(f);
}

static struct fx *world(const char *backfill)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = backfill});

    f->on_turn = sound_turn;
    return f;
}

/* Until this second. */
static void run(struct fx *f, int64_t s)
{
    fx_run(f, s * STK_SECOND);
    f->now = s * STK_SECOND;
    fx_turn(f);
}

static bool runs(const struct fx *f, uint32_t job)
{
    return fx_of(f, job)->lease != 0;
}

static void jobs_that_would_run_into_a_window_are_not_started_on_what_it_needs(void **st)
{
    struct fx *f = world("skip");
    uint32_t longer, shorter, beside;

    (void)st;
    assert_int_equal(fx_reserve(f, fx_booking(16, 100, 200)), 0);
    longer = fx_submit(f, fx_job(8, 101));
    shorter = fx_submit(f, fx_job(8, 100));
    fx_turn(f);
    assert_false(runs(f, longer));
    assert_true(runs(f, shorter));
    assert_int_equal(fx_why(f, longer), STK_WHY_BOOKED);
    run(f, 150);
    assert_false(runs(f, longer)); /* the window is open, and both nodes are its */
    assert_int_equal(f->s->pools[0].gpus_free, 0);
    run(f, 200);
    assert_true(runs(f, longer));
    assert_int_equal(f->s->book.n, 0);
    assert_int_equal(fx_reserve(f, fx_booking(4, 400, 500)), 0);
    beside = fx_submit(f, fx_job(4, 1000)); /* leaves 4 of its node */
    fx_turn(f);
    assert_true(runs(f, beside));
    fx_finish(f);
}

static void others_do_not_get_what_is_open_and_its_holder_does(void **st)
{
    struct fx *f = world("none");
    uint32_t head, other, mine, small;

    (void)st;
    assert_int_equal(fx_reserve(f, fx_booking(12, 10, 1000)), 0);
    run(f, 10);
    assert_int_equal(f->s->pools[0].gpus_free, 4);
    head = fx_submit(f, fx_job(8, 50));
    other = fx_submit(f, fx_job(4, 50));
    fx_turn(f);
    assert_false(runs(f, head));
    assert_false(runs(f, other)); /* strict: behind the head */
    mine = fx_submit(f, named(8, 50, 1));
    fx_turn(f);
    assert_true(runs(f, mine)); /* past the head of a strict queue */
    assert_int_equal(fx_why(f, head), STK_WHY_BOOKED);
    small = fx_submit(f, named(8, 50, 1)); /* 4 are left of it, and 4 free ones beside them */
    fx_turn(f);
    assert_false(runs(f, small));
    run(f, 60);
    assert_false(runs(f, head));
    assert_true(runs(f, small));
    run(f, 1000);
    assert_true(runs(f, head));
    assert_true(runs(f, other));
    fx_finish(f);
}

static void a_job_that_outlives_the_window_waits_its_turn(void **st)
{
    struct fx *f = world("easy");
    uint32_t mine;

    (void)st;
    assert_int_equal(fx_reserve(f, fx_booking(8, 10, 100)), 0);
    run(f, 50);
    (void)fx_submit(f, fx_job(8, 500));
    mine = fx_submit(f, named(8, 51, 1));
    fx_turn(f);
    assert_true(runs(f, mine)); /* nobody is delayed by it */
    fx_finish(f);
}

static void whoever_runs_on_is_waited_for_or_evicted(void **st)
{
    for (int evict = 0; evict < 2; evict++) {
        struct fx *f = world("skip");
        struct stk_booking_spec k = fx_booking(16, 100, 300);
        uint32_t overruns, critical;
        struct stk_job_spec spec = fx_job(8, 50);

        (void)st;
        k.evict = evict;
        assert_int_equal(fx_reserve(f, k), 0);
        overruns = fx_submit(f, spec);
        spec.tier = STK_TIER_CRITICAL;
        critical = fx_submit(f, spec);
        f->work[overruns].left = f->work[critical].left = 150 * STK_SECOND;
        fx_turn(f);
        run(f, 100);
        assert_int_equal(runs(f, overruns), !evict);
        assert_true(runs(f, critical));
        assert_int_equal(f->s->book.fence[0].held + f->s->book.fence[1].held, evict ? 8 : 0);
        run(f, 150);
        assert_int_equal(f->s->book.fence[0].held + f->s->book.fence[1].held, 16);
        run(f, 301);
        assert_int_equal(fx_of(f, overruns)->preemptions, evict);
        fx_finish(f);
    }
}

static void one_that_nobody_uses_lapses_after_its_grace(void **st)
{
    struct fx *f = world("skip");
    struct stk_booking_spec k = fx_booking(8, 100, 1000);
    uint32_t other;

    (void)st;
    k.grace = 60 * STK_SECOND;
    assert_int_equal(fx_reserve(f, k), 0);
    k.holder = STK_HOLDER_USER;
    k.holder_id = 7;
    assert_int_equal(fx_reserve(f, k), 0);
    run(f, 120);
    other = fx_submit(f, named(8, 10, 1)); /* it uses the first */
    fx_turn(f);
    assert_true(runs(f, other));
    run(f, 159);
    assert_int_equal(f->s->book.n, 2);
    run(f, 160);
    assert_int_equal(f->s->book.n, 1);
    assert_int_equal(f->log[f->n_log - 1].ev.type, STK_EV_UNRESERVE);
    assert_int_equal(f->log[f->n_log - 1].ev.u.unreserve.why, STK_OVER_LAPSED);
    assert_int_equal(f->log[f->n_log - 1].ev.u.unreserve.number, 2);
    run(f, 1000);
    assert_int_equal(f->log[f->n_log - 1].ev.u.unreserve.why, STK_OVER_ENDED);
    fx_finish(f);
}

static void windows_that_overlap_are_refused_when_there_are_not_enough(void **st)
{
    struct fx *f = world("skip");
    const struct stk_piece whole = {.node = {1}, .gpus = 8};
    struct stk_booking_spec k = fx_booking(8, 150, 250);

    (void)st;
    assert_int_equal(fx_reserve(f, fx_booking(12, 100, 200)), 0);
    assert_int_equal(fx_reserve(f, k), -EBUSY);
    assert_non_null(strstr(f->err.text, "reservation 1 overlaps"));
    assert_non_null(strstr(f->err.text, "4 are not reserved"));
    k.gpus = 4;
    assert_int_equal(fx_reserve(f, k), 0);
    assert_int_equal(fx_reserve(f, fx_booking(16, 250, 300)), 0);
    assert_int_equal(fx_reserve(f, fx_booking(17, 900, 901)), -ERANGE);
    k = fx_booking(8, 180, 190);
    k.nodes = &whole;
    k.n_nodes = 1;
    assert_int_equal(fx_reserve(f, k), -EBUSY);
    assert_non_null(strstr(f->err.text, "node 1"));
    k.start = 310 * STK_SECOND;
    k.end = 320 * STK_SECOND;
    assert_int_equal(fx_reserve(f, k), 0);
    assert_int_equal(fx_unreserve(f, 1), 0);
    assert_int_equal(fx_unreserve(f, 1), -ENOENT);
    assert_int_equal(fx_reserve(f, fx_booking(12, 100, 200)), 0);
    fx_finish(f);
}

static void what_is_wrong_is_refused_with_a_sentence(void **st)
{
    struct fx *f = world("skip");
    struct stk_booking_spec k = fx_booking(8, 200, 100);

    (void)st;
    assert_int_equal(fx_reserve(f, k), -EINVAL);
    k = fx_booking(0, 100, 200);
    assert_int_equal(fx_reserve(f, k), -EINVAL);
    k = fx_booking(1, 0, 367 * INT64_C(86400));
    assert_int_equal(fx_reserve(f, k), -EINVAL);
    k = fx_booking(1, 0, 10);
    k.pool.i = 1;
    assert_int_equal(fx_reserve(f, k), -EINVAL);
    for (uint32_t i = 0; i < STK_MAX_BOOKINGS; i++)
        assert_int_equal(fx_reserve(f, fx_booking(1, 10 * i, 10 * i + 10)), 0);
    assert_int_equal(fx_reserve(f, fx_booking(1, 10000, 10001)), -E2BIG);
    fx_finish(f);
    f = fx_new(&(struct fx_setup){.order = "srtf", .preempt = "afresh"});
    assert_int_equal(fx_reserve(f, fx_booking(1, 0, 10)), -EINVAL);
    assert_non_null(strstr(f->err.text, "afresh"));
    fx_finish(f);
}

static void tenants_users_and_jobs_hold_them(void **st)
{
    static const enum stk_holder kinds[] = {STK_HOLDER_TENANT, STK_HOLDER_USER, STK_HOLDER_JOB};
    static const uint32_t ids[] = {1, 5, 3};

    (void)st;
    for (uint32_t i = 0; i < 3; i++) {
        struct stk_tenant_spec t[3];
        struct fx *f;
        struct stk_booking_spec k = fx_booking(16, 10, 1000);
        struct stk_job_spec mine = fx_job(8, 10), other = fx_job(8, 10);
        uint32_t a, b;

        stk_tenant_spec_init(&t[0], "default", STK_NONE);
        stk_tenant_spec_init(&t[1], "lab", STK_NONE);
        stk_tenant_spec_init(&t[2], "vision", 1);
        f = fx_new(&(struct fx_setup){.tenants = t, .n_tenants = 3});
        k.holder = kinds[i];
        k.holder_id = ids[i];
        (void)fx_submit(f, fx_job(1, 1)); /* job 1 */
        run(f, 9);
        a = fx_submit(f, other); /* job 2, which has its shape before there is a holder */
        mine.tenant = 2;
        mine.terms.user = 5;
        mine.held = true;
        b = fx_submit(f, mine); /* job 3 */
        (void)fx_cancel(f, a);
        assert_int_equal(fx_reserve(f, k), 0);
        run(f, 10);
        a = fx_submit(f, other);
        assert_int_equal(fx_job_event(f, STK_EV_RELEASE, b), 0);
        fx_turn(f);
        assert_false(runs(f, a));
        assert_true(runs(f, b));
        fx_sound(f);
        fx_finish(f);
    }
}

static void easy_promises_a_start_that_windows_allow(void **st)
{
    struct fx *f = world("easy");
    uint32_t head, behind, late;

    (void)st;
    (void)fx_submit(f, fx_job(16, 50));
    fx_turn(f);
    assert_int_equal(fx_reserve(f, fx_booking(16, 100, 200)), 0);
    head = fx_submit(f, fx_job(8, 60)); /* not at 50: it would run into the window */
    behind = fx_submit(f, fx_job(8, 50));
    late = fx_submit(f, fx_job(16, 10));
    fx_turn(f);
    assert_int_equal(f->s->pools[0].resv_job, head);
    assert_true(f->s->pools[0].resv_at == 200 * STK_SECOND);
    run(f, 50);
    assert_true(runs(f, behind));
    run(f, 100);
    assert_false(runs(f, head));
    run(f, 200);
    assert_true(runs(f, head));
    run(f, 260);
    assert_true(runs(f, late));
    fx_finish(f);
}

static void conservative_plans_around_windows(void **st)
{
    struct fx *f = world("conservative");
    uint32_t a, b;

    (void)st;
    assert_int_equal(fx_reserve(f, fx_booking(8, 100, 200)), 0);
    a = fx_submit(f, fx_job(16, 120));
    b = fx_submit(f, fx_job(8, 150));
    fx_turn(f);
    assert_false(runs(f, a));
    assert_true(runs(f, b)); /* beside the window */
    run(f, 199);
    assert_false(runs(f, a));
    run(f, 200);
    assert_true(runs(f, a));
    fx_finish(f);
}

static void a_saved_state_has_its_reservations(void **st)
{
    struct fx *f = world("easy");
    struct stk_core *loaded;
    struct stk_err err;

    (void)st;
    assert_int_equal(fx_reserve(f, fx_booking(12, 10, 1000)), 0);
    assert_int_equal(fx_reserve(f, fx_booking(4, 500, 1000)), 0);
    (void)fx_submit(f, named(4, 600, 1));
    run(f, 20);
    (void)fx_submit(f, named(4, 600, 1));
    fx_turn(f);
    loaded = fx_reload(f, f->core, NULL);
    assert_true(stk_core_digest(loaded) == fx_digest(f));
    assert_true(stk_core_sound(loaded, &err));
    stk_core_free(loaded);
    fx_finish(f);
}

/* Each demand is one shape at first, and two when one of its jobs belongs to the holder. */
static void any_number_of_waiting_jobs_may_come_to_belong_to_a_holder(void **st)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8, .cpu_milli = 1000000},
                                                  {.gpus = 8, .cpu_milli = 1000000}};
    static const char *const orders[] = {"fifo", "fairshare"};
    struct stk_tenant_spec teams[2];

    (void)st;
    stk_tenant_spec_init(&teams[0], "default", STK_NONE);
    stk_tenant_spec_init(&teams[1], "team", STK_NONE);
    teams[1].guarantee = 16000;
    for (int k = 0; k < 2; k++) {
        struct fx *f = fx_new(&(struct fx_setup){.order = orders[k],
                                                 .backfill = "skip",
                                                 .preempt = "reclaim",
                                                 .nodes = nodes,
                                                 .n_nodes = 2,
                                                 .tenants = teams,
                                                 .n_tenants = 2});
        struct stk_booking_spec b = fx_booking(4, 100, 200);

        for (uint32_t i = 0; i < 400; i++) {
            struct stk_job_spec j = fx_job(1, 10);

            j.tenant = 1;
            j.demand.cpu_milli = i / 2;
            j.terms.user = 1 + i % 2;
            (void)fx_submit(f, j);
        }
        b.holder = STK_HOLDER_USER;
        b.holder_id = 2;
        assert_int_equal(fx_reserve(f, b), 0);
        fx_sound(f);
        fx_drain(f);
        fx_finish(f);
    }
}

static void another_node_takes_the_place_of_one_that_is_lost(void **st)
{
    struct stk_node_spec nodes[3];
    struct stk_piece exact[] = {{.node = {1}, .gpus = 8}};
    struct stk_booking_spec given = fx_booking(8, 300, 400);
    struct fx *f;
    uint32_t mine;

    (void)st;
    memset(nodes, 0, sizeof(nodes));
    for (uint32_t i = 0; i < 3; i++)
        nodes[i] = (struct stk_node_spec){.gpus = 8};
    f = fx_new(&(struct fx_setup){.backfill = "skip", .nodes = nodes, .n_nodes = 3});
    f->on_turn = sound_turn;
    assert_int_equal(fx_reserve(f, fx_booking(16, 0, 200)), 0);
    given.nodes = exact;
    given.n_nodes = 1;
    assert_int_equal(fx_reserve(f, given), 0);
    assert_int_equal(f->s->book.fence[0].node, 0);
    assert_int_equal(f->s->book.fence[1].node, 2);
    assert_int_equal(fx_node(f, 2, false), 0);
    fx_sound(f);
    assert_int_equal(f->s->book.fence[0].node, 0);
    assert_int_equal(f->s->book.fence[1].node, 1);
    assert_int_equal(f->s->book.fence[1].held, 8);
    mine = fx_submit(f, named(16, 100, 1));
    fx_turn(f);
    assert_true(runs(f, mine));
    assert_int_equal(fx_node(f, 2, true), 0);
    run(f, 100);
    assert_int_equal(fx_node(f, 1, false), 0);
    assert_int_equal(f->s->book.fence[0].node, 0);
    assert_int_equal(f->s->book.fence[1].node, 2);
    assert_int_equal(f->s->book.fence[2].node, 1); /* that node was wanted, and no other */
    assert_int_equal(fx_node(f, 2, false), 0);     /* there is none left */
    assert_int_equal(f->s->book.fence[1].node, 2);
    assert_int_equal(fx_node(f, 1, true), 0); /* there is */
    assert_int_equal(f->s->book.fence[1].node, 1);
    stk_core_free(fx_reload(f, f->core, &f->setup));
    fx_finish(f);
}

/* Beside a GPU that others share, chance does not decide whether its holder's part starts. */
static void a_part_starts_on_what_is_held_for_it(void **st)
{
    static const struct stk_node_spec node = {.gpus = 8};

    (void)st;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        char params[40];
        struct stk_job_spec part = fx_job(1, 50), mine;
        struct fx *f;
        uint32_t job;

        (void)snprintf(params, sizeof(params), "random.seed=%u", seed);
        f = fx_new(&(struct fx_setup){
            .backfill = "none", .place = "random", .params = params, .nodes = &node, .n_nodes = 1});
        part.demand.cut = false;
        part.demand.gpu_milli = 300;
        part.demand.share = STK_SHARE_MPS;
        mine = part;
        mine.terms.reservation = 1;
        part.estimate = 1000 * STK_SECOND;
        (void)fx_submit(f, part);
        fx_turn(f);
        assert_int_equal(fx_reserve(f, fx_booking(1, 0, 100)), 0);
        (void)fx_submit(f, fx_job(8, 10)); /* the head of the queue, in all others' way */
        fx_turn(f);
        job = fx_submit(f, mine);
        fx_turn(f);
        assert_true(runs(f, job));
        fx_finish(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_waiting_jobs_may_come_to_belong_to_a_holder),
        cmocka_unit_test(jobs_that_would_run_into_a_window_are_not_started_on_what_it_needs),
        cmocka_unit_test(others_do_not_get_what_is_open_and_its_holder_does),
        cmocka_unit_test(a_job_that_outlives_the_window_waits_its_turn),
        cmocka_unit_test(whoever_runs_on_is_waited_for_or_evicted),
        cmocka_unit_test(one_that_nobody_uses_lapses_after_its_grace),
        cmocka_unit_test(windows_that_overlap_are_refused_when_there_are_not_enough),
        cmocka_unit_test(what_is_wrong_is_refused_with_a_sentence),
        cmocka_unit_test(tenants_users_and_jobs_hold_them),
        cmocka_unit_test(easy_promises_a_start_that_windows_allow),
        cmocka_unit_test(conservative_plans_around_windows),
        cmocka_unit_test(a_saved_state_has_its_reservations),
        cmocka_unit_test(a_part_starts_on_what_is_held_for_it),
        cmocka_unit_test(another_node_takes_the_place_of_one_that_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
