/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - what bench/store measures: jobs written to the store (description, record and submit
 * event each) in one transaction and in transactions of one, opening and reading back, next to
 * plain SQLite: the same bytes in one table with a number. Prints one JSON object. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

#define SPEC 400 /* bytes of an ordinary description */
#define EVENT 96 /* of a submit, encoded */
#define ROW (SPEC + EVENT + 200)
#define START ((stk_time)1700000000 * STK_SECOND)

static struct stk_err err;

static double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int rc)
{
    if (rc < 0) {
        (void)fprintf(stderr, "bench_store: %s\n", err.text);
        exit(1);
    }
}

static void must_sql(int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE) {
        (void)fprintf(stderr, "bench_store: SQLite says %s\n", sqlite3_errstr(rc));
        exit(1);
    }
}

static void put_job(struct stk_store *st, uint32_t number)
{
    static char spec[SPEC], event[EVENT];
    struct stk_row e = {
        .at = START + number, .number = number, .bytes = event, .len = sizeof(event)};
    struct stk_record r = {.number = number,
                           .uid = 1000 + number % 50,
                           .gid = 1000,
                           .user = "someone",
                           .name = "train-resnet50",
                           .submitted = START + number,
                           .gpus = 8,
                           .tasks = 1,
                           .stdout_path = "/home/someone/run/stoker-1234567.out"};
    uint64_t seq;

    must(stk_store_spec_put(st, spec, sizeof(spec), &r.spec, &err));
    must(stk_store_job_put(st, &r, &err));
    must(stk_store_append(st, &e, &seq, &err));
}

static double one_transaction(struct stk_store *st, uint32_t n)
{
    double t = now_s();

    must(stk_store_begin(st, &err));
    for (uint32_t i = 1; i <= n; i++)
        put_job(st, i);
    must(stk_store_commit(st, &err));
    return n / (now_s() - t);
}

static double many_transactions(struct stk_store *st, uint32_t from, uint32_t n)
{
    double t = now_s();

    for (uint32_t i = 0; i < n; i++) {
        must(stk_store_begin(st, &err));
        put_job(st, from + i);
        must(stk_store_commit(st, &err));
    }
    return n / (now_s() - t);
}

static int count(void *ctx, const struct stk_record *r)
{
    (void)r;
    ++*(uint32_t *)ctx;
    return 0;
}

static double open_ms(const char *dir, uint32_t expected)
{
    struct stk_store *st;
    double t = now_s(), opened;
    uint32_t n = 0;

    must(stk_store_open(dir, 0, &st, &err));
    opened = now_s() - t;
    must(stk_store_live(st, count, &n, &err));
    if (n != expected) {
        (void)fprintf(stderr, "bench_store: %u jobs came back, not %u\n", n, expected);
        exit(1);
    }
    stk_store_close(st);
    return opened * 1000;
}

static double ends(struct stk_store *st, uint32_t n)
{
    double t = now_s();

    must(stk_store_begin(st, &err));
    for (uint32_t i = 1; i <= n; i++) {
        struct stk_record r = {.number = i,
                               .name = "train-resnet50",
                               .started = START + i,
                               .ended = START + 2 * i,
                               .cause = STK_CAUSE_OK,
                               .gpus = 8,
                               .tasks = 1};

        must(stk_store_job_update(st, &r, &err));
    }
    must(stk_store_commit(st, &err));
    return n / (now_s() - t);
}

/* The reference: one table, WAL, the same durability. */
static void plain(const char *dir, uint32_t n, uint32_t commits, double ret_rate[2])
{
    static char body[ROW];
    char path[4096];
    sqlite3_stmt *s;
    sqlite3 *db;

    (void)snprintf(path, sizeof(path), "%s/plain.db", dir);
    must_sql(sqlite3_open(path, &db));
    must_sql(sqlite3_exec(db,
                          "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                          "PRAGMA cache_size = -65536;"
                          "CREATE TABLE t (n INTEGER PRIMARY KEY, body BLOB)",
                          NULL, NULL, NULL));
    must_sql(sqlite3_prepare_v2(db, "INSERT INTO t VALUES (?1, ?2)", -1, &s, NULL));
    for (int round = 0; round < 2; round++) {
        uint32_t rows = round ? commits : n;
        double t = now_s();

        if (round == 0)
            must_sql(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL));
        for (uint32_t i = 0; i < rows; i++) {
            must_sql(sqlite3_bind_int64(s, 1, (round ? n : 0) + i + 1));
            must_sql(sqlite3_bind_blob(s, 2, body, sizeof(body), SQLITE_STATIC));
            must_sql(sqlite3_step(s));
            must_sql(sqlite3_reset(s));
        }
        if (round == 0)
            must_sql(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
        ret_rate[round] = rows / (now_s() - t);
    }
    must_sql(sqlite3_finalize(s));
    must_sql(sqlite3_close(db));
    (void)unlink(path);
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 100000;
    uint32_t commits = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 300;
    double bulk, single, opened, ended, ref[2];
    struct stk_store *st;

    if (argc < 2 || n == 0 || commits == 0) {
        (void)fprintf(stderr, "usage: bench_store DIR [JOBS [COMMITS]]\n");
        return 2;
    }
    must(stk_store_open(argv[1], 0, &st, &err));
    bulk = one_transaction(st, n);
    stk_store_idle(st);
    single = many_transactions(st, n + 1, commits);
    stk_store_close(st);
    opened = open_ms(argv[1], n + commits);
    must(stk_store_open(argv[1], 0, &st, &err));
    ended = ends(st, n);
    stk_store_close(st);
    plain(argv[1], n, commits, ref);
    (void)printf("{\"jobs\": %u, \"jobs_per_s\": %.0f, \"plain_rows_per_s\": %.0f, "
                 "\"commits_per_s\": %.0f, \"plain_commits_per_s\": %.0f, \"open_ms\": %.1f, "
                 "\"ends_per_s\": %.0f}\n",
                 n, bulk, ref[0], single, ref[1], opened, ended);
    return 0;
}
