/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard.c - a store whose files were damaged has all that was acknowledged, or is refused with
 * a sentence. Never is it opened with less. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "store/db.h"
#include "store_image.h"

#define TURNS 30

static void turn(struct box *b, uint32_t i)
{
    begin(b);
    (void)put_job(b, i, 1000);
    (void)append(b, i);
    commit(b);
}

/* A store that was killed after some turns. 'emptied': with its WAL copied into the database before
 * the last of them. */
static void make_killed(struct box *b, uint32_t first, uint32_t turns, bool emptied)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        box_open(b);
        for (uint32_t i = first; i < first + turns; i++) {
            if (emptied && i + 5 == first + turns) {
                b->st->wal_pages = 1 << 20;
                stk_store_idle(b->st);
            }
            turn(b, i);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int count_job(void *ctx, const struct stk_record *r)
{
    (void)r;
    ++*(uint32_t *)ctx;
    return 0;
}

static int count_event(void *ctx, const struct stk_row *e)
{
    (void)e;
    ++*(uint32_t *)ctx;
    return 0;
}

/* 1: all is there. 0: refused. Anything else fails the test. */
static int look(struct box *b, uint32_t want, const char *what, size_t at)
{
    uint32_t jobs = 0, events = 0;
    int rc = stk_store_open(b->dir.path, 0, &b->st, &b->err);

    if (rc < 0) {
        if (!strstr(b->err.text, "stoker store") && !strstr(b->err.text, "is not a stoker store"))
            fail_msg("%s at %zu: the sentence does not say what to do: %s", what, at, b->err.text);
        return 0;
    }
    rc = stk_store_live(b->st, count_job, &jobs, &b->err);
    if (rc == 0)
        rc = stk_store_read(b->st, 0, count_event, &events, &b->err);
    box_close(b);
    if (rc < 0)
        return 0; /* found when it was read, with a sentence */
    if (jobs != want || events != want)
        fail_msg("%s at %zu: opened with %u jobs and %u events of %u", what, at, jobs, events,
                 want);
    return 1;
}

static void damage(struct image *im, size_t file, int how, size_t at)
{
    size_t len = im->len[file], n = len - at < 4096 ? len - at : 4096;

    switch (how) {
    case 0:
        im->data[file][at] ^= (unsigned char)(1u << (at % 8));
        break;
    case 1:
        memset(im->data[file] + at, 0, n);
        break;
    case 2:
        memset(im->data[file] + at, 0xa5, n);
        break;
    default:
        im->len[file] = at;
    }
}

static void damaged_anywhere(struct box *b, size_t file, bool emptied, uint32_t rounds)
{
    static const char *const how[] = {"a bit flipped", "zeroed", "overwritten", "cut"};
    struct image whole;
    struct stk_rng r;
    uint32_t opened = 0, done = 0;

    make_killed(b, 1, TURNS, emptied);
    whole = load_image(b);
    stk_rng_init(&r, 7 + file);
    for (uint32_t i = 0; i < rounds; i++) {
        size_t at = (size_t)stk_rng_below(&r, whole.len[file]);
        struct image im = whole;

        im.data[file] = malloc(whole.len[file] + 1);
        assert_non_null(im.data[file]);
        memcpy(im.data[file], whole.data[file], whole.len[file]);
        damage(&im, file, (int)(i % 4), at);
        write_image(b, &im);
        opened += (uint32_t)look(b, TURNS, how[i % 4], at);
        done++;
        free(im.data[file]);
    }
    print_message("%s%s: %u damaged, %u of them opened whole\n", files[file],
                  emptied ? " (emptied before)" : "", done, opened);
    write_image(b, &whole);
    assert_int_equal(look(b, TURNS, "undamaged", 0), 1);
    free_image(&whole);
}

static void a_damaged_wal_loses_nothing_unnoticed(void **state)
{
    damaged_anywhere(*state, 1, false, 400);
}

static void a_damaged_wal_that_was_begun_anew_loses_nothing_unnoticed(void **state)
{
    damaged_anywhere(*state, 1, true, 400);
}

static void a_damaged_note_of_what_was_acknowledged_loses_nothing(void **state)
{
    damaged_anywhere(*state, 2, false, 200);
}

static void a_wal_that_is_gone_is_missed(void **state)
{
    struct box *b = *state;
    struct image im;

    make_killed(b, 1, TURNS, false);
    im = load_image(b);
    write_one(b, "stoker.db-wal", NULL, 0);
    refused(b, -EUCLEAN, "stoker.db-wal is gone", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    write_one(b, "stoker.ack", NULL, 0); /* the database itself has nothing yet */
    write_image(b, &im);
    assert_int_equal(look(b, TURNS, "put back", 0), 1);
    free_image(&im);
}

static void an_older_copy_of_a_file_is_refused(void **state)
{
    struct box *b = *state;

    for (size_t file = 0; file < 2; file++) {
        struct image old, now, mixed;
        struct fx_dir outer = b->dir;

        (void)snprintf(b->dir.path, sizeof(b->dir.path), "%.100s/%zu", outer.path, file);
        make_killed(b, 1, 10, true);
        old = load_image(b);
        make_killed(b, 11, 10, true);
        now = load_image(b);
        mixed = now;
        mixed.data[file] = old.data[file];
        mixed.len[file] = old.len[file];
        write_image(b, &mixed);
        assert_int_equal(look(b, 20, files[file], 0), 0);
        write_image(b, &now);
        assert_int_equal(look(b, 20, "as it was", 0), 1);
        free_image(&old);
        free_image(&now);
        b->dir = outer;
    }
}

static void a_database_that_is_gone_is_not_made_anew(void **state)
{
    struct box *b = *state;
    char path[256];

    box_open(b);
    turn(b, 1);
    box_close(b);
    write_one(b, "stoker.db", NULL, 0);
    refused(b, -EUCLEAN, "stoker.db is gone", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    assert_int_equal(unlink(fx_dir_at(&b->dir, "stoker.ack", path, sizeof(path))), 0);
    box_open(b);
}

/* A WAL of another life of the store must not be read over a database that was closed. */
static void a_stray_wal_is_refused(void **state)
{
    struct box *b = *state;
    struct image old;

    make_killed(b, 1, 5, false);
    old = load_image(b);
    box_open(b);
    turn(b, 6);
    box_close(b);
    write_one(b, "stoker.db-wal", old.data[1], old.len[1]); /* known: all of it is copied */
    assert_int_equal(look(b, 6, "the beginning of the last WAL", 0), 1);
    box_open(b);
    box_close(b);
    write_one(b, "stoker.db-wal", old.data[1], old.len[1]);
    refused(b, -EUCLEAN, "does not belong", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    write_one(b, "stoker.db-wal", NULL, 0);
    assert_int_equal(look(b, 6, "without it", 0), 1);
    free_image(&old);
}

/* As after a power cut: what was noted in stoker.ack since the store was opened is not there. */
static struct image make_power_cut(struct box *b)
{
    struct image im, early;

    make_killed(b, 1, 0, false);
    early = load_image(b);
    make_killed(b, 1, TURNS, false);
    im = load_image(b);
    free(im.data[2]);
    im.data[2] = early.data[2];
    im.len[2] = early.len[2];
    free(early.data[0]);
    free(early.data[1]);
    return im;
}

/* A later commit is in the WAL: the damaged one was on the disk, and a power cut did not do it. */
static void a_gap_in_the_wal_is_found_after_a_power_cut(void **state)
{
    const size_t frame = 24 + STK_STORE_PAGE_BYTES;
    struct box *b = *state;
    struct image whole = make_power_cut(b);
    uint32_t opened = 0, refusals = 0;
    struct stk_rng r;

    write_image(b, &whole);
    assert_int_equal(look(b, TURNS, "undamaged", 0), 1);
    stk_rng_init(&r, 11);
    for (uint32_t i = 0; i < 100; i++) {
        /* not in the last two commits, of a few frames each; the first is the one of the opening */
        size_t at = 32 + 3 * frame + (size_t)stk_rng_below(&r, whole.len[1] - 32 - 20 * frame);
        struct image im = whole;

        im.data[1] = malloc(whole.len[1]);
        assert_non_null(im.data[1]);
        memcpy(im.data[1], whole.data[1], whole.len[1]);
        if (i % 2)
            im.data[1][at] ^= (unsigned char)(1u << i % 8);
        else
            memset(im.data[1] + at, 0xa5, 4096);
        write_image(b, &im);
        if (look(b, TURNS, "a gap", at))
            opened++;
        else
            refusals++;
        free(im.data[1]);
    }
    assert_int_equal(opened, 0);
    assert_int_equal(refusals, 100);
    free_image(&whole);
}

/* The last commit may have been cut by the power cut itself: the store is opened without it. */
static void a_torn_last_commit_is_dropped(void **state)
{
    struct box *b = *state;
    struct image im = make_power_cut(b);
    uint32_t jobs = 0;

    im.data[1][im.len[1] - 100] ^= 1;
    write_image(b, &im);
    box_open(b);
    ok(b, stk_store_live(b->st, count_job, &jobs, &b->err));
    assert_int_equal(jobs, TURNS - 1);
    turn(b, 1000); /* over what is left of the torn commit */
    box_close(b);
    box_open(b);
    free_image(&im);
}

static void flip_on_disk(struct box *b, const char *name, off_t at)
{
    char path[256], byte;
    int fd = open(fx_dir_at(&b->dir, name, path, sizeof(path)), O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

/* A WAL that is damaged while the store is open is not copied into the database, where its pages
 * would get checksums that match. */
static void a_wal_damaged_meanwhile_is_not_copied(void **state)
{
    struct box *b = *state;
    const off_t at = 32 + 10 * (24 + STK_STORE_PAGE_BYTES) + 5000;

    box_open(b);
    for (uint32_t i = 1; i <= TURNS; i++)
        turn(b, i);
    flip_on_disk(b, "stoker.db-wal", at);
    b->st->wal_pages = 1 << 20;
    stk_store_idle(b->st);
    refused(b, -EUCLEAN, "stoker.db-wal is damaged after page 10", stk_store_begin(b->st, &b->err));
    box_close(b);
    assert_int_equal(look(b, TURNS, "damaged meanwhile", 0), 0);
    flip_on_disk(b, "stoker.db-wal", at);
    assert_int_equal(look(b, TURNS, "repaired", 0), 1);
}

/* What was noted is flushed when the store is idle, and then the last commit is covered, too. */
static void what_is_idle_is_flushed(void **state)
{
    struct box *b = *state;
    bool more;

    box_open(b);
    turn(b, 1);
    assert_false(b->st->ack_flushed);
    ok(b, stk_store_prune(b->st, &(struct stk_retention){0}, T0, &more, &b->err));
    assert_true(b->st->ack_flushed);
}

static void what_is_left_can_be_accepted(void **state)
{
    struct box *b = *state;
    struct image im;
    uint32_t jobs = 0;

    make_killed(b, 1, TURNS, false);
    im = load_image(b);
    write_one(b, "stoker.db-wal", im.data[1], im.len[1] / 2);
    refused(b, -EUCLEAN, "stoker store accept", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    ok(b, stk_store_open(b->dir.path, STK_STORE_READ_ONLY, &b->st, &b->err));
    assert_non_null(strstr(stk_store_note(b->st), "missing")); /* who reads is told */
    box_close(b);
    ok(b, stk_store_open(b->dir.path, STK_STORE_ACCEPT, &b->st, &b->err));
    assert_non_null(strstr(stk_store_note(b->st), "missing"));
    turn(b, 1000);
    box_close(b);
    box_open(b);
    assert_string_equal(stk_store_note(b->st), "");
    ok(b, stk_store_live(b->st, count_job, &jobs, &b->err));
    assert_in_range(jobs, 2, TURNS);
    free_image(&im);
}

/* Undoes the schema's steps after 6: step 7 added the note, step 8 tables and columns. */
static const char back_to_6[] =
    "DROP TABLE lease; DROP TABLE capacity;"
    "ALTER TABLE job DROP COLUMN waited; ALTER TABLE job DROP COLUMN leases;"
    "ALTER TABLE job DROP COLUMN lease_from; ALTER TABLE job DROP COLUMN lease_to;"
    "ALTER TABLE job DROP COLUMN lease_waited; ALTER TABLE job DROP COLUMN lease_gpus;"
    "ALTER TABLE job DROP COLUMN lease_preempted; PRAGMA user_version = 6";

static void a_store_of_an_older_stoker_has_no_note_yet(void **state)
{
    struct box *b = *state;
    char path[256];

    box_open(b);
    turn(b, 1);
    begin(b);
    ok(b, stk_db_exec(b->st, back_to_6, "test", &b->err));
    commit(b);
    b->st->version = 6;
    box_close(b);
    assert_int_equal(unlink(fx_dir_at(&b->dir, "stoker.ack", path, sizeof(path))), 0);
    assert_int_equal(look(b, 1, "schema 6", 0), 1);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unlink(path), 0);
    refused(b, -EUCLEAN, "stoker.ack is gone", stk_store_open(b->dir.path, 0, &b->st, &b->err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        boxed(a_damaged_wal_loses_nothing_unnoticed),
        boxed(a_damaged_wal_that_was_begun_anew_loses_nothing_unnoticed),
        boxed(a_damaged_note_of_what_was_acknowledged_loses_nothing),
        boxed(a_wal_that_is_gone_is_missed),
        boxed(an_older_copy_of_a_file_is_refused),
        boxed(a_database_that_is_gone_is_not_made_anew),
        boxed(a_stray_wal_is_refused),
        boxed(a_gap_in_the_wal_is_found_after_a_power_cut),
        boxed(a_torn_last_commit_is_dropped),
        boxed(a_wal_damaged_meanwhile_is_not_copied),
        boxed(what_is_idle_is_flushed),
        boxed(what_is_left_can_be_accepted),
        boxed(a_store_of_an_older_stoker_has_no_note_yet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
