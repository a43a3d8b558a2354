/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - inside the store: a row of the table 'job' as a record. */
#ifndef STK_STORE_RECORD_H
#define STK_STORE_RECORD_H

#include <sqlite3.h>

#include "store/store.h"

/* In the order in which stk_record_load() reads them. */
#define STK_RECORD_COLUMNS                                                                         \
    "number, uid, gid, user, name, kind, array, array_index, submitted, first_started, started, "  \
    "ended, cause, code, gpus, tasks, restarts, preemptions, served, spec, comment, note, stdout," \
    " stderr, gpu_milli, queue, tenant, steps, waited, leases, lease_from, lease_to, "             \
    "lease_waited, lease_gpus, lease_preempted"
#define STK_RECORD_N_COLUMNS 35

void stk_record_load(sqlite3_stmt *stmt, struct stk_record *ret_record);

/* Steps the statement to its end, a record each. Finalizes it. */
int stk_record_each(struct stk_store *st, sqlite3_stmt *stmt, stk_record_fn fn, void *ctx,
                    struct stk_err *err);

#endif
