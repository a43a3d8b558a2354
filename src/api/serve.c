/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - a request, step by step.
 *
 * libmicrohttpd calls stk_serve_request() first with the headers, then with pieces of the body,
 * then once more: there the handler runs. Without an answer the connection is suspended, and it is
 * called again when it was resumed.
 */
#include <string.h>

#include "api/conn.h"

static enum MHD_Result send_answer(struct stk_request *r, struct MHD_Connection *mhd)
{
    return MHD_queue_response(mhd, (unsigned)r->status, r->response);
}

static enum MHD_Result begin(struct stk_conn *c, struct MHD_Connection *mhd, const char *url,
                             const char *method, const char *version, void **req_ctx)
{
    struct stk_request *r = c ? stk_request_new(c->door->http, c, mhd) : NULL;

    if (!r)
        return MHD_NO;
    *req_ctx = r;
    stk_conn_move(c, STK_CONN_READING);
    stk_request_admit(r, url, method, version);
    /* A short body is read before the refusal is sent: clients that send all before they read get
     * to see it. */
    return r->at_once ? send_answer(r, mhd) : MHD_YES;
}

static enum MHD_Result more(struct stk_request *r, const char *data, size_t *len)
{
    size_t n = *len;

    *len = 0;
    if (r->refused) { /* dropped; but not without end */
        r->dropped += n;
        return r->dropped > STK_HTTP_MAX_BODY ? MHD_NO : MHD_YES;
    }
    r->refused = stk_request_take(r, data, n) < 0;
    return MHD_YES;
}

/* Where files are few, those who wait leave room for others; and whether we are well can be asked
 * always. */
static void refuse_held(struct stk_request *r)
{
    const struct stk_door *d = r->conn->door;
    const uint32_t most = d->limit / 2 < STK_HTTP_MAX_HELD ? d->limit / 2 : STK_HTTP_MAX_HELD;

    if (r->route->need == STK_NEED_LOCAL && strcmp(r->route->path, "/v1/health") == 0)
        return;
    if (r->known && stk_conn_held(r->http, r->who.uid) > most)
        stk_request_error(r, 429, NULL, "%s has more than %u requests waiting", r->who.user, most);
    else if (d->list[STK_CONN_BUSY].n > d->limit - d->limit / 4)
        stk_request_error(r, 503, "busy",
                          "%u requests are being answered, as many as this process may have open "
                          "files for; try again",
                          d->list[STK_CONN_BUSY].n);
    else
        (void)stk_unread_begins(r);
}

/* Its connection sleeps until it is resumed. */
static enum MHD_Result put_to_sleep(struct stk_request *r, struct MHD_Connection *mhd)
{
    if (r->http->closing)
        return MHD_NO;
    r->asleep = true;
    r->http->stats.held++;
    MHD_suspend_connection(mhd);
    return MHD_YES;
}

static void call_handler(struct stk_request *r)
{
    struct stk_http *h = r->http;
    const uint32_t uid = r->known ? r->who.uid : UINT32_MAX;
    const uint64_t begun = uv_hrtime();

    r->dispatched = true;
    r->route->handle(h->cfg.ctx, r);
    stk_turn_served(h, uid, uv_hrtime() - begun);
}

/* The request is whole: its handler is called, now or later. False: later. */
static bool begin_handler(struct stk_request *r)
{
    const bool resumed = r->put_off;

    stk_conn_move(r->conn, STK_CONN_BUSY);
    refuse_held(r);
    r->put_off = !r->response && !resumed && stk_turn_puts_off(r);
    if (r->put_off)
        return false;
    if (!r->response && resumed && r->http->stopping)
        stk_request_error(r, 503, NULL, "the daemon is stopping; ask again when it is back");
    if (r->response)
        r->dispatched = true;
    else
        call_handler(r);
    return true;
}

static enum MHD_Result dispatch(struct stk_request *r, struct MHD_Connection *mhd)
{
    if (!r->dispatched && !r->response && !begin_handler(r))
        return put_to_sleep(r, mhd);
    if (r->conn->state != STK_CONN_BUSY)
        stk_conn_move(r->conn, STK_CONN_BUSY);
    return r->response ? send_answer(r, mhd) : put_to_sleep(r, mhd);
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
enum MHD_Result stk_serve_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **req_ctx)
{
    struct stk_request *r = *req_ctx;

    (void)cls;
    if (!r) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return begin(info ? info->socket_context : NULL, mhd, url, method, version, req_ctx);
    }
    return *len > 0 ? more(r, data, len) : dispatch(r, mhd);
}

void stk_serve_completed(void *cls, struct MHD_Connection *mhd, void **req_ctx,
                         enum MHD_RequestTerminationCode code)
{
    struct stk_request *r = *req_ctx;

    (void)cls;
    (void)mhd;
    (void)code;
    if (!r)
        return;
    *req_ctx = NULL;
    if (r->conn)
        stk_conn_move(r->conn, STK_CONN_WAITING);
    if (r->asleep)
        r->http->stats.held--;
    stk_request_over(r);
}
