/* SPDX-License-Identifier: Apache-2.0 */
/* item.c - the items of batch jobs. The index (job, state, idx) answers both questions that are
 * asked often, how many there are in each state and which is next, without looking at the texts. */
#include <string.h>

#include "store/db.h"

int stk_store_items_put(struct stk_store *st, stk_job_number job, uint32_t from,
                        const char *const *texts, uint32_t n, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (from > STK_STORE_MAX_ITEMS || n > STK_STORE_MAX_ITEMS - from)
        return stk_err_set(err, -EFBIG, "job %u: %u items, and at most %u are allowed", job,
                           from + n, STK_STORE_MAX_ITEMS);
    for (uint32_t i = 0; i < n; i++)
        if (!stk_db_fits(texts[i]))
            return stk_err_set(err, -EFBIG, "job %u: item %u is longer than %u bytes", job,
                               from + i, STK_STORE_MAX_TEXT);
    rc = stk_db_write(st, STK_SLOT_ITEM_PUT,
                      "INSERT INTO item VALUES (?1, ?2, ?3, 0, -1, 0, 0, 0, 0)", &s, err);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        (void)sqlite3_bind_int64(s, 1, job);
        (void)sqlite3_bind_int64(s, 2, (sqlite3_int64)from + i);
        stk_db_text(s, 3, texts[i]);
        rc = stk_db_run(st, s, "write items", err);
    }
    return rc;
}

int stk_store_item_set(struct stk_store *st, const struct stk_item *it, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_write(st, STK_SLOT_ITEM_SET,
                          "UPDATE item SET state = ?3, worker = ?4, attempts = ?5, code = ?6,"
                          " given = ?7, ended = ?8 WHERE job = ?1 AND idx = ?2",
                          &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, it->job);
    (void)sqlite3_bind_int64(s, 2, it->index);
    (void)sqlite3_bind_int(s, 3, (int)it->state);
    (void)sqlite3_bind_int(s, 4, it->worker);
    (void)sqlite3_bind_int64(s, 5, it->attempts);
    (void)sqlite3_bind_int(s, 6, it->code);
    (void)sqlite3_bind_int64(s, 7, it->given);
    (void)sqlite3_bind_int64(s, 8, it->ended);
    rc = stk_db_run(st, s, "write an item", err);
    if (rc == 0 && sqlite3_changes(st->db) == 0)
        rc = stk_err_set(err, -ENOENT, "job %u has no item %u", it->job, it->index);
    return rc;
}

int stk_store_items_back(struct stk_store *st, stk_job_number job, int32_t worker,
                         struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_change(st,
                           "UPDATE item SET state = 0 WHERE job = ?1 AND state = 1"
                           " AND (?2 < 0 OR worker = ?2)",
                           &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, job);
    (void)sqlite3_bind_int(s, 2, worker);
    rc = stk_db_run(st, s, "write items", err);
    (void)sqlite3_finalize(s);
    return rc;
}

int stk_store_items_counts(struct stk_store *st, stk_job_number job,
                           uint32_t ret_n[STK_ITEM_STATE_MAX], struct stk_err *err)
{
    uint32_t n[STK_ITEM_STATE_MAX] = {0};
    sqlite3_stmt *s;
    int rc = stk_db_once(st,
                         "SELECT state, count(*) FROM item INDEXED BY item_state WHERE job = ?1"
                         " GROUP BY state",
                         &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, job);
    while ((rc = stk_db_row(st, s, "count items", err)) > 0)
        if (stk_db_u32(s, 0) < STK_ITEM_STATE_MAX)
            n[stk_db_u32(s, 0)] = stk_db_u32(s, 1);
    (void)sqlite3_finalize(s);
    if (rc == 0)
        memcpy(ret_n, n, sizeof(n));
    return rc;
}

#define ITEM "SELECT idx, text, state, worker, attempts, code, given, ended FROM item "

int stk_store_items(struct stk_store *st, const struct stk_item_query *q, stk_item_fn fn, void *ctx,
                    struct stk_err *err)
{
    bool any = q->state >= STK_ITEM_STATE_MAX;
    sqlite3_stmt *s;
    int rc = stk_db_once(
        st,
        any ? ITEM "WHERE job = ?1 AND idx >= ?2 ORDER BY idx"
            : ITEM "INDEXED BY item_state WHERE job = ?1 AND state = ?3 AND idx >= ?2 ORDER BY idx",
        &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, q->job);
    (void)sqlite3_bind_int64(s, 2, q->from);
    if (!any)
        (void)sqlite3_bind_int(s, 3, (int)q->state);
    while ((rc = stk_db_row(st, s, "read items", err)) > 0) {
        struct stk_item it = {.job = q->job,
                              .index = stk_db_u32(s, 0),
                              .text = stk_db_str(s, 1),
                              .state = (enum stk_item_state)stk_db_u32(s, 2),
                              .worker = sqlite3_column_int(s, 3),
                              .attempts = stk_db_u32(s, 4),
                              .code = sqlite3_column_int(s, 5),
                              .given = sqlite3_column_int64(s, 6),
                              .ended = sqlite3_column_int64(s, 7)};

        rc = fn(ctx, &it);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}
