/* SPDX-License-Identifier: Apache-2.0 */
/* evictor.c - for whom a job was preempted, in words: "preempted by job 12 (alice, tier critical)
 * to make room: 8 GPUs". Events of earlier versions do not say for whom. */
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"
#include "model/event.h"

struct evictor {
    json_t *o;
    char user[64];
    double gpus;
};

static int read_evictor(void *ctx, const struct stk_record *rec)
{
    struct evictor *e = ctx;

    e->gpus = rec->gpu_milli ? rec->gpus * rec->gpu_milli / 1000.0 : rec->gpus;
    (void)snprintf(e->user, sizeof(e->user), "%s", rec->user);
    (void)json_object_set_new(e->o, "user", json_string(rec->user));
    (void)json_object_set_new(e->o, "gpus", stk_show_gpus(rec->gpus, rec->gpu_milli));
    (void)json_object_set_new(e->o, "queue", json_string(rec->queue ? rec->queue : ""));
    (void)json_object_set_new(e->o, "tenant",
                              rec->tenant && *rec->tenant ? json_string(rec->tenant) : json_null());
    stk_show_element(e->o, rec);
    return 1;
}

/* What the other job is called and who it is; a job that was forgotten has only its number. */
static void say_for(const struct stk_api *a, const struct stk_event *ev, json_t *take_for,
                    char *buf, size_t size)
{
    const stk_job_number number = ev->u.evict.for_number;
    const struct stk_entry *e = stk_live_entry(a->cfg.live, number);
    struct evictor who = {.o = take_for};
    const char *tier =
        ev->u.evict.for_tier ? stk_tier_name((enum stk_tier)(ev->u.evict.for_tier - 1)) : NULL;
    char name[32];

    if (e)
        (void)read_evictor(&who, &e->rec);
    else
        (void)stk_store_job_get(stk_live_store(a->cfg.live), number, read_evictor, &who, NULL);
    if (tier)
        (void)json_object_set_new(take_for, "tier", json_string(tier));
    if (json_integer_value(json_object_get(take_for, "array_id")) > 0)
        (void)snprintf(name, sizeof(name), "%lld_%lld",
                       (long long)json_integer_value(json_object_get(take_for, "array_id")),
                       (long long)json_integer_value(json_object_get(take_for, "array_index")));
    else
        (void)snprintf(name, sizeof(name), "%u", number);
    (void)snprintf(buf, size, "job %s%s%s%s%s%s to make room", name, *who.user || tier ? " (" : "",
                   who.user, *who.user && tier ? ", tier " : "", *who.user && tier ? tier : "",
                   *who.user || tier ? ")" : "");
    if (who.gpus > 0)
        (void)snprintf(buf + strlen(buf), size - strlen(buf), ": %g GPU%s", who.gpus,
                       who.gpus == 1 ? "" : "s");
}

void stk_show_evictor(const struct stk_api *a, json_t *o, const struct stk_event *ev)
{
    const char *verb = ev->u.evict.suspend ? "suspended" : "preempted";
    json_t *of = ev->u.evict.for_number
                     ? json_pack("{s:I}", "id", (json_int_t)ev->u.evict.for_number)
                     : NULL;
    char text[320], other[256] = "";

    if (of)
        say_for(a, ev, of, other, sizeof(other));
    if (ev->u.evict.by_hand)
        (void)snprintf(text, sizeof(text), "%s by hand",
                       ev->u.evict.suspend ? "suspended" : "stopped");
    else if (ev->u.evict.moved)
        (void)snprintf(text, sizeof(text), "moved to other GPUs%s%s", of ? " for " : "", other);
    else if (of)
        (void)snprintf(text, sizeof(text), "%s %s %s", verb, ev->u.evict.suspend ? "for" : "by",
                       other);
    else
        (void)snprintf(text, sizeof(text), "%s: the scheduler gave its GPUs to other work", verb);
    (void)json_object_set_new(o, "for", of ? of : json_null());
    (void)json_object_set_new(o, "sentence", json_string(text));
}
