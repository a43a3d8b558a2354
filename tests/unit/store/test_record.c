/* SPDX-License-Identifier: Apache-2.0 */
/* test_record.c - records as they were written, live ones, and the history page by page. */
#include <stdlib.h>

#include "base/rng.h"
#include "store_fixture.h"

static int same(void *ctx, const struct stk_record *r)
{
    const struct stk_record *w = ctx;

    assert_int_equal(r->number, w->number);
    assert_int_equal(r->uid, w->uid);
    assert_int_equal(r->gid, w->gid);
    assert_string_equal(r->user, w->user);
    assert_string_equal(r->name, w->name);
    assert_int_equal(r->kind, w->kind);
    assert_int_equal(r->array, w->array);
    assert_int_equal(r->array_index, w->array_index);
    assert_int_equal(r->submitted, w->submitted);
    assert_int_equal(r->first_started, w->first_started);
    assert_int_equal(r->started, w->started);
    assert_int_equal(r->ended, w->ended);
    assert_int_equal(r->cause, w->cause);
    assert_int_equal(r->code, w->code);
    assert_int_equal(r->gpus, w->gpus);
    assert_int_equal(r->gpu_milli, w->gpu_milli);
    assert_string_equal(r->queue, w->queue ? w->queue : "");
    assert_string_equal(r->tenant, w->tenant ? w->tenant : "");
    assert_int_equal(r->tasks, w->tasks);
    assert_int_equal(r->restarts, w->restarts);
    assert_int_equal(r->preemptions, w->preemptions);
    assert_int_equal(r->served, w->served);
    assert_int_equal(r->spec, w->spec);
    assert_string_equal(r->comment, w->comment ? w->comment : "");
    assert_string_equal(r->note, w->note ? w->note : "");
    assert_string_equal(r->stdout_path, w->stdout_path ? w->stdout_path : "");
    assert_string_equal(r->stderr_path, w->stderr_path ? w->stderr_path : "");
    return 0;
}

static void every_member_comes_back(void **state)
{
    struct box *b = *state;
    struct stk_record r = {.number = 4294967294u,
                           .uid = 4294967295u,
                           .gid = 12,
                           .user = "ana",
                           .name = "träning \"x\"",
                           .kind = STK_KIND_SHELL,
                           .array = 17,
                           .array_index = 4000000000u,
                           .submitted = T0,
                           .gpus = 16,
                           .gpu_milli = 250,
                           .queue = "express",
                           .tenant = "vision",
                           .tasks = 2,
                           .spec = 0,
                           .comment = "a comment",
                           .stdout_path = "/home/ana/out"};
    char *body;
    size_t len;

    begin(b);
    ok(b, stk_store_spec_put(b->st, "\0body\xff", 6, &r.spec, &b->err));
    ok(b, stk_store_job_put(b->st, &r, &b->err));
    refused(b, -EEXIST, "write a job", stk_store_job_put(b->st, &r, &b->err));
    commit(b); /* a row that was there already spoils nothing */
    ok(b, stk_store_job_get(b->st, r.number, same, &r, &b->err));
    ok(b, stk_store_live(b->st, same, &r, &b->err));
    ok(b, stk_store_spec_get(b->st, r.spec, &body, &len, &b->err));
    assert_int_equal(len, 6);
    assert_memory_equal(body, "\0body\xff", 7);
    free(body);
    refused(b, -ENOENT, "no job description 99",
            stk_store_spec_get(b->st, 99, &body, &len, &b->err));
    refused(b, -ENOENT, "no job 5", stk_store_job_get(b->st, 5, same, &r, &b->err));

    r.name = "renamed";
    r.first_started = T0 + 1;
    r.started = T0 + 2;
    r.restarts = 3;
    r.preemptions = 4;
    r.gpus = 8;
    r.tasks = 1;
    r.served = 77;
    r.comment = "";
    r.note = "restarted";
    r.stderr_path = "/home/ana/err";
    begin(b);
    ok(b, stk_store_job_update(b->st, &r, &b->err));
    commit(b);
    ok(b, stk_store_job_get(b->st, r.number, same, &r, &b->err));
    r.ended = T0 + 3;
    r.cause = STK_CAUSE_SIGNAL;
    r.code = -9;
    begin(b);
    ok(b, stk_store_job_update(b->st, &r, &b->err));
    commit(b);
    ok(b, stk_store_job_get(b->st, r.number, same, &r, &b->err));
    r.ended = 0; /* requeued after its end: it lives again */
    begin(b);
    ok(b, stk_store_job_update(b->st, &r, &b->err));
    commit(b);
    ok(b, stk_store_live(b->st, same, &r, &b->err));
    r.number = 5;
    begin(b);
    refused(b, -ENOENT, "no job 5", stk_store_job_update(b->st, &r, &b->err));
    commit(b);
}

static void texts_have_a_limit(void **state)
{
    struct box *b = *state;
    struct stk_record r = {.number = 1};
    char *text = calloc(1, STK_STORE_MAX_TEXT + 2);

    assert_non_null(text);
    memset(text, 'x', STK_STORE_MAX_TEXT + 1);
    r.note = text;
    begin(b);
    refused(b, -EFBIG, "longer than 65536", stk_store_job_put(b->st, &r, &b->err));
    text[STK_STORE_MAX_TEXT] = '\0';
    ok(b, stk_store_job_put(b->st, &r, &b->err));
    commit(b);
    free(text);
}

struct list {
    stk_job_number n[600];
    size_t len;
};

static int collect(void *ctx, const struct stk_record *r)
{
    struct list *l = ctx;

    assert_true(l->len < 600);
    l->n[l->len++] = r->number;
    return 0;
}

static void live_jobs_are_those_that_have_not_ended(void **state)
{
    struct box *b = *state;
    struct list l = {.len = 0};

    begin(b);
    for (uint32_t i = 1; i <= 300; i++) {
        struct stk_record r = put_job(b, 301 - i, 1000);

        if (r.number % 2)
            end_job(b, &r, T0 + 1000 + i, STK_CAUSE_OK);
    }
    ok(b, stk_store_live(b->st, collect, &l, &b->err)); /* also what is not committed yet */
    commit(b);
    assert_int_equal(l.len, 150);
    for (size_t i = 0; i < l.len; i++)
        assert_int_equal(l.n[i], 2 * (i + 1));
}

/* The history against a plain search over the same jobs. */
#define JOBS 400
static struct stk_record world[JOBS];

static bool fits(const struct stk_history_query *q, const struct stk_record *r)
{
    return r->ended && (!q->uid || r->uid == *q->uid) &&
           (!q->user || strcmp(r->user, q->user) == 0) &&
           (!q->name || strcmp(r->name, q->name) == 0) &&
           (!q->causes || (q->causes >> r->cause & 1)) && (!q->since || r->ended >= q->since) &&
           (!q->until || r->ended < q->until);
}

static int later(const void *a, const void *b)
{
    const struct stk_record *x = &world[*(const stk_job_number *)a - 1];
    const struct stk_record *y = &world[*(const stk_job_number *)b - 1];

    if (x->ended != y->ended)
        return x->ended > y->ended ? -1 : 1;
    return x->number > y->number ? -1 : 1;
}

static void compare(struct box *b, struct stk_history_query q)
{
    struct list want = {.len = 0}, got = {.len = 0};

    for (uint32_t i = 0; i < JOBS; i++)
        if (fits(&q, &world[i]))
            want.n[want.len++] = i + 1;
    qsort(want.n, want.len, sizeof(*want.n), later);
    for (;;) {
        size_t before = got.len;

        ok(b, stk_store_history(b->st, &q, collect, &got, &b->err));
        if (got.len == before)
            break;
        assert_true(!q.limit || got.len - before <= q.limit);
        q.before = got.n[got.len - 1];
    }
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.n, want.n, want.len * sizeof(*want.n));
}

static void make_world(struct box *b)
{
    struct stk_rng rng;

    stk_rng_init(&rng, 7);
    begin(b);
    for (uint32_t i = 0; i < JOBS; i++) {
        world[i] = put_job(b, i + 1, 1000 + (uint32_t)stk_rng_below(&rng, 5));
        if (stk_rng_below(&rng, 8) == 0)
            continue;
        /* many end at the same time */
        end_job(b, &world[i], T0 + 1000 + (stk_time)stk_rng_below(&rng, 40),
                (enum stk_cause)(1 + stk_rng_below(&rng, STK_CAUSE_MAX - 1)));
    }
    commit(b);
}

static void history_is_what_a_plain_search_finds(void **state)
{
    struct box *b = *state;
    struct stk_rng rng;
    int with_rows = 0;

    make_world(b);
    compare(b, (struct stk_history_query){0});
    stk_rng_init(&rng, 8);
    for (int i = 0; i < 300; i++) {
        uint32_t uid = 1000 + (uint32_t)stk_rng_below(&rng, 6);
        struct stk_history_query q = {.limit = (uint32_t)stk_rng_below(&rng, 30)};

        if (stk_rng_below(&rng, 3) == 0)
            q.uid = &uid;
        if (stk_rng_below(&rng, 3) == 0)
            q.user = stk_rng_below(&rng, 2) ? "odd" : "even";
        if (stk_rng_below(&rng, 3) == 0)
            q.name = stk_rng_below(&rng, 2) ? "train" : "nobody";
        if (stk_rng_below(&rng, 3) == 0)
            q.causes = (uint32_t)stk_rng_below(&rng, 1u << STK_CAUSE_MAX);
        if (stk_rng_below(&rng, 3) == 0)
            q.since = T0 + 1000 + (stk_time)stk_rng_below(&rng, 40);
        if (stk_rng_below(&rng, 3) == 0)
            q.until = T0 + 1000 + (stk_time)stk_rng_below(&rng, 40);
        compare(b, q);
        with_rows++;
    }
    assert_int_equal(with_rows, 300);
}

static void a_page_after_a_job_that_was_pruned_is_empty(void **state)
{
    struct box *b = *state;
    struct list l = {.len = 0};
    struct stk_history_query q = {.before = 5000};

    make_world(b);
    ok(b, stk_store_history(b->st, &q, collect, &l, &b->err));
    assert_int_equal(l.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        boxed_open(every_member_comes_back),
        boxed_open(texts_have_a_limit),
        boxed_open(live_jobs_are_those_that_have_not_ended),
        boxed_open(history_is_what_a_plain_search_finds),
        boxed_open(a_page_after_a_job_that_was_pruned_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
