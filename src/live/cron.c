/* SPDX-License-Identifier: Apache-2.0 */
/* cron.c - jobs that are submitted again and again, by the clock.
 *
 * A description with "schedule" makes one job that is held for ever: the schedule. It is listed,
 * owned and cancelled like any job. When its time has come, a job is submitted from the same
 * description, with the schedule's number in "schedule_id"; unless the one before still waits or
 * runs: then that time is left out. Times that passed while there was no daemon come to one. The
 * jobs are submitted by a request in the queue of requests, like those of people.
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

/* By the wall clock. */
static void set_next(struct stk_live_schedule *s, const struct stk_zone *z, stk_time from)
{
    int64_t next = stk_cron_next(&s->cron, z, from / STK_SECOND);

    s->from = from;
    s->next = next > STK_MAX_DURATION / STK_SECOND ? STK_NEVER_TIME : next * STK_SECOND;
}

static void set_wake(struct stk_live *l)
{
    stk_time next = STK_NEVER_TIME;

    for (uint32_t i = 0; i < l->n_schedules; i++)
        if (l->schedules[i].next < next)
            next = l->schedules[i].next;
    l->cron_wake = next;
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
                                                    (json_int_t)(s->firing ? s->stored : s->from),
                                                    (json_int_t)s->last));
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

static uint32_t count_schedules_of(const struct stk_live *l, uint32_t uid)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->n_schedules; i++) {
        const struct stk_entry *e = stk_entries_find(&l->entries, l->schedules[i].number);

        n += e && e->rec.uid == uid;
    }
    return n;
}

int stk_live_cron_room(const struct stk_live *l, const struct stk_who *who, uint32_t more,
                       struct stk_err *err)
{
    const uint32_t most = l->cfg.limits.max_schedules_per_user;
    const uint32_t own = who->role < STK_ROLE_OPERATOR ? count_schedules_of(l, who->uid) : 0;

    if (l->n_schedules + more > MAX_SCHEDULES)
        return stk_err_set(err, -EINVAL,
                           "there are %u schedules, and at most %d are allowed; cancel one",
                           l->n_schedules, MAX_SCHEDULES);
    if (who->role < STK_ROLE_OPERATOR && own + more > most)
        return stk_err_set(err, -EINVAL,
                           "user %s may have at most %u schedules, and has %u; cancel one "
                           "(limits.schedules_per_user)",
                           who->user, most, own);
    return 0;
}

int stk_live_cron_add(struct stk_live *l, stk_job_number number, const struct stk_cron *cron,
                      struct stk_err *err)
{
    struct stk_live_schedule s = {.number = number, .cron = *cron};

    set_next(&s, &l->zone, stk_live_wall(l));
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
    const stk_time wall = stk_live_wall(l); /* it may have been set back since */
    stk_time since;
    json_t *spec = e ? stk_live_spec(l, e->rec.spec) : NULL;
    const char *cron =
        json_string_value(json_object_get(json_object_get(spec, "schedule"), "cron"));
    int rc = 0;

    if (e && cron && stk_cron_parse(cron, &s.cron, NULL) == 0) {
        s.number = e->number;
        since = (stk_time)json_integer_value(json_array_get(v, 1));
        set_next(&s, &l->zone, since < wall ? since : wall);
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

void stk_live_cron_set_back(struct stk_live *l)
{
    const stk_time wall = stk_live_wall(l);

    for (uint32_t i = 0; i < l->n_schedules; i++)
        if (l->schedules[i].from > wall)
            set_next(&l->schedules[i], &l->zone, wall);
    set_wake(l);
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

/* The description without what the server had added to it; but for "plain", which limits the rights
 * of its jobs. */
static json_t *plain(struct stk_live *l, const struct stk_entry *e)
{
    static const char *const ours[] = {"schedule", "uid",  "gid",   "groups",
                                       "user",     "home", "shell", "cpu_share"};
    json_t *spec = stk_live_spec(l, e->rec.spec);

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        (void)json_object_del(spec, ours[i]);
    return spec;
}

/* Nobody waits for the answer. */
static void reply_nobody(void *ctx, int http_status, json_t *take_body)
{
    (void)ctx;
    (void)http_status;
    json_decref(take_body);
}

/* The request with which its owner would submit its jobs; NULL: out of memory. */
static struct stk_live_request *request_of(struct stk_live *l, const struct stk_entry *e)
{
    struct stk_live_request *r = calloc(1, sizeof(*r));
    json_t *job = r ? plain(l, e) : NULL, *list = job ? json_pack("[O]", job) : NULL;

    if (list) {
        *r = (struct stk_live_request){.kind = STK_REQ_SUBMIT,
                                       .schedule = e->number,
                                       .who = stk_live_owner(l, e->rec.uid),
                                       .reply = reply_nobody,
                                       .jobs = {.n = 1, .list = list}};
        if (json_is_true(json_object_get(job, "plain"))) { /* it gets no more than it had */
            r->who.role = STK_ROLE_USER;
            (void)json_object_del(job, "plain");
        }
    } else {
        free(r);
        r = NULL;
    }
    json_decref(job);
    return r;
}

/* False: its jobs are not made, this time. Until they are durable the store has the time before, so
 * that a daemon that dies meanwhile fires again. */
static bool fire(struct stk_live *l, struct stk_live_schedule *s)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, s->number);
    struct stk_live_request *r;

    if (!e || s->firing || lives(l, s->last))
        return false;
    r = request_of(l, e);
    if (r)
        stk_live_enqueue(l, r);
    else
        say(l, s->number, NULL);
    s->firing = r != NULL;
    return s->firing;
}

int stk_live_cron_fire(struct stk_live *l, struct stk_err *err)
{
    const stk_time wall = stk_live_wall(l);
    bool left_out = false;

    for (uint32_t i = 0; i < l->n_schedules; i++) {
        struct stk_live_schedule *s = &l->schedules[i];

        if (s->next > wall)
            continue;
        if (!s->firing)
            s->stored = s->from;
        set_next(s, &l->zone, wall);
        left_out |= !fire(l, s);
    }
    set_wake(l);
    return left_out ? keep(l, err) : 0;
}

int stk_live_cron_done(struct stk_live *l, const struct stk_live_request *r, stk_job_number first,
                       struct stk_err *err)
{
    struct stk_live_schedule *s = find(l, r->schedule);

    if (!s)
        return 0;
    s->firing = false;
    if (first)
        s->last = first;
    else
        say(l, s->number, r->answer);
    return keep(l, err);
}

void stk_live_cron_again(struct stk_live *l, stk_job_number number)
{
    struct stk_live_schedule *s = number ? find(l, number) : NULL;

    if (!s)
        return;
    s->firing = false;
    set_next(s, &l->zone, s->stored);
    set_wake(l);
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
