/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - rows of measurements. A group's rows of one tier lie together in order of time, so
 * that a question about one group is one walk; forgetting goes by the index on time. What is in a
 * row is the caller's affair. */
#include "store/db.h"

#define STEP_ROWS 5000

int stk_store_series_put(struct stk_store *st, const struct stk_series_row *r, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (r->len > STK_STORE_MAX_SERIES)
        return stk_err_set(err, -EFBIG, "a row of measurements is longer than %u bytes",
                           STK_STORE_MAX_SERIES);
    rc = stk_db_write(st, STK_SLOT_SERIES_PUT,
                      "INSERT OR REPLACE INTO series VALUES (?1, ?2, ?3, ?4, ?5)", &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, r->kind);
    (void)sqlite3_bind_int64(s, 2, r->tier);
    (void)sqlite3_bind_int64(s, 3, r->id);
    (void)sqlite3_bind_int64(s, 4, r->at);
    stk_db_blob(s, 5, r->bytes, r->len);
    return stk_db_run(st, s, "write measurements", err);
}

static int each(struct stk_store *st, sqlite3_stmt *s, stk_series_fn fn, void *ctx,
                struct stk_err *err)
{
    int rc;

    while ((rc = stk_db_row(st, s, "read measurements", err)) > 0) {
        const struct stk_series_row r = {.kind = stk_db_u32(s, 0),
                                         .tier = stk_db_u32(s, 1),
                                         .id = sqlite3_column_int64(s, 2),
                                         .at = sqlite3_column_int64(s, 3),
                                         .bytes = sqlite3_column_blob(s, 4),
                                         .len = (size_t)sqlite3_column_bytes(s, 4)};

        rc = fn(ctx, &r);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int stk_store_series(struct stk_store *st, const struct stk_series_range *of, stk_series_fn fn,
                     void *ctx, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(
        st,
        of->all ? "SELECT kind, tier, id, at, body FROM series INDEXED BY series_at"
                  " WHERE tier = ?1 AND at >= ?2 AND at < ?3 ORDER BY kind, id, at"
                : "SELECT kind, tier, id, at, body FROM series WHERE tier = ?1 AND at >= ?2"
                  " AND at < ?3 AND kind = ?4 AND id = ?5 ORDER BY at",
        &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, of->tier);
    (void)sqlite3_bind_int64(s, 2, of->since);
    (void)sqlite3_bind_int64(s, 3, of->until);
    if (!of->all) {
        (void)sqlite3_bind_int64(s, 4, of->kind);
        (void)sqlite3_bind_int64(s, 5, of->id);
    }
    return each(st, s, fn, ctx, err);
}

int stk_store_series_last(struct stk_store *st, uint32_t tier, stk_time *ret, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc =
        stk_db_once(st, "SELECT max(at) FROM series INDEXED BY series_at WHERE tier = ?1", &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, tier);
    rc = stk_db_row(st, s, "read measurements", err);
    if (rc >= 0)
        *ret = rc > 0 ? sqlite3_column_int64(s, 0) : 0;
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int stk_store_series_prune(struct stk_store *st, uint32_t tier, stk_time until, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_change(st,
                           "DELETE FROM series WHERE (kind, tier, id, at) IN (SELECT kind, tier,"
                           " id, at FROM series INDEXED BY series_at WHERE tier = ?1 AND at < ?2"
                           " ORDER BY at LIMIT ?3)",
                           &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, tier);
    (void)sqlite3_bind_int64(s, 2, until);
    (void)sqlite3_bind_int(s, 3, STEP_ROWS);
    rc = stk_db_run(st, s, "delete old measurements", err);
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : sqlite3_changes(st->db) == STEP_ROWS;
}
