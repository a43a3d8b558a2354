/* SPDX-License-Identifier: Apache-2.0 */
/* test_space.c - a disk that is full or cannot be written: a sentence, nothing half done, and all
 * is well again once there is room. Limits are set in child processes, so that they stay there. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/db.h"
#include "store_fixture.h"

#define SKIP 77

static void append_bytes(struct box *b, size_t len, int *ret_rc)
{
    char *bytes = calloc(1, len);
    struct stk_row e = {.at = T0, .number = 1, .bytes = bytes, .len = len};
    uint64_t seq;

    *ret_rc = stk_store_append(b->st, &e, &seq, &b->err);
    free(bytes);
}

static void fill(struct box *b, int *ret_rc)
{
    *ret_rc = 0;
    for (int i = 0; i < 60 && *ret_rc == 0; i++)
        append_bytes(b, 1 << 16, ret_rc);
}

static uint64_t last_of(struct box *b)
{
    uint64_t first, last;

    ok(b, stk_store_span(b->st, &first, &last, &b->err));
    return last;
}

static void a_full_file_rolls_the_turn_back(void **state)
{
    struct box *b = *state;
    int rc;

    begin(b);
    (void)append(b, 1);
    commit(b);
    ok(b, stk_db_exec(b->st, "PRAGMA max_page_count = 40", "set a limit", &b->err));
    begin(b);
    (void)put_job(b, 1, 1000);
    fill(b, &rc);
    assert_int_equal(rc, -ENOSPC);
    assert_non_null(strstr(b->err.text, "no space left"));
    refused(b, -ENOSPC, "no space left",
            stk_store_job_put(b->st, &(struct stk_record){.number = 2}, &b->err));
    refused(b, -ENOSPC, "no space left", stk_store_commit(b->st, &b->err));
    assert_int_equal(last_of(b), 1);
    begin(b); /* a small one still goes */
    assert_int_equal(append(b, 2), 2);
    commit(b);
    ok(b, stk_db_exec(b->st, "PRAGMA max_page_count = 100000", "set a limit", &b->err));
    begin(b);
    fill(b, &rc);
    assert_int_equal(rc, 0);
    commit(b);
    assert_int_equal(last_of(b), 62);
}

static void set_limit(rlim_t bytes)
{
    struct rlimit r;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* The WAL cannot grow: commit fails and says so. */
static void in_child_commit_fails(struct box *b)
{
    int rc;

    (void)signal(SIGXFSZ, SIG_IGN);
    box_open(b);
    begin(b);
    (void)append(b, 1);
    commit(b);
    set_limit(1 << 20);
    begin(b);
    fill(b, &rc);
    if (rc == 0)
        refused(b, -ENOSPC, "cannot commit: no space left", stk_store_commit(b->st, &b->err));
    else
        stk_store_rollback(b->st);
    assert_int_equal(last_of(b), 1);
    begin(b);
    assert_int_equal(append(b, 2), 2);
    commit(b);
    set_limit(RLIM_INFINITY);
    begin(b);
    fill(b, &rc);
    assert_int_equal(rc, 0);
    commit(b);
    box_close(b);
    box_open(b);
    assert_int_equal(last_of(b), 62);
    box_close(b);
}

/* A turn that is larger than the cache fails before its commit. */
static void in_child_append_fails(struct box *b)
{
    int rc = 0;

    (void)signal(SIGXFSZ, SIG_IGN);
    box_open(b);
    ok(b, stk_db_exec(b->st, "PRAGMA cache_size = 20", "shrink the cache", &b->err));
    begin(b);
    (void)append(b, 1);
    commit(b);
    set_limit(1 << 20);
    begin(b);
    (void)put_job(b, 1, 1000);
    fill(b, &rc);
    assert_int_equal(rc, -ENOSPC);
    refused(b, -ENOSPC, "no space left", stk_store_commit(b->st, &b->err));
    assert_int_equal(last_of(b), 1);
    begin(b);
    assert_int_equal(append(b, 2), 2);
    commit(b);
    box_close(b);
}

static int on_tmpfs(struct box *b, const char *options)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", b->dir.path, "tmpfs", 0, options) < 0)
        return SKIP;
    return 0;
}

static int in_child_small_disk(struct box *b)
{
    char path[256], *blob = calloc(1, 8 << 20);
    int rc = on_tmpfs(b, "size=2m,mode=0700");
    struct stk_snapshot s = {.seq = 1, .at = T0, .bytes = blob, .len = 8 << 20};
    FILE *f;

    if (rc)
        return rc;
    box_open(b);
    ok(b, stk_store_room(b->st, 64 << 10, &b->err));
    refused(b, -ENOSPC, "no space left", stk_store_room(b->st, 8 << 20, &b->err));
    begin(b);
    (void)append(b, 1);
    commit(b);
    begin(b);
    ok(b, stk_store_snapshot_put(b->st, &s, &b->err));
    refused(b, -ENOSPC, "no space left", stk_store_commit(b->st, &b->err));
    f = fopen(fx_dir_at(&b->dir, "backup", path, sizeof(path)), "w"); /* someone fills the rest */
    assert_non_null(f);
    (void)fwrite(blob, 1, 8 << 20, f);
    (void)fclose(f);
    (void)unlink(path);
    begin(b);
    (void)append(b, 2);
    commit(b);
    s.len = 600 << 10;
    begin(b);
    ok(b, stk_store_snapshot_put(b->st, &s, &b->err));
    commit(b);
    box_close(b);
    box_open(b);
    assert_int_equal(last_of(b), 2);
    /* No room for a copy: none is left behind. */
    begin(b);
    s.seq = 2;
    ok(b, stk_store_snapshot_put(b->st, &s, &b->err));
    if (stk_store_commit(b->st, &b->err) == 0) {
        assert_int_equal(stk_store_backup(b->st, path, NULL, NULL, &b->err), -ENOSPC);
        assert_int_not_equal(access(path, F_OK), 0);
        (void)strcat(path, ".partial");
        assert_int_not_equal(access(path, F_OK), 0);
    }
    box_close(b);
    free(blob);
    return 0;
}

/* The WAL alone fills the disk, long before it would be emptied for its length. */
static int in_child_wal_fills_disk(struct box *b)
{
    int rc = on_tmpfs(b, "size=2m,mode=0700"), failures = 0, n = 0;

    if (rc)
        return rc;
    box_open(b);
    while (n < 600) {
        begin(b);
        rc = stk_store_meta_set(b->st, "n", &n, sizeof(n), &b->err);
        if (rc == 0)
            rc = stk_store_commit(b->st, &b->err);
        else
            stk_store_rollback(b->st);
        failures = rc < 0 ? failures + 1 : 0;
        assert_true(rc == 0 || rc == -ENOSPC);
        assert_true(failures < 2);
        n += rc == 0;
    }
    box_close(b);
    return 0;
}

/* What is written fits easily; a WAL that takes the rest would leave no room to copy it. */
static int in_child_store_grows(struct box *b)
{
    int rc = on_tmpfs(b, "size=3m,mode=0700");

    if (rc)
        return rc;
    box_open(b);
    for (int i = 0; i < 150; i++) {
        begin(b);
        append_bytes(b, 8000, &rc);
        ok(b, rc);
        commit(b);
    }
    assert_int_equal(last_of(b), 150);
    box_close(b);
    return 0;
}

static int in_child_no_room_to_create(struct box *b)
{
    int rc = on_tmpfs(b, "size=16k,mode=0700");
    char path[256];

    if (rc)
        return rc;
    refused(b, -ENOSPC, "no space left", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    assert_int_not_equal(access(fx_dir_at(&b->dir, "stoker.db", path, sizeof(path)), F_OK), 0);
    assert_int_not_equal(access(fx_dir_at(&b->dir, "stoker.db.new", path, sizeof(path)), F_OK), 0);
    assert_int_equal(mount("tmpfs", b->dir.path, "tmpfs", MS_REMOUNT, "size=8m"), 0);
    box_open(b);
    box_close(b);
    assert_int_equal(mount("tmpfs", b->dir.path, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=8m"), 0);
    refused(b, -EROFS, "Read-only", stk_store_open(b->dir.path, 0, &b->st, &b->err));
    return 0;
}

static int as_void(struct box *b, void (*f)(struct box *))
{
    f(b);
    return 0;
}

/* cmocka's assertions in the child end it with a status that is not 0. */
static void run_child(struct box *b, int (*f)(struct box *), void (*g)(struct box *))
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(f ? f(b) : as_void(b, g));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP) {
        print_message("skipped: a file system can be mounted by root only\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void a_commit_that_does_not_fit_is_rolled_back(void **state)
{
    run_child(*state, NULL, in_child_commit_fails);
}

static void a_turn_that_fails_before_its_commit_is_rolled_back(void **state)
{
    run_child(*state, NULL, in_child_append_fails);
}

static void a_full_disk_loses_nothing_that_was_committed(void **state)
{
    run_child(*state, in_child_small_disk, NULL);
}

static void a_wal_that_fills_the_disk_is_emptied(void **state)
{
    run_child(*state, in_child_wal_fills_disk, NULL);
}

static void the_wal_leaves_room_for_the_store(void **state)
{
    run_child(*state, in_child_store_grows, NULL);
}

static void a_store_that_cannot_be_made_leaves_nothing(void **state)
{
    run_child(*state, in_child_no_room_to_create, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        boxed_open(a_full_file_rolls_the_turn_back),
        boxed(a_commit_that_does_not_fit_is_rolled_back),
        boxed(a_turn_that_fails_before_its_commit_is_rolled_back),
        boxed(a_full_disk_loses_nothing_that_was_committed),
        boxed(a_wal_that_fills_the_disk_is_emptied),
        boxed(the_wal_leaves_room_for_the_store),
        boxed(a_store_that_cannot_be_made_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
