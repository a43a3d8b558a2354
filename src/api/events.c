/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - the journal as server-sent events.
 *
 * A listener is a position in the journal; what it has not had yet is read from the store, a piece
 * at a time, as fast as it takes it. So a slow listener costs nothing and misses nothing: when it
 * takes nothing at all its connection is closed, and it goes on later with Last-Event-ID. Listeners
 * that keep up all want the same piece next, which is therefore made once.
 *
 * Sending to many takes time of the one thread that decides. So listeners are woken after the
 * answers of a turn have gone out, and not for every turn: what happened within PAUSE_MS goes to
 * all of them together.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/show.h"
#include "model/wire.h"
#include "sys/big.h"

#define PIECE ((size_t)32768)
#define BEAT_MS 15000u
#define PAUSE_MS 100u /* between two times that all are woken */
#define SOON_MS 2u    /* answers go first */

struct stk_feed {
    struct stk_feed *prev, *next;
    struct stk_api *api;
    struct stk_request *req;
    uint64_t after; /* everything up to here is in 'buf' or was sent */
    char *buf;
    size_t len, at;
    char *extra; /* what is not in the journal, to be sent between two events of it */
    size_t n_extra, at_extra;
    uint64_t sent_ms;
    bool beat, said_bye;
};

#define MAX_EXTRA ((size_t)65536) /* of a listener that takes nothing: more is dropped */

static void set(json_t *o, const char *key, json_t *take)
{
    (void)json_object_set_new(o, key, take);
}

static const char *node_name(const struct stk_api *a, stk_node_id node)
{
    const struct stk_live_config *cfg = stk_live_config(a->cfg.live);

    return node.i < cfg->core.n_nodes ? cfg->nodes[node.i].name : "?";
}

/* What the event says beside its type and its job. */
static void add_detail(const struct stk_api *a, json_t *o, const struct stk_event *ev)
{
    if (ev->type == STK_EV_SUBMIT) {
        const struct stk_demand *d = &ev->u.spec->demand;

        set(o, "gpus", stk_show_gpus((uint64_t)d->gpus * d->tasks, d->gpu_milli));
        set(o, "kind", json_string(stk_kind_name(ev->u.spec->kind)));
    } else if (ev->type == STK_EV_PLACE && ev->u.place.n > 0) {
        set(o, "node", json_string(node_name(a, ev->u.place.pieces[0].node)));
        set(o, "gpu_indices", stk_show_indices(ev->u.place.pieces[0].mask));
        set(o, "pieces", stk_show_pieces(a, ev->u.place.pieces, ev->u.place.n));
    } else if (ev->type == STK_EV_EXITED) {
        set(o, "cause", json_string(stk_show_cause(ev->u.exit.cause)));
        set(o, "code", json_integer(ev->u.exit.code));
        if (ev->u.exit.ended) /* the engine heard of it later */
            set(o, "ended", stk_show_time(ev->u.exit.ended));
    } else if (ev->type == STK_EV_EVICT) {
        set(o, "suspend", json_boolean(ev->u.evict.suspend));
        set(o, "by_hand", json_boolean(ev->u.evict.by_hand));
        set(o, "moved", json_boolean(ev->u.evict.moved));
        set(o, "kill", json_boolean(ev->u.evict.kill));
        stk_show_evictor(a, o, ev);
    } else if (ev->type == STK_EV_UPDATE) {
        set(o, "priority", json_integer(ev->u.update.priority));
        set(o, "estimate_s", json_real((double)ev->u.update.estimate / 1e6));
    } else if (ev->type == STK_EV_SET) {
        set(o, "kind", json_string(stk_set_kind_name(ev->u.set->kind)));
        set(o, "clear", json_boolean(ev->u.set->clear));
        set(o, "row", json_integer(ev->u.set->row));
        set(o, "column", json_integer(ev->u.set->column));
        set(o, "value", json_integer(ev->u.set->value));
        set(o, "name", json_string(ev->u.set->name));
        set(o, "text", json_string(ev->u.set->text));
    } else if (ev->type == STK_EV_RESERVE) {
        set(o, "reservation", json_integer(ev->u.booking->tag));
        set(o, "window", json_integer(ev->u.booking->number));
        set(o, "gpus", json_integer(ev->u.booking->gpus));
        set(o, "start", stk_show_time(ev->u.booking->start));
        set(o, "end", stk_show_time(ev->u.booking->end));
    } else if (ev->type == STK_EV_UNRESERVE) {
        set(o, "window", json_integer(ev->u.unreserve.number));
        set(o, "why", json_string(stk_over_name(ev->u.unreserve.why)));
    } else if (ev->type == STK_EV_NODE_DOWN || ev->type == STK_EV_NODE_UP ||
               ev->type == STK_EV_NODE_OFF) {
        set(o, "node", json_string(node_name(a, ev->u.node)));
    } else if (ev->type == STK_EV_GPUS_OFF) {
        set(o, "node", json_string(node_name(a, ev->u.off.node)));
        set(o, "gpu_indices", stk_show_indices(ev->u.off.mask));
    } else if (ev->type == STK_EV_SWAPPED) {
        set(o, "node", json_string(node_name(a, ev->u.swap.node)));
        set(o, "to", json_string(node_name(a, ev->u.swap.to)));
        set(o, "had", stk_show_indices(ev->u.swap.had));
        set(o, "has", stk_show_indices(ev->u.swap.has));
    }
}

struct piece {
    struct stk_api *api;
    struct stk_wire wire;
    char *text;
    size_t len;
    uint64_t to;
};

json_t *stk_api_event(const struct stk_api *a, const struct stk_row *row, struct stk_wire *wire)
{
    json_t *o;

    if (row->type == STK_EV_TICK || row->type >= STK_EV_TYPE_MAX)
        return NULL;
    o = json_pack("{s:I,s:o,s:s,s:o}", "seq", (json_int_t)row->seq, "at", stk_show_time(row->at),
                  "type", stk_event_type_name((enum stk_event_type)row->type), "job",
                  row->number ? json_integer(row->number) : json_null());
    if (o && stk_wire_get(row->bytes, row->len, wire, NULL) == 0)
        add_detail(a, o, &wire->ev);
    return o;
}

static int add_event(void *ctx, const struct stk_row *row)
{
    struct piece *p = ctx;
    json_t *o = stk_api_event(p->api, row, &p->wire);
    char *data;
    int n = 0;

    p->to = row->seq;
    if (!o)
        return 0;
    data = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(16));
    json_decref(o);
    if (data)
        n = snprintf(p->text + p->len, PIECE - p->len, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n",
                     row->seq, stk_event_type_name((enum stk_event_type)row->type), data);
    free(data);
    if (n < 0 || (size_t)n >= PIECE - p->len) { /* full; this one is the next piece's first */
        p->to = row->seq - 1;
        return p->len == 0 ? 0 : 1;
    }
    p->len += (size_t)n;
    return 0;
}

/* Makes the piece after 'after' unless it is there already. */
static int make_piece(struct stk_api *a, uint64_t after)
{
    struct stk_feed_text *t = &a->feed_text;
    struct piece p = {.api = a, .to = after};
    int rc;

    if (t->text && t->from == after && t->to > after)
        return 0;
    if (!t->text)
        t->text = malloc(PIECE);
    if (!t->text)
        return -ENOMEM;
    p.text = t->text;
    stk_wire_init(&p.wire, &stk_big_mem);
    rc = stk_store_read(stk_live_store(a->cfg.live), after, add_event, &p, NULL);
    stk_wire_done(&p.wire);
    *t = (struct stk_feed_text){after, rc < 0 ? after : p.to, t->text, rc < 0 ? 0 : p.len};
    return rc;
}

/* Events it wanted are no longer kept: says so, and goes on with the oldest that is. */
static void tell_gap(struct stk_feed *f)
{
    uint64_t first = 1, last = 0;

    if (stk_store_span(stk_live_store(f->api->cfg.live), &first, &last, NULL) < 0 || first == 0)
        first = stk_live_seq(f->api->cfg.live) + 1;
    f->len = (size_t)snprintf(f->buf, PIECE,
                              "event: gap\ndata: {\"after\":%" PRIu64 ",\"next\":%" PRIu64 "}\n\n",
                              f->after, first);
    f->after = first - 1;
}

static void refill(struct stk_feed *f)
{
    const struct stk_feed_text *t = &f->api->feed_text;
    uint64_t seq = stk_live_seq(f->api->cfg.live);
    int rc;

    f->at = f->len = 0;
    if (f->after > seq) {
        tell_gap(f);
        return;
    }
    while (f->len == 0 && f->after < seq) {
        rc = make_piece(f->api, f->after);
        if (rc == -ERANGE)
            tell_gap(f);
        if (rc < 0 || t->to == f->after)
            return;
        memcpy(f->buf, t->text, t->len);
        f->len = t->len;
        f->after = t->to;
    }
}

static size_t send_extra(struct stk_feed *f, char *buf, size_t max)
{
    size_t n = f->n_extra - f->at_extra < max ? f->n_extra - f->at_extra : max;

    memcpy(buf, f->extra + f->at_extra, n);
    f->at_extra += n;
    if (f->at_extra == f->n_extra)
        f->at_extra = f->n_extra = 0;
    f->sent_ms = uv_now(f->api->cfg.loop);
    return n;
}

static void add_extra(struct stk_feed *f, const char *text, size_t n)
{
    char *more = f->n_extra + n <= MAX_EXTRA ? realloc(f->extra, f->n_extra + n) : NULL;

    if (!more)
        return;
    f->extra = more;
    memcpy(f->extra + f->n_extra, text, n);
    f->n_extra += n;
    stk_request_wake(f->req);
}

void stk_api_tell(struct stk_api *a, stk_job_number number, const char *type, const char *sentence)
{
    stk_api_tell_of(a, type,
                    json_pack("{s:I,s:s,s:o,s:s}", "job", (json_int_t)number, "type", type, "at",
                              stk_show_time(stk_api_now(a)), "text", sentence));
}

void stk_api_tell_of(struct stk_api *a, const char *type, json_t *take)
{
    char *data = take ? json_dumps(take, JSON_COMPACT | JSON_REAL_PRECISION(16)) : NULL,
         *text = NULL;
    int n = data ? asprintf(&text, "event: %s\ndata: %s\n\n", type, data) : -1;

    for (struct stk_feed *f = a->feeds; f && n > 0; f = f->next)
        add_extra(f, text, (size_t)n);
    if (n > 0)
        free(text);
    free(data);
    json_decref(take);
}

static ssize_t fill(void *ctx, char *buf, size_t max, bool stopping)
{
    static const char bye[] = "event: stopping\ndata: {}\n\n";
    struct stk_feed *f = ctx;
    size_t n;

    if (f->at == f->len && f->at_extra < f->n_extra)
        return (ssize_t)send_extra(f, buf, max);
    if (f->at == f->len && !stopping) /* a client that is far behind must not hold the stop up */
        refill(f);
    if (f->at == f->len && stopping && f->said_bye)
        return STK_STREAM_END;
    if (f->at == f->len && stopping) {
        f->said_bye = true;
        return snprintf(buf, max, "%s", bye); /* blocks are much larger than this */
    }
    if (f->at == f->len && f->beat) {
        f->beat = false;
        f->sent_ms = uv_now(f->api->cfg.loop);
        return snprintf(buf, max, ":\n\n");
    }
    n = f->len - f->at < max ? f->len - f->at : max;
    if (n > 0) {
        memcpy(buf, f->buf + f->at, n);
        f->at += n;
        f->sent_ms = uv_now(f->api->cfg.loop);
    }
    return (ssize_t)n;
}

static void done(void *ctx)
{
    struct stk_feed *f = ctx;

    if (f->prev)
        f->prev->next = f->next;
    else
        f->api->feeds = f->next;
    if (f->next)
        f->next->prev = f->prev;
    free(f->buf);
    free(f->extra);
    free(f);
}

static const struct stk_stream_ops feed_ops = {fill, done};

static void wake_all(uv_timer_t *t)
{
    struct stk_api *a = t->data;
    uint64_t seq = stk_live_seq(a->cfg.live);

    a->fed_ms = uv_now(a->cfg.loop);
    for (struct stk_feed *f = a->feeds; f; f = f->next)
        if (f->after < seq)
            stk_request_wake(f->req);
}

void stk_feed_turn(struct stk_api *a)
{
    uint64_t past = uv_now(a->cfg.loop) - a->fed_ms;

    if (a->feeds && !uv_is_active((uv_handle_t *)a->feed_timer))
        (void)uv_timer_start(a->feed_timer, wake_all,
                             past < PAUSE_MS - SOON_MS ? PAUSE_MS - past : SOON_MS, 0);
}

void stk_feed_tick(struct stk_api *a)
{
    uint64_t now = uv_now(a->cfg.loop);

    for (struct stk_feed *f = a->feeds; f; f = f->next)
        if (now - f->sent_ms >= BEAT_MS) {
            f->beat = true;
            stk_request_wake(f->req);
        }
}

/* Where to begin: Last-Event-ID, ?after=, or now. */
static int read_start(struct stk_api *a, struct stk_request *r, uint64_t *ret)
{
    const char *id = stk_request_header(r, "Last-Event-ID");
    char *end;

    if (!id)
        return stk_request_number(r, "after", stk_live_seq(a->cfg.live), INT64_MAX, ret);
    *ret = strtoull(id, &end, 10);
    if (*id == '\0' || *end != '\0' || *ret > INT64_MAX) {
        stk_request_error(r, 400, NULL, "Last-Event-ID must be the id of an event, got \"%.40s\"",
                          id);
        return -EINVAL;
    }
    return 0;
}

void stk_do_events(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_feed *f;
    uint64_t after;

    if (read_start(a, r, &after) < 0)
        return;
    f = calloc(1, sizeof(*f));
    if (f)
        f->buf = malloc(PIECE);
    if (!f || !f->buf) {
        free(f);
        stk_request_error(r, 503, "busy", "out of memory");
        return;
    }
    f->api = a;
    f->req = r;
    f->after = after;
    f->sent_ms = uv_now(a->cfg.loop);
    f->beat = true; /* the first thing sent: now the client knows that it listens */
    f->next = a->feeds;
    if (a->feeds)
        a->feeds->prev = f;
    a->feeds = f;
    stk_request_stream(r, "text/event-stream", &feed_ops, f);
    stk_api_need_tick(a);
}
