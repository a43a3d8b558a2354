/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - inside the store: a database copied whole into a file of its own. */
#ifndef STK_STORE_COPY_H
#define STK_STORE_COPY_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/err.h"
#include "store/store.h"

/* Makes 'path' (0600) a copy of 'from' as it is now, on the disk when this returns; until then it
 * has another name. 'replace': an older file of that name may go. Safe while others write. */
int stk_copy(sqlite3 *from, const char *path, bool replace, stk_tick_fn tick, void *ctx,
             struct stk_err *err);

#endif
