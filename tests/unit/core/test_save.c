/* SPDX-License-Identifier: Apache-2.0 */
/* test_save.c - the state as bytes: all of it comes back, into other cores too, and nothing else is
 * taken for one. prop_core.c does the same with random worlds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/save.h"
#include "lib/fixture.h"

/* One of everything: running, stopping, asleep, held, blocked, waiting, finished and forgotten. */
static struct fx *busy(const struct fx_setup *setup)
{
    struct fx *f = fx_new(setup);
    struct stk_job_spec spec = fx_job(2, 100);
    struct stk_dep dep = {0, STK_DEP_AFTERANY, false};
    uint32_t first, asleep, stopping;

    spec.retry[STK_RETRY_OOM] = 3;
    for (int i = 0; i < 4; i++)
        assert_int_equal(fx_cancel(f, fx_submit(f, fx_job(1, 1))), 0);
    first = fx_submit(f, spec);
    asleep = fx_submit(f, spec);
    stopping = fx_submit(f, spec);
    fx_turn(f);
    f->now += 5 * STK_SECOND;
    assert_int_equal(fx_suspend(f, asleep), 0);
    fx_turn(f);
    assert_true(fx_of(f, asleep)->slept != 0);
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, stopping), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, stopping), 0);
    dep.on = fx_of(f, first)->number;
    spec.deps = &dep;
    spec.n_deps = 1;
    (void)fx_submit(f, spec);
    (void)fx_submit(f, spec);
    spec.n_deps = 0;
    spec.begin = f->now + 77 * STK_SECOND;
    (void)fx_submit(f, spec);
    spec.begin = 0;
    spec.held = true;
    (void)fx_submit(f, spec);
    (void)fx_submit(f, fx_job(16, 50));
    (void)fx_submit(f, fx_job(14, 50));
    assert_int_equal(fx_gpus_off(f, 1, 0x81), 0);
    assert_int_equal(fx_node(f, 1, false), 0);
    return f;
}

static void save(struct fx *f, const struct stk_mem *mem, struct stk_bytes *b)
{
    *b = (struct stk_bytes){.mem = mem};
    assert_int_equal(stk_core_save(f->core, b, NULL), 0);
}

static void everything_comes_back(void **state)
{
    static const struct fx_setup setups[] = {
        {.sleep_pct = 100},
        {.sleep_pct = 100, .forget = true, .retain = 1},
        {.sleep_pct = 100, .order = "priority", .backfill = "easy", .preempt = "tier"},
        {.sleep_pct = 100, .order = "las", .preempt = "afresh", .params = "las.promote=2"},
        {.sleep_pct = 100, .backfill = "conservative"}};

    (void)state;
    for (size_t i = 0; i < sizeof(setups) / sizeof(*setups); i++) {
        struct fx *f = busy(&setups[i]);
        struct stk_core *c = fx_reload(f, f->core, NULL);

        assert_true(stk_core_digest(c) == fx_digest(f));
        assert_int_equal(stk_core_next_job(c).i, stk_core_next_job(f->core).i);
        assert_true(stk_core_wake(c, f->now) == stk_core_wake(f->core, f->now));
        for (uint32_t k = 0; k < f->s->n_jobs; k++) {
            struct stk_job a = *fx_of(f, k), b = stk_core_state(c)->jobs[k];

            if (a.state == STK_JOB_NONE)
                continue;
            /* what is a cache, or an index into a table of its own, may differ */
            a.shape = b.shape = a.first_piece = b.first_piece = a.first_edge = b.first_edge = 0;
            a.rank = b.rank = a.rate = b.rate = a.planned = b.planned = 0;
            a.expected_end = b.expected_end = 0;
            assert_memory_equal(&a, &b, sizeof(a));
        }
        stk_core_free(c);
        fx_finish(f);
    }
}

static void it_goes_on_with_another_policy(void **state)
{
    struct fx *f = busy(&(struct fx_setup){
        .sleep_pct = 100, .order = "las", .preempt = "afresh", .params = "las.promote=1"});
    struct stk_core *c;

    (void)state;
    fx_of(f, 4)->word = 12345; /* as a promotion leaves it */
    c = fx_reload(f, f->core, NULL);
    assert_int_equal(stk_core_state(c)->jobs[4].word, 12345);
    stk_core_free(c);
    c = fx_reload(f, f->core, &(struct fx_setup){.order = "sjf", .backfill = "easy"});
    assert_int_equal(stk_core_state(c)->jobs[4].word, 0);
    stk_core_free(c);
    fx_free(f);
}

static int load_into(struct fx *f, const struct stk_node_spec *nodes, uint32_t n,
                     struct stk_core **ret)
{
    const struct stk_mem mem = fx_mem(&f->heap);
    struct fx *g = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = n});
    struct stk_bytes b;
    int rc;

    save(f, &mem, &b);
    stk_core_free(g->core);
    g->core = NULL;
    g->setup.nodes = nodes;
    fx_free(g);
    f->setup.nodes = nodes;
    f->setup.n_nodes = n;
    *ret = fx_core(f);
    rc = stk_core_load(*ret, b.data, b.n, &f->err);
    if (rc == 0)
        fx_must(stk_core_sound(*ret, &f->err), "sound: %s", f->err.text);
    stk_bytes_done(&b);
    return rc;
}

static void on_other_nodes_jobs_stay_if_their_gpus_do(void **state)
{
    const struct stk_node_spec more[3] = {{.gpus = 16}, {.gpus = 8}, {.gpus = 8}};
    const struct stk_node_spec less[2] = {{.gpus = 4}, {.gpus = 2}}, none[1] = {{.gpus = 2}};
    const struct stk_node_spec poor[2] = {{.gpus = 8, .gpu_type = 1}, {.gpus = 8}};
    struct fx *f = fx_plain();
    uint32_t runs = fx_run_on(f, 0, 2, 0x0c), waits = fx_submit(f, fx_job(8, 10));
    struct stk_job_spec whole = fx_job(8, 10);
    struct stk_core *c;
    struct stk_reason why;
    uint32_t never;

    (void)state;
    whole.demand.cut = false;
    whole.demand.gpu_types = 1;
    never = fx_submit(f, whole);
    assert_int_equal(load_into(f, more, 3, &c), 0);
    assert_int_equal(stk_core_state(c)->pools[0].gpus_free, 30);
    stk_core_free(c);
    assert_int_equal(load_into(f, less, 2, &c), 0); /* the lease is still there, as is its job */
    assert_int_equal(stk_core_state(c)->jobs[runs].state, STK_JOB_RUNNING);
    assert_int_equal(stk_core_state(c)->jobs[waits].state, STK_JOB_WAITING);
    assert_int_equal(stk_core_why(c, (stk_job_id){never}, &why, NULL), 0);
    assert_int_equal(why.code, STK_WHY_NEVER);
    stk_core_free(c);
    assert_int_equal(load_into(f, none, 1, &c), -ENODEV);
    assert_non_null(strstr(f->err.text, "job 1 "));
    stk_core_free(c);
    assert_int_equal(load_into(f, poor, 2, &c), 0); /* it accepts any type */
    stk_core_free(c);
    fx_free(f);
}

static void asleep_on_gpus_that_are_gone(void **state)
{
    const struct stk_node_spec less[1] = {{.gpus = 2}};
    struct fx *f = fx_new(&(struct fx_setup){.sleep_pct = 100});
    uint32_t job = fx_run_on(f, 0, 2, 0x0c);
    struct stk_core *c;

    (void)state;
    assert_int_equal(fx_suspend(f, job), 0);
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), 0);
    assert_int_equal(load_into(f, less, 1, &c), -ENODEV);
    assert_non_null(strstr(f->err.text, "sleeps"));
    stk_core_free(c);
    fx_free(f);
}

static void what_is_no_state_is_refused(void **state)
{
    struct fx *f = busy(&(struct fx_setup){.sleep_pct = 100});
    const struct stk_mem mem = fx_mem(&f->heap);
    struct stk_core *c;
    struct stk_bytes b;
    unsigned char *copy;

    (void)state;
    save(f, &mem, &b);
    for (uint32_t cut = 0; cut < b.n; cut++) {
        c = fx_core(f);
        assert_int_equal(stk_core_load(c, b.data, cut, &f->err), -EBADMSG);
        stk_core_free(c);
    }
    /* one byte wrong: refused, or a sound state that differs in that */
    copy = malloc(b.n + 1);
    assert_non_null(copy);
    for (uint32_t at = 0; at < b.n; at++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, b.data, b.n);
            copy[at] ^= (unsigned char)(1u << bit);
            c = fx_core(f);
            if (stk_core_load(c, copy, b.n, &f->err) == 0)
                fx_must(stk_core_sound(c, &f->err), "byte %u: %s", at, f->err.text);
            stk_core_free(c);
        }
    memcpy(copy, b.data, b.n);
    copy[b.n] = 0;
    c = fx_core(f);
    assert_int_equal(stk_core_load(c, copy, b.n + 1, &f->err), -EBADMSG);
    stk_core_free(c);
    copy[4] = STK_SAVE_VERSION + 1;
    c = fx_core(f);
    assert_int_equal(stk_core_load(c, copy, b.n, &f->err), -EPROTONOSUPPORT);
    stk_core_free(c);
    assert_int_equal(stk_core_load(f->core, b.data, b.n, &f->err), -EINVAL); /* not fresh */
    free(copy);
    stk_bytes_done(&b);
    fx_free(f);
}

static void without_memory_nothing_leaks(void **state)
{
    struct fx *f = busy(&(struct fx_setup){.sleep_pct = 100, .backfill = "conservative"});
    const struct stk_mem mem = fx_mem(&f->heap);
    struct stk_bytes b;
    int rc = -ENOMEM;

    (void)state;
    save(f, &mem, &b);
    for (uint64_t at = 1; rc != 0; at++) {
        struct stk_core *c = fx_core(f);

        f->heap.fail_at = f->heap.calls + at;
        rc = stk_core_load(c, b.data, b.n, &f->err);
        assert_true(rc == 0 || rc == -ENOMEM);
        f->heap.fail_at = 0;
        stk_core_free(c);
        assert_true(at < 500);
    }
    stk_bytes_done(&b);
    f->heap.fail_at = f->heap.calls + 2;
    b = (struct stk_bytes){.mem = &mem};
    assert_int_equal(stk_core_save(f->core, &b, NULL), -ENOMEM);
    f->heap.fail_at = 0;
    stk_bytes_done(&b);
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(it_goes_on_with_another_policy),
        cmocka_unit_test(on_other_nodes_jobs_stay_if_their_gpus_do),
        cmocka_unit_test(asleep_on_gpus_that_are_gone),
        cmocka_unit_test(what_is_no_state_is_refused),
        cmocka_unit_test(without_memory_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
