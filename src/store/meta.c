/* SPDX-License-Identifier: Apache-2.0 */
/* meta.c - small named values: what the daemon must not forget and is no event; and the room there
 * is. */
#include "store/db.h"
#include "store/dir.h"

int stk_store_meta_set(struct stk_store *st, const char *name, const void *value, size_t len,
                       struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (len > STK_STORE_MAX_TEXT)
        return stk_err_set(err, -EFBIG, "the value of \"%.80s\" is too long", name);
    rc = stk_db_change(st, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)", &s, err);
    if (rc < 0)
        return rc;
    stk_db_text(s, 1, name);
    stk_db_blob(s, 2, value, len);
    rc = stk_db_run(st, s, "write a value", err);
    (void)sqlite3_finalize(s);
    return rc;
}

int stk_store_meta_get(struct stk_store *st, const char *name, char **ret_value, size_t *ret_len,
                       struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st, "SELECT value FROM meta WHERE name = ?1", &s, err);

    if (rc < 0)
        return rc;
    stk_db_text(s, 1, name);
    rc = stk_db_row(st, s, "read a value", err);
    if (rc == 0)
        rc = stk_err_set(err, -ENOENT, "the store has no value \"%.80s\"", name);
    else if (rc > 0 && (rc = stk_db_copy(s, 0, ret_value, ret_len)) < 0)
        (void)stk_err_set(err, rc, "out of memory for a value");
    (void)sqlite3_finalize(s);
    return rc;
}

int stk_store_room(struct stk_store *st, uint64_t bytes, struct stk_err *err)
{
    return stk_dir_room(st->dir_fd, st->dir, bytes, err);
}
