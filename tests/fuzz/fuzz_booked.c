/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_booked.c - bytes as a file of reservations. What is read is followed for some time: windows
 * are made, some are refused, some lapse, and time goes on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fyaml_leaks.h"
#include "fuzz/require.h"
#include "rules/booked.h"
#include "sim/ruled.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 64

struct windows { /* that are open */
    uint32_t number[MOST], n, next;
    stk_time end[MOST];
};

static uint32_t find(void *ctx, enum stk_booked_noun noun, const char *name)
{
    (void)ctx;
    if (noun == STK_BOOKED_NODE)
        return strtoul(name, NULL, 10) < 7 ? (uint32_t)strtoul(name, NULL, 10) : STK_NONE;
    return strlen(name) < 3 ? (uint32_t)(unsigned char)name[0] : STK_NONE;
}

static uint32_t gpus(void *ctx, uint32_t node, uint32_t *ret_pool)
{
    (void)ctx;
    require(node < 7, "a node that was found");
    *ret_pool = node / 4;
    return 8;
}

static int apply(void *ctx, const struct stk_event *ev, struct stk_err *err)
{
    struct windows *w = ctx;
    const struct stk_booking_spec *k = ev->u.booking;

    require(k->gpus > 0 && k->end > k->start && k->start >= ev->at && k->number == w->next,
            "a window is one");
    require(k->end - k->start <= STK_MAX_WINDOW && k->grace <= STK_MAX_WINDOW, "not too long");
    if (w->n == MOST || k->gpus % 5 == 4)
        return stk_err_set(err, -EBUSY, "no");
    w->number[w->n] = w->next++;
    w->end[w->n++] = k->end;
    return 0;
}

/* The first that ends; its time. */
static stk_time end_one(struct windows *w, struct stk_booked *x, stk_time now)
{
    uint32_t first = 0;
    struct stk_event ev = {.type = STK_EV_UNRESERVE};

    for (uint32_t i = 1; i < w->n; i++)
        first = w->end[i] < w->end[first] ? i : first;
    ev.at = w->end[first] > now ? w->end[first] : now;
    ev.u.unreserve.number = w->number[first];
    ev.u.unreserve.why = w->number[first] % 2 ? STK_OVER_LAPSED : STK_OVER_ENDED;
    w->n--;
    w->end[first] = w->end[w->n];
    w->number[first] = w->number[w->n];
    stk_booked_over(x, &ev);
    return ev.at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct stk_booked_world world = {NULL, "UTC", INT64_C(1774746000), stk_ruled_start,
                                           find, gpus};
    struct windows w = {.next = 1};
    const struct stk_booked_to to = {apply, &w};
    struct stk_booked *x = NULL;
    stk_time now = 0;

    if (stk_booked_new("r.yaml", (const char *)data, size, &world, &x, NULL) < 0)
        return 0;
    for (int i = 0; i < 60; i++) {
        if (stk_booked_next(x) <= now)
            require(stk_booked_feed(x, w.next, now, &to, NULL) == 0, "windows go on");
        if (w.n > 0)
            now = end_one(&w, x, now);
        else if (stk_booked_next(x) < STK_NEVER_TIME)
            now = stk_booked_next(x) > now ? stk_booked_next(x) : now;
    }
    stk_booked_free(x);
    return 0;
}
