/* SPDX-License-Identifier: Apache-2.0 */
/* bring.c - a job that the engine has found becomes one of ours: its user sent it with the engine's
 * own tools. Once, whatever dies in between: who brings it says what it is known by there. */
#include "core/state.h"
#include "live/state.h"
#include "store/store.h"

static json_t *answer(const struct stk_once *use, bool repeated)
{
    return json_pack("{s:I, s:I, s:b}", "id", (json_int_t)use->first, "count",
                     (json_int_t)use->count, "repeated", repeated);
}

int stk_live_do_bring(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_once use = {.first = stk_core_state(l->core)->next_number, .at = l->now}, old;
    json_t *made = r->made;
    int rc = stk_store_key_get(l->cfg.store, STK_NOBODY, r->key, l->now, &old, err);

    if (rc == 0) {
        r->status = 200;
        r->answer = answer(&old, true);
        return 0;
    }
    if (rc != -ENOENT)
        return rc;
    r->made = NULL;
    l->trusted = json_object_get(made, "tenant") != NULL;
    rc = stk_live_submit_made(l, r, &r->adopt.owner, "imported", made, err);
    l->trusted = false;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    use.count = stk_core_state(l->core)->next_number - use.first;
    rc = stk_store_key_put(l->cfg.store, STK_NOBODY, r->key, &use, err);
    r->status = 201;
    r->answer = answer(&use, false);
    return rc;
}
