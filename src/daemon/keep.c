/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "daemon/daemon.h"

int stk_daemon_keep(struct stk_daemon *d, const char *name, const char *value)
{
    struct stk_err err = {""};
    int rc;

    if (d->retry_ms != 0 || stk_live_pending(d->live))
        return -EAGAIN; /* a transaction may be under way */
    rc = stk_store_begin(d->store, &err);
    rc = rc < 0 ? rc : stk_store_meta_set(d->store, name, value, strlen(value), &err);
    rc = rc < 0 ? rc : stk_store_commit(d->store, &err);
    if (rc < 0)
        stk_store_rollback(d->store);
    return rc;
}
