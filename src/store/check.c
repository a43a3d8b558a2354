/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - reads everything and tells what is wrong with it: the checksums of all pages, SQLite's
 * own check of pages and indexes, the journal and the snapshots, then what the rows say about each
 * other. A part that cannot be read is a problem, not the end of the check. */
#include <inttypes.h>
#include <stdarg.h>

#include "store/db.h"
#include "store/journal.h"
#include "store/pages.h"

#define TOLD_PER_RULE 10 /* the rest of a kind is only counted */
#define TICK_OPS 100000  /* SQLite's instructions between two ticks */

struct checking {
    struct stk_store *st;
    const struct stk_check *c;
    uint64_t problems, bad_pages;
    uint64_t done; /* ticks */
    int stop;
};

__attribute__((format(printf, 2, 3))) static void tell(struct checking *k, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    k->problems++;
    if (k->c->problem)
        k->c->problem(k->c->ctx, text);
}

static int tick(void *ctx)
{
    struct checking *k = ctx;

    if (k->c->tick && k->c->tick(k->c->ctx, ++k->done, 0))
        k->stop = 1;
    return k->stop;
}

/* 'rc' and its sentence as a problem; -ECANCELED goes up. */
static int went_wrong(struct checking *k, int rc, const struct stk_err *err)
{
    if (rc < 0 && rc != -ECANCELED && rc != -ENOMEM) {
        tell(k, "%s", err->text);
        rc = 0;
    }
    return rc < 0 ? rc : 0;
}

static void tell_page(void *ctx, uint32_t page)
{
    struct checking *k = ctx;

    if (++k->bad_pages > TOLD_PER_RULE)
        k->problems++;
    else
        tell(k, "page %" PRIu32 " of " STK_STORE_FILE " does not match its checksum", page);
}

/* Every page, before anything is made of what is in them. */
static int check_sums(struct checking *k, struct stk_err *err)
{
    int rc = stk_pages_check(k->st, tell_page, tick, k, err);

    if (k->bad_pages > TOLD_PER_RULE && k->c->problem)
        k->c->problem(k->c->ctx, "... and more pages");
    return rc;
}

static int check_pages(struct checking *k, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(k->st, "PRAGMA integrity_check(20)", &s, err);

    if (rc < 0)
        return rc;
    while ((rc = stk_db_row(k->st, s, "check it", err)) > 0) {
        const char *line = stk_db_str(s, 0);

        if (line[0] != 'o' || line[1] != 'k' || line[2] != '\0')
            tell(k, "%s", line);
    }
    (void)sqlite3_finalize(s);
    return rc;
}

static int one_event(void *ctx, const struct stk_row *e)
{
    struct checking *k = ctx;

    if (k->c->event && k->c->event(k->c->ctx, e) != 0)
        tell(k, "event %" PRIu64 " (job %u) cannot be decoded", e->seq, e->number);
    return k->stop ? -ECANCELED : 0;
}

static int check_journal(struct checking *k, struct stk_err *err)
{
    int64_t needed = 0;
    uint64_t first = 0, last = 0;
    int rc = stk_store_span(k->st, &first, &last, err);

    if (rc == 0)
        rc = stk_db_int(k->st, "SELECT min(seq) FROM snapshot", 0, &needed, err);
    if (rc < 0)
        return rc;
    if (first > (uint64_t)needed + 1)
        tell(k,
             "the journal begins at event %" PRIu64 ", and %" PRIu64 " to %" PRIu64 " are needed",
             first, (uint64_t)needed + 1, first - 1);
    return stk_store_read(k->st, first - 1, one_event, k, err);
}

static int check_snapshots(struct checking *k, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(k->st, "SELECT seq, hash, body FROM snapshot ORDER BY seq", &s, err);

    if (rc < 0)
        return rc;
    while ((rc = stk_db_row(k->st, s, "read a snapshot", err)) > 0) {
        const void *body = sqlite3_column_blob(s, 2);

        if (stk_snapshot_hash(body, (size_t)sqlite3_column_bytes(s, 2)) !=
            sqlite3_column_int64(s, 1))
            tell(k, "the snapshot up to event %" PRId64 " is damaged",
                 (int64_t)sqlite3_column_int64(s, 0));
    }
    (void)sqlite3_finalize(s);
    return rc;
}

/* Each gives numbers. ?1 is STK_KIND_MAX, ?2 STK_CAUSE_MAX, ?3 STK_ITEM_STATE_MAX. */
static const struct {
    const char *sql, *before, *after;
} rules[] = {
    {"SELECT number FROM job WHERE number < 1 OR number > 4294967295", "job ",
     ": not a number a job can have"},
    {"SELECT number FROM job WHERE ended IS NOT NULL AND cause = 0", "job ",
     " ended without a cause"},
    {"SELECT number FROM job WHERE kind < 0 OR kind >= ?1 OR cause < 0 OR cause >= ?2", "job ",
     ": unknown kind or cause"},
    {"SELECT number FROM job WHERE ended <= 0 OR (first_started > 0 AND first_started < submitted)"
     " OR started < first_started OR ended < started OR ended < submitted",
     "job ", ": its times are not in order"},
    {"SELECT number FROM job WHERE served < 0 OR array > number", "job ",
     ": time run or array is not possible"},
    {"SELECT number FROM job WHERE spec NOT IN (SELECT id FROM spec)", "job ",
     " has no description"},
    {"SELECT DISTINCT job FROM item WHERE job NOT IN (SELECT number FROM job)", "items of job ",
     ", which is not there"},
    {"SELECT DISTINCT job FROM item WHERE state < 0 OR state >= ?3 OR attempts < 0", "job ",
     ": an item in an unknown state"},
    {"SELECT DISTINCT number FROM lease WHERE number NOT IN (SELECT number FROM job)",
     "leases of job ", ", which is not there"},
    {"SELECT number FROM lease WHERE began <= 0 OR ended < began UNION SELECT number FROM job"
     " WHERE (lease_to > 0 AND lease_to < lease_from) OR waited < 0 OR lease_waited > waited",
     "job ", ": the times of its leases are not in order"},
    {"SELECT number FROM job j WHERE leases !="
     " (SELECT count(*) FROM lease l WHERE l.number = j.number)",
     "job ", ": some of its leases are missing"},
    {"SELECT id FROM token WHERE length(hash) != 32 OR length(cookie) != iif(kind = 1, 32, 0)",
     "token ", ": its hash has the wrong length"},
    {"SELECT id FROM token WHERE parent != 0 AND parent NOT IN (SELECT id FROM token)", "token ",
     ": what it was made with is gone"},
    {"SELECT uid FROM request WHERE length(body) != 32 OR count < 0", "an idempotency key of uid ",
     " is damaged"},
};

static int check_rule(struct checking *k, size_t i, struct stk_err *err)
{
    uint64_t n = 0;
    sqlite3_stmt *s;
    int rc = stk_db_once(k->st, rules[i].sql, &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int(s, 1, STK_KIND_MAX); /* refused where the text has none: fine */
    (void)sqlite3_bind_int(s, 2, STK_CAUSE_MAX);
    (void)sqlite3_bind_int(s, 3, STK_ITEM_STATE_MAX);
    while ((rc = stk_db_row(k->st, s, "check jobs", err)) > 0)
        if (++n > TOLD_PER_RULE)
            k->problems++;
        else
            tell(k, "%s%" PRId64 "%s", rules[i].before, (int64_t)sqlite3_column_int64(s, 0),
                 rules[i].after);
    (void)sqlite3_finalize(s);
    if (n > TOLD_PER_RULE && k->c->problem)
        k->c->problem(k->c->ctx, "... and more of the same kind");
    return rc;
}

int stk_store_check(struct stk_store *st, const struct stk_check *c, uint64_t *ret_problems,
                    struct stk_err *err)
{
    static int (*const parts[])(struct checking *, struct stk_err *) = {
        check_sums, check_pages, check_journal, check_snapshots};
    struct checking k = {.st = st, .c = c};
    struct stk_err why;
    int rc = 0;

    if (st->read_only &&
        st->note[0] != '\0') /* found when it was opened: what was acknowledged is not there */
        tell(&k, "%s", st->note);
    sqlite3_progress_handler(st->db, TICK_OPS, tick, &k);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && rc == 0; i++)
        rc = went_wrong(&k, parts[i](&k, &why), &why);
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules) && rc == 0; i++)
        rc = went_wrong(&k, check_rule(&k, i, &why), &why);
    sqlite3_progress_handler(st->db, 0, NULL, NULL);
    if (rc == -ECANCELED)
        return stk_err_set(err, rc, "the check was stopped");
    if (rc < 0)
        return stk_err_set(err, rc, "%s", why.text);
    *ret_problems = k.problems;
    return 0;
}
