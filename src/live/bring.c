/* SPDX-License-Identifier: Apache-2.0 */
/* bring.c - a job that the engine has found becomes one of ours: its user sent it with the engine's
 * own tools. Once, whatever dies in between: who brings it says what it is known by there. */
#include <stdio.h>

#include "core/state.h"
#include "live/state.h"
#include "store/store.h"

static json_t *answer(const struct stk_once *use, bool repeated)
{
    return json_pack("{s:I, s:I, s:b}", "id", (json_int_t)use->first, "count",
                     (json_int_t)use->count, "repeated", repeated);
}

/* What its user may not have is left out, and said in the job's warning: the job is taken into the
 * default queue, as one that says nothing. > 0: refused all the same, and answered. */
static int bring_less(struct stk_live *l, struct stk_live_request *r, json_t *take_made,
                      struct stk_err *err)
{
    static const char *const keys[] = {"class", "priority", "tier", "cpu_share"};
    const stk_job_number first = stk_core_state(l->core)->next_number;
    const char *why =
        json_string_value(json_object_get(json_object_get(r->answer, "error"), "message"));
    char text[400];
    int rc;

    (void)snprintf(text, sizeof(text), "was sent with what is not allowed: %.300s", why ? why : "");
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        (void)json_object_del(r->body, keys[i]);
    json_decref(r->answer);
    r->answer = NULL;
    r->status = 0;
    if (json_object_set_new(r->body, "queue", json_string(stk_live_queue_name(l, 0))) < 0) {
        json_decref(take_made);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    rc = stk_live_submit_made(l, r, &r->adopt.owner, "imported", take_made, err);
    for (stk_job_number n = first; rc == 0 && n < stk_core_state(l->core)->next_number; n++)
        stk_live_warn(l, n, STK_WARN_ASKED, text);
    return rc;
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
    rc = stk_live_submit_made(l, r, &r->adopt.owner, "imported", json_incref(made), err);
    if (rc > 0 && r->status == 403)
        rc = bring_less(l, r, made, err);
    else
        json_decref(made);
    l->trusted = false;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    use.count = stk_core_state(l->core)->next_number - use.first;
    rc = stk_store_key_put(l->cfg.store, STK_NOBODY, r->key, &use, err);
    r->status = 201;
    r->answer = answer(&use, false);
    return rc;
}
