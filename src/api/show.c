/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - words, numbers and names of which what clients see of jobs is made; the job itself is
 * written by job_row.c. */
#include "api/show.h"

#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "model/reason.h"

const char *stk_show_cause(enum stk_cause c)
{
    return stk_cause_word(c);
}

enum stk_cause stk_show_cause_of(const char *word)
{
    for (int c = STK_CAUSE_OK; c < STK_CAUSE_MAX; c++)
        if (strcmp(stk_cause_word((enum stk_cause)c), word) == 0)
            return (enum stk_cause)c;
    return STK_CAUSE_NONE;
}

const char *stk_show_state(const struct stk_job *j)
{
    switch ((enum stk_job_state)j->state) {
    case STK_JOB_HELD:
        return j->slept ? "suspended" : "held";
    case STK_JOB_BLOCKED:
        return "blocked";
    case STK_JOB_WAITING:
        return j->slept ? "suspended" : "waiting";
    case STK_JOB_PLACED:
        return "starting";
    case STK_JOB_RUNNING:
        return "running";
    case STK_JOB_STOPPING:
        return "stopping";
    case STK_JOB_NONE:
    case STK_JOB_DONE:
    case STK_JOB_STATE_MAX:
        break;
    }
    return "done";
}

bool stk_show_is_state(const char *word)
{
    static const char *const states[] = {"held",    "blocked",   "waiting", "starting",
                                         "running", "suspended", "stopping"};

    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (strcmp(states[i], word) == 0)
            return true;
    return false;
}

json_t *stk_show_time(stk_time t)
{
    return t > 0 ? json_real((double)t / 1e6) : json_null();
}

void stk_show_element(json_t *o, const struct stk_record *rec)
{
    (void)json_object_set_new(o, "array_id", rec->array ? json_integer(rec->array) : json_null());
    (void)json_object_set_new(o, "array_index",
                              rec->array ? json_integer(rec->array_index) : json_null());
}

json_t *stk_show_gpus(uint64_t gpus, uint32_t milli)
{
    return milli ? json_real((double)gpus * milli / 1000) : json_integer((json_int_t)gpus);
}

json_t *stk_show_indices(uint64_t mask)
{
    json_t *list = json_array();

    for (; mask; mask &= mask - 1)
        (void)json_array_append_new(list, json_integer(__builtin_ctzll(mask)));
    return list;
}

json_t *stk_show_pieces(const struct stk_api *a, const struct stk_piece *pieces, uint32_t n)
{
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s,s:o}", "node", cfg->nodes[pieces[i].node.i].name, "gpu_indices",
                            stk_show_indices(pieces[i].mask)));
    return list;
}

const char *stk_show_name(const struct stk_api *a, stk_job_number number, char *buf, size_t size)
{
    const struct stk_entry *e = stk_live_entry(a->cfg.live, number);

    if (e && e->rec.array)
        (void)snprintf(buf, size, "%u_%u", e->rec.array, e->rec.array_index);
    else
        (void)snprintf(buf, size, "%u", number);
    return buf;
}

/* The limit is kept by a dependency on the element so many places before (live/submit.c). */
uint32_t stk_show_at_once(struct stk_api *a, const struct stk_entry *e, const struct stk_reason *w)
{
    json_t *spec;
    uint32_t n;

    if (w->code != STK_WHY_DEPENDENCY || w->missing != 1 || !e->rec.array)
        return 0;
    if (a->array_limit.array != e->rec.array) {
        spec = stk_live_spec(a->cfg.live, e->rec.spec);
        a->array_limit.array = e->rec.array;
        a->array_limit.at_once =
            (uint32_t)json_integer_value(json_object_get(json_object_get(spec, "array"), "limit"));
        json_decref(spec);
    }
    n = a->array_limit.at_once;
    return n > 0 && e->number - e->rec.array >= n && stk_live_entry(a->cfg.live, e->number - n) ? n
                                                                                                : 0;
}

json_t *stk_show_turn(const struct stk_api *a, const struct stk_job *j)
{
    const struct stk_api_config *c = &a->cfg;
    const struct stk_state *s = stk_core_state(stk_live_core(c->live));

    if (!j->lease || !c->turn || s->shapes[j->shape].demand.share != STK_SHARE_TIME)
        return NULL;
    return c->turn(c->ctx, j->number);
}

json_t *stk_show_items(struct stk_live *live, const struct stk_record *rec)
{
    uint32_t n[STK_ITEM_STATE_MAX];
    json_int_t total = 0;

    if (stk_live_item_counts(live, rec, n) < 0)
        return NULL;
    for (int i = 0; i < STK_ITEM_STATE_MAX; i++)
        total += n[i];
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "total", total, "todo", (json_int_t)n[STK_ITEM_TODO],
                     "given", (json_int_t)n[STK_ITEM_GIVEN], "done", (json_int_t)n[STK_ITEM_DONE],
                     "failed", (json_int_t)n[STK_ITEM_FAILED]);
}
