/* SPDX-License-Identifier: Apache-2.0 */
/* strict.c - heads that two programs could read in two ways.
 *
 * A proxy in front of the daemon and the library below may disagree about where a request ends, or
 * whose it is, when the head says it twice. libmicrohttpd takes the first of several values, lets
 * Transfer-Encoding win over Content-Length, and cuts the path at a NUL; so all of these are
 * refused here, before anything else is looked at, and the connection is closed.
 */
#include <string.h>
#include <strings.h>

#include "api/conn.h"

struct head {
    uint32_t hosts, lengths, encodings;
    const char *encoding;
};

static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct head *h = cls;

    (void)kind;
    h->hosts += strcasecmp(name, "Host") == 0;
    h->lengths += strcasecmp(name, "Content-Length") == 0;
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        h->encodings++;
        h->encoding = value ? value : "";
    }
    return MHD_YES;
}

static const char *find_fault(const struct head *h)
{
    if (h->hosts > 1)
        return "the request has two Host headers; send one";
    if (h->lengths > 1)
        return "the request has two Content-Length headers; send one";
    if (h->lengths > 0 && h->encodings > 0)
        return "the request has both Content-Length and Transfer-Encoding; send one of them";
    if (h->encodings > 1 || (h->encodings == 1 && strcasecmp(h->encoding, "chunked") != 0))
        return "the only Transfer-Encoding that is taken is \"chunked\", once";
    return NULL;
}

/* libmicrohttpd hands out path and version as they lie in the request line, one behind the other:
 * where the path ends before the version begins, a NUL is in it. Its later versions refuse that
 * themselves. */
static bool has_nul(const struct stk_conn *c, const char *url, const char *version)
{
#if MHD_VERSION < 0x00097600
    if (version != url + c->line_len + 1)
        return true;
#else
    (void)url;
    (void)version;
#endif
    return c->escaped_nul;
}

size_t stk_strict_unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct stk_conn *c = info ? info->socket_context : NULL;

    (void)cls;
    if (c && strstr(text, "%00"))
        c->escaped_nul = true;
    return MHD_http_unescape(text);
}

void *stk_strict_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct stk_conn *c = info ? info->socket_context : NULL;

    (void)cls;
    if (c) {
        c->line_len = strlen(uri);
        c->escaped_nul = false;
    }
    return NULL; /* the request is made later */
}

bool stk_strict_head(struct stk_request *r, const char *url, const char *version)
{
    struct head h = {0};
    const char *fault;

    MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, count_header, &h);
    fault = find_fault(&h);
    if (!fault && has_nul(r->conn, url, version))
        fault = "the path or the query has a NUL (%00)";
    if (!fault)
        return true;
    r->at_once = true;
    stk_request_error(r, 400, NULL, "%s", fault);
    stk_request_add(r, "Connection", "close");
    return false;
}
