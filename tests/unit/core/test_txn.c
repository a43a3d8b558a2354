/* SPDX-License-Identifier: Apache-2.0 */
/* test_txn.c - tentative changes leave no trace when they are rolled back, at any depth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/txn.h"
#include "lib/world.h"

static struct stk_state *writable(const struct fx *f)
{
    return (struct stk_state *)(uintptr_t)f->s;
}

static struct stk_use some_use(const struct stk_state *s, uint32_t node, struct stk_rng *r)
{
    uint32_t gpus = (uint32_t)stk_rng_below(r, s->nodes[node].gpus_free + 1u);
    const struct stk_node *n = &s->nodes[node];

    return (struct stk_use){.gpus = gpus,
                            .mask = stk_index_lowest(s, node, gpus),
                            .cpu = n->cpu_limited ? stk_rng_below(r, n->cpu_free + 1) : 7,
                            .mem = n->mem_limited ? stk_rng_below(r, n->mem_free + 1) : 7};
}

static void tamper(struct stk_state *s, struct stk_rng *r, int depth)
{
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t before = s->n_undo;

    for (int i = 0; i < 4; i++) {
        uint32_t node = (uint32_t)stk_rng_below(r, s->n_nodes);
        struct stk_use u = some_use(s, node, r);

        stk_txn_take(s, node, &u);
        if (stk_rng_below(r, 3) == 0)
            stk_txn_give(s, node, &u);
        if (depth > 0)
            tamper(s, r, depth - 1);
    }
    stk_txn_commit(s, mark); /* inside another: still undoable */
    if (stk_rng_below(r, 2) || depth == 2)
        stk_txn_rollback(s, mark);
    assert_true(s->n_undo >= before);
}

static void a_rollback_restores_everything(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w = {.exact = true};
        struct stk_rng r;
        struct fx *f;
        uint64_t before;
        stk_txn_mark outer;

        stk_rng_init(&r, seed);
        world_policies(&w, &r);
        world_cluster(&w, &r);
        f = fx_new(&w.setup);
        for (int i = 0; i < 20; i++)
            world_submit(&w, f, &r);
        fx_turn(f);
        before = fx_digest(f);
        assert_int_equal(stk_txn_reserve(writable(f), 10000), 0);
        outer = stk_txn_begin(writable(f));
        stk_txn_take(writable(f), 0, &(struct stk_use){0});
        tamper(writable(f), &r, 2);
        stk_txn_rollback(writable(f), outer);
        assert_true(fx_digest(f) == before);
        fx_sound(f);
        fx_free(f);
    }
}

static void a_job_taken_off_can_be_put_back_unless_its_place_is_taken(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});
    uint32_t job = fx_submit(f, fx_job(12, 10));
    struct stk_state *s = writable(f);
    const struct stk_use one = {.gpus = 1, .mask = 1};
    stk_txn_mark mark;
    uint32_t used;

    (void)state;
    fx_turn(f);
    mark = stk_txn_begin(s);
    stk_txn_give_job(s, fx_of(f, job));
    assert_int_equal(s->pools[0].gpus_free, 16);
    assert_true(stk_txn_take_job(s, fx_of(f, job)));
    assert_int_equal(s->pools[0].gpus_free, 4);
    stk_txn_give_job(s, fx_of(f, job));
    stk_txn_take(s, 1, &one); /* GPU 0 of the second piece's node */
    used = s->n_undo;
    assert_false(stk_txn_take_job(s, fx_of(f, job)));
    assert_int_equal(s->n_undo, used); /* nothing of it was taken */
    assert_int_equal(s->pools[0].gpus_free, 15);
    stk_txn_rollback(s, mark);
    assert_int_equal(s->pools[0].gpus_free, 4);
    fx_sound(f);
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rollback_restores_everything),
        cmocka_unit_test(a_job_taken_off_can_be_put_back_unless_its_place_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
