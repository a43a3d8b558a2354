/* SPDX-License-Identifier: Apache-2.0 */
/* sum_pages.c - "sum_pages FILE": gives the pages of a store that a plain SQLite has written their
 * checksums, so that tests can put rows into it. */
#include <sqlite3.h>
#include <stdio.h>

#include "store/pagesum.h"

static int read_count(sqlite3 *db, uint32_t *ret)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, "PRAGMA page_count", -1, &s, NULL);

    if (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW)
        *ret = (uint32_t)sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s);
    return rc == SQLITE_ROW ? 0 : -1;
}

int main(int argc, char **argv)
{
    uint32_t pages = 0;
    sqlite3 *db = NULL;
    int rc =
        argc == 2 ? sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, stk_pagesum_vfs()) : 1;

    if (rc == SQLITE_OK) {
        stk_pagesum_tolerate(db, true);
        rc = sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK)
        rc = read_count(db, &pages);
    for (uint32_t page = 1; rc >= 0 && page <= pages; page++)
        rc = stk_pagesum_look(db, page, true);
    if (rc >= 0)
        rc = stk_pagesum_flush(db);
    if (rc < 0)
        (void)fprintf(stderr, "sum_pages: %s\n", db ? sqlite3_errmsg(db) : "usage: sum_pages FILE");
    (void)sqlite3_close(db);
    return rc < 0;
}
