/* SPDX-License-Identifier: Apache-2.0 */
/* test_upkeep.c - backup, restore, check, export and pruning. */
#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/pagesum.h"
#include "store_fixture.h"

static void fill(struct box *b, uint32_t n)
{
    begin(b);
    for (uint32_t i = 1; i <= n; i++) {
        (void)put_job(b, i, 1000);
        (void)append(b, i);
    }
    commit(b);
}

static uint64_t last_of(struct box *b)
{
    uint64_t first, last;

    ok(b, stk_store_span(b->st, &first, &last, &b->err));
    return last;
}

static int count_job(void *ctx, const struct stk_record *r)
{
    (void)r;
    ++*(uint32_t *)ctx;
    return 0;
}

static uint32_t live(struct box *b)
{
    uint32_t n = 0;

    ok(b, stk_store_live(b->st, count_job, &n, &b->err));
    return n;
}

static void sql(struct box *b, const char *name, const char *text)
{
    char path[256];
    sqlite3 *db;

    assert_int_equal(sqlite3_open_v2(fx_dir_at(&b->dir, name, path, sizeof(path)), &db,
                                     SQLITE_OPEN_READWRITE, stk_pagesum_vfs()),
                     0);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* Writes into the store in the middle of a copy. */
static int write_meanwhile(void *ctx, uint64_t done, uint64_t total)
{
    struct box *b = ctx;

    assert_true(done <= total && total > 2048);
    begin(b);
    (void)append(b, 1);
    commit(b);
    return 0;
}

static int stop_it(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return 1;
}

static void a_backup_is_of_one_moment_while_others_write(void **state)
{
    struct box *b = *state;
    struct stk_store *reader;
    char path[256], *blob = calloc(1, 20 << 20);
    struct stk_snapshot snap = {.seq = 1, .at = T0, .bytes = blob, .len = 20 << 20};
    unsigned char head[20];
    struct stat s;
    int fd;

    fill(b, 100);
    begin(b);
    ok(b, stk_store_snapshot_put(b->st, &snap, &b->err));
    commit(b);
    free(blob);
    ok(b, stk_store_open(b->dir.path, STK_STORE_READ_ONLY, &reader, &b->err));
    (void)fx_dir_at(&b->dir, "copy", path, sizeof(path));
    refused(b, -ECANCELED, "stopped", stk_store_backup(reader, path, stop_it, NULL, &b->err));
    assert_int_not_equal(stat(path, &s), 0);
    ok(b, stk_store_backup(reader, path, write_meanwhile, b, &b->err));
    refused(b, -EEXIST, "there already", stk_store_backup(reader, path, NULL, NULL, &b->err));
    stk_store_close(reader);
    assert_true(last_of(b) > 101);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0600);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, head, sizeof(head)), sizeof(head));
    (void)close(fd);
    assert_int_equal(head[18], 1); /* not in WAL mode: a file that stands alone */
    assert_int_equal(head[19], 1);
    refused(b, -EBUSY, "in use", stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
    box_close(b);
    ok(b, stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
    box_open(b);
    assert_int_equal(last_of(b), 100);
    assert_int_equal(live(b), 100);
    begin(b);
    refused(b, -EPROTO, "transaction", stk_store_backup(b->st, "x", NULL, NULL, &b->err));
    stk_store_rollback(b->st);
}

static void a_restore_checks_first_and_keeps_what_was_there(void **state)
{
    struct box *b = *state;
    char path[256], other[256], junk[4096];
    struct stat s;
    int fd;

    fill(b, 200);
    (void)fx_dir_at(&b->dir, "copy", path, sizeof(path));
    ok(b, stk_store_backup(b->st, path, NULL, NULL, &b->err));
    for (int i = 0; i < 3; i++) {
        begin(b);
        (void)append(b, 1);
        commit(b);
    }
    box_close(b);
    refused(b, -ENOENT, "not there",
            stk_store_restore(b->dir.path, "/nonexistent/file", NULL, NULL, &b->err));
    refused(b, -EINVAL, "not", stk_store_restore(b->dir.path, b->dir.path, NULL, NULL, &b->err));
    sql(b, "copy", "PRAGMA user_version = 999");
    refused(b, -EPROTONOSUPPORT, "newer",
            stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
    sql(b, "copy", "PRAGMA user_version = 1; PRAGMA application_id = 4");
    refused(b, -EINVAL, "not a backup", stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
    sql(b, "copy", "PRAGMA application_id = 0x73746f6b");
    assert_int_equal(stat(path, &s), 0);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    memset(junk, 0xee, sizeof(junk));
    for (off_t at = 8192 * 6; at < s.st_size - 4096; at += 8192)
        assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
    (void)close(fd);
    refused(b, -EUCLEAN, "damaged", stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));

    box_open(b); /* after all those refusals it is as it was */
    assert_int_equal(last_of(b), 203);
    assert_int_equal(unlink(path), 0);
    ok(b, stk_store_backup(b->st, path, NULL, NULL, &b->err));
    begin(b);
    (void)append(b, 1);
    commit(b);
    box_close(b);
    ok(b, stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
    box_open(b);
    assert_int_equal(last_of(b), 203);
    box_close(b);
    (void)fx_dir_at(&b->dir, "stoker.db.replaced", other, sizeof(other));
    ok(b, stk_store_restore(b->dir.path, other, NULL, NULL, &b->err));
    box_open(b);
    assert_int_equal(last_of(b), 204);
}

struct told {
    uint64_t n;
    char all[4096];
};

static void hear(void *ctx, const char *sentence)
{
    struct told *t = ctx;
    size_t len = strlen(t->all);

    t->n++;
    (void)snprintf(t->all + len, sizeof(t->all) - len, "%s\n", sentence);
}

static int only_known(void *ctx, const struct stk_row *e)
{
    (void)ctx;
    return e->type == 3 ? 0 : -EINVAL;
}

static uint64_t check(struct box *b, struct told *t)
{
    struct stk_check c = {.event = only_known, .problem = hear, .ctx = t};
    uint64_t problems = 99;

    *t = (struct told){0};
    ok(b, stk_store_check(b->st, &c, &problems, &b->err));
    return problems;
}

static void check_finds_each_thing_that_is_wrong(void **state)
{
    static const struct {
        const char *damage, *repair, *expected;
    } cases[] = {
        {"UPDATE job SET ended = 1800000000000000 WHERE number = 3",
         "UPDATE job SET ended = NULL WHERE number = 3", "job 3 ended without a cause"},
        {"UPDATE job SET kind = 99 WHERE number = 3", "UPDATE job SET kind = 0",
         "job 3: unknown kind"},
        {"UPDATE job SET started = -5 WHERE number = 4", "UPDATE job SET started = 0",
         "job 4: its times"},
        {"UPDATE job SET served = -1 WHERE number = 4", "UPDATE job SET served = 0",
         "job 4: time run"},
        {"DELETE FROM spec WHERE id = 5", "INSERT INTO spec VALUES (5, x'')",
         "job 5 has no description"},
        {"INSERT INTO item VALUES (77, 0, 'x', 0, -1, 0, 0, 0, 0)", "DELETE FROM item",
         "items of job 77"},
        {"INSERT INTO item VALUES (5, 0, 'x', 9, -1, 0, 0, 0, 0)", "DELETE FROM item",
         "job 5: an item in an unknown state"},
        {"INSERT INTO token VALUES (1, x'00', '', 0, '', 0, 0, 0, 0, 0, x'', 0, 0)",
         "DELETE FROM token", "token 1: its hash"},
        {"INSERT INTO token VALUES (1, zeroblob(32), '', 0, '', 0, 0, 0, 0, 1, x'', 0, 0)",
         "DELETE FROM token", "token 1: its hash"},
        {"INSERT INTO token VALUES (1, zeroblob(32), '', 0, '', 0, 0, 0, 0, 0, x'', 0, 7)",
         "DELETE FROM token", "token 1: what it was made with"},
        {"INSERT INTO request VALUES (8, 'k', 1, 1, x'00', 0)", "DELETE FROM request",
         "key of uid 8"},
        {"UPDATE journal SET type = 4 WHERE seq = 6", "UPDATE journal SET type = 3",
         "event 6 (job 6) cannot be decoded"},
        {"UPDATE snapshot SET hash = hash + 1 WHERE seq = 7",
         "UPDATE snapshot SET hash = hash - 1 WHERE seq = 7", "up to event 7 is damaged"},
        {"DELETE FROM journal WHERE seq <= 8",
         "INSERT INTO journal SELECT number, 0, 3, 1, x'' FROM job WHERE number <= 8",
         "the journal begins at event 9, and 8 to 8 are needed"},
        {"DELETE FROM journal WHERE seq = 15", NULL, "event 15 is missing"},
    };
    struct box *b = *state;
    struct told t;

    fill(b, 20);
    begin(b);
    ok(b, stk_store_snapshot_put(
              b->st, &(struct stk_snapshot){.seq = 7, .bytes = (char[]){"x"}, .len = 1}, &b->err));
    ok(b, stk_store_snapshot_put(
              b->st, &(struct stk_snapshot){.seq = 9, .bytes = (char[]){"y"}, .len = 1}, &b->err));
    commit(b);
    assert_int_equal(check(b, &t), 0);
    assert_int_equal(t.n, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        sql(b, "stoker.db", cases[i].damage);
        if (check(b, &t) != 1 || !strstr(t.all, cases[i].expected))
            fail_msg("%s: %s", cases[i].damage, t.all);
        if (cases[i].repair)
            sql(b, "stoker.db", cases[i].repair);
    }
    sql(b, "stoker.db", "UPDATE job SET kind = 99");
    assert_int_equal(check(b, &t), 21); /* all are counted, some are told */
    assert_non_null(strstr(t.all, "and more"));
}

static void check_tells_of_damaged_pages_and_goes_on(void **state)
{
    struct box *b = *state;
    char path[256], junk[2048];
    struct told t;
    struct stat s;
    int fd;

    fill(b, 2000);
    box_close(b);
    (void)fx_dir_at(&b->dir, "stoker.db", path, sizeof(path));
    assert_int_equal(stat(path, &s), 0);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    memset(junk, 0xee, sizeof(junk));
    for (off_t at = s.st_size / 2; at < s.st_size - 8192; at += 8192 * 4)
        assert_int_equal(pwrite(fd, junk, sizeof(junk), at / 8192 * 8192), sizeof(junk));
    (void)close(fd);
    ok(b, stk_store_open(b->dir.path, STK_STORE_READ_ONLY, &b->st, &b->err));
    assert_true(check(b, &t) > 0);
    assert_true(t.n > 0);
}

static json_t *line_of(FILE *f)
{
    char *line = NULL;
    size_t cap = 0;
    json_error_t why;
    json_t *o;

    if (getline(&line, &cap, f) < 0) {
        free(line);
        return NULL;
    }
    o = json_loads(line, 0, &why);
    if (!o)
        fail_msg("%s: %s", line, why.text);
    free(line);
    return o;
}

static void export_is_a_line_of_json_per_job(void **state)
{
    struct box *b = *state;
    struct stk_record r = {.number = 1,
                           .user = "ana",
                           .name =
                               "a \"quoted\\ \x01 n\xc3\xa4me \xff\xc0\xaf\xed\xa0\x80 \xe2\x82",
                           .array = 1,
                           .array_index = 3,
                           .submitted = T0 + 5,
                           .note = "line\nbreak"};
    FILE *f = tmpfile();
    json_t *o;

    assert_non_null(f);
    begin(b);
    ok(b, stk_store_spec_put(b->st, "{\"a\" : [1,\n 2]}", 15, &r.spec, &b->err));
    ok(b, stk_store_job_put(b->st, &r, &b->err));
    end_job(b, &r, T0 + 2500000, STK_CAUSE_SIGNAL);
    r.number = 2;
    r.array = 0;
    r.ended = 0;
    r.cause = STK_CAUSE_NONE;
    ok(b, stk_store_spec_put(b->st, "not {json", 9, &r.spec, &b->err));
    ok(b, stk_store_job_put(b->st, &r, &b->err));
    commit(b);
    ok(b, stk_store_export(b->st, f, NULL, NULL, &b->err));
    rewind(f);
    o = line_of(f);
    assert_non_null(o);
    assert_int_equal(json_integer_value(json_object_get(o, "id")), 1);
    assert_string_equal(json_string_value(json_object_get(o, "name")),
                        "a \"quoted\\ \x01 n\xc3\xa4me "
                        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
                        "\xef\xbf\xbd\xef\xbf\xbd");
    assert_string_equal(json_string_value(json_object_get(o, "cause")), "killed");
    assert_true(json_real_value(json_object_get(o, "ended")) > 1700000002.4999);
    assert_true(json_is_null(json_object_get(o, "exit_code")));
    assert_true(json_is_integer(json_object_get(o, "signal")));
    assert_int_equal(json_array_size(json_object_get(json_object_get(o, "spec"), "a")), 2);
    assert_int_equal(json_integer_value(json_object_get(o, "array_index")), 3);
    json_decref(o);
    o = line_of(f);
    assert_non_null(o);
    assert_true(json_is_null(json_object_get(o, "ended")));
    assert_true(json_is_null(json_object_get(o, "array_id")));
    assert_string_equal(json_string_value(json_object_get(o, "spec")), "not {json");
    json_decref(o);
    assert_null(line_of(f));
    (void)fclose(f);
    f = fopen("/dev/full", "w");
    if (f) {
        refused(b, -ENOSPC, "cannot write the export",
                stk_store_export(b->st, f, NULL, NULL, &b->err));
        (void)fclose(f);
    }
}

static uint32_t prune(struct box *b, stk_time age, uint64_t bytes, stk_time now)
{
    struct stk_retention keep = {age, bytes};
    bool more = true;
    uint32_t steps;

    for (steps = 0; more; steps++) {
        assert_true(steps < 1000);
        ok(b, stk_store_prune(b->st, &keep, now, &more, &b->err));
    }
    return steps;
}

static void snap(struct box *b, uint64_t seq)
{
    begin(b);
    ok(b,
       stk_store_snapshot_put(
           b->st, &(struct stk_snapshot){.seq = seq, .bytes = (char[]){"x"}, .len = 1}, &b->err));
    commit(b);
}

static uint64_t first_of(struct box *b)
{
    uint64_t first, last;

    ok(b, stk_store_span(b->st, &first, &last, &b->err));
    return first;
}

static void events_are_pruned_up_to_the_older_snapshot(void **state)
{
    struct box *b = *state;
    const uint64_t n = STK_STORE_KEEP_EVENTS + 50000;

    begin(b);
    for (uint32_t i = 1; i <= n; i++)
        (void)append(b, i);
    commit(b);
    (void)prune(b, 0, 0, T0);
    assert_int_equal(first_of(b), 1); /* no snapshot */
    snap(b, 30000);
    (void)prune(b, 0, 0, T0);
    assert_int_equal(first_of(b), 1); /* nothing to fall back to */
    snap(b, 140000);
    assert_true(prune(b, 0, 0, T0) > 1); /* in steps */
    assert_int_equal(first_of(b), 30001);
    snap(b, n);
    (void)prune(b, 0, 0, T0);
    assert_int_equal(first_of(b), 50001); /* the newest 100,000 stay */
    begin(b);
    assert_int_equal(append(b, 1), n + 1);
    commit(b);
}

static int64_t rows(struct box *b, const char *text)
{
    char path[256];
    sqlite3_stmt *s;
    sqlite3 *db;
    int64_t n;

    assert_int_equal(sqlite3_open_v2(fx_dir_at(&b->dir, "stoker.db", path, sizeof(path)), &db,
                                     SQLITE_OPEN_READWRITE, stk_pagesum_vfs()),
                     0);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &s, NULL), 0);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    n = sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s);
    (void)sqlite3_close(db);
    return n;
}

static void old_jobs_go_with_all_that_is_theirs(void **state)
{
    struct box *b = *state;
    const char *texts[] = {"a", "b"};
    struct stk_record r[6];
    struct told t;

    begin(b);
    for (uint32_t i = 0; i < 6; i++)
        r[i] = put_job(b, i + 1, 1000);
    for (uint32_t i = 7; i <= 9; i++) { /* an array: one description for three */
        r[0].number = i;
        r[0].array = 7;
        r[0].array_index = i - 7;
        ok(b, stk_store_job_put(b->st, &r[0], &b->err));
    }
    ok(b, stk_store_items_put(b->st, 2, 0, texts, 2, &b->err));
    ok(b, stk_store_items_put(b->st, 3, 0, texts, 2, &b->err));
    r[0].number = 1;
    for (uint32_t i = 0; i < 5; i++)
        end_job(b, &r[i], T0 + (i + 1) * STK_SECOND, STK_CAUSE_OK);
    ok(b, stk_store_key_put(b->st, 1, "old", &(struct stk_once){.at = T0}, &b->err));
    ok(b,
       stk_store_key_put(b->st, 1, "new", &(struct stk_once){.at = T0 + 5 * STK_SECOND}, &b->err));
    commit(b);
    (void)prune(b, 0, 0, T0 + 100 * STK_SECOND);
    assert_int_equal(rows(b, "SELECT count(*) FROM job"), 9); /* no bound */
    (void)prune(b, STK_STORE_KEY_AGE, 0, T0 + STK_STORE_KEY_AGE + 2 * STK_SECOND);
    assert_int_equal(rows(b, "SELECT count(*) FROM job"), 7);
    assert_int_equal(rows(b, "SELECT min(number) FROM job"), 3);
    assert_int_equal(rows(b, "SELECT count(*) FROM item"), 2);
    assert_int_equal(rows(b, "SELECT count(*) FROM spec"), 5); /* job 1's is the array's */
    assert_int_equal(rows(b, "SELECT count(*) FROM request"), 1);
    assert_int_equal(check(b, &t), 0);
    assert_int_equal(live(b), 4);
    (void)prune(b, 1, 0, T0 + 10 * STK_STORE_KEY_AGE);
    assert_int_equal(rows(b, "SELECT count(*) FROM job"), 4); /* the living stay */
    assert_int_equal(rows(b, "SELECT count(*) FROM spec"), 2);
    assert_int_equal(check(b, &t), 0);
}

static void a_store_over_its_size_forgets_the_oldest(void **state)
{
    struct box *b = *state;
    char path[256], spec[1000];
    uint64_t before, after;
    struct stat s0, s1;

    memset(spec, ' ', sizeof(spec));
    begin(b);
    for (uint32_t i = 1; i <= 30000; i++) {
        struct stk_record r = {.number = i, .name = "x", .submitted = T0};

        ok(b, stk_store_spec_put(b->st, spec, sizeof(spec), &r.spec, &b->err));
        ok(b, stk_store_job_put(b->st, &r, &b->err));
        end_job(b, &r, T0 + i, STK_CAUSE_OK);
    }
    commit(b);
    ok(b, stk_store_size(b->st, &before, &b->err));
    assert_true(before > 30 << 20);
    box_close(b);
    (void)fx_dir_at(&b->dir, "stoker.db", path, sizeof(path));
    assert_int_equal(stat(path, &s0), 0);
    box_open(b);
    assert_true(prune(b, 0, 10 << 20, T0 + STK_SECOND) > 10);
    ok(b, stk_store_size(b->st, &after, &b->err));
    assert_true(after <= 10 << 20);
    assert_true(after > 7 << 20);
    assert_int_equal(rows(b, "SELECT max(number) FROM job"), 30000);
    assert_int_equal(rows(b, "SELECT 30000 - min(number) + 1 = count(*) FROM job"), 1);
    box_close(b);
    assert_int_equal(stat(path, &s1), 0);
    assert_true(s1.st_size < s0.st_size / 3 * 2); /* the file itself is smaller too */
    box_open(b);
    (void)prune(b, 0, 1, T0 + STK_SECOND); /* cannot be kept: all history goes, then it ends */
    assert_int_equal(rows(b, "SELECT count(*) FROM job"), 0);
}

static void a_step_gives_pages_back_while_there_is_more_to_forget(void **state)
{
    const struct stk_retention keep = {.bytes = 1};
    struct box *b = *state;
    char spec[1000];
    bool more = false;

    memset(spec, ' ', sizeof(spec));
    begin(b);
    for (uint32_t i = 1; i <= 3000; i++) {
        struct stk_record r = {.number = i, .name = "x", .submitted = T0};

        ok(b, stk_store_spec_put(b->st, spec, sizeof(spec), &r.spec, &b->err));
        ok(b, stk_store_job_put(b->st, &r, &b->err));
        end_job(b, &r, T0 + i, STK_CAUSE_OK);
    }
    commit(b);
    ok(b, stk_store_prune(b->st, &keep, T0 + STK_SECOND, &more, &b->err));
    assert_true(more);
    assert_true(rows(b, "SELECT count(*) FROM job") > 2000); /* a step is short */
    assert_true(rows(b, "PRAGMA freelist_count") == 0);
}

static void events_and_keys_are_kept_shorter_over_the_bound(void **state)
{
    struct box *b = *state;
    uint32_t n = 30000;

    begin(b);
    for (uint32_t i = 1; i <= n; i++)
        (void)append(b, i);
    ok(b, stk_store_key_put(b->st, 1, "old", &(struct stk_once){.at = T0}, &b->err));
    ok(b, stk_store_key_put(b->st, 1, "new", &(struct stk_once){.at = T0 + (3600 * STK_SECOND)},
                            &b->err));
    commit(b);
    snap(b, 25000);
    snap(b, n);
    (void)prune(b, 0, UINT64_C(1) << 40, T0 + (3600 * STK_SECOND) + STK_SECOND);
    assert_int_equal(first_of(b), 1);
    assert_int_equal(rows(b, "SELECT count(*) FROM request"), 2);
    (void)prune(b, 0, 1, T0 + (3600 * STK_SECOND) + STK_SECOND);
    assert_int_equal(first_of(b), n - 10000 + 1);
    assert_int_equal(rows(b, "SELECT count(*) FROM request"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        boxed_open(a_backup_is_of_one_moment_while_others_write),
        boxed_open(a_restore_checks_first_and_keeps_what_was_there),
        boxed_open(check_finds_each_thing_that_is_wrong),
        boxed_open(check_tells_of_damaged_pages_and_goes_on),
        boxed_open(export_is_a_line_of_json_per_job),
        boxed_open(events_are_pruned_up_to_the_older_snapshot),
        boxed_open(old_jobs_go_with_all_that_is_theirs),
        boxed_open(a_store_over_its_size_forgets_the_oldest),
        boxed_open(a_step_gives_pages_back_while_there_is_more_to_forget),
        boxed_open(events_and_keys_are_kept_shorter_over_the_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
