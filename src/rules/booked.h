/* SPDX-License-Identifier: Apache-2.0 */
/* booked.h - reservations (core/booking.h) in a simulated run, from a file in YAML:
 *
 *     zone: Europe/Berlin
 *     reservations:
 *       - {name: class, gpus: 8, for: 90m, cron: 0 9 * * mon-fri, tenant: teaching, grace: 15m}
 *       - {name: demo, gpus: 4, for: 2h, start: 2026-11-17 14:00, evict: yes}
 *       - {name: repair, nodes: 2-3, for: 4h, start: 6h}
 *
 * The words are those of "stoker reserve add". As with the daemon, one that repeats has one window
 * at a time, the next is made when the last is over, and one that is refused is left out and
 * counted. docs/spec/reservations.md.
 */
#ifndef STK_RULES_BOOKED_H
#define STK_RULES_BOOKED_H

#include "base/err.h"
#include "model/booking.h"
#include "model/event.h"

#define STK_MAX_BOOKED 200
#define STK_MAX_BOOKED_NAME 64
#define STK_MAX_BOOKED_FILE 262144 /* bytes */

enum stk_booked_noun {
    STK_BOOKED_TENANT,
    STK_BOOKED_USER,
    STK_BOOKED_POOL,
    STK_BOOKED_GPU_TYPE,
    STK_BOOKED_NODE
};

struct stk_booked_world { /* what names mean here */
    void *ctx;
    const char *zone; /* of those that name none */
    int64_t start_s;  /* Unix time at time 0 */
    /* Seconds since 1970 of "2026-11-16 08:00" there. -EINVAL with a sentence. */
    int (*date)(const char *text, const char *zone, int64_t *ret, struct stk_err *err);
    uint32_t (*find)(void *ctx, enum stk_booked_noun noun,
                     const char *name); /* STK_NONE: nothing */
    /* Of a node: its GPUs, and its pool. */
    uint32_t (*gpus)(void *ctx, uint32_t node, uint32_t *ret_pool);
};

struct stk_booked_row { /* what became of one */
    char name[STK_MAX_BOOKED_NAME];
    uint32_t windows, lapsed, refused;
    double gpu_hours; /* set aside, used or not */
    char note[256];   /* why the last was refused; "" */
};

struct stk_booked;
/* Reads the text of a file. 'w' is used for this call alone. -EINVAL with what is wrong where. */
int stk_booked_new(const char *name, const char *text, size_t len, const struct stk_booked_world *w,
                   struct stk_booked **ret, struct stk_err *err);
void stk_booked_free(struct stk_booked *x);

/* When a window is to be made; STK_NEVER_TIME. */
stk_time stk_booked_next(const struct stk_booked *x);
struct stk_booked_to { /* who applies events */
    int (*apply)(void *ctx, const struct stk_event *ev, struct stk_err *err);
    void *ctx;
};

/* Makes those whose time has come; 'number' is stk_core_next_booking(). */
int stk_booked_feed(struct stk_booked *x, uint32_t number, stk_time now,
                    const struct stk_booked_to *to, struct stk_err *err);
/* One is over. */
void stk_booked_over(struct stk_booked *x, const struct stk_event *ev);

/* The number that jobs have in terms.reservation: of the name they say, or because one is for the
 * job of this id; 0: none. */
uint32_t stk_booked_id(const struct stk_booked *x, const char *name, const char *job);

uint32_t stk_booked_n(const struct stk_booked *x);
const struct stk_booked_row *stk_booked_row(const struct stk_booked *x, uint32_t i);

#endif
