/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c - named values of the store as JSON. */
#include <stdlib.h>
#include <string.h>

#include "live/state.h"

json_t *stk_live_kept(const struct stk_live *l, const char *name)
{
    char *text = NULL;
    size_t len = 0;
    json_t *v = NULL;

    if (stk_store_meta_get(l->cfg.store, name, &text, &len, NULL) == 0)
        v = json_loadb(text, len, 0, NULL);
    free(text);
    return v;
}

int stk_live_keep(struct stk_live *l, const char *name, const json_t *value, struct stk_err *err)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    int rc = stk_live_begin(l, err);

    if (rc == 0)
        rc = text ? stk_store_meta_set(l->cfg.store, name, text, strlen(text), err)
                  : stk_err_set(err, -ENOMEM, "out of memory");
    free(text);
    return rc;
}
