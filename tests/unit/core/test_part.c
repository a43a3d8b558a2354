/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs: who may share with whom, what comes back, and that room is found when there is
 * any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/part.h"
#include "lib/world.h"

static const struct stk_node_spec node = {.gpus = 2, .gpu_mem_mib = 16384, .cpu_milli = 8000};

static struct fx *one_node(const char *place)
{
    return fx_new(&(struct fx_setup){
        .nodes = &node, .n_nodes = 1, .order = "fifo", .backfill = "skip", .place = place});
}

static struct stk_job_spec part(uint16_t milli, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(1, seconds);

    spec.demand.cut = false;
    spec.demand.gpu_milli = milli;
    return spec;
}

static uint64_t mask_of(const struct fx *f, uint32_t job)
{
    assert_int_equal(fx_of(f, job)->n_pieces, 1);
    return f->s->pieces[fx_of(f, job)->first_piece].mask;
}

static void parts_fill_a_gpu_before_they_open_another(void **state)
{
    struct fx *f = one_node("pack");
    uint32_t a = fx_submit(f, part(500, 10)), b = fx_submit(f, part(300, 10));
    uint32_t c = fx_submit(f, part(300, 10)), d = fx_submit(f, part(200, 10));

    (void)state;
    fx_turn(f);
    assert_int_equal(mask_of(f, a), 1);
    assert_int_equal(mask_of(f, b), 1);
    assert_int_equal(mask_of(f, c), 2);
    assert_int_equal(mask_of(f, d), 1); /* where it just fits */
    assert_int_equal(f->s->nodes[0].gpus_free, 0);
    assert_int_equal(stk_part_left(f->s, &f->s->nodes[0], 0), 0);
    assert_int_equal(stk_part_left(f->s, &f->s->nodes[0], 1), 700);
    fx_drain(f);
    assert_int_equal(f->s->nodes[0].mask_free, 3);
    assert_int_equal(f->s->nodes[0].mask_part, 0);
    fx_finish(f);
}

static void spread_opens_another_first(void **state)
{
    struct fx *f = one_node("spread");
    uint32_t a = fx_submit(f, part(500, 10)), b = fx_submit(f, part(300, 10));
    uint32_t c = fx_submit(f, part(300, 10));

    (void)state;
    fx_turn(f);
    assert_int_equal(mask_of(f, a) | mask_of(f, b), 3);
    assert_int_equal(mask_of(f, c), mask_of(f, b)); /* the most left */
    fx_drain(f);
    fx_finish(f);
}

static void a_whole_gpu_is_free_when_the_last_has_gone(void **state)
{
    struct fx *f = one_node("pack");
    uint32_t a = fx_submit(f, part(500, 10)), b = fx_submit(f, part(500, 30));
    uint32_t whole = fx_submit(f, fx_job(2, 10));

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_run(f, 15 * STK_SECOND);
    assert_int_equal(fx_state(f, a), STK_JOB_DONE);
    assert_int_equal(fx_state(f, whole), STK_JOB_WAITING);
    fx_run(f, 30 * STK_SECOND);
    assert_int_equal(fx_state(f, whole), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void memory_of_a_gpu_is_shared_too(void **state)
{
    struct fx *f = one_node("pack");
    struct stk_job_spec big = part(100, 10), wide = fx_job(1, 10);
    uint32_t a, b, c;

    (void)state;
    big.demand.gpu_mem_mib = 10000;
    a = fx_submit(f, big);
    b = fx_submit(f, big);
    c = fx_submit(f, big);
    fx_turn(f);
    assert_int_equal(mask_of(f, a), 1);
    assert_int_equal(mask_of(f, b), 2);
    assert_int_equal(fx_state(f, c), STK_JOB_WAITING);
    wide.demand.gpu_mem_mib = 20000; /* no GPU has that */
    assert_true(fx_try_submit(f, &wide) < 0);
    big.demand.gpu_mem_mib = 20000;
    assert_true(fx_try_submit(f, &big) < 0);
    fx_drain(f);
    fx_finish(f);
}

static void only_the_same_way_of_sharing_meets(void **state)
{
    struct fx *f = one_node("pack");
    struct stk_job_spec mps = part(100, 10), two = part(100, 10);
    uint32_t a, b, c, d;

    (void)state;
    mps.demand.share = STK_SHARE_MPS;
    two.demand.share = STK_SHARE_MPS;
    two.demand.share_max = 2;
    a = fx_submit(f, mps);
    b = fx_submit(f, two);
    c = fx_submit(f, two);
    d = fx_submit(f, two);
    fx_turn(f);
    assert_int_equal(mask_of(f, a), 1);
    assert_int_equal(mask_of(f, b), 2);
    assert_int_equal(mask_of(f, c), 2);
    assert_int_equal(fx_state(f, d), STK_JOB_WAITING); /* two are there */
    fx_drain(f);
    fx_finish(f);
}

static void in_turns_each_has_all_the_memory(void **state)
{
    struct fx *f = one_node("pack");
    struct stk_job_spec seat = part(500, 10);
    uint32_t a, b, c, d;

    (void)state;
    seat.demand.share = STK_SHARE_TIME;
    seat.demand.gpu_mem_mib = 16000;
    a = fx_submit(f, seat);
    b = fx_submit(f, seat);
    c = fx_submit(f, seat);
    seat.demand.gpu_milli = 600;
    d = fx_submit(f, seat);
    fx_turn(f);
    assert_int_equal(mask_of(f, a), 1);
    assert_int_equal(mask_of(f, b), 1);
    assert_int_equal(mask_of(f, c), 2);
    assert_int_equal(fx_state(f, d), STK_JOB_WAITING); /* a seat and a half is taken */
    assert_int_equal(f->s->parts[0].mem_mib, 16384);
    seat.demand.gpu_mem_mib = 17000; /* but each must fit alone */
    assert_true(fx_try_submit(f, &seat) < 0);
    fx_drain(f);
    fx_finish(f);
}

static void only_the_same_company_meets(void **state)
{
    struct fx *f = one_node("pack");
    struct stk_job_spec one = part(100, 10), other = part(100, 10), third = part(100, 10);
    uint32_t a, b, c, d;

    (void)state;
    one.demand.share_with = 1001;
    other.demand.share_with = 1002;
    third.demand.share_with = 1003;
    a = fx_submit(f, one);
    b = fx_submit(f, other);
    c = fx_submit(f, one);
    d = fx_submit(f, third);
    fx_turn(f);
    assert_int_equal(mask_of(f, a), 1);
    assert_int_equal(mask_of(f, b), 2);
    assert_int_equal(mask_of(f, c), 1);
    assert_int_equal(fx_state(f, d), STK_JOB_WAITING);
    fx_drain(f);
    fx_finish(f);
}

static void three_seats_are_for_three(void **state)
{
    struct fx *f = one_node("pack");
    struct stk_job_spec seat = part(333, 10);
    uint32_t job[7];

    (void)state;
    seat.demand.share = STK_SHARE_TIME;
    seat.demand.share_max = 3;
    for (int i = 0; i < 7; i++)
        job[i] = fx_submit(f, seat);
    fx_turn(f);
    for (int i = 0; i < 6; i++)
        assert_int_equal(mask_of(f, job[i]), i < 3 ? 1 : 2);
    assert_int_equal(fx_state(f, job[6]), STK_JOB_WAITING);
    fx_drain(f);
    fx_finish(f);
}

static void a_gang_does_not_take_turns(void **state)
{
    struct fx *f = one_node("pack");
    struct stk_job_spec gang = part(500, 10);

    (void)state;
    gang.demand.share = STK_SHARE_TIME;
    gang.demand.tasks = 2;
    assert_int_equal(fx_try_submit(f, &gang), -EINVAL);
    fx_finish(f);
}

static void tasks_of_one_job_get_gpus_of_their_own(void **state)
{
    struct fx *f = one_node("pack");
    struct stk_job_spec gang = part(300, 10);
    uint32_t a, b;

    (void)state;
    gang.demand.tasks = 2;
    a = fx_submit(f, gang);
    b = fx_submit(f, gang);
    gang.demand.tasks = 3;
    assert_true(fx_try_submit(f, &gang) < 0);
    fx_turn(f);
    assert_int_equal(mask_of(f, a), 3);
    assert_int_equal(mask_of(f, b), 3);
    fx_drain(f);
    fx_finish(f);
}

static void what_is_no_part_is_refused(void **state)
{
    struct fx *f = one_node("pack");
    struct stk_job_spec spec = part(1000, 1);

    (void)state;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    spec = part(500, 1);
    spec.demand.gpus = 2;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    spec = fx_job(1, 1);
    spec.demand.share_max = 3; /* two may have whole GPUs: test_pair.c */
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    spec = part(500, 1);
    spec.demand.share = STK_SHARE_MAX;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    fx_finish(f);
}

/* Looks at every GPU of every node. */
static bool fits_somewhere(const struct fx *f, const struct stk_demand *d, uint32_t pool)
{
    uint32_t tasks = 0;

    for (uint32_t i = 0; i < f->s->n_nodes; i++) {
        const struct stk_node *n = &f->s->nodes[i];
        uint64_t room = UINT64_MAX;
        uint32_t here = 0;

        if (!n->up || n->pool != pool || !((d->gpu_types >> n->gpu_type) & 1))
            continue;
        if (n->cpu_limited && d->cpu_milli)
            room = n->cpu_free / d->cpu_milli;
        if (n->mem_limited && d->mem_mib && n->mem_free / d->mem_mib < room)
            room = n->mem_free / d->mem_mib;
        for (uint32_t g = 0; g < n->gpus; g++) {
            const struct stk_part *p = &f->s->parts[n->first_part + g];
            bool shared = n->mask_part >> g & 1, off = n->mask_off >> g & 1;
            uint32_t mem = shared ? p->mem_mib : n->gpu_mem_mib;

            if (off || stk_part_left(f->s, n, g) < d->gpu_milli ||
                (n->gpu_mem_mib && d->gpu_mem_mib > mem))
                continue;
            if (shared && (p->share != d->share || p->share_max != d->share_max ||
                           p->with != d->share_with || (p->share_max && p->n >= p->share_max)))
                continue;
            here++;
        }
        tasks += here < room ? here : (uint32_t)room;
    }
    return tasks >= d->tasks;
}

static void all_that_are_in_the_way_go_one_after_the_other(void **state)
{
    static const struct stk_node_spec three = {.gpus = 3};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = &three,
                                             .n_nodes = 1,
                                             .order = "fifo",
                                             .backfill = "skip",
                                             .place = "pack",
                                             .preempt = "tier",
                                             .cap = 2});
    struct stk_job_spec low = part(600, 50), beside = part(300, 50), gang = part(500, 10);
    uint32_t job;

    (void)state;
    beside.tier = gang.tier = STK_TIER_CRITICAL;
    low.tier = STK_TIER_BEST_EFFORT;
    beside.demand.tasks = gang.demand.tasks = 3;
    (void)fx_submit(f, beside);
    fx_turn(f);
    for (int i = 0; i < 3; i++)
        (void)fx_submit(f, low);
    fx_turn(f);
    job = fx_submit(f, gang);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

/* One task per GPU: more of them than nodes. */
static void a_gang_may_have_many_parts(void **state)
{
    struct stk_node_spec nodes[10];
    struct stk_job_spec gang = part(500, 10);
    struct fx *f;
    uint32_t job;

    (void)state;
    for (uint32_t i = 0; i < 10; i++)
        nodes[i] = (struct stk_node_spec){.gpus = 64};
    f = fx_new(&(struct fx_setup){
        .nodes = nodes, .n_nodes = 10, .order = "fifo", .backfill = "skip", .place = "pack"});
    gang.demand.tasks = 640;
    job = fx_submit(f, gang);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void room_is_found_when_there_is_any(void **state)
{
    static const char *const names[] = {"pack", "spread", "first_fit", "fgd", "gpuclustering"};
    struct world_look look = {.fits = fits_somewhere, .jobs = 25, .gap = 4 * STK_SECOND};

    (void)state;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        struct world w = {.setup = {.place = names[seed % 5], .backfill = "skip"}};
        struct stk_rng r;

        stk_rng_init(&r, seed);
        world_cluster(&w, &r);
        w.parts = true;
        world_no_mig(&w); /* test_slice.c */
        world_plain(&w);
        world_no_topology(&w); /* test_gang.c */
        world_look(&w, &r, &look);
    }
    assert_true(look.yes > 500 && look.no > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_fill_a_gpu_before_they_open_another),
        cmocka_unit_test(spread_opens_another_first),
        cmocka_unit_test(a_whole_gpu_is_free_when_the_last_has_gone),
        cmocka_unit_test(memory_of_a_gpu_is_shared_too),
        cmocka_unit_test(only_the_same_way_of_sharing_meets),
        cmocka_unit_test(in_turns_each_has_all_the_memory),
        cmocka_unit_test(three_seats_are_for_three),
        cmocka_unit_test(a_gang_does_not_take_turns),
        cmocka_unit_test(only_the_same_company_meets),
        cmocka_unit_test(tasks_of_one_job_get_gpus_of_their_own),
        cmocka_unit_test(what_is_no_part_is_refused),
        cmocka_unit_test(all_that_are_in_the_way_go_one_after_the_other),
        cmocka_unit_test(a_gang_may_have_many_parts),
        cmocka_unit_test(room_is_found_when_there_is_any),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
