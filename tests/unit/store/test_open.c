/* SPDX-License-Identifier: Apache-2.0 */
/* test_open.c - what is opened, what is refused and in which words, and how old stores come
 * forward. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/pagesum.h"
#include "store/schema.h"
#include "store_fixture.h"

static void in_file(struct box *b, const char *sql)
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

static unsigned mode_of(struct box *b, const char *name)
{
    char path[256];
    struct stat s;

    assert_int_equal(lstat(fx_dir_at(&b->dir, name, path, sizeof(path)), &s), 0);
    return s.st_mode & 07777;
}

static void a_new_store_is_private_and_is_found_again(void **state)
{
    struct box *b = *state;
    char *value;
    size_t len;

    (void)umask(0);
    box_open(b);
    assert_string_equal(stk_store_note(b->st), "");
    begin(b);
    ok(b, stk_store_meta_set(b->st, "cluster", "lab", 3, &b->err));
    commit(b);
    assert_int_equal(mode_of(b, "stoker.db"), 0600);
    assert_int_equal(mode_of(b, "stoker.db-wal"), 0600);
    assert_int_equal(mode_of(b, "stoker.db-shm"), 0600);
    assert_int_equal(mode_of(b, "lock"), 0600);
    box_close(b);
    box_open(b);
    ok(b, stk_store_meta_get(b->st, "cluster", &value, &len, &b->err));
    assert_string_equal(value, "lab");
    assert_int_equal(len, 3);
    free(value);
    refused(b, -ENOENT, "nothing", stk_store_meta_get(b->st, "nothing", &value, &len, &b->err));
    (void)umask(022);
}

static void missing_directories_are_made(void **state)
{
    struct box *b = *state;
    char path[256];

    (void)fx_dir_at(&b->dir, "a/b/state", path, sizeof(path));
    ok(b, stk_store_open(path, 0, &b->st, &b->err));
    assert_int_equal(mode_of(b, "a/b/state"), 0711);
    assert_int_equal(mode_of(b, "a"), 0700);
    box_close(b);
    (void)fx_dir_at(&b->dir, "none", path, sizeof(path));
    refused(b, -ENOENT, "none", stk_store_open(path, STK_STORE_READ_ONLY, &b->st, &b->err));
}

static void a_second_writer_is_refused_with_the_pid_of_the_first(void **state)
{
    struct box *b = *state;
    struct stk_store *other;
    char pid[32];

    box_open(b);
    (void)snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
    refused(b, -EBUSY, pid, stk_store_open(b->dir.path, 0, &other, &b->err));
    refused(b, -EBUSY, pid, stk_store_restore(b->dir.path, "/dev/null", NULL, NULL, &b->err));
}

static void readers_come_while_a_writer_writes(void **state)
{
    struct box *b = *state;
    struct stk_store *reader;
    uint64_t first, last;

    box_open(b);
    begin(b);
    (void)append(b, 1);
    commit(b);
    begin(b);
    (void)append(b, 2);
    ok(b, stk_store_open(b->dir.path, STK_STORE_READ_ONLY, &reader, &b->err));
    ok(b, stk_store_span(reader, &first, &last, &b->err));
    assert_int_equal(last, 1); /* what is not committed is not seen */
    commit(b);
    ok(b, stk_store_span(reader, &first, &last, &b->err));
    assert_int_equal(last, 2);
    refused(b, -EROFS, "read only", stk_store_begin(reader, &b->err));
    stk_store_close(reader);
    begin(b); /* the reader's end has taken no lock with it */
    refused(b, -EBUSY, "pid", stk_store_open(b->dir.path, 0, &reader, &b->err));
    commit(b);
}

/* The WAL of a killed writer is read by a reader that comes first. */
static void a_reader_sees_what_a_killed_writer_committed(void **state)
{
    struct box *b = *state;
    uint64_t first, last;
    pid_t child = fork();
    int status;

    if (child == 0) {
        box_open(b);
        begin(b);
        (void)append(b, 1);
        commit(b);
        begin(b);
        (void)append(b, 2);
        _exit(0); /* nothing is closed */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ok(b, stk_store_open(b->dir.path, STK_STORE_READ_ONLY, &b->st, &b->err));
    ok(b, stk_store_span(b->st, &first, &last, &b->err));
    assert_int_equal(last, 1);
}

static void a_directory_that_others_can_change_is_refused(void **state)
{
    struct box *b = *state;
    char link_path[256], real[256];

    assert_int_equal(chmod(b->dir.path, 0770), 0);
    refused(b, -EPERM, "chmod go-w", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    assert_int_equal(chmod(b->dir.path, 0711), 0);
    box_open(b);
    box_close(b);
    (void)fx_dir_at(&b->dir, "real", real, sizeof(real));
    (void)fx_dir_at(&b->dir, "link", link_path, sizeof(link_path));
    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(symlink("real", link_path), 0);
    refused(b, -ELOOP, "symbolic link", stk_store_open(link_path, 0, &b->st, &b->err));
    (void)strcat(link_path, "//");
    refused(b, -ELOOP, "symbolic link", stk_store_open(link_path, 0, &b->st, &b->err));
    refused(b, -EINVAL, "empty", stk_store_open("", 0, &b->st, &b->err));
    if (geteuid() != 0) {
        refused(b, -EPERM, "belongs to uid 0", stk_store_open("/", 0, &b->st, &b->err));
    } else {
        assert_int_equal(chown(real, 12345, 12345), 0);
        refused(b, -EPERM, "belongs to uid 12345", stk_store_open(real, 0, &b->st, &b->err));
    }
}

static void links_in_place_of_files_are_not_followed(void **state)
{
    struct box *b = *state;
    char path[256], other[256];
    int fd;

    (void)fx_dir_at(&b->dir, "stoker.db", path, sizeof(path));
    (void)fx_dir_at(&b->dir, "other", other, sizeof(other));
    assert_int_equal(symlink(other, path), 0);
    refused(b, -ELOOP, "symbolic link", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    assert_int_equal(unlink(path), 0);
    box_open(b);
    box_close(b);
    assert_int_equal(chmod(path, 0644), 0);
    box_open(b); /* made private again */
    box_close(b);
    assert_int_equal(mode_of(b, "stoker.db"), 0600);
    (void)fx_dir_at(&b->dir, "lock", path, sizeof(path));
    assert_int_equal(unlink(path), 0);
    fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(symlink(other, path), 0);
    refused(b, -ELOOP, "lock", stk_store_open(b->dir.path, 0, &b->st, &b->err));
}

static void write_file(struct box *b, const char *name, off_t at, const void *bytes, size_t len)
{
    char path[256];
    int fd =
        open(fx_dir_at(&b->dir, name, path, sizeof(path)), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
    (void)close(fd);
}

static void damaged_files_are_refused_and_left_alone(void **state)
{
    struct box *b = *state;
    char path[256], junk[8192];
    struct stat before, after;

    memset(junk, 'x', sizeof(junk));
    write_file(b, "stoker.db", 0, junk, sizeof(junk));
    refused(b, -EUCLEAN, "restore a backup", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    (void)fx_dir_at(&b->dir, "stoker.db", path, sizeof(path));
    assert_int_equal(truncate(path, 0), 0);
    refused(b, -EUCLEAN, "is empty", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    assert_int_equal(unlink(path), 0);
    write_file(b, "stoker.db-wal", 0, junk, sizeof(junk));
    refused(b, -EUCLEAN, "is gone", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    (void)fx_dir_at(&b->dir, "stoker.db-wal", path, sizeof(path));
    assert_int_equal(unlink(path), 0);
    box_open(b);
    begin(b);
    for (uint32_t i = 1; i <= 3000; i++)
        (void)append(b, i);
    commit(b);
    box_close(b);
    (void)fx_dir_at(&b->dir, "stoker.db", path, sizeof(path));
    assert_int_equal(stat(path, &before), 0);
    for (off_t at = before.st_size / 2; at < before.st_size - 8192; at += 32768)
        write_file(b, "stoker.db", at, junk, sizeof(junk));
    refused(b, -EUCLEAN, "stoker store check", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(truncate(path, before.st_size / 2), 0);
    refused(b, -EUCLEAN, "damaged", stk_store_open(b->dir.path, 0, &b->st, &b->err));
}

static void other_files_and_newer_stores_are_refused(void **state)
{
    struct box *b = *state;
    char words[128];

    box_open(b);
    box_close(b);
    (void)snprintf(words, sizeof(words), "made by a newer stoker (schema 99, this one knows %d)",
                   stk_schema.n);
    in_file(b, "PRAGMA user_version = 99");
    refused(b, -EPROTONOSUPPORT, words, stk_store_open(b->dir.path, 0, &b->st, &b->err));
    (void)snprintf(words, sizeof(words), "PRAGMA user_version = %d; PRAGMA application_id = 7",
                   stk_schema.n);
    in_file(b, words);
    refused(b, -EINVAL, "not a stoker store", stk_store_open(b->dir.path, 0, &b->st, &b->err));
}

static const char *steps[64];
static const char *const more_steps[] = {
    "ALTER TABLE job ADD COLUMN place TEXT NOT NULL DEFAULT 'here'",
    "CREATE TABLE extra (a INTEGER PRIMARY KEY); INSERT INTO extra SELECT number FROM job",
    "CREATE TABLE extra (twice INTEGER)"};

static int count(void *ctx, const struct stk_record *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

static int is_whole(void *ctx, const struct stk_record *r)
{
    (void)ctx;
    assert_int_equal(r->gpus, 4);
    assert_int_equal(r->gpu_milli, 0);
    assert_string_equal(r->queue, "");
    assert_string_equal(r->tenant, "");
    return 0;
}

static void an_older_store_comes_forward_and_the_old_one_is_kept(void **state)
{
    struct box *b = *state;
    const int now = stk_schema.n;
    const struct stk_schema next = {steps, now + 2}, broken = {steps, now + 3};
    char path[256], words[128], backup[64];
    sqlite3 *db;
    int n = 0;

    memcpy(steps, stk_schema.step, (size_t)now * sizeof(*steps));
    memcpy(steps + now, more_steps, sizeof(more_steps));
    (void)snprintf(backup, sizeof(backup), "stoker.db.backup-v%d", now);
    box_open(b);
    begin(b);
    (void)put_job(b, 1, 1000);
    commit(b);
    box_close(b);
    (void)snprintf(words, sizeof(words), "older stoker (schema %d, this one knows %d)", now,
                   now + 2);
    refused(b, -EPROTONOSUPPORT, words,
            stk_store_open_schema(b->dir.path, STK_STORE_READ_ONLY, &next, &b->st, &b->err));

    /* A step that fails leaves the version before it, and every step before it done. */
    (void)snprintf(words, sizeof(words), "from schema %d to %d", now + 2, now + 3);
    refused(b, -EIO, words, stk_store_open_schema(b->dir.path, 0, &broken, &b->st, &b->err));
    ok(b, stk_store_open_schema(b->dir.path, 0, &next, &b->st, &b->err));
    assert_string_equal(stk_store_note(b->st), "");
    box_close(b);
    (void)snprintf(words, sizeof(words), "schema %d, this one knows %d", now + 2, now);
    refused(b, -EPROTONOSUPPORT, words, stk_store_open(b->dir.path, 0, &b->st, &b->err));

    /* The copy is a whole store of the old version. */
    assert_int_equal(mode_of(b, backup), 0600);
    (void)fx_dir_at(&b->dir, backup, path, sizeof(path));
    ok(b, stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
    box_open(b);
    ok(b, stk_store_live(b->st, count, &n, &b->err));
    assert_int_equal(n, 1);
    box_close(b);
    ok(b, stk_store_open_schema(b->dir.path, 0, &next, &b->st, &b->err));
    assert_non_null(strstr(stk_store_note(b->st), backup));
    assert_int_equal(sqlite3_open_v2(fx_dir_at(&b->dir, "stoker.db", path, sizeof(path)), &db,
                                     SQLITE_OPEN_READWRITE, stk_pagesum_vfs()),
                     0);
    assert_int_equal(sqlite3_exec(db, "SELECT place FROM job, extra", NULL, NULL, NULL), 0);
    (void)sqlite3_close(db);
}

/* Version 1 had no parts of GPUs. */
static void a_store_of_version_1_has_whole_gpus(void **state)
{
    struct box *b = *state;
    const struct stk_schema first = {stk_schema.step, 1};

    ok(b, stk_store_open_schema(b->dir.path, 0, &first, &b->st, &b->err));
    box_close(b);
    in_file(b,
            "INSERT INTO job (number, uid, gid, user, name, kind, array, array_index, submitted,"
            " first_started, started, cause, code, gpus, tasks, restarts, preemptions, served,"
            " spec, comment, note, stdout, stderr) VALUES (1, 0, 0, 'u', 'n', 0, 0, 0, 1, 0, 0, 0,"
            " 0, 4, 1, 0, 0, 0, 0, '', '', '', '')");
    box_open(b);
    ok(b, stk_store_job_get(b->st, 1, is_whole, NULL, &b->err));
}

static int has_one_lease(void *ctx, const struct stk_record *r)
{
    (void)ctx;
    assert_int_equal(r->leases, 0);
    assert_int_equal(r->lease.from, 700); /* it ran for 300, and ended at 1000 */
    assert_int_equal(r->lease.to, 1000);
    assert_int_equal(r->lease.milli, 2000);
    assert_int_equal(r->waited, 90);
    return 0;
}

/* Up to version 5 only the sum of a job's run times was kept. */
static void a_job_of_version_5_has_its_run_time_in_one_lease(void **state)
{
    struct box *b = *state;
    const struct stk_schema fifth = {stk_schema.step, 5};

    ok(b, stk_store_open_schema(b->dir.path, 0, &fifth, &b->st, &b->err));
    box_close(b);
    in_file(b, "INSERT INTO job (number, uid, gid, user, name, kind, array, array_index, submitted,"
               " first_started, started, ended, cause, code, gpus, tasks, restarts, preemptions,"
               " served, spec, comment, note, stdout, stderr) VALUES (1, 0, 0, 'u', 'n', 0, 0, 0,"
               " 10, 100, 800, 1000, 1, 0, 2, 1, 1, 1, 300, 0, '', '', '', '')");
    box_open(b);
    ok(b, stk_store_job_get(b->st, 1, has_one_lease, NULL, &b->err));
}

static void a_leftover_of_a_creation_that_was_cut_short_is_no_trouble(void **state)
{
    struct box *b = *state;

    write_file(b, "stoker.db.new", 0, "half", 4);
    write_file(b, "stoker.db.new-journal", 0, "half", 4);
    box_open(b);
    begin(b);
    (void)append(b, 1);
    commit(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        boxed(a_new_store_is_private_and_is_found_again),
        boxed(missing_directories_are_made),
        boxed(a_second_writer_is_refused_with_the_pid_of_the_first),
        boxed(readers_come_while_a_writer_writes),
        boxed(a_reader_sees_what_a_killed_writer_committed),
        boxed(a_directory_that_others_can_change_is_refused),
        boxed(links_in_place_of_files_are_not_followed),
        boxed(damaged_files_are_refused_and_left_alone),
        boxed(other_files_and_newer_stores_are_refused),
        boxed(an_older_store_comes_forward_and_the_old_one_is_kept),
        boxed(a_store_of_version_1_has_whole_gpus),
        boxed(a_job_of_version_5_has_its_run_time_in_one_lease),
        boxed(a_leftover_of_a_creation_that_was_cut_short_is_no_trouble),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
