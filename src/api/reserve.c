/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.c - reservations: looking, making and removing. */
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "core/booking.h"
#include "core/state.h"

/* On which nodes it has how many GPUs. */
static json_t *places(const struct stk_api *a, const struct stk_state *s,
                      const struct stk_booking *b)
{
    json_t *list = json_array();

    for (uint32_t i = 0; b && i < b->n; i++) {
        const struct stk_fence *f = &s->book.fence[b->first + i];

        (void)json_array_append_new(
            list, json_pack("{s:s,s:i}", "node", stk_live_config(a->cfg.live)->nodes[f->node].name,
                            "gpus", (int)f->gpus));
    }
    return list;
}

/* What the core knows of its window. */
static json_t *show(const struct stk_api *a, const struct stk_state *s, const json_t *o)
{
    json_t *v = json_deep_copy(o);
    const char *over = json_string_value(json_object_get(o, "over")), *state = over;
    uint32_t number = (uint32_t)json_integer_value(json_object_get(o, "window"));
    const struct stk_booking *b = number ? stk_booking_find(s, number) : NULL;
    json_int_t held = 0, used = 0;

    for (uint32_t i = 0; b && i < b->n; i++) {
        const struct stk_fence *f = &s->book.fence[b->first + i];

        held += f->held;
        used += f->used;
    }
    if (!over) /* one that repeats waits for its next window */
        state = b ? (b->open ? "open" : "pending") : json_object_get(o, "cron") ? "waits" : "lost";
    (void)json_object_set_new(v, "state", json_string(state));
    (void)json_object_set_new(v, "gpus_held", json_integer(held));
    (void)json_object_set_new(v, "gpus_used", json_integer(used));
    (void)json_object_set_new(v, "on", places(a, s, b));
    return v;
}

/* GPUs that are kept free for a job that has waited long: made by the core, and shown like others.
 */
static json_t *show_drain(const struct stk_api *a, const struct stk_state *s,
                          const struct stk_booking *b)
{
    const uint32_t job = s->book.holder[b->holder].id;
    char name[32];
    json_t *o;

    (void)snprintf(name, sizeof(name), "job %u", job);
    o = json_pack("{s:i,s:s,s:I,s:I,s:I,s:I,s:s,s:I,s:I,s:b}", "id", 0, "name", name, "gpus",
                  (json_int_t)b->gpus, "for_s", (json_int_t)((b->end - b->start) / STK_SECOND),
                  "start", (json_int_t)(b->start / STK_SECOND), "end",
                  (json_int_t)(b->end / STK_SECOND), "by", "stoker", "window",
                  (json_int_t)b->number, "job", (json_int_t)job, "drain", 1);
    if (o) {
        json_t *v = show(a, s, o);

        json_decref(o);
        return v;
    }
    return json_object();
}

void stk_do_reservations(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    const json_t *all = stk_live_reservations(a->cfg.live);
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(all); i++)
        (void)json_array_append_new(list, show(a, s, json_array_get(all, i)));
    for (uint32_t i = 0; i < s->book.n; i++)
        if (s->book.row[i].drain)
            (void)json_array_append_new(list, show_drain(a, s, &s->book.row[i]));
    stk_request_json(r, 200, json_pack("{s:o}", "reservations", list));
}

static void ask(struct stk_api *a, struct stk_request *r, bool on, json_t *take_body)
{
    const struct stk_asker by = {*stk_request_who(r), stk_api_reply, r};
    int rc = stk_live_reserve(a->cfg.live, &by, on, take_body);

    if (rc < 0)
        stk_request_error(r, 503, "busy", "cannot do that now: %s", strerror(-rc));
}

static void put(json_t *to, const char *key, const char *text)
{
    if (text)
        (void)json_object_set_new(to, key, json_string(text));
}

void stk_do_reserve(void *ctx, struct stk_request *r)
{
    const char *name = NULL, *type = NULL, *pool = NULL, *tenant = NULL, *user = NULL;
    const char *cron = NULL, *tz = NULL;
    json_int_t gpus = 0, start = 0, for_s = 0, grace_s = 0, job = 0;
    json_t *body = NULL, *take, *nodes = NULL;
    json_error_t why;
    int evict = 0;

    if (stk_request_body(r, &body) < 0)
        return;
    if (json_unpack_ex(body, &why, JSON_STRICT,
                       "{s:s,s?I,s:I,s?s,s?s,s?s,s?s,s?I,s?s,s?s,s?I,s?b,s?I,s?o}", "name", &name,
                       "gpus", &gpus, "for_s", &for_s, "gpu_type", &type, "pool", &pool, "tenant",
                       &tenant, "user", &user, "start", &start, "cron", &cron, "tz", &tz, "grace_s",
                       &grace_s, "evict", &evict, "job", &job, "nodes", &nodes) < 0 ||
        (nodes && !json_is_array(nodes))) {
        stk_request_error(r, 400, NULL,
                          "a reservation has name, for_s, and gpus or nodes (a list), and may have "
                          "gpu_type, pool, tenant, user, job, start, cron, tz, grace_s and evict: "
                          "%s",
                          why.text);
        json_decref(body);
        return;
    }
    take = json_pack("{s:s,s:I,s:I,s:I,s:I,s:b}", "name", name, "gpus", gpus, "for_s", for_s,
                     "start", start, "grace_s", grace_s, "evict", evict);
    if (job)
        (void)json_object_set_new(take, "job", json_integer(job));
    if (nodes)
        (void)json_object_set(take, "nodes", nodes);
    put(take, "gpu_type", type);
    put(take, "pool", pool);
    put(take, "tenant", tenant);
    put(take, "user", user);
    put(take, "cron", cron);
    put(take, "tz", tz);
    json_decref(body);
    ask(ctx, r, true, take);
}

void stk_do_unreserve(void *ctx, struct stk_request *r)
{
    const char *id = stk_request_path(r, "id");
    char *end;
    long n = strtol(id, &end, 10);

    if (*end != '\0' || n < 1)
        stk_request_error(r, 404, NULL, "there is no reservation \"%.60s\"", id);
    else
        ask(ctx, r, false, json_pack("{s:I}", "id", (json_int_t)n));
}
