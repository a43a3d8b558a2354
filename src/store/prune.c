/* SPDX-License-Identifier: Apache-2.0 */
/* prune.c - forgetting, a little at a time.
 *
 * The daemon has one thread, so no step may be long: each deletes a bounded number of rows in one
 * transaction, gives a bounded number of free pages back to the file system, and says whether there
 * is more. Jobs go in the order in which they ended, so what is left is always "everything since".
 * Live jobs are never touched.
 *
 * While the store is larger than its bound, events and keys are kept for a shorter time, too: else
 * they alone could be larger than a small bound.
 */
#include "store/db.h"
#include "store/guard.h"

#define STEP_EVENTS 4000
#define STEP_JOBS 250
#define STEP_KEYS 1000
#define STEP_SPECS 4000
#define STEP_PAGES 128
#define SPARE_PAGES 1024                          /* free pages that stay in the file */
#define SPARE_PART 8                              /* at most this part of the bound */
#define FULL_KEEP_EVENTS 10000                    /* as STK_STORE_KEEP_EVENTS, over the bound */
#define FULL_KEY_AGE (INT64_C(3600) * STK_SECOND) /* as STK_STORE_KEY_AGE, over the bound */

/* Events that the older snapshot covers, but for the newest. 1: there is more. */
static int prune_events(struct stk_store *st, int64_t newest, struct stk_err *err)
{
    int64_t covered = 0, first = 0, last = 0, end;
    sqlite3_stmt *s;
    int rc = stk_db_int(st, "SELECT seq FROM snapshot ORDER BY seq DESC LIMIT 1 OFFSET 1", 0,
                        &covered, err);

    if (rc == 0)
        rc = stk_db_int(st, "SELECT min(seq) FROM journal", 0, &first, err);
    if (rc == 0)
        rc = stk_db_int(st, "SELECT max(seq) FROM journal", 0, &last, err);
    if (rc < 0)
        return rc;
    end = last - newest;
    end = covered < end ? covered : end;
    if (first == 0 || first > end)
        return 0;
    rc = stk_db_change(st, "DELETE FROM journal WHERE seq <= ?1", &s, err);
    if (rc < 0)
        return rc;
    last = first + STEP_EVENTS - 1 < end ? first + STEP_EVENTS - 1 : end;
    (void)sqlite3_bind_int64(s, 1, last);
    rc = stk_db_run(st, s, "delete old events", err);
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : last < end;
}

static int prune_keys(struct stk_store *st, stk_time until, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_change(st,
                           "DELETE FROM request WHERE (uid, key) IN"
                           " (SELECT uid, key FROM request WHERE at <= ?1 ORDER BY at LIMIT ?2)",
                           &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, until);
    (void)sqlite3_bind_int(s, 2, STEP_KEYS);
    rc = stk_db_run(st, s, "delete old keys", err);
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : sqlite3_changes(st->db) == STEP_KEYS;
}

static int delete_one(struct stk_store *st, enum stk_slot slot, const char *sql, int64_t id,
                      struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_write(st, slot, sql, &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, id);
    return stk_db_run(st, s, "delete an old job", err);
}

/* When no job has it. */
static int forget_spec(struct stk_store *st, int64_t spec, struct stk_err *err)
{
    return delete_one(st, STK_SLOT_OLD_SPEC,
                      "DELETE FROM spec WHERE id = ?1"
                      " AND NOT EXISTS (SELECT 1 FROM job WHERE spec = ?1)",
                      spec, err);
}

/* A job, its items and leases, and its description when no other job has it. */
static int forget(struct stk_store *st, int64_t number, int64_t spec, struct stk_err *err)
{
    int rc = delete_one(st, STK_SLOT_OLD_ITEMS, "DELETE FROM item WHERE job = ?1", number, err);

    if (rc == 0)
        rc = delete_one(st, STK_SLOT_OLD_USAGE, "DELETE FROM usage WHERE number = ?1", number, err);
    if (rc == 0)
        rc =
            delete_one(st, STK_SLOT_OLD_LEASES, "DELETE FROM lease WHERE number = ?1", number, err);
    if (rc == 0)
        rc = delete_one(st, STK_SLOT_OLD_JOB, "DELETE FROM job WHERE number = ?1", number, err);
    return rc == 0 ? forget_spec(st, spec, err) : rc;
}

int stk_store_job_respec(struct stk_store *st, const struct stk_record *r, int64_t spec,
                         struct stk_err *err)
{
    sqlite3_stmt *s = NULL;
    int rc = stk_db_write(
        st, STK_SLOT_JOB_SPEC,
        "UPDATE job SET spec = ?2, gpu_milli = ?3, queue = ?4, tenant = ?5 WHERE number = ?1", &s,
        err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, r->number);
    (void)sqlite3_bind_int64(s, 2, spec);
    (void)sqlite3_bind_int64(s, 3, r->gpu_milli);
    stk_db_text(s, 4, r->queue);
    stk_db_text(s, 5, r->tenant);
    rc = stk_db_run(st, s, "write a job", err);
    return rc < 0 ? rc : forget_spec(st, r->spec, err);
}

/* Jobs that ended at 'until' or before, the oldest first. 1: there may be more. */
static int prune_jobs(struct stk_store *st, stk_time until, struct stk_err *err)
{
    int64_t row[STEP_JOBS][2];
    int n = 0, rc;
    sqlite3_stmt *s;

    rc = stk_db_once(st,
                     "SELECT number, spec FROM job INDEXED BY job_ended WHERE ended <= ?1"
                     " ORDER BY ended, number LIMIT ?2",
                     &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, until);
    (void)sqlite3_bind_int(s, 2, STEP_JOBS);
    while (n < STEP_JOBS && (rc = stk_db_row(st, s, "read old jobs", err)) > 0) {
        row[n][0] = sqlite3_column_int64(s, 0);
        row[n++][1] = sqlite3_column_int64(s, 1);
    }
    (void)sqlite3_finalize(s);
    rc = rc < 0 ? rc : 0;
    for (int i = 0; i < n && rc == 0; i++)
        rc = forget(st, row[i][0], row[i][1], err);
    return rc < 0 ? rc : n == STEP_JOBS;
}

/* Descriptions without a job, which refused changes of jobs once left in the store. Looks at each
 * description once while the store is open. 1: there is more. */
static int prune_specs(struct stk_store *st, struct stk_err *err)
{
    int64_t first = 0, last = 0, end;
    sqlite3_stmt *s;
    int rc = stk_db_int(st, "SELECT min(id) FROM spec", 0, &first, err);

    rc = rc < 0 ? rc : stk_db_int(st, "SELECT max(id) FROM spec", 0, &last, err);
    first = first > st->spec_seen ? first : st->spec_seen + 1;
    if (rc < 0 || first > last)
        return rc;
    rc = stk_db_change(st,
                       "DELETE FROM spec WHERE id BETWEEN ?1 AND ?2"
                       " AND NOT EXISTS (SELECT 1 FROM job WHERE job.spec = spec.id)",
                       &s, err);
    if (rc < 0)
        return rc;
    end = last - first < STEP_SPECS ? last : first + STEP_SPECS - 1;
    (void)sqlite3_bind_int64(s, 1, first);
    (void)sqlite3_bind_int64(s, 2, end);
    rc = stk_db_run(st, s, "delete descriptions without a job", err);
    (void)sqlite3_finalize(s);
    if (rc < 0)
        return rc;
    st->spec_seen = end;
    return end < last;
}

static int prune_history(struct stk_store *st, const struct stk_retention *keep, bool full,
                         stk_time now, struct stk_err *err)
{
    int rc = keep->age ? prune_jobs(st, now - keep->age, err) : 0;

    return rc == 0 && full ? prune_jobs(st, INT64_MAX, err) : rc;
}

/* Free pages go back to the file system, but for a few that are soon used again. */
static int give_back(struct stk_store *st, const struct stk_retention *keep, struct stk_err *err)
{
    int64_t unused = 0, spare = (int64_t)(keep->bytes / SPARE_PART / STK_STORE_PAGE_BYTES);
    sqlite3_stmt *s;
    char sql[48];
    int rc = stk_db_int(st, "PRAGMA freelist_count", 0, &unused, err);

    spare = keep->bytes && spare < SPARE_PAGES ? spare : SPARE_PAGES;
    if (rc < 0 || unused <= spare)
        return rc;
    unused -= spare;
    (void)snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)",
                   (int)(unused < STEP_PAGES ? unused : STEP_PAGES));
    rc = stk_db_change(st, sql, &s, err);
    if (rc < 0)
        return rc;
    while ((rc = stk_db_row(st, s, "give back free pages", err)) > 0)
        ; /* a step a page */
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : unused > STEP_PAGES;
}

/* 0, or 1: there is more to do. */
static int prune_step(struct stk_store *st, const struct stk_retention *keep, stk_time now,
                      struct stk_err *err)
{
    uint64_t bytes = 0;
    int more = 0, rc = stk_store_size(st, &bytes, err);
    const bool full = keep->bytes && bytes > keep->bytes;

    if (rc == 0)
        more = rc = prune_events(st, full ? FULL_KEEP_EVENTS : (int64_t)STK_STORE_KEEP_EVENTS, err);
    if (rc >= 0)
        more |= rc = prune_keys(st, now - (full ? FULL_KEY_AGE : STK_STORE_KEY_AGE), err);
    if (rc >= 0)
        more |= rc = prune_history(st, keep, full, now, err);
    if (rc >= 0)
        more |= rc = prune_specs(st, err);
    if (rc >= 0)
        more |= rc = give_back(st, keep, err);
    return rc < 0 ? rc : more != 0;
}

int stk_store_prune(struct stk_store *st, const struct stk_retention *keep, stk_time now,
                    bool *ret_more, struct stk_err *err)
{
    int more, rc = stk_store_begin(st, err);

    if (rc < 0)
        return rc;
    more = prune_step(st, keep, now, err);
    if (more < 0) {
        stk_store_rollback(st);
        return more;
    }
    rc = stk_store_commit(st, err);
    if (rc == 0)
        *ret_more = more;
    stk_guard_flush(st);
    return rc;
}

uint64_t stk_store_rows_changed(const struct stk_store *st)
{
    return (uint64_t)sqlite3_total_changes64(st->db);
}
