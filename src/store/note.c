/* SPDX-License-Identifier: Apache-2.0 */
/* note.c - what people compare with: notes of what was changed and when, periods that were marked,
 * and what came of questions "what if".
 *
 * A note may carry the world as it is from then on (machines, tenants, queues, policy; JSON), so
 * that a period can be simulated as it was. All three tables are small and bounded: the newest
 * notes and answers are kept, and baselines are refused when there are too many.
 */
#include <stdio.h>
#include <string.h>

#include "store/db.h"

static int too_long(const char *what, struct stk_err *err)
{
    return stk_err_set(err, -EFBIG, "%s is too long", what);
}

/* ---- notes ---- */

int stk_store_note_put(struct stk_store *st, const struct stk_note *n, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (!stk_db_fits(n->text) || (n->world && strlen(n->world) > STK_STORE_MAX_ANSWER))
        return too_long("a note", err);
    rc = stk_db_change(
        st, "INSERT INTO note (at, kind, user, text, world) VALUES (?1, ?2, ?3, ?4, ?5)", &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, n->at);
    stk_db_text(s, 2, n->kind);
    stk_db_text(s, 3, n->user);
    stk_db_text(s, 4, n->text);
    stk_db_text(s, 5, n->world);
    rc = stk_db_run(st, s, "write a note", err);
    (void)sqlite3_finalize(s);
    if (rc < 0)
        return rc;
    rc = stk_db_change(st, "DELETE FROM note WHERE id <= (SELECT max(id) FROM note) - ?1", &s, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, STK_STORE_KEEP_NOTES);
    rc = stk_db_run(st, s, "forget an old note", err);
    (void)sqlite3_finalize(s);
    return rc;
}

int stk_store_notes(struct stk_store *st, const struct stk_note_query *q, stk_note_fn fn, void *ctx,
                    struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st,
                         "SELECT id, at, kind, user, text, world FROM note WHERE at >= ?1 AND at < "
                         "?2 ORDER BY at DESC, id DESC LIMIT ?3",
                         &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, q->since);
    (void)sqlite3_bind_int64(s, 2, q->until ? q->until : STK_NEVER_TIME);
    (void)sqlite3_bind_int64(s, 3, q->limit);
    while ((rc = stk_db_row(st, s, "read notes", err)) > 0) {
        const struct stk_note n = {sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1),
                                   stk_db_str(s, 2),           stk_db_str(s, 3),
                                   stk_db_str(s, 4),           stk_db_str(s, 5)};

        rc = fn(ctx, &n);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int stk_store_world(struct stk_store *st, stk_time at, char **ret_world, struct stk_err *err)
{
    sqlite3_stmt *s;
    size_t len;
    int rc = stk_db_once(st,
                         "SELECT CAST(world AS BLOB) FROM note WHERE world != '' ORDER BY at > ?1, "
                         "CASE WHEN at > ?1 THEN id ELSE -id END LIMIT 1",
                         &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, at);
    rc = stk_db_row(st, s, "read a note", err);
    if (rc == 0)
        rc = stk_err_set(err, -ENOENT, "it was not written down which machines there were");
    else if (rc > 0 && (rc = stk_db_copy(s, 0, ret_world, &len)) < 0)
        (void)stk_err_set(err, rc, "out of memory for a note");
    (void)sqlite3_finalize(s);
    return rc;
}

/* ---- baselines ---- */

int stk_store_baseline_put(struct stk_store *st, const struct stk_baseline *b, struct stk_err *err)
{
    sqlite3_stmt *s;
    int64_t n = 0;
    int rc;

    if (!stk_db_fits(b->note) || !stk_db_fits(b->figures))
        return too_long("a baseline", err);
    rc = stk_db_int(st, "SELECT count(*) FROM baseline", 0, &n, err);
    if (rc == 0 && n >= STK_STORE_MAX_BASELINES)
        rc = stk_err_set(err, -EFBIG, "there are %d baselines, which is as many as may be",
                         STK_STORE_MAX_BASELINES);
    rc = rc < 0 ? rc
                : stk_db_change(st, "INSERT INTO baseline VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", &s,
                                err);
    if (rc < 0)
        return rc;
    stk_db_text(s, 1, b->name);
    (void)sqlite3_bind_int64(s, 2, b->since);
    (void)sqlite3_bind_int64(s, 3, b->until);
    stk_db_text(s, 4, b->note);
    stk_db_text(s, 5, b->user);
    (void)sqlite3_bind_int64(s, 6, b->created);
    stk_db_text(s, 7, b->figures);
    rc = stk_db_run(st, s, "write a baseline", err);
    (void)sqlite3_finalize(s);
    return rc == -EEXIST ? stk_err_set(err, rc, "there is a baseline \"%.60s\" already", b->name)
                         : rc;
}

int stk_store_baselines(struct stk_store *st, const char *name, stk_baseline_fn fn, void *ctx,
                        struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st,
                         "SELECT name, since, until, note, user, created, figures FROM baseline "
                         "WHERE ?1 IN ('', name) ORDER BY since, name",
                         &s, err);
    bool found = false;

    if (rc < 0)
        return rc;
    stk_db_text(s, 1, name);
    while ((rc = stk_db_row(st, s, "read baselines", err)) > 0) {
        const struct stk_baseline b = {
            stk_db_str(s, 0), sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2),
            stk_db_str(s, 3), stk_db_str(s, 4),           sqlite3_column_int64(s, 5),
            stk_db_str(s, 6)};

        found = true;
        rc = fn(ctx, &b);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    if (rc == 0 && name && !found)
        return stk_err_set(err, -ENOENT, "there is no baseline \"%.60s\"", name);
    return rc < 0 ? rc : 0;
}

static int delete_by(struct stk_store *st, const char *sql, const char *name, int64_t id,
                     struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_change(st, sql, &s, err);

    if (rc < 0)
        return rc;
    if (name)
        stk_db_text(s, 1, name);
    else
        (void)sqlite3_bind_int64(s, 1, id);
    rc = stk_db_run(st, s, "delete it", err);
    (void)sqlite3_finalize(s);
    return rc == 0 && sqlite3_changes(st->db) == 0 ? -ENOENT : rc;
}

int stk_store_baseline_delete(struct stk_store *st, const char *name, struct stk_err *err)
{
    int rc = delete_by(st, "DELETE FROM baseline WHERE name = ?1", name, 0, err);

    return rc == -ENOENT ? stk_err_set(err, rc, "there is no baseline \"%.60s\"", name) : rc;
}

/* ---- what if ---- */

int stk_store_answer_put(struct stk_store *st, const struct stk_answer *a, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (strlen(a->question) > STK_STORE_MAX_ANSWER || strlen(a->result) > STK_STORE_MAX_ANSWER)
        return too_long("an answer", err);
    rc = stk_db_change(st, "INSERT OR REPLACE INTO answer VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", &s,
                       err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, a->id);
    (void)sqlite3_bind_int64(s, 2, a->at);
    (void)sqlite3_bind_int64(s, 3, a->uid);
    stk_db_text(s, 4, a->user);
    stk_db_text(s, 5, a->state);
    stk_db_text(s, 6, a->question);
    stk_db_text(s, 7, a->result);
    rc = stk_db_run(st, s, "write an answer", err);
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc
           : delete_by(st, "DELETE FROM answer WHERE id <= ?1", NULL,
                       a->id - STK_STORE_KEEP_ANSWERS, err) == -EIO
               ? -EIO
               : 0;
}

int stk_store_answers(struct stk_store *st, int64_t id, stk_answer_fn fn, void *ctx,
                      struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st,
                         "SELECT id, at, uid, user, state, question, CASE WHEN ?1 = 0 AND state = "
                         "'done' THEN '' ELSE result END FROM answer WHERE ?1 IN (0, id) ORDER BY "
                         "id DESC",
                         &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, id);
    while ((rc = stk_db_row(st, s, "read answers", err)) > 0) {
        const struct stk_answer a = {sqlite3_column_int64(s, 0),
                                     sqlite3_column_int64(s, 1),
                                     stk_db_u32(s, 2),
                                     stk_db_str(s, 3),
                                     stk_db_str(s, 4),
                                     stk_db_str(s, 5),
                                     stk_db_str(s, 6)};

        rc = fn(ctx, &a);
        if (rc != 0)
            break;
    }
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int stk_store_answer_delete(struct stk_store *st, int64_t id, struct stk_err *err)
{
    int rc = delete_by(st, "DELETE FROM answer WHERE id = ?1", NULL, id, err);

    return rc == -ENOENT ? stk_err_set(err, rc, "there is no such answer") : rc;
}
