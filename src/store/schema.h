/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the tables, as the steps that made them. Step i brings version i to i + 1, so a new
 * store and an old one go the same way. Steps are never edited once released: a change is a new
 * step. */
#ifndef STK_STORE_SCHEMA_H
#define STK_STORE_SCHEMA_H

#include <sqlite3.h>

#include "base/err.h"
#include "store/store.h"

#define STK_SCHEMA_APPLICATION 0x73746f6b /* "stok" */

#define STK_SCHEMA_ACK 7  /* stores of this version and later have a stoker.ack */
#define STK_SCHEMA_SUMS 9 /* and their pages have checksums (pagesum.h) */

struct stk_schema {
    const char *const *step; /* SQL */
    int n;                   /* also the version they lead to */
};

extern const struct stk_schema stk_schema;

/* Runs the steps from version 'from' on, each in a transaction of its own with its version
 * number. 'path' is for the sentence. */
int stk_schema_apply(sqlite3 *db, const struct stk_schema *schema, int from, const char *path,
                     struct stk_err *err);

/* stk_store_open() with other steps: how tests meet older and newer stores. */
int stk_store_open_schema(const char *dir, unsigned flags, const struct stk_schema *schema,
                          struct stk_store **ret_store, struct stk_err *err);

#endif
