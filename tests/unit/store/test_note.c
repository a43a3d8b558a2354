/* SPDX-License-Identifier: Apache-2.0 */
/* test_note.c - notes of changes, baselines, and answers to questions "what if". */
#include <stdlib.h>

#include "store_fixture.h"

static void put_note(struct box *b, stk_time at, const char *text, const char *world)
{
    const struct stk_note n = {0, at, "config", "ana", text, world};

    begin(b);
    ok(b, stk_store_note_put(b->st, &n, &b->err));
    commit(b);
}

static int join(void *ctx, const struct stk_note *n)
{
    (void)strncat(ctx, n->text, 8);
    return 0;
}

static void notes_come_latest_first_and_within_their_time(void **state)
{
    struct box *b = *state;
    char all[64] = "", some[64] = "", one[64] = "";

    box_open(b);
    put_note(b, 10, "a", "");
    put_note(b, 20, "b", "");
    put_note(b, 30, "c", "");
    ok(b, stk_store_notes(b->st, &(struct stk_note_query){0, 0, 100}, join, all, &b->err));
    assert_string_equal(all, "cba");
    ok(b, stk_store_notes(b->st, &(struct stk_note_query){20, 30, 100}, join, some, &b->err));
    assert_string_equal(some, "b");
    ok(b, stk_store_notes(b->st, &(struct stk_note_query){0, 0, 1}, join, one, &b->err));
    assert_string_equal(one, "c");
}

static void expect_world(struct box *b, stk_time at, const char *want)
{
    char *world = NULL;

    ok(b, stk_store_world(b->st, at, &world, &b->err));
    assert_string_equal(world, want);
    free(world);
}

static void the_world_is_that_of_the_last_note_before(void **state)
{
    struct box *b = *state;
    char *world = NULL;

    box_open(b);
    refused(b, -ENOENT, "not written down", stk_store_world(b->st, 5, &world, &b->err));
    put_note(b, 10, "a", "{\"n\":1}");
    put_note(b, 20, "a rule", "");
    put_note(b, 30, "b", "{\"n\":2}");
    put_note(b, 40, "c", "{\"n\":3}");
    expect_world(b, 5, "{\"n\":1}"); /* nobody knows better */
    expect_world(b, 10, "{\"n\":1}");
    expect_world(b, 29, "{\"n\":1}");
    expect_world(b, 30, "{\"n\":2}");
    expect_world(b, 1000, "{\"n\":3}");
}

static int names(void *ctx, const struct stk_baseline *bl)
{
    (void)strncat(ctx, bl->name, 8);
    assert_string_equal(bl->figures, "{}");
    return 0;
}

static void baselines_have_names_of_their_own(void **state)
{
    struct box *b = *state;
    struct stk_baseline one = {"b", 5, 9, "quiet", "ana", 10, "{}"};
    char all[64] = "", found[64] = "";

    box_open(b);
    begin(b);
    ok(b, stk_store_baseline_put(b->st, &one, &b->err));
    refused(b, -EEXIST, "already", stk_store_baseline_put(b->st, &one, &b->err));
    one.name = "a";
    one.since = 6;
    ok(b, stk_store_baseline_put(b->st, &one, &b->err));
    commit(b);
    ok(b, stk_store_baselines(b->st, NULL, names, all, &b->err));
    assert_string_equal(all, "ba");
    ok(b, stk_store_baselines(b->st, "a", names, found, &b->err));
    assert_string_equal(found, "a");
    refused(b, -ENOENT, "no baseline \"c\"",
            stk_store_baselines(b->st, "c", names, found, &b->err));
    begin(b);
    ok(b, stk_store_baseline_delete(b->st, "a", &b->err));
    commit(b);
    begin(b);
    refused(b, -ENOENT, "no baseline \"a\"", stk_store_baseline_delete(b->st, "a", &b->err));
    stk_store_rollback(b->st);
}

struct seen {
    int n;
    int64_t first, last;
};

static int see(void *ctx, const struct stk_answer *a)
{
    struct seen *s = ctx;

    s->first = s->n++ ? s->first : a->id;
    s->last = a->id;
    return 0;
}

static void the_newest_answers_are_kept(void **state)
{
    struct box *b = *state;
    struct seen all = {0}, one = {0};

    box_open(b);
    begin(b);
    for (int64_t i = 1; i <= STK_STORE_KEEP_ANSWERS + 5; i++) {
        const struct stk_answer a = {i, i, 1000, "ana", "done", "{}", "{\"x\":1}"};

        ok(b, stk_store_answer_put(b->st, &a, &b->err));
    }
    commit(b);
    ok(b, stk_store_answers(b->st, 0, see, &all, &b->err));
    assert_int_equal(all.n, STK_STORE_KEEP_ANSWERS);
    assert_int_equal(all.first, STK_STORE_KEEP_ANSWERS + 5);
    assert_int_equal(all.last, 6);
    ok(b, stk_store_answers(b->st, 50, see, &one, &b->err));
    assert_int_equal(one.n, 1);
    begin(b);
    ok(b, stk_store_answer_delete(b->st, 50, &b->err));
    refused(b, -ENOENT, "no such answer", stk_store_answer_delete(b->st, 50, &b->err));
    commit(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        boxed(notes_come_latest_first_and_within_their_time),
        boxed(the_world_is_that_of_the_last_note_before),
        boxed(baselines_have_names_of_their_own),
        boxed(the_newest_answers_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
