/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - inside the store: every page of the file is compared with its checksum (pagesum.h),
 * mended, or given one. */
#ifndef STK_STORE_PAGES_H
#define STK_STORE_PAGES_H

#include "store/db.h"

/* Gives checksums to the pages of a store of before STK_SCHEMA_SUMS: vacuums it. Nothing happens
 * when it has them. */
int stk_pages_convert(struct stk_store *st, struct stk_err *err);

/* Accepts the store as it lies there: empties the WAL, as far as it is right, into the database and
 * gives pages that do not match the checksum of what is in them. st->note says which. */
int stk_pages_accept(struct stk_store *st, struct stk_err *err);

typedef void (*stk_bad_page_fn)(void *ctx, uint32_t page);

/* Compares every page of one moment of the store, also while a daemon writes. 'tick' may be NULL:
 * not 0 stops, with -ECANCELED. */
int stk_pages_check(struct stk_store *st, stk_bad_page_fn fn, int (*tick)(void *ctx), void *ctx,
                    struct stk_err *err);

#endif
