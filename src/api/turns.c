/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - requests of one user that come all at once take turns with what others ask.
 *
 * libmicrohttpd hands over every request that has arrived before the loop goes around, and some
 * take milliseconds: a hundred at once, over as many connections, would keep everybody waiting. So
 * once the handlers of a turn of the loop have worked for some milliseconds, further requests of
 * users who have had one in this turn are put off: their connections sleep, and are resumed in
 * later turns, those of another user than the last first. How many at a time depends on what the
 * last ones took.
 */
#include "api/conn.h"

#define TURN_NS UINT64_C(10000000) /* of handlers, in a turn of the loop */
#define MOST_AT_ONCE 64u

static uint32_t uid_of(const struct stk_request *r)
{
    return r->known ? r->who.uid : UINT32_MAX;
}

static void begin_turn(struct stk_http *h)
{
    const uint64_t now = uv_now(h->cfg.loop);

    if (h->turn.at_ms == now)
        return;
    h->turn.at_ms = now;
    h->turn.n_served = 0;
    h->turn.spent_ns = 0;
}

static bool was_served(const struct stk_http *h, uint32_t uid)
{
    const uint32_t most = sizeof(h->turn.served) / sizeof(h->turn.served[0]);

    for (uint32_t i = 0; i < h->turn.n_served; i++)
        if (h->turn.served[i] == uid)
            return true;
    return h->turn.n_served == most;
}

/* The request to be resumed next: the oldest of another user than the last, or the oldest. */
static struct stk_request *find_next(const struct stk_http *h)
{
    struct stk_request *first = NULL;

    for (uint32_t i = 0; i < h->n_doors; i++)
        for (struct stk_conn *c = h->doors[i].list[STK_CONN_BUSY].first; c; c = c->next) {
            if (!c->req || !c->req->put_off || !c->req->asleep)
                continue;
            if (uid_of(c->req) != h->turn.last_uid)
                return c->req;
            first = first ? first : c->req;
        }
    return first;
}

static void on_turn(uv_timer_t *t)
{
    struct stk_http *h = t->data;
    struct stk_request *r = NULL;

    h->turn.at_once = h->turn.spent_ns > TURN_NS / 2 || h->turn.at_once == 0 ? 1
                      : h->turn.at_once < MOST_AT_ONCE                       ? 2 * h->turn.at_once
                                                                             : MOST_AT_ONCE;
    begin_turn(h);
    for (uint32_t i = 0; i < h->turn.at_once && (r = find_next(h)) != NULL; i++) {
        h->turn.last_uid = uid_of(r);
        stk_request_wake(r);
    }
    if (r)
        (void)uv_timer_start(t, on_turn, 1, 0);
}

bool stk_turn_puts_off(struct stk_request *r)
{
    struct stk_http *h = r->http;

    begin_turn(h);
    if (h->stopping || h->turn.spent_ns < TURN_NS || !was_served(h, uid_of(r)))
        return false;
    if (!uv_is_active((uv_handle_t *)h->later))
        (void)uv_timer_start(h->later, on_turn, 1, 0);
    return true;
}

void stk_turn_served(struct stk_http *h, uint32_t uid, uint64_t took_ns)
{
    h->turn.spent_ns += took_ns;
    if (!was_served(h, uid))
        h->turn.served[h->turn.n_served++] = uid;
}
