/* SPDX-License-Identifier: Apache-2.0 */
/* test_pagesum.c - no byte of the store is wrong unnoticed: after any damage to its files it has
 * exactly what it had, or is refused with a sentence. STOKER_RUNS sets the rounds. */
#include <jansson.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/rng.h"
#include "store/db.h"
#include "store/pagesum.h"
#include "store/schema.h"
#include "store_image.h"

#define JOBS 40
#define ROUNDS 1000
#define PAGE STK_STORE_PAGE_BYTES

/* ---- the checksum ---- */

/* Also where a page is full of zeros or ones, as most of a page often is. */
static void every_bit_and_every_pair_of_bits_counts(void **state)
{
    static unsigned char page[PAGE];
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 5);
    for (int kind = 0; kind < 3; kind++) {
        uint64_t sum;

        for (size_t i = 0; i < PAGE; i++)
            page[i] = kind == 2 ? (unsigned char)stk_rng_below(&r, 256) : kind ? 0xff : 0;
        sum = stk_pagesum(page, 7);
        for (uint32_t number = 1; number < 1000; number++)
            assert_int_equal(stk_pagesum(page, number) == sum, number == 7);
        for (size_t i = 0; i < 8 * (PAGE - STK_PAGESUM_BYTES); i += 5) {
            size_t other = (size_t)stk_rng_below(&r, 8 * (PAGE - STK_PAGESUM_BYTES));

            page[i / 8] ^= (unsigned char)(1u << i % 8);
            assert_int_not_equal(stk_pagesum(page, 7), sum);
            page[other / 8] ^= (unsigned char)(1u << other % 8);
            if (i != other)
                assert_int_not_equal(stk_pagesum(page, 7), sum);
            page[other / 8] ^= (unsigned char)(1u << other % 8);
            page[i / 8] ^= (unsigned char)(1u << i % 8);
        }
    }
}

/* ---- a store with something of everything ---- */

static void fill_turn(struct box *b, uint32_t i)
{
    struct stk_record r;
    char *spec = malloc(i * 700 + 2); /* from a few bytes to several pages */
    int64_t id;

    assert_non_null(spec);
    for (uint32_t k = 0; k < i * 700; k++)
        spec[k] = (char)('a' + (k + i) % 26);
    begin(b);
    r = put_job(b, i, 1000 + i % 3);
    ok(b, stk_store_spec_put(b->st, spec, i * 700, &id, &b->err));
    r.number = JOBS + i;
    r.spec = id;
    r.comment = "a comment";
    ok(b, stk_store_job_put(b->st, &r, &b->err));
    if (i % 2)
        end_job(b, &r, T0 + 1000 + i, STK_CAUSE_OK);
    (void)append(b, i);
    ok(b, stk_store_meta_set(b->st, "n", &i, sizeof(i), &b->err));
    commit(b);
    free(spec);
}

enum ending { KILLED, EMPTIED, CLOSED };

/* KILLED: all is in the WAL; EMPTIED: all but the last five turns is in the database; CLOSED: all
 * is. */
static void make_filled(struct box *b, enum ending how)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        box_open(b);
        for (uint32_t i = 1; i <= JOBS; i++) {
            if (how == EMPTIED && i == JOBS - 5) {
                b->st->wal_pages = 1 << 20;
                stk_store_idle(b->st);
            }
            fill_turn(b, i);
        }
        if (how == CLOSED)
            box_close(b);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int hash_event(void *ctx, const struct stk_row *e)
{
    uint64_t *h = ctx;

    *h = stk_hash_mix(stk_hash_mix(*h, e->seq), (uint64_t)e->at);
    for (size_t i = 0; i < e->len; i++)
        *h = stk_hash_mix(*h, ((const unsigned char *)e->bytes)[i]);
    return 0;
}

/* Everything that the store tells, as a number. 'err' has the sentence when it does not. */
static int hash_store(struct box *b, uint64_t *ret)
{
    char *text = NULL, *value = NULL;
    size_t len = 0, value_len = 0;
    FILE *f = open_memstream(&text, &len);
    int rc;

    assert_non_null(f);
    *ret = 1;
    rc = stk_store_export(b->st, f, NULL, NULL, &b->err);
    (void)fclose(f);
    if (rc == 0)
        rc = stk_store_read(b->st, 0, hash_event, ret, &b->err);
    if (rc == 0)
        rc = stk_store_meta_get(b->st, "n", &value, &value_len, &b->err);
    for (size_t i = 0; i < len; i++)
        *ret = stk_hash_mix(*ret, (unsigned char)text[i]);
    for (size_t i = 0; i < value_len; i++)
        *ret = stk_hash_mix(*ret, (unsigned char)value[i]);
    free(text);
    free(value);
    return rc;
}

/* ---- damage ---- */

static const char *const hows[] = {
    "a bit flipped", "a sector zeroed", "overwritten", "pages swapped", "cut", "a page zeroed"};
#define N_HOWS (sizeof(hows) / sizeof(*hows))

static void damage_file(unsigned char *data, size_t *len, size_t how, size_t at, size_t other)
{
    unsigned char page[PAGE];
    size_t sector = at - at % 512, n = *len - sector < 512 ? *len - sector : 512;

    switch (how) {
    case 0:
        data[at] ^= (unsigned char)(1u << other % 8);
        break;
    case 1:
        memset(data + sector, 0, n);
        break;
    case 2:
        memset(data + at, 0xa5, *len - at < 4096 ? *len - at : 4096);
        break;
    case 3:
        at = at / PAGE * PAGE;
        other = other / PAGE * PAGE;
        if (at + PAGE > *len || other + PAGE > *len)
            break;
        memcpy(page, data + at, PAGE);
        memcpy(data + at, data + other, PAGE);
        memcpy(data + other, page, PAGE);
        break;
    case 4:
        *len = at;
        break;
    default:
        at = at / PAGE * PAGE;
        memset(data + at, 0, *len - at < PAGE ? *len - at : PAGE);
    }
}

/* True: it is as it was. False: refused. Anything else fails the test. */
static bool is_whole_or_refused(struct box *b, uint64_t want, const char *what, const char *file,
                                size_t at)
{
    uint64_t got = 0;
    int rc = stk_store_open(b->dir.path, 0, &b->st, &b->err);

    if (rc == 0) {
        rc = hash_store(b, &got);
        box_close(b);
    }
    if (rc == 0 && got != want)
        fail_msg("%s: %s at %zu: opened with something else in it", file, what, at);
    if (rc < 0 && !strstr(b->err.text, "stoker store"))
        fail_msg("%s: %s at %zu: the sentence does not say what to do: %s", file, what, at,
                 b->err.text);
    return rc == 0;
}

static uint32_t rounds(void)
{
    const char *runs = getenv("STOKER_RUNS");
    int n = runs ? atoi(runs) : 0;

    return n > 0 ? (uint32_t)n : ROUNDS;
}

static void damage_anything(struct box *b, enum ending how, uint32_t n)
{
    struct image whole;
    struct stk_rng r;
    uint32_t opened = 0;
    uint64_t want;

    make_filled(b, how);
    whole = load_image(b);
    box_open(b);
    ok(b, hash_store(b, &want));
    box_close(b);
    stk_rng_init(&r, 17 + how);
    for (uint32_t i = 0; i < n; i++) {
        size_t file = stk_rng_below(&r, 4) == 0 ? 2 : (size_t)stk_rng_below(&r, 2), at;
        struct image im = whole;

        if (whole.len[file] == 0) /* closed: there is no WAL */
            file = 0;
        at = (size_t)stk_rng_below(&r, whole.len[file]);
        im.data[file] = malloc(whole.len[file]);
        assert_non_null(im.data[file]);
        memcpy(im.data[file], whole.data[file], whole.len[file]);
        damage_file(im.data[file], &im.len[file], i % N_HOWS, at,
                    (size_t)stk_rng_below(&r, whole.len[file]));
        write_image(b, &im);
        opened += is_whole_or_refused(b, want, hows[i % N_HOWS], files[file], at);
        free(im.data[file]);
    }
    print_message("%u damaged, %u of them opened whole, none silently wrong\n", n, opened);
    write_image(b, &whole);
    assert_true(is_whole_or_refused(b, want, "nothing", "none", 0));
    free_image(&whole);
}

static void a_killed_store_is_never_wrong_unnoticed(void **state)
{
    damage_anything(*state, KILLED, rounds() / 4);
}

static void a_store_killed_after_a_checkpoint_is_never_wrong_unnoticed(void **state)
{
    damage_anything(*state, EMPTIED, rounds() / 2);
}

static void a_closed_store_is_never_wrong_unnoticed(void **state)
{
    damage_anything(*state, CLOSED, rounds() / 4);
}

/* ---- one bit ---- */

/* Finds bytes in a file of pages and flips a bit of theirs. Returns their page. */
static uint32_t flip_text(struct box *b, const char *name, const char *text)
{
    char path[256];
    int fd = open(fx_dir_at(&b->dir, name, path, sizeof(path)), O_RDWR | O_CLOEXEC);
    unsigned char *data, *at;
    struct stat s;
    off_t where;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &s), 0);
    data = malloc((size_t)s.st_size);
    assert_non_null(data);
    assert_int_equal(read(fd, data, (size_t)s.st_size), s.st_size);
    at = memmem(data, (size_t)s.st_size, text, strlen(text));
    assert_non_null(at);
    where = at - data;
    *at ^= 1;
    assert_int_equal(pwrite(fd, at, 1, where), 1);
    (void)close(fd);
    free(data);
    return (uint32_t)(where / PAGE + 1);
}

struct told {
    char text[2000];
    uint64_t n;
};

static void tell(void *ctx, const char *sentence)
{
    struct told *t = ctx;

    (void)strncat(t->text, sentence, sizeof(t->text) - strlen(t->text) - 1);
    t->n++;
}

static uint64_t check(struct box *b, struct told *t)
{
    struct stk_check c = {.problem = tell, .ctx = t};
    uint64_t n = 0;

    *t = (struct told){.n = 0};
    ok(b, stk_store_open(b->dir.path, STK_STORE_READ_ONLY | STK_STORE_ACCEPT, &b->st, &b->err));
    ok(b, stk_store_check(b->st, &c, &n, &b->err));
    box_close(b);
    return n;
}

static void a_flipped_bit_of_a_description_is_refused_told_and_accepted(void **state)
{
    struct box *b = *state;
    char words[64], copy[256];
    struct told t;
    uint32_t page;

    make_filled(b, CLOSED);
    assert_int_equal(check(b, &t), 0);
    page = flip_text(b, "stoker.db", "abcdefg");
    (void)snprintf(words, sizeof(words), "page %u does not match its checksum", page);
    refused(b, -EUCLEAN, words, stk_store_open(b->dir.path, 0, &b->st, &b->err));
    assert_non_null(strstr(b->err.text, "stoker store accept --state /"));
    assert_int_equal(check(b, &t), 1);
    (void)snprintf(words, sizeof(words), "page %u of stoker.db", page);
    assert_non_null(strstr(t.text, words));
    ok(b, stk_store_open(b->dir.path, STK_STORE_READ_ONLY, &b->st, &b->err));
    refused(b, -EUCLEAN, "does not match its checksum",
            stk_store_backup(b->st, fx_dir_at(&b->dir, "copy", copy, sizeof(copy)), NULL, NULL,
                             &b->err));
    box_close(b);
    ok(b, stk_store_open(b->dir.path, STK_STORE_ACCEPT, &b->st, &b->err));
    assert_non_null(strstr(stk_store_note(b->st), "1 page of stoker.db did not match"));
    assert_null(strstr(stk_store_note(b->st), "stoker store")); /* it has been done */
    box_close(b);
    assert_int_equal(check(b, &t), 0);
    box_open(b);
}

/* The daemon runs, and the disk loses a bit that is not in its memory. */
static void a_bit_that_flips_while_it_runs_is_not_served(void **state)
{
    struct box *b = *state;
    uint64_t hash;

    make_filled(b, CLOSED);
    ok(b, stk_store_open(b->dir.path, STK_STORE_READ_ONLY, &b->st, &b->err));
    (void)flip_text(b, "stoker.db", "bcdefgh");
    assert_int_equal(hash_store(b, &hash), -EUCLEAN);
    assert_non_null(strstr(b->err.text, "does not match its checksum"));
}

static void a_damaged_backup_is_not_restored(void **state)
{
    struct box *b = *state;
    char path[256];
    uint64_t want, got;

    make_filled(b, CLOSED);
    box_open(b);
    ok(b, hash_store(b, &want));
    ok(b, stk_store_backup(b->st, fx_dir_at(&b->dir, "copy", path, sizeof(path)), NULL, NULL,
                           &b->err));
    box_close(b);
    ok(b, stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
    box_open(b);
    ok(b, hash_store(b, &got));
    assert_int_equal(got, want);
    box_close(b);
    (void)flip_text(b, "copy", "abcdefg");
    refused(b, -EUCLEAN, "does not match its checksum",
            stk_store_restore(b->dir.path, path, NULL, NULL, &b->err));
    box_open(b);
    ok(b, hash_store(b, &got));
    assert_int_equal(got, want);
}

/* ---- other programs, other versions ---- */

static int count_rows(struct box *b, const char *text)
{
    char path[256];
    sqlite3 *db;
    sqlite3_stmt *s;
    int n;

    assert_int_equal(sqlite3_open_v2(fx_dir_at(&b->dir, "stoker.db", path, sizeof(path)), &db,
                                     SQLITE_OPEN_READONLY, NULL),
                     0);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &s, NULL), 0);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    n = sqlite3_column_int(s, 0);
    (void)sqlite3_finalize(s);
    (void)sqlite3_close(db);
    return n;
}

static void plain_sqlite_reads_the_store(void **state)
{
    struct box *b = *state;

    make_filled(b, CLOSED);
    assert_int_equal(count_rows(b, "SELECT count(*) FROM job"), 2 * JOBS);
    assert_int_equal(count_rows(b, "SELECT quick_check = 'ok' FROM pragma_quick_check"), 1);
}

/* A program that knows nothing of checksums has written: it says so, and that can be accepted. */
static void what_another_program_wrote_is_refused_until_it_is_accepted(void **state)
{
    struct box *b = *state;
    char path[256];
    sqlite3 *db;

    make_filled(b, CLOSED);
    assert_int_equal(sqlite3_open(fx_dir_at(&b->dir, "stoker.db", path, sizeof(path)), &db), 0);
    assert_int_equal(sqlite3_exec(db, "UPDATE job SET comment = 'x'", NULL, NULL, NULL), 0);
    (void)sqlite3_close(db);
    refused(b, -EUCLEAN, "does not match its checksum",
            stk_store_open(b->dir.path, 0, &b->st, &b->err));
    ok(b, stk_store_open(b->dir.path, STK_STORE_ACCEPT, &b->st, &b->err));
    box_close(b);
    box_open(b);
}

/* The header is what says that there are checksums. */
static void a_header_that_denies_checksums_is_refused(void **state)
{
    struct box *b = *state;
    struct image im;

    make_filled(b, CLOSED);
    im = load_image(b);
    assert_int_equal(im.data[0][20], STK_PAGESUM_BYTES);
    im.data[0][20] = 0;
    write_image(b, &im);
    assert_false(is_whole_or_refused(b, 0, "the header", "stoker.db", 20));
    free_image(&im);
}

static void a_store_of_before_gets_checksums(void **state)
{
    const struct stk_schema before = {stk_schema.step, STK_SCHEMA_SUMS - 1};
    struct box *b = *state;
    uint64_t want, got;
    struct image im;
    struct told t;

    ok(b, stk_store_open_schema(b->dir.path, 0, &before, &b->st, &b->err));
    for (uint32_t i = 1; i <= JOBS; i++)
        fill_turn(b, i);
    ok(b, hash_store(b, &want));
    box_close(b);
    im = load_image(b);
    assert_int_equal(im.data[0][20], 0);
    free_image(&im);
    box_open(b);
    ok(b, hash_store(b, &got));
    assert_int_equal(got, want);
    box_close(b);
    im = load_image(b);
    assert_int_equal(im.data[0][20], STK_PAGESUM_BYTES);
    free_image(&im);
    assert_int_equal(check(b, &t), 0);
    (void)flip_text(b, "stoker.db", "abcdefg");
    refused(b, -EUCLEAN, "does not match its checksum",
            stk_store_open(b->dir.path, 0, &b->st, &b->err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_and_every_pair_of_bits_counts),
        boxed(a_killed_store_is_never_wrong_unnoticed),
        boxed(a_store_killed_after_a_checkpoint_is_never_wrong_unnoticed),
        boxed(a_closed_store_is_never_wrong_unnoticed),
        boxed(a_flipped_bit_of_a_description_is_refused_told_and_accepted),
        boxed(a_bit_that_flips_while_it_runs_is_not_served),
        boxed(a_damaged_backup_is_not_restored),
        boxed(plain_sqlite_reads_the_store),
        boxed(what_another_program_wrote_is_refused_until_it_is_accepted),
        boxed(a_header_that_denies_checksums_is_refused),
        boxed(a_store_of_before_gets_checksums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
