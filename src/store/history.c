/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - questions about jobs that have ended.
 *
 * Each question is one walk down one index, from the latest end on: that of the uid, the user, the
 * name, or all. The planner is told which, so that an answer never depends on statistics. A page
 * begins after the last job of the page before; where that job has been pruned meanwhile, so has
 * everything that ended before it, and the page is empty.
 */
#include <string.h>

#include "store/db.h"
#include "store/record.h"

/* Appends to a text that is known to fit. */
static void add(char *sql, size_t cap, const char *part)
{
    size_t len = strlen(sql), n = strlen(part);

    if (len + n < cap)
        memcpy(sql + len, part, n + 1);
}

static void compose(const struct stk_history_query *q, char *sql, size_t cap)
{
    sql[0] = '\0';
    add(sql, cap, "SELECT " STK_RECORD_COLUMNS " FROM job INDEXED BY ");
    add(sql, cap, q->uid ? "job_uid" : q->user ? "job_user" : q->name ? "job_name" : "job_ended");
    /* One bound on each side: SQLite takes one for the walk, and others only to pass rows over. */
    add(sql, cap, " WHERE ended >= ?5 AND ended <= ");
    add(sql, cap, q->before ? "min(?6, (SELECT ended FROM job WHERE number = ?7))" : "?6");
    if (q->before)
        add(sql, cap, " AND (ended, number) < ((SELECT ended FROM job WHERE number = ?7), ?7)");
    if (q->uid)
        add(sql, cap, " AND uid = ?1");
    if (q->user)
        add(sql, cap, " AND user = ?2");
    if (q->name)
        add(sql, cap, " AND name = ?3");
    if (q->queue)
        add(sql, cap, " AND queue = ?9");
    if (q->tenant)
        add(sql, cap, " AND tenant = ?10");
    if (q->causes)
        add(sql, cap, " AND ((1 << cause) & ?4) != 0");
    add(sql, cap, " ORDER BY ended DESC, number DESC LIMIT ?8");
}

int stk_store_history(struct stk_store *st, const struct stk_history_query *q, stk_record_fn fn,
                      void *ctx, struct stk_err *err)
{
    uint32_t limit = q->limit && q->limit < STK_STORE_MAX_PAGE ? q->limit : STK_STORE_MAX_PAGE;
    char sql[1024];
    sqlite3_stmt *s;
    int rc;

    compose(q, sql, sizeof(sql));
    rc = stk_db_once(st, sql, &s, err);
    if (rc < 0)
        return rc;
    /* a parameter that the text does not have is refused, which is fine */
    if (q->uid)
        (void)sqlite3_bind_int64(s, 1, *q->uid);
    if (q->user)
        stk_db_text(s, 2, q->user);
    if (q->name)
        stk_db_text(s, 3, q->name);
    (void)sqlite3_bind_int64(s, 4, q->causes);
    (void)sqlite3_bind_int64(s, 5, q->since);
    (void)sqlite3_bind_int64(s, 6, q->until ? q->until - 1 : STK_NEVER_TIME);
    (void)sqlite3_bind_int64(s, 7, q->before);
    (void)sqlite3_bind_int64(s, 8, limit);
    if (q->queue)
        stk_db_text(s, 9, q->queue);
    if (q->tenant)
        stk_db_text(s, 10, q->tenant);
    return stk_record_each(st, s, fn, ctx, err);
}
