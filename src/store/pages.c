/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c - looks at the pages of the file itself, past SQLite's cache.
 *
 * SQLite reads the pages that a query needs; pages that are free it never reads, and a backup
 * copies them. So the check walks over the file. A page that is in the WAL is passed over: the one
 * in the file is older, and may be half written. The read transaction that is held meanwhile keeps
 * a checkpoint from writing any other page.
 */
#include "store/pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/pagesum.h"

#define WAL_FILE STK_STORE_FILE "-wal"
#define IN_MEMORY_BYTES (INT64_C(128) << 20) /* a larger store is vacuumed through a file */
#define TICK_PAGES 1024
#define NAMED 8 /* pages that a sentence names */

int stk_pages_convert(struct stk_store *st, struct stk_err *err)
{
    int64_t pages = 0;
    int rc = stk_db_int(st, "PRAGMA page_count", 0, &pages, err);

    if (rc < 0 || stk_pagesum_has(st->db))
        return rc;
    if (pages * STK_STORE_PAGE_BYTES > IN_MEMORY_BYTES)
        rc = stk_db_exec(st, "PRAGMA temp_store = FILE", "add checksums to its pages", err);
    if (rc == 0 && stk_pagesum_reserve(st->db) != SQLITE_OK)
        rc = stk_err_set(err, -EIO, "%.100s: cannot reserve room for checksums", st->path);
    if (rc == 0)
        rc = stk_db_exec(st, "VACUUM; PRAGMA temp_store = MEMORY", "add checksums to its pages",
                         err);
    if (rc == 0 && !stk_pagesum_has(st->db))
        rc = stk_err_set(err, -EIO, "%.100s: its pages did not get checksums", st->path);
    return rc;
}

/* ---- accepting ---- */

struct named {
    char text[120]; /* "3, 17, 18" */
    size_t len;
    uint32_t n;
};

static void name_page(struct named *d, uint32_t page)
{
    if (d->n++ < NAMED)
        d->len += (size_t)snprintf(d->text + d->len, sizeof(d->text) - d->len, "%s%" PRIu32,
                                   d->len ? ", " : "", page);
}

static void note_mended(struct stk_store *st, const struct named *d)
{
    size_t len = strlen(st->note);

    (void)snprintf(st->note + len, sizeof(st->note) - len,
                   "%s%" PRIu32 " page%s of " STK_STORE_FILE " did not match: %s%s",
                   len ? "; " : "", d->n, d->n == 1 ? "" : "s", d->text,
                   d->n > NAMED ? ", ..." : "");
}

int stk_pages_accept(struct stk_store *st, struct stk_err *err)
{
    struct named d = {.n = 0};
    int64_t pages = 0;
    int rc = sqlite3_wal_checkpoint_v2(st->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    if (rc != SQLITE_OK)
        return stk_db_error(st->db, rc, st->path, "empty the WAL", err);
    rc = stk_db_int(st, "PRAGMA page_count", 0, &pages, err);
    for (uint32_t page = 1; rc >= 0 && page <= (uint64_t)pages; page++) {
        rc = stk_pagesum_look(st->db, page, true);
        if (rc == 0)
            name_page(&d, page);
    }
    if (rc >= 0)
        rc = stk_pagesum_flush(st->db);
    if (rc < 0)
        return stk_err_set(err, rc, "%.100s: its pages cannot be read and written", st->path);
    stk_pagesum_tolerate(st->db, false);
    if (d.n)
        note_mended(st, &d);
    return 0;
}

/* ---- checking ---- */

struct in_wal {
    unsigned char *bit; /* of each page */
    uint32_t pages;
};

static void mark_page(void *ctx, uint32_t page)
{
    struct in_wal *w = ctx;

    if (page >= 1 && page <= w->pages)
        w->bit[page / 8] |= (unsigned char)(1u << page % 8);
}

static int look_at_pages(struct stk_store *st, const struct in_wal *w, stk_bad_page_fn fn,
                         int (*tick)(void *ctx), void *ctx)
{
    for (uint32_t page = 1; page <= w->pages; page++) {
        int rc;

        if (page % TICK_PAGES == 0 && tick && tick(ctx))
            return -ECANCELED;
        if (w->bit[page / 8] & 1u << page % 8)
            continue;
        rc = stk_pagesum_look(st->db, page, false);
        if (rc < 0)
            return rc;
        if (rc == 0)
            fn(ctx, page);
    }
    return 0;
}

int stk_pages_check(struct stk_store *st, stk_bad_page_fn fn, int (*tick)(void *ctx), void *ctx,
                    struct stk_err *err)
{
    struct in_wal w = {.bit = NULL};
    const struct stk_wal_scan scan = {.page = mark_page, .ctx = &w};
    bool mine = sqlite3_get_autocommit(st->db) != 0;
    struct stk_wal wal;
    int64_t pages = 0;
    int rc = mine ? stk_db_exec(st, "BEGIN; SELECT count(*) FROM sqlite_schema", "read", err) : 0;

    if (rc == 0)
        rc = stk_db_int(st, "PRAGMA page_count", 0, &pages, err);
    if (rc == 0) {
        w.pages = (uint32_t)pages;
        w.bit = calloc(1, w.pages / 8 + 1);
        rc = w.bit ? stk_wal_read(st->dir_fd, WAL_FILE, &scan, &wal) : -ENOMEM;
        if (rc == 0)
            rc = look_at_pages(st, &w, fn, tick, ctx);
        if (rc < 0)
            (void)stk_err_set(err, rc, "%.100s: %s", st->path, strerror(-rc));
    }
    free(w.bit);
    if (mine && !sqlite3_get_autocommit(st->db))
        (void)sqlite3_exec(st->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
