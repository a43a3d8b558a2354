/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - "watch": a line of readings per interval, until nobody reads them. It changes nothing
 * on a GPU. Driver error events (XID) are collected without waiting, once a round: those from
 * before the start are not seen. Somebody who holds the other end of a pipe on its standard input
 * can have a line before its time: each byte asks for one.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpu/args.h"
#include "gpu/json.h"
#include "gpu/nvml.h"
#include "gpu/reading.h"
#include "gpuview/xid.h"

#define START_LIMIT_MS 120000
#define ROUND_LIMIT_MS 30000
#define MAX_EVENTS 256 /* of one round */

struct watch {
    struct stk_nvml nv;
    struct stk_gpu_reader gpu[STK_GPU_MAX];
    struct stk_users users;
    void *events; /* NULL: the driver has none for us */
    bool asked;   /* standard input is a pipe */
};

static int64_t wall_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void start_events(struct watch *w)
{
    const struct stk_nvml *nv = &w->nv;
    bool any = false;

    if (!nv->call.event_wait || !nv->call.event_set_free || !nv->call.event_register ||
        !STK_NVML(nv, event_set_new, &w->events)) {
        w->events = NULL;
        return;
    }
    for (unsigned i = 0; i < nv->n; i++)
        any |= w->gpu[i].rc == NVML_SUCCESS &&
               STK_NVML(nv, event_register, w->gpu[i].dev, NVML_EVENT_XID, w->events);
    if (!any) {
        (void)nv->call.event_set_free(w->events);
        w->events = NULL;
    }
}

static void take_event(struct watch *w, const struct nvml_event *e, int64_t now_us)
{
    json_t *o;

    for (unsigned i = 0; i < w->nv.n; i++) {
        if (w->gpu[i].dev != e->device || w->gpu[i].rc != NVML_SUCCESS)
            continue;
        o = json_object();
        stk_json_int(o, "code", (int64_t)e->data);
        stk_json_int(o, "at_us", now_us);
        stk_json_text(o, "class", stk_xid_class_name(stk_xid_find((uint32_t)e->data)->kind));
        if (!w->gpu[i].xid)
            w->gpu[i].xid = json_array();
        (void)json_array_append_new(w->gpu[i].xid, o);
    }
}

static void read_events(struct watch *w, int64_t now_us)
{
    struct nvml_event e;

    for (int i = 0; w->events && i < MAX_EVENTS; i++) {
        e = (struct nvml_event){.device = NULL};
        if (w->nv.call.event_wait(w->events, &e, 0) != NVML_SUCCESS)
            return;
        if (e.type & NVML_EVENT_XID)
            take_event(w, &e, now_us);
    }
}

static json_t *round_line(struct watch *w)
{
    json_t *line = json_object(), *gpus = json_array();
    int64_t now_us = wall_us();

    read_events(w, now_us);
    for (unsigned i = 0; i < w->nv.n; i++)
        (void)json_array_append_new(gpus, stk_gpu_read(&w->gpu[i], &w->nv, i, now_us, &w->users));
    stk_json_int(line, "at_us", now_us);
    (void)json_object_set_new(line, "gpus", gpus);
    return line;
}

static void advance(struct timespec *t, int64_t ms)
{
    int64_t ns = t->tv_nsec + ms % 1000 * 1000000;

    t->tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    t->tv_nsec = (long)(ns % 1000000000);
}

/* Waits for that time; true: somebody asks for a line before it. */
static bool wait_asked(struct watch *w, const struct timespec *until)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    struct timespec now;
    char bytes[64];

    for (;;) {
        int64_t ms;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        ms = (until->tv_sec - now.tv_sec) * 1000 + (until->tv_nsec - now.tv_nsec) / 1000000 + 1;
        if (ms <= 0)
            return false;
        if (poll(&p, 1, ms < 3600000 ? (int)ms : 3600000) <= 0)
            continue;
        if (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0)
            return true;
        w->asked = false; /* nobody is there any more */
        return false;
    }
}

/* Until the next round; a round that took longer than the interval is not caught up with. */
static void sleep_until(struct watch *w, struct timespec *next, int64_t interval_ms)
{
    struct timespec now;

    advance(next, interval_ms);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > next->tv_sec || (now.tv_sec == next->tv_sec && now.tv_nsec > next->tv_nsec))
        *next = now;
    if (w->asked && wait_asked(w, next)) {
        (void)clock_gettime(CLOCK_MONOTONIC, next);
        return;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) != 0)
        ;
}

static int no_driver(struct stk_guard *g, const char *why)
{
    json_t *line = json_object();

    (void)json_object_set_new(line, "ok", json_false());
    (void)json_object_set_new(line, "gpus", json_array());
    stk_json_text(line, "why", why);
    (void)stk_guard_put(g, line);
    return 1;
}

int stk_gpu_watch(struct stk_guard *g, void *args)
{
    const struct stk_gpu_args *a = args;
    int64_t limit = a->timeout_ms ? a->timeout_ms : ROUND_LIMIT_MS;
    struct watch *w = calloc(1, sizeof(*w)); /* for as long as the process lives */
    struct timespec next;
    struct stk_err err;
    struct stat st;

    if (!w)
        return no_driver(g, "out of memory");
    stk_guard_step(g, a->timeout_ms ? a->timeout_ms : START_LIMIT_MS, "starting NVML");
    if (stk_nvml_open(&w->nv, &err) < 0)
        return no_driver(g, err.text);
    for (unsigned i = 0; i < w->nv.n; i++)
        stk_gpu_reader_init(&w->gpu[i], &w->nv, i);
    start_events(w);
    w->asked = fstat(STDIN_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
    (void)clock_gettime(CLOCK_MONOTONIC, &next);
    for (int64_t n = 0; a->count == 0 || n < a->count; n++) {
        if (n > 0)
            sleep_until(w, &next, a->interval_ms);
        stk_guard_step(g, limit, "reading the GPUs");
        if (stk_guard_put(g, round_line(w)) < 0)
            return 1;
        stk_guard_step(g, a->interval_ms + limit, "between readings");
    }
    return 0;
}
