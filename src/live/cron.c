/* SPDX-License-Identifier: Apache-2.0 */
/* cron.c - jobs that are submitted again and again, by the clock.
 *
 * A description with "schedule" makes one job that is held for ever: the schedule. It is listed,
 * owned and cancelled like any job. When its time has come, a job is submitted from the same
 * description, with the schedule's number in "schedule_id"; unless the one before still waits or
 * runs: then that time is left out. Times that passed while there was no daemon come to one.
 *
 * What a schedule needs beyond its job (since when it waits, the job it made last) is one value of
 * the store, written in the same transaction as the job that it makes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "live/state.h"

#define META "schedules"
#define MAX_SCHEDULES 1000

static struct stk_live_schedule *find(const struct stk_live *l, stk_job_number number)
{
    for (uint32_t i = 0; i < l->n_schedules; i++)
        if (l->schedules[i].number == number)
            return &l->schedules[i];
    return NULL;
}

static void set_next(struct stk_live_schedule *s, const struct stk_zone *z, stk_time from)
{
    int64_t next = stk_cron_next(&s->cron, z, from / STK_SECOND);

    s->from = from;
    s->next = next > STK_MAX_DURATION / STK_SECOND ? STK_NEVER_TIME : next * STK_SECOND;
}

static void set_wake(struct stk_live *l)
{
    l->cron_wake = STK_NEVER_TIME;
    for (uint32_t i = 0; i < l->n_schedules; i++)
        if (l->schedules[i].next < l->cron_wake)
            l->cron_wake = l->schedules[i].next;
}

static int add(struct stk_live *l, const struct stk_live_schedule *s)
{
    if (l->n_schedules == l->cap_schedules) {
        uint32_t cap = l->cap_schedules ? 2 * l->cap_schedules : 8;
        struct stk_live_schedule *more = realloc(l->schedules, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        l->schedules = more;
        l->cap_schedules = cap;
    }
    l->schedules[l->n_schedules++] = *s;
    return 0;
}

/* Those that were cancelled go. */
static int keep(struct stk_live *l, struct stk_err *err)
{
    json_t *list = json_array();
    uint32_t kept = 0;
    char *text;
    int rc = stk_live_begin(l, err);

    for (uint32_t i = 0; i < l->n_schedules; i++) {
        const struct stk_live_schedule *s = &l->schedules[i];

        if (!stk_entries_find(&l->entries, s->number))
            continue;
        (void)json_array_append_new(list, json_pack("[I,I,I]", (json_int_t)s->number,
                                                    (json_int_t)s->from, (json_int_t)s->last));
        l->schedules[kept++] = *s;
    }
    l->n_schedules = kept;
    set_wake(l);
    text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    if (rc == 0 && !text)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc < 0 ? rc : stk_store_meta_set(l->cfg.store, META, text, strlen(text), err);
    free(text);
    return rc;
}

int stk_live_cron_room(const struct stk_live *l, struct stk_err *err)
{
    if (l->n_schedules < MAX_SCHEDULES)
        return 0;
    return stk_err_set(err, -EINVAL, "there are %d schedules already; cancel one", MAX_SCHEDULES);
}

int stk_live_cron_add(struct stk_live *l, stk_job_number number, const struct stk_cron *cron,
                      struct stk_err *err)
{
    struct stk_live_schedule s = {.number = number, .cron = *cron};

    set_next(&s, &l->zone, l->now);
    if (add(l, &s) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    return keep(l, err);
}

/* One of the stored list: [number, since, last job]. */
static int load_one(struct stk_live *l, const json_t *v)
{
    const struct stk_entry *e =
        stk_entries_find(&l->entries, (stk_job_number)json_integer_value(json_array_get(v, 0)));
    struct stk_live_schedule s = {.last = (stk_job_number)json_integer_value(json_array_get(v, 2))};
    json_t *spec = e ? stk_live_spec(l, e->rec.spec) : NULL;
    const char *cron =
        json_string_value(json_object_get(json_object_get(spec, "schedule"), "cron"));
    int rc = 0;

    if (e && cron && stk_cron_parse(cron, &s.cron, NULL) == 0) {
        s.number = e->number;
        set_next(&s, &l->zone, (stk_time)json_integer_value(json_array_get(v, 1)));
        rc = add(l, &s);
    }
    json_decref(spec);
    return rc;
}

int stk_live_cron_load(struct stk_live *l, struct stk_err *err)
{
    char *text = NULL;
    size_t len, i;
    json_t *list, *v;
    int rc = stk_store_meta_get(l->cfg.store, META, &text, &len, err);

    stk_live_cron_forget(l);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    list = json_loadb(text, len, 0, NULL);
    free(text);
    json_array_foreach(list, i, v)
    {
        rc = rc < 0 ? rc : load_one(l, v);
    }
    json_decref(list);
    set_wake(l);
    return rc < 0 ? stk_err_set(err, rc, "out of memory") : 0;
}

void stk_live_cron_forget(struct stk_live *l)
{
    l->n_schedules = 0;
    l->cron_wake = STK_NEVER_TIME;
}

static bool lives(const struct stk_live *l, stk_job_number number)
{
    return number && (stk_entries_find(&l->entries, number) ||
                      stk_array_find(stk_core_state(l->core), number));
}

static void say(struct stk_live *l, stk_job_number number, const json_t *answer)
{
    const char *why =
        json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
    char text[400];

    (void)snprintf(text, sizeof(text), "schedule %u could not submit its job: %.300s", number,
                   why ? why : "out of memory");
    stk_live_note(l, number, text);
    if (l->cfg.log)
        l->cfg.log(l->cfg.ctx, text);
}

/* The description without what the server had added to it. */
static json_t *plain(struct stk_live *l, const struct stk_entry *e)
{
    static const char *const ours[] = {"schedule", "uid", "gid", "groups", "user", "home", "shell"};
    json_t *spec = stk_live_spec(l, e->rec.spec);

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        (void)json_object_del(spec, ours[i]);
    return spec;
}

static int fire(struct stk_live *l, struct stk_live_schedule *s, struct stk_err *err)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, s->number);
    stk_job_number first = stk_core_state(l->core)->next_number;
    struct stk_live_request r = {.kind = STK_REQ_SUBMIT};
    int rc;

    set_next(s, &l->zone, l->now);
    if (!e || lives(l, s->last))
        return 0;
    r.who = (struct stk_who){.uid = e->rec.uid, .gid = e->rec.gid, .role = STK_ROLE_USER};
    (void)snprintf(r.who.user, sizeof(r.who.user), "%s", e->rec.user);
    r.body = plain(l, e);
    l->effort = 0;
    rc = r.body ? stk_live_submit_made(l, &r, &r.who, "schedule_id", json_integer(s->number), err)
                : 1;
    if (rc > 0)
        say(l, s->number, r.answer);
    else if (rc == 0)
        s->last = first;
    json_decref(r.body);
    json_decref(r.answer);
    return rc < 0 ? rc : 0;
}

int stk_live_cron_fire(struct stk_live *l, struct stk_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < l->n_schedules && rc == 0; i++)
        if (l->schedules[i].next <= l->now)
            rc = fire(l, &l->schedules[i], err);
    return rc < 0 ? rc : keep(l, err);
}

bool stk_live_schedule(const struct stk_live *l, stk_job_number number, stk_time *ret_next,
                       stk_job_number *ret_last)
{
    const struct stk_live_schedule *s = find(l, number);

    if (!s)
        return false;
    *ret_next = s->next;
    *ret_last = s->last;
    return true;
}
