/* SPDX-License-Identifier: Apache-2.0 */
/* unread.c - how many bytes of answers one user may leave unread.
 *
 * An answer is kept in memory until its client has taken all of it. A client that asks and does not
 * read costs the daemon the whole answer, over as many connections as the client has. So bytes of
 * answers are counted by user, those that are still being made included. From half of the bound on
 * no further question is taken; an answer that was in the making then is dropped when it goes over
 * the bound. Both are answered 429. One answer of a user is always made, whatever its size.
 *
 * Short answers are always given: their number is bounded by that of a user's requests. What a
 * change has done is always told: a change is refused before it is begun, or not at all.
 *
 * Senders without a name (on TCP, without a token) are counted together, as one user.
 */
#include <string.h>

#include "api/conn.h"

#define SHORT ((size_t)64 << 10) /* bytes of an answer that is always given */

static bool is_same_sender(const struct stk_request *a, const struct stk_request *b)
{
    return a->known == b->known && (!a->known || a->who.uid == b->who.uid);
}

/* Bytes of the other answers of its sender. */
static size_t count_others(const struct stk_request *r)
{
    size_t n = 0;

    for (uint32_t i = 0; i < r->http->n_doors; i++)
        for (struct stk_conn *c = r->http->doors[i].list[STK_CONN_BUSY].first; c; c = c->next)
            if (c->req && c->req != r && is_same_sender(c->req, r))
                n += c->req->unread;
    return n;
}

size_t stk_request_room(const struct stk_request *r)
{
    const size_t most = stk_limits_unread(r);
    const size_t others = r->http ? count_others(r) : 0;

    if (others == 0)
        return SIZE_MAX;
    return others < most && most - others > SHORT ? most - others : SHORT;
}

void stk_request_making(struct stk_request *r, size_t bytes)
{
    r->unread = bytes;
}

void stk_request_unread(struct stk_request *r)
{
    const bool connected = r->mhd != NULL; /* else it is gone with its answer */

    r->unread = 0;
    stk_request_error(r, 429, "unread",
                      "%s has not read the answers to earlier requests, and at most %zu MiB are "
                      "kept; read these first",
                      r->known ? r->who.user : "a client without a token",
                      stk_limits_unread(r) >> 20);
    if (connected)
        stk_request_add(r, "Retry-After", "1");
}

static bool is_question(const struct stk_request *r)
{
    return strcmp(r->route->method, "GET") == 0;
}

bool stk_unread_begins(struct stk_request *r)
{
    const size_t most = stk_limits_unread(r);

    if (count_others(r) < (is_question(r) ? most / 2 : most))
        return true;
    stk_request_unread(r);
    return false;
}

bool stk_unread_fits(struct stk_request *r, size_t len)
{
    if (len > SHORT && is_question(r) && len > stk_request_room(r)) {
        stk_request_unread(r);
        return false;
    }
    r->unread = len;
    return true;
}
