/* SPDX-License-Identifier: Apache-2.0 */
/* why.c - why a job waits: the reason as data, the sentence, who holds the GPUs, and the smallest
 * change that would help. */
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/owners.h"
#include "api/say.h"
#include "api/show.h"
#include "base/sort.h"
#include "core/array.h"
#include "core/state.h"

#define MAX_HOLDERS 8u

struct holder {
    stk_job_number number;
    uint32_t gpus;
    stk_time end;
};

static int by_end(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;

    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The jobs that have GPUs of the pool, in order of their expected end. */
static struct holder *holders(const struct stk_state *s, uint32_t pool, stk_time now,
                              uint32_t *ret_n)
{
    struct holder *list =
        calloc(s->pools[pool].n_leased + s->pools[pool].n_stopping + 1, sizeof(*list));
    uint32_t cap = s->pools[pool].n_leased + s->pools[pool].n_stopping, n = 0;

    for (uint32_t i = 0; list && i < s->n_jobs && n < cap; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->lease && j->pool == pool && j->gpus > 0)
            list[n++] = (struct holder){j->number, j->gpus, now + stk_job_remaining(j, now)};
    }
    if (n > 1)
        qsort(list, n, sizeof(*list), by_end);
    *ret_n = n;
    return list;
}

/* Who is in the way, and when enough is expected to be free. */
static json_t *show_holder(const struct stk_api *a, const struct holder *h, stk_time now)
{
    const struct stk_entry *e = stk_live_entry(a->cfg.live, h->number);

    return json_pack("{s:I,s:s,s:s,s:I,s:o}", "id", (json_int_t)h->number, "name",
                     e ? e->rec.name : "", "user", e ? e->rec.user : "", "gpus",
                     (json_int_t)h->gpus, "expected_end",
                     h->end > now ? stk_show_time(h->end) : json_null());
}

static json_t *show_holders(const struct stk_api *a, const struct stk_state *s,
                            const struct stk_job *j, struct stk_say *say)
{
    uint32_t n = 0;
    struct holder *list = holders(s, j->pool, say->now, &n);
    uint64_t freed = 0;
    json_t *out = json_array();

    for (uint32_t i = 0; i < n; i++) {
        const struct holder *h = &list[i];

        freed += h->gpus;
        if (say->why.code == STK_WHY_GPUS && !say->room_at && freed >= say->why.missing)
            say->room_at = h->end;
        if (i < MAX_HOLDERS)
            (void)json_array_append_new(out, show_holder(a, h, say->now));
    }
    if (n > 0 && list[0].end > say->now) {
        say->first_out = list[0].number;
        say->first_out_at = list[0].end;
    }
    if (say->room_at <= say->now)
        say->room_at = 0; /* an estimate that is over says nothing */
    free(list);
    return out;
}

/* Jobs it depends on that have not ended. */
static json_t *show_waits_for(struct stk_api *a, const struct stk_entry *e)
{
    json_t *spec = stk_live_spec(a->cfg.live, e->rec.spec), *dep;
    json_t *out = json_array();
    size_t i;

    json_array_foreach(json_object_get(spec, "depends"), i, dep)
    {
        json_int_t on = json_integer_value(json_object_get(dep, "job"));

        if (on > 0 && on < UINT32_MAX &&
            (stk_live_entry(a->cfg.live, (stk_job_number)on) ||
             stk_array_find(stk_core_state(stk_live_core(a->cfg.live)), (stk_job_number)on)))
            (void)json_array_append_new(out, json_integer(on));
    }
    json_decref(spec);
    return out;
}

/* Why a GPU is not to be used: the first of them says it for all. */
static const char *why_off(const struct stk_api *a)
{
    const struct stk_live_config *c = stk_live_config(a->cfg.live);

    for (uint32_t i = 0; i < c->core.nodes[0].gpus; i++) {
        const char *off = json_string_value(json_object_get(stk_owners_sample(a, i), "off"));

        if (off)
            return off;
        if ((stk_live_drained(a->cfg.live, 0) >> i) & 1)
            return "drained";
    }
    return NULL;
}

static void explain(struct stk_api *a, struct stk_request *r, const struct stk_entry *e)
{
    struct stk_core *core = stk_live_core(a->cfg.live);
    const struct stk_state *s = stk_core_state(core);
    uint32_t slot = stk_core_find(core, e->number);
    struct stk_say say = {.number = e->number,
                          .tasks = e->rec.tasks,
                          .now = stk_api_now(a),
                          .asleep = slot != STK_NONE && s->jobs[slot].slept != 0,
                          .off = why_off(a)};
    const struct stk_reason *w = &say.why;
    char sentence[640], change[200];
    json_t *held;
    stk_job_number last;
    struct stk_err err = {""};
    int rc = slot == STK_NONE ? stk_err_set(&err, -ENOENT, "there is no job %u", e->number)
                              : stk_core_why(core, (stk_job_id){slot}, &say.why, &err);

    if (rc < 0) {
        stk_api_fail(r, rc, &err);
        return;
    }
    (void)stk_live_schedule(a->cfg.live, e->number, &say.next, &last);
    held = show_holders(a, s, &s->jobs[slot], &say);
    stk_say_why(&say, sentence, sizeof(sentence));
    stk_say_change(&say, change, sizeof(change));
    stk_request_json(r, 200,
                     json_pack("{s:I,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "id",
                               (json_int_t)e->number, "state", stk_show_state(&s->jobs[slot]),
                               "code", stk_reason_name(w->code), "sentence", sentence, "change",
                               change, "need", (json_int_t)w->need, "have", (json_int_t)w->have,
                               "missing", (json_int_t)w->missing, "off", (json_int_t)w->off,
                               "other", w->other ? json_integer(w->other) : json_null(), "until",
                               stk_show_time(w->until), "expected", stk_show_time(say.room_at),
                               "holders", held, "waits_for", show_waits_for(a, e)));
}

/* A job that has ended: how. */
static void explain_ended(struct stk_api *a, struct stk_request *r, stk_job_number number)
{
    struct stk_show view = {a, stk_request_who(r), false};
    struct stk_err err = {""};
    int rc;
    json_t *job = stk_show_number(&view, number, &rc, &err);

    if (!job) {
        stk_api_fail(r, rc, &err);
        return;
    }
    stk_request_json(r, 200,
                     json_pack("{s:I,s:s,s:s,s:O,s:s,s:i,s:i,s:i,s:i,s:n,s:n,s:n,s:[],s:[]}", "id",
                               (json_int_t)number, "state", "done", "code", "ended", "sentence",
                               json_object_get(job, "state_text"), "change", "", "need", 0, "have",
                               0, "missing", 0, "off", 0, "other", "until", "expected", "holders",
                               "waits_for"));
    json_decref(job);
}

void stk_do_why(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_entry *e;
    stk_job_number number;

    if (stk_api_job_number(ctx, r, &number) < 0)
        return;
    e = stk_live_entry(a->cfg.live, number);
    if (e)
        explain(a, r, e);
    else
        explain_ended(a, r, number);
}
