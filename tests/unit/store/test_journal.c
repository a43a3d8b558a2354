/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal.c - events in order and without gaps, transactions whole, snapshots that fall back.
 */
#include <sqlite3.h>
#include <stdlib.h>

#include "store/pagesum.h"
#include "store_fixture.h"

struct seen {
    uint64_t first, n, stop_after;
    int result;
    char last[32];
};

static int see(void *ctx, const struct stk_row *e)
{
    struct seen *s = ctx;

    if (s->n++ == 0)
        s->first = e->seq;
    assert_int_equal(e->seq, s->first + s->n - 1);
    assert_true(e->len < sizeof(s->last));
    memcpy(s->last, e->bytes, e->len);
    s->last[e->len] = '\0';
    assert_int_equal(e->at, T0 + e->number);
    assert_int_equal(e->type, 3);
    return s->n == s->stop_after ? s->result : 0;
}

static int see_of(void *ctx, const struct stk_row *e)
{
    struct seen *s = ctx;

    if (s->n++ == 0)
        s->first = e->seq;
    assert_true(e->number == 7 && e->len < sizeof(s->last));
    return s->n == s->stop_after ? s->result : 0;
}

/* The fixture's events are at T0 + the job's number: only job 7's are between the times. */
static void events_of_one_job_come_back(void **state)
{
    struct box *b = *state;
    struct stk_job_span all = {7, T0, INT64_MAX}, late = {7, T0 + 8, INT64_MAX},
                        early = {7, T0, T0 + 6}, exact = {7, T0 + 7, T0 + 7};
    struct seen s = {0};

    ok(b, stk_store_read_job(b->st, &all, see_of, &s, &b->err));
    assert_int_equal(s.n, 0);
    begin(b);
    for (uint32_t i = 1; i <= 20; i++)
        (void)append(b, i <= 7 ? i : i < 12 ? 7 : i);
    commit(b);
    ok(b, stk_store_read_job(b->st, &exact, see_of, &s, &b->err));
    assert_int_equal(s.n, 5);
    assert_int_equal(s.first, 7);
    ok(b, stk_store_read_job(b->st, &all, see_of, &s, &b->err));
    assert_int_equal(s.n, 10);
    ok(b, stk_store_read_job(b->st, &late, see_of, &s, &b->err));
    ok(b, stk_store_read_job(b->st, &early, see_of, &s, &b->err));
    assert_int_equal(s.n, 10);
    s = (struct seen){.stop_after = 2, .result = -EILSEQ};
    assert_int_equal(stk_store_read_job(b->st, &all, see_of, &s, &b->err), -EILSEQ);
}

static void events_come_back_in_order(void **state)
{
    struct box *b = *state;
    struct seen s = {0};
    uint64_t first, last;

    ok(b, stk_store_span(b->st, &first, &last, &b->err));
    assert_int_equal(first, 1);
    assert_int_equal(last, 0);
    begin(b);
    for (uint32_t i = 1; i <= 50; i++)
        assert_int_equal(append(b, 100 + i), i);
    commit(b);
    box_close(b);
    box_open(b);
    ok(b, stk_store_read(b->st, 0, see, &s, &b->err));
    assert_int_equal(s.n, 50);
    assert_string_equal(s.last, "event of job 150");
    s = (struct seen){.stop_after = 3, .result = 1};
    ok(b, stk_store_read(b->st, 40, see, &s, &b->err));
    assert_int_equal(s.first, 41);
    assert_int_equal(s.n, 3);
    s = (struct seen){.stop_after = 1, .result = -EILSEQ};
    assert_int_equal(stk_store_read(b->st, 0, see, &s, &b->err), -EILSEQ);
    s = (struct seen){0};
    ok(b, stk_store_read(b->st, 50, see, &s, &b->err));
    assert_int_equal(s.n, 0);
    begin(b);
    assert_int_equal(append(b, 1), 51);
    commit(b);
}

static void an_empty_event_is_an_event(void **state)
{
    struct box *b = *state;
    struct stk_row e = {.at = T0, .type = 3};
    struct seen s = {0};
    uint64_t seq;

    begin(b);
    ok(b, stk_store_append(b->st, &e, &seq, &b->err));
    commit(b);
    ok(b, stk_store_read(b->st, 0, see, &s, &b->err));
    assert_string_equal(s.last, "");
    e.len = STK_STORE_MAX_EVENT + 1;
    begin(b);
    refused(b, -EFBIG, "too large", stk_store_append(b->st, &e, &seq, &b->err));
    commit(b);
}

static void what_is_rolled_back_was_never_there(void **state)
{
    struct box *b = *state;
    struct seen s = {0};
    uint64_t seq;

    begin(b);
    assert_int_equal(append(b, 1), 1);
    commit(b);
    begin(b);
    assert_int_equal(append(b, 2), 2);
    (void)put_job(b, 2, 1000);
    stk_store_rollback(b->st);
    stk_store_rollback(b->st);
    begin(b);
    assert_int_equal(append(b, 3), 2); /* the number is used again */
    commit(b);
    begin(b);
    (void)append(b, 4);
    box_close(b); /* not committed */
    box_open(b);
    ok(b, stk_store_read(b->st, 0, see, &s, &b->err));
    assert_int_equal(s.n, 2);
    assert_string_equal(s.last, "event of job 3");
    refused(b, -EPROTO, "transactions only",
            stk_store_append(b->st, &(struct stk_row){0}, &seq, &b->err));
    refused(b, -EPROTO, "transactions only", stk_store_commit(b->st, &b->err));
    begin(b);
    refused(b, -EPROTO, "already", stk_store_begin(b->st, &b->err));
    commit(b);
}

static void exec_sql(struct box *b, const char *sql)
{
    char path[256];
    sqlite3 *db;

    assert_int_equal(sqlite3_open_v2(fx_dir_at(&b->dir, "stoker.db", path, sizeof(path)), &db,
                                     SQLITE_OPEN_READWRITE, stk_pagesum_vfs()),
                     0);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

static void a_missing_event_is_noticed(void **state)
{
    struct box *b = *state;
    struct seen s = {0};

    begin(b);
    for (uint32_t i = 1; i <= 9; i++)
        (void)append(b, i);
    commit(b);
    exec_sql(b, "DELETE FROM journal WHERE seq = 5");
    refused(b, -EUCLEAN, "event 5 is missing", stk_store_read(b->st, 0, see, &s, &b->err));
    exec_sql(b, "DELETE FROM journal WHERE seq < 5");
    refused(b, -ERANGE, "event 3 is no longer kept; the first is 6",
            stk_store_read(b->st, 2, see, &s, &b->err));
    s = (struct seen){0};
    ok(b, stk_store_read(b->st, 5, see, &s, &b->err));
    assert_int_equal(s.n, 4);
}

static void snap(struct box *b, uint64_t seq, const char *text)
{
    char copy[64];
    struct stk_snapshot s = {.seq = seq, .at = T0 + (stk_time)seq, .len = strlen(text)};

    memcpy(copy, text, s.len);
    s.bytes = copy;
    begin(b);
    ok(b, stk_store_snapshot_put(b->st, &s, &b->err));
    commit(b);
}

static void expect_snap(struct box *b, uint64_t seq, const char *text, const char *warning)
{
    struct stk_snapshot s;
    struct stk_err warn = {"?"};

    ok(b, stk_store_snapshot_get(b->st, &s, &warn, &b->err));
    assert_int_equal(s.seq, seq);
    if (text) {
        assert_int_equal(s.len, strlen(text));
        assert_memory_equal(s.bytes, text, s.len);
        assert_int_equal(s.at, T0 + (stk_time)seq);
    } else {
        assert_null(s.bytes);
    }
    if (*warning == '\0')
        assert_string_equal(warn.text, "");
    else
        assert_non_null(strstr(warn.text, warning));
    free(s.bytes);
}

static void a_damaged_snapshot_falls_back_to_the_older(void **state)
{
    struct box *b = *state;
    struct stk_snapshot s = {.seq = 99};
    struct stk_err warn;

    expect_snap(b, 0, NULL, "");
    begin(b);
    for (uint32_t i = 1; i <= 30; i++)
        (void)append(b, i);
    refused(b, -EINVAL, "event 99", stk_store_snapshot_put(b->st, &s, &b->err));
    commit(b);
    snap(b, 10, "ten");
    snap(b, 20, "twenty, a longer one");
    snap(b, 30, "thirty");
    expect_snap(b, 30, "thirty", "");
    exec_sql(b, "UPDATE snapshot SET body = CAST('thirtY' AS BLOB) WHERE seq = 30");
    expect_snap(b, 20, "twenty, a longer one", "up to event 30 is damaged");
    exec_sql(b, "UPDATE snapshot SET hash = hash + 1");
    expect_snap(b, 0, NULL, "up to event 20 is damaged"); /* all events are there */
    exec_sql(b, "DELETE FROM journal WHERE seq <= 10");
    refused(b, -EUCLEAN, "every snapshot is damaged",
            stk_store_snapshot_get(b->st, &s, &warn, &b->err));
    snap(b, 30, "again");
    expect_snap(b, 30, "again", "");
}

/* Were the numbers taken from the journal alone, they would begin anew. */
static void event_numbers_go_on_when_the_journal_is_empty(void **state)
{
    struct box *b = *state;
    uint64_t first, last;

    begin(b);
    for (uint32_t i = 1; i <= 3; i++)
        (void)append(b, i);
    commit(b);
    snap(b, 3, "three");
    exec_sql(b, "DELETE FROM journal");
    box_close(b);
    box_open(b);
    ok(b, stk_store_span(b->st, &first, &last, &b->err));
    assert_int_equal(first, 4);
    assert_int_equal(last, 3);
    begin(b);
    assert_int_equal(append(b, 4), 4);
    commit(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        boxed_open(events_come_back_in_order),
        boxed_open(events_of_one_job_come_back),
        boxed_open(an_empty_event_is_an_event),
        boxed_open(what_is_rolled_back_was_never_there),
        boxed_open(a_missing_event_is_noticed),
        boxed_open(a_damaged_snapshot_falls_back_to_the_older),
        boxed_open(event_numbers_go_on_when_the_journal_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
