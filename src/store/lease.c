/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - when jobs had GPUs, and how many GPUs there were. A job that ran once has its lease in
 * its record and costs no row here; each further start moves the one before into the table. */
#include "store/db.h"

int stk_store_lease_add(struct stk_store *st, const struct stk_record *r, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_write(st, STK_SLOT_LEASE_PUT,
                          "INSERT INTO lease VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, r->number);
    (void)sqlite3_bind_int64(s, 2, r->leases);
    (void)sqlite3_bind_int64(s, 3, r->lease.from);
    (void)sqlite3_bind_int64(s, 4, r->lease.to);
    (void)sqlite3_bind_int64(s, 5, r->lease.waited);
    (void)sqlite3_bind_int64(s, 6, r->lease.milli);
    (void)sqlite3_bind_int(s, 7, r->lease.preempted);
    return stk_db_run(st, s, "write a lease", err);
}

int stk_store_leases(struct stk_store *st, stk_job_number number, stk_lease_fn fn, void *ctx,
                     struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(
        st, "SELECT began, ended, waited, gpus, preempted FROM lease WHERE number = ?1 ORDER BY n",
        &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, number);
    while ((rc = stk_db_row(st, s, "read leases", err)) > 0) {
        const struct stk_lease l = {.from = sqlite3_column_int64(s, 0),
                                    .to = sqlite3_column_int64(s, 1),
                                    .waited = sqlite3_column_int64(s, 2),
                                    .milli = stk_db_u32(s, 3),
                                    .preempted = sqlite3_column_int(s, 4) != 0};

        rc = fn(ctx, &l);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int stk_store_capacity_put(struct stk_store *st, const struct stk_capacity *c, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_change(st, "INSERT OR REPLACE INTO capacity VALUES (?1, ?2)", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, c->at);
    (void)sqlite3_bind_int64(s, 2, c->gpus);
    rc = stk_db_run(st, s, "write how many GPUs there are", err);
    (void)sqlite3_finalize(s);
    if (rc < 0)
        return rc;
    rc = stk_db_change(st,
                       "DELETE FROM capacity WHERE at <= (SELECT at FROM capacity ORDER BY at DESC"
                       " LIMIT 1 OFFSET ?1)",
                       &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int(s, 1, STK_STORE_KEEP_CAPACITY);
    rc = stk_db_run(st, s, "forget how many GPUs there were", err);
    (void)sqlite3_finalize(s);
    return rc;
}

int stk_store_capacity(struct stk_store *st, stk_time since, stk_time until, stk_capacity_fn fn,
                       void *ctx, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st,
                         "SELECT at, gpus FROM capacity WHERE at < ?2 AND at >= coalesce((SELECT"
                         " max(at) FROM capacity WHERE at <= ?1), ?1) ORDER BY at",
                         &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, since);
    (void)sqlite3_bind_int64(s, 2, until);
    while ((rc = stk_db_row(st, s, "read how many GPUs there were", err)) > 0) {
        const struct stk_capacity c = {sqlite3_column_int64(s, 0), stk_db_u32(s, 1)};

        rc = fn(ctx, &c);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int stk_store_first_submitted(struct stk_store *st, stk_time *ret, struct stk_err *err)
{
    return stk_db_int(st, "SELECT submitted FROM job ORDER BY number LIMIT 1", 0, ret, err);
}
