/* SPDX-License-Identifier: Apache-2.0 */
/* test_token.c - tokens, idempotency keys and items of batch jobs. */
#include <stdlib.h>

#include "store/sha.h"
#include "store_fixture.h"

static void sha256_is_the_standard_one(void **state)
{
    /* FIPS 180-2, appendix B.1 */
    static const uint8_t abc[32] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                    0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                    0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t got[32];

    (void)state;
    stk_sha256("abc", 3, got);
    assert_memory_equal(got, abc, 32);
}

static int list_one(void *ctx, const struct stk_token *t)
{
    int *n = ctx;

    assert_int_equal(t->id, ++*n);
    return 0;
}

static bool file_has(struct box *b, const char *name, const char *word)
{
    char path[256], *data = calloc(1, 4 << 20);
    FILE *f = fopen(fx_dir_at(&b->dir, name, path, sizeof(path)), "r");
    size_t n;
    bool has;

    assert_non_null(data);
    assert_non_null(f);
    n = fread(data, 1, 4 << 20, f);
    (void)fclose(f);
    has = memmem(data, n, word, strlen(word)) != NULL;
    free(data);
    return has;
}

static void tokens_are_found_by_their_secret_alone(void **state)
{
    struct box *b = *state;
    struct stk_token t = {.name = "laptop", .user = "ana", .uid = 1000, .role = 2, .created = T0};
    struct stk_token got;
    int64_t id = 0;
    int n = 0;

    begin(b);
    ok(b, stk_store_token_put(b->st, "stk_secret_1", &t, &id, &b->err));
    assert_int_equal(id, 1);
    refused(b, -EEXIST, "there already",
            stk_store_token_put(b->st, "stk_secret_1", &t, &id, &b->err));
    t.expires = T0 + 10;
    ok(b, stk_store_token_put(b->st, "stk_secret_2", &t, &id, &b->err));
    commit(b);
    ok(b, stk_store_token_find(b->st, "stk_secret_1", T0 + 100, &got, &b->err));
    assert_string_equal(got.name, "laptop");
    assert_string_equal(got.user, "ana");
    assert_int_equal(got.uid, 1000);
    assert_int_equal(got.role, 2);
    assert_int_equal(got.used, 0);
    ok(b, stk_store_token_find(b->st, "stk_secret_2", T0 + 9, &got, &b->err));
    refused(b, -EKEYEXPIRED, "expired",
            stk_store_token_find(b->st, "stk_secret_2", T0 + 10, &got, &b->err));
    refused(b, -ENOENT, "not known", stk_store_token_find(b->st, "stk_secret_", T0, &got, &b->err));
    begin(b);
    ok(b, stk_store_token_used(b->st, 1, T0 + 50, 0, &b->err));
    refused(b, -ENOENT, "no token 9", stk_store_token_used(b->st, 9, T0, 0, &b->err));
    commit(b);
    ok(b, stk_store_token_find(b->st, "stk_secret_1", T0, &got, &b->err));
    assert_int_equal(got.used, T0 + 50);
    ok(b, stk_store_token_list(b->st, list_one, &n, &b->err));
    assert_int_equal(n, 2);
    begin(b);
    ok(b, stk_store_token_delete(b->st, 2, &b->err));
    refused(b, -ENOENT, "no token 2", stk_store_token_delete(b->st, 2, &b->err));
    ok(b, stk_store_token_put(b->st, "stk_secret_3", &t, &id, &b->err));
    assert_int_equal(id, 3); /* a number that was given is never given again */
    commit(b);
    box_close(b);
    assert_true(file_has(b, "stoker.db", "laptop"));
    assert_false(file_has(b, "stoker.db", "stk_secret"));
}

#define PAGE "page_half"
#define COOKIE "cookie_half"

static int64_t put_session(struct box *b, const char *page, stk_time used, int64_t parent)
{
    struct stk_token t = {.name = "browser",
                          .user = "ana",
                          .uid = 1000,
                          .created = T0,
                          .used = used,
                          .expires = T0 + 10,
                          .ends = T0 + 100,
                          .parent = parent};
    int64_t id = 0;

    ok(b, stk_store_session_put(b->st, page, COOKIE, &t, &id, &b->err));
    return id;
}

static void a_session_needs_both_halves_and_is_no_token(void **state)
{
    const struct stk_cookies none = {.n = 0}, right = {{"tossed", COOKIE}, 2}, wrong = {{PAGE}, 1};
    struct box *b = *state;
    struct stk_token got;
    int64_t id;

    begin(b);
    id = put_session(b, PAGE, T0, 0);
    commit(b);
    ok(b, stk_store_session_find(b->st, PAGE, &right, T0 + 9, &got, &b->err));
    assert_int_equal(got.id, id);
    assert_int_equal(got.kind, STK_TOKEN_SESSION);
    assert_int_equal(got.ends, T0 + 100);
    refused(b, -EACCES, "cookie", stk_store_session_find(b->st, PAGE, &none, T0, &got, &b->err));
    refused(b, -EACCES, "cookie", stk_store_session_find(b->st, PAGE, &wrong, T0, &got, &b->err));
    refused(b, -ENOENT, "not known",
            stk_store_session_find(b->st, COOKIE, &right, T0, &got, &b->err));
    refused(b, -ENOENT, "not known", stk_store_token_find(b->st, PAGE, T0, &got, &b->err));
    refused(b, -ENOENT, "not known", stk_store_token_find(b->st, COOKIE, T0, &got, &b->err));
    refused(b, -EKEYEXPIRED, "expired",
            stk_store_session_find(b->st, PAGE, &right, T0 + 10, &got, &b->err));
    begin(b);
    ok(b, stk_store_token_used(b->st, id, T0 + 8, T0 + 18, &b->err));
    commit(b);
    ok(b, stk_store_session_find(b->st, PAGE, &right, T0 + 17, &got, &b->err));
    box_close(b);
    assert_false(file_has(b, "stoker.db", "_half"));
    box_open(b); /* a browser stays logged in over a restart */
    ok(b, stk_store_session_find(b->st, PAGE, &right, T0 + 17, &got, &b->err));
}

static void what_was_made_with_a_token_goes_with_it(void **state)
{
    struct stk_token t = {.name = "a", .user = "ana", .uid = 1000, .created = T0}, got;
    struct box *b = *state;
    int64_t root = 0, child = 0, other = 0, session;
    int n = 0;

    begin(b);
    ok(b, stk_store_token_put(b->st, "root", &t, &root, &b->err));
    t.parent = root;
    ok(b, stk_store_token_put(b->st, "child", &t, &child, &b->err));
    session = put_session(b, PAGE, T0, child);
    t.parent = session;
    ok(b, stk_store_token_put(b->st, "grandchild", &t, &other, &b->err));
    t.parent = 0;
    ok(b, stk_store_token_put(b->st, "other", &t, &other, &b->err));
    ok(b, stk_store_token_delete(b->st, root, &b->err));
    commit(b);
    ok(b, stk_store_token_get(b->st, other, &got, &b->err));
    refused(b, -ENOENT, "no token", stk_store_token_get(b->st, session, &got, &b->err));
    n = (int)other - 1;
    ok(b, stk_store_token_list(b->st, list_one, &n, &b->err));
    assert_int_equal(n, other); /* the only one */
}

static void expired_ones_make_room_and_the_oldest_is_named(void **state)
{
    struct stk_token t = {.name = "a", .user = "ana", .uid = 1000, .expires = T0 + 20};
    struct box *b = *state;
    struct stk_token_count got = {9, 9};
    int64_t first, id;

    begin(b);
    ok(b, stk_store_token_tidy(b->st, 1000, STK_TOKEN_SESSION, T0, &got, &b->err));
    assert_int_equal(got.n, 0);
    assert_int_equal(got.oldest, 0);
    (void)put_session(b, "p1", T0 + 3, 0);
    first = put_session(b, "p2", T0 + 1, 0);
    (void)put_session(b, "p3", T0 + 2, 0);
    ok(b, stk_store_token_put(b->st, "t", &t, &id, &b->err));
    t.uid = 7;
    ok(b, stk_store_token_put(b->st, "u", &t, &id, &b->err));
    ok(b, stk_store_token_tidy(b->st, 1000, STK_TOKEN_SESSION, T0 + 9, &got, &b->err));
    assert_int_equal(got.n, 3);
    assert_int_equal(got.oldest, first);
    ok(b, stk_store_token_tidy(b->st, 1000, STK_TOKEN_BEARER, T0 + 10, &got, &b->err));
    assert_int_equal(got.n, 1);
    ok(b, stk_store_token_tidy(b->st, 1000, STK_TOKEN_SESSION, T0 + 10, &got, &b->err));
    assert_int_equal(got.n, 0);
    ok(b, stk_store_token_tidy(b->st, 7, STK_TOKEN_BEARER, T0 + 10, &got, &b->err));
    assert_int_equal(got.n, 1); /* another user's is not touched */
    commit(b);
}

static void a_key_is_remembered_for_a_day(void **state)
{
    struct box *b = *state;
    struct stk_once k = {.first = 7, .count = 3, .body = {1, 2, 3}, .at = T0}, got;

    begin(b);
    ok(b, stk_store_key_put(b->st, 1000, "abc", &k, &b->err));
    ok(b, stk_store_key_put(b->st, 1001, "abc", &k, &b->err)); /* another user's */
    k.at = T0 + STK_STORE_KEY_AGE - 1;
    refused(b, -EEXIST, "abc", stk_store_key_put(b->st, 1000, "abc", &k, &b->err));
    commit(b);
    ok(b, stk_store_key_get(b->st, 1000, "abc", T0 + STK_STORE_KEY_AGE - 1, &got, &b->err));
    assert_int_equal(got.first, 7);
    assert_int_equal(got.count, 3);
    assert_memory_equal(got.body, k.body, 32);
    refused(b, -ENOENT, "abd", stk_store_key_get(b->st, 1000, "abd", T0, &got, &b->err));
    refused(b, -ENOENT, "new",
            stk_store_key_get(b->st, 1000, "abc", T0 + STK_STORE_KEY_AGE, &got, &b->err));
    k.at = T0 + STK_STORE_KEY_AGE;
    k.first = 8;
    begin(b);
    ok(b, stk_store_key_put(b->st, 1000, "abc", &k, &b->err));
    commit(b);
    ok(b, stk_store_key_get(b->st, 1000, "abc", k.at, &got, &b->err));
    assert_int_equal(got.first, 8);
}

struct taken {
    uint32_t index[8];
    uint32_t n, max;
};

static int take(void *ctx, const struct stk_item *it)
{
    struct taken *t = ctx;
    char text[16];

    (void)snprintf(text, sizeof(text), "item %u", it->index);
    assert_string_equal(it->text, text);
    t->index[t->n++] = it->index;
    return t->n == t->max;
}

static void expect_counts(struct box *b, stk_job_number job, uint32_t todo, uint32_t given,
                          uint32_t done, uint32_t failed)
{
    uint32_t n[STK_ITEM_STATE_MAX];

    ok(b, stk_store_items_counts(b->st, job, n, &b->err));
    assert_int_equal(n[STK_ITEM_TODO], todo);
    assert_int_equal(n[STK_ITEM_GIVEN], given);
    assert_int_equal(n[STK_ITEM_DONE], done);
    assert_int_equal(n[STK_ITEM_FAILED], failed);
}

static int one_item(void *ctx, const struct stk_item *it)
{
    *(struct stk_item *)ctx = *it;
    return 1;
}

static void items_are_given_in_order_and_come_back(void **state)
{
    struct box *b = *state;
    const char *texts[] = {"item 0", "item 1", "item 2", "item 3", "item 4"};
    struct stk_item_query todo = {.job = 4, .state = STK_ITEM_TODO};
    struct stk_item it = {
        .job = 4, .state = STK_ITEM_GIVEN, .worker = 1, .attempts = 1, .given = T0};
    struct taken t = {.max = 2};

    begin(b);
    ok(b, stk_store_items_put(b->st, 4, 0, texts, 5, &b->err));
    ok(b, stk_store_items_put(b->st, 5, 0, texts, 2, &b->err));
    ok(b, stk_store_item_set(b->st, &it, &b->err));
    it.index = 1;
    it.worker = 2;
    ok(b, stk_store_item_set(b->st, &it, &b->err));
    it.index = 2;
    it.state = STK_ITEM_FAILED;
    it.code = 3;
    it.ended = T0 + 5;
    ok(b, stk_store_item_set(b->st, &it, &b->err));
    it.index = 5;
    refused(b, -ENOENT, "no item 5", stk_store_item_set(b->st, &it, &b->err));
    commit(b);
    expect_counts(b, 4, 2, 2, 0, 1);
    expect_counts(b, 5, 2, 0, 0, 0);
    expect_counts(b, 6, 0, 0, 0, 0);
    ok(b, stk_store_items(b->st, &todo, take, &t, &b->err));
    assert_int_equal(t.n, 2);
    assert_int_equal(t.index[0], 3);
    ok(b, stk_store_items(
              b->st, &(struct stk_item_query){.job = 4, .state = STK_ITEM_STATE_MAX, .from = 2},
              one_item, &it, &b->err));
    assert_int_equal(it.index, 2);
    assert_int_equal(it.state, STK_ITEM_FAILED);
    assert_int_equal(it.worker, 2);
    assert_int_equal(it.attempts, 1);
    assert_int_equal(it.code, 3);
    assert_int_equal(it.given, T0);
    assert_int_equal(it.ended, T0 + 5);
    begin(b);
    ok(b, stk_store_items_back(b->st, 4, 2, &b->err)); /* worker 2 is gone */
    commit(b);
    expect_counts(b, 4, 3, 1, 0, 1);
    begin(b);
    ok(b, stk_store_items_back(b->st, 4, -1, &b->err));
    commit(b);
    expect_counts(b, 4, 4, 0, 0, 1);
    begin(b);
    refused(b, -EFBIG, "at most 100000",
            stk_store_items_put(b->st, 9, 0, texts, STK_STORE_MAX_ITEMS + 1, &b->err));
    commit(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_is_the_standard_one),
        boxed_open(tokens_are_found_by_their_secret_alone),
        boxed_open(a_session_needs_both_halves_and_is_no_token),
        boxed_open(what_was_made_with_a_token_goes_with_it),
        boxed_open(expired_ones_make_room_and_the_oldest_is_named),
        boxed_open(a_key_is_remembered_for_a_day),
        boxed_open(items_are_given_in_order_and_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
