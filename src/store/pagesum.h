/* SPDX-License-Identifier: Apache-2.0 */
/* pagesum.h - inside the store: a checksum at the end of every page of a database file.
 *
 * SQLite has checksums in its WAL and none in the database itself: it would serve a flipped bit as
 * if it were data. The VFS "stoker" lies between SQLite and the file. It puts a checksum into the
 * reserved bytes of each page that is written to a database file, and refuses with
 * SQLITE_IOERR_DATA to read a page that does not match its checksum. Every connection of the store,
 * to backups too, is opened with it.
 *
 * A file says in its header that its pages have checksums: page size STK_STORE_PAGE_BYTES,
 * STK_PAGESUM_BYTES reserved. Any other file is passed through. docs/spec/store.md has the rules.
 */
#ifndef STK_STORE_PAGESUM_H
#define STK_STORE_PAGESUM_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define STK_PAGESUM_BYTES 8 /* reserved at the end of each page */

/* The checksum of a page of STK_STORE_PAGE_BYTES with that number, its reserved bytes left out. */
uint64_t stk_pagesum(const unsigned char *page, uint32_t number);

/* Name of the VFS for sqlite3_open_v2(), which is registered when it is not yet. NULL: no memory */
const char *stk_pagesum_vfs(void);

/* Makes the pages of a database that is still empty, or that is about to be vacuumed, have
 * checksums. An SQLite result code. */
int stk_pagesum_reserve(sqlite3 *db);
/* Writes checksums from now on, whatever page 1 of the file says: for the target of a copy, whose
 * pages may be written before page 1 is. */
void stk_pagesum_begin(sqlite3 *db);
/* Whether the pages of the database that is open have checksums. */
bool stk_pagesum_has(sqlite3 *db);

/* Reads pages that do not match, too. They are still noted. */
void stk_pagesum_tolerate(sqlite3 *db, bool tolerate);
/* The latest page that did not match; 0: none did. */
uint32_t stk_pagesum_bad(sqlite3 *db);

/* Reads one page of the file itself. 1: it matches; 0: it does not; -EIO: it cannot be read.
 * 'mend' writes the checksum of what is there when it does not match. */
int stk_pagesum_look(sqlite3 *db, uint32_t page, bool mend);
/* Flushes what stk_pagesum_look() has mended. 0 or -EIO */
int stk_pagesum_flush(sqlite3 *db);

#endif
