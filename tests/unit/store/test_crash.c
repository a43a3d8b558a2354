/* SPDX-License-Identifier: Apache-2.0 */
/* test_crash.c - a writer that is killed at any moment, and a WAL that was cut anywhere: what was
 * acknowledged is there, and of the rest whole turns only. STOKER_RUNS sets the rounds. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "store/db.h"
#include "store/schema.h"
#include "store_fixture.h"

#define MORE_ROUNDS 200
#define PER_TURN 3 /* events; the turn's job has the number of the last of them */
#define ROUNDS 200

static void turn(struct box *b, bool snapshot)
{
    char bytes[3000] = {0};
    struct stk_snapshot s = {.at = T0, .bytes = bytes, .len = sizeof(bytes)};

    begin(b);
    for (int i = 0; i < PER_TURN; i++)
        s.seq = append(b, 1);
    (void)put_job(b, (stk_job_number)s.seq, 1000);
    if (snapshot)
        ok(b, stk_store_snapshot_put(b->st, &s, &b->err));
    commit(b);
}

/* Writes until it is killed; tells what is committed. */
__attribute__((noreturn)) static void writer(struct box *b, int fd)
{
    b->st = NULL;
    box_open(b);
    for (int i = 0;; i++) {
        uint64_t last;

        turn(b, i % 7 == 3);
        last = b->st->next_seq - 1;
        if (write(fd, &last, sizeof(last)) != sizeof(last))
            _exit(1);
        if (i % 5 == 4) { /* also be killed while the WAL is copied into the file */
            b->st->wal_pages = 1 << 20;
            stk_store_idle(b->st);
        }
    }
}

static int see(void *ctx, const struct stk_row *e)
{
    uint64_t *last = ctx;

    *last = e->seq;
    return 0;
}

struct live {
    uint64_t n;
    stk_job_number last;
};

static int see_job(void *ctx, const struct stk_record *r)
{
    struct live *l = ctx;

    l->n++;
    l->last = r->number;
    assert_int_equal(r->number % PER_TURN, 0);
    return 0;
}

/* Whole turns, and the journal and the records agree. Returns the last event. */
static uint64_t expect_whole(struct box *b)
{
    struct stk_snapshot s;
    struct stk_err warning;
    struct live live = {0};
    uint64_t last = 0;

    ok(b, stk_store_read(b->st, 0, see, &last, &b->err));
    ok(b, stk_store_live(b->st, see_job, &live, &b->err));
    ok(b, stk_store_snapshot_get(b->st, &s, &warning, &b->err));
    assert_string_equal(warning.text, "");
    assert_true(s.seq <= last);
    free(s.bytes);
    assert_int_equal(last % PER_TURN, 0);
    assert_int_equal(live.n, last / PER_TURN);
    assert_int_equal(live.last, last);
    return last;
}

static uint64_t kill_after(struct box *b, uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    uint64_t acked = 0, seq;
    int fd[2], status;
    pid_t child;

    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    assert_true(fcntl(fd[1], F_SETPIPE_SZ, 1 << 20) > 0); /* it must never wait for us */
    child = fork();
    if (child == 0)
        writer(b, fd[1]);
    (void)close(fd[1]);
    (void)nanosleep(&t, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    while (read(fd[0], &seq, sizeof(seq)) == sizeof(seq))
        acked = seq;
    (void)close(fd[0]);
    return acked;
}

static int rounds(void)
{
    const char *runs = getenv("STOKER_RUNS");
    int n = runs ? atoi(runs) : 0;

    return n > 0 ? n : ROUNDS;
}

static void nothing_acknowledged_is_lost_when_killed(void **state)
{
    struct box *b = *state;
    uint64_t most = 0, before = 0;
    struct stk_rng r;

    stk_rng_init(&r, (uint64_t)time(NULL) ^ (uint64_t)getpid());
    for (int i = 0; i < rounds() || (most <= PER_TURN && i < rounds() + MORE_ROUNDS); i++) {
        /* on a machine that is too busy for the writer to get that far, it gets more time */
        uint32_t most_ns = i < rounds() ? 9000000 : 900000000;
        uint64_t acked = kill_after(b, stk_rng_below(&r, most_ns)), last;

        box_open(b);
        last = expect_whole(b);
        box_close(b);
        if (last < acked || last < before)
            fail_msg("event %llu was acknowledged, and the last is %llu", (unsigned long long)acked,
                     (unsigned long long)last);
        if (acked)
            assert_true(last <= acked + PER_TURN); /* at most the turn in flight */
        most = acked > most ? acked : most;
        before = last;
    }
    assert_true(most > PER_TURN); /* else nothing was tested */
}

static void a_creation_that_is_killed_is_begun_again(void **state)
{
    struct box *b = *state;
    struct fx_dir outer = b->dir;
    struct stk_rng r;

    stk_rng_init(&r, (uint64_t)time(NULL) + 1);
    for (int i = 0; i < rounds() / 4; i++) {
        uint64_t acked;

        (void)snprintf(b->dir.path, sizeof(b->dir.path), "%.100s/%d", outer.path, i);
        acked = kill_after(b, stk_rng_below(&r, 4000000));
        box_open(b);
        assert_true(expect_whole(b) >= acked);
        box_close(b);
    }
    b->dir = outer;
}

#define FIRST_COMMIT (32 + 24 + 8192) /* bytes of the WAL that opening writes and flushes */

static void *slurp(struct box *b, const char *name, size_t *ret_len)
{
    char path[256], *data;
    struct stat s;
    int fd = open(fx_dir_at(&b->dir, name, path, sizeof(path)), O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &s), 0);
    data = malloc((size_t)s.st_size);
    assert_non_null(data);
    assert_int_equal(read(fd, data, (size_t)s.st_size), s.st_size);
    (void)close(fd);
    *ret_len = (size_t)s.st_size;
    return data;
}

static void spit(struct box *b, const char *name, const void *data, size_t len)
{
    char path[256];
    int fd = open(fx_dir_at(&b->dir, name, path, sizeof(path)),
                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    (void)close(fd);
}

/* As after a power cut on a disk that lies about flushes: the WAL ends anywhere, or has rubbish
 * from some point on, and what was noted in stoker.ack since the store was opened is not there. */
static void a_wal_cut_anywhere_gives_whole_turns(void **state)
{
    struct box *b = *state;
    struct fx_dir outer = b->dir;
    size_t db_len, wal_len, ack_len;
    unsigned char *db, *wal, *ack;
    uint64_t least = UINT64_MAX, most = 0;
    struct stk_rng r;
    pid_t child = fork();
    int status;

    if (child == 0) {
        box_open(b);
        ack = slurp(b, "stoker.ack", &ack_len);
        spit(b, "ack", ack, ack_len);
        for (int i = 0; i < 40; i++)
            turn(b, i % 7 == 3);
        _exit(0); /* not closed: all is in the WAL */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    db = slurp(b, "stoker.db", &db_len);
    wal = slurp(b, "stoker.db-wal", &wal_len);
    ack = slurp(b, "ack", &ack_len);
    stk_rng_init(&r, (uint64_t)time(NULL) + 2);
    for (int i = 0; i < rounds() / 2; i++) {
        size_t cut = FIRST_COMMIT + (size_t)stk_rng_below(&r, wal_len + 1 - FIRST_COMMIT);
        size_t len = wal_len;
        unsigned char *copy = malloc(wal_len);
        uint64_t last;

        assert_non_null(copy);
        memcpy(copy, wal, wal_len);
        if (i % 2)
            len = cut;
        else
            memset(copy + cut, (int)stk_rng_below(&r, 256), wal_len - cut);
        (void)snprintf(b->dir.path, sizeof(b->dir.path), "%.100s/%d", outer.path, i);
        assert_int_equal(mkdir(b->dir.path, 0700), 0);
        spit(b, "stoker.db", db, db_len);
        spit(b, "stoker.db-wal", copy, len);
        spit(b, "stoker.ack", ack, ack_len);
        free(copy);
        box_open(b);
        last = expect_whole(b);
        least = last < least ? last : least;
        most = last > most ? last : most;
        box_close(b);
        fx_dir_remove(&b->dir);
    }
    assert_true(least < most);
    free(db);
    free(wal);
    free(ack);
    b->dir = outer;
}

/* Killed while it is brought forward: the next daemon goes on, and what was before is kept. */
static void a_migration_that_is_killed_is_finished(void **state)
{
    const char *steps[64];
    const struct stk_schema next = {steps, stk_schema.n + 2};
    struct box *b = *state;
    struct fx_dir outer = b->dir;
    char path[256], backup[64];
    struct stk_rng r;

    memcpy(steps, stk_schema.step, (size_t)stk_schema.n * sizeof(*steps));
    steps[stk_schema.n] = "CREATE TABLE more (n INTEGER); INSERT INTO more VALUES (1)";
    steps[stk_schema.n + 1] = "ALTER TABLE job ADD COLUMN place TEXT NOT NULL DEFAULT ''";
    stk_rng_init(&r, (uint64_t)time(NULL) + 3);
    for (int i = 0; i < rounds() / 4; i++) {
        const struct timespec t = {.tv_nsec = (long)stk_rng_below(&r, 8000000)};
        /* every other one also gets checksums of pages */
        const struct stk_schema from = {stk_schema.step,
                                        i % 2 ? stk_schema.n : STK_SCHEMA_SUMS - 1};
        int status;
        pid_t child;

        (void)snprintf(b->dir.path, sizeof(b->dir.path), "%.100s/%d", outer.path, i);
        ok(b, stk_store_open_schema(b->dir.path, 0, &from, &b->st, &b->err));
        for (int k = 0; k < 10; k++)
            turn(b, k == 5);
        box_close(b);
        child = fork();
        if (child == 0)
            _exit(stk_store_open_schema(b->dir.path, 0, &next, &b->st, &b->err) == 0 ? pause() : 1);
        (void)nanosleep(&t, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        ok(b, stk_store_open_schema(b->dir.path, 0, &next, &b->st, &b->err));
        assert_int_equal(expect_whole(b), 10 * PER_TURN);
        ok(b, stk_db_exec(b->st, "SELECT place FROM job, more", "look", &b->err));
        box_close(b);
        (void)snprintf(backup, sizeof(backup), "stoker.db.backup-v%d", from.n);
        (void)fx_dir_at(&b->dir, backup, path, sizeof(path));
        ok(b, stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
        box_open(b);
        assert_int_equal(expect_whole(b), 10 * PER_TURN);
        box_close(b);
    }
    b->dir = outer;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        boxed(nothing_acknowledged_is_lost_when_killed),
        boxed(a_creation_that_is_killed_is_begun_again),
        boxed(a_wal_cut_anywhere_gives_whole_turns),
        boxed(a_migration_that_is_killed_is_finished),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
