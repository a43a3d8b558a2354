/* SPDX-License-Identifier: Apache-2.0 */
/* strict.c - heads that two programs could read in two ways.
 *
 * A proxy in front of the daemon and libmicrohttpd may disagree about where a request ends, or who
 * sent it, when the head is malformed or says a thing twice. libmicrohttpd takes the first of
 * several values, takes any bytes before the colon as a header's name, cuts values at a NUL, and
 * appends a folded line to the header's name. All of these are refused before any other check, and
 * the connection is closed.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/conn.h"

struct head {
    const char *fault; /* the first that was found */
    const char *end;   /* the NUL behind the part of the head that was read last */
    uint32_t hosts, lengths, encodings, authorizations;
    const char *encoding, *host;
};

/* RFC 9110, 5.6.2. */
static bool is_token(const char *name)
{
    static const char chars[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return *name && name[strspn(name, chars)] == '\0';
}

static bool has_control(const char *value)
{
    for (const unsigned char *p = (const unsigned char *)value; *p; p++)
        if ((*p < ' ' && *p != '\t') || *p == 0x7f)
            return true;
    return false;
}

/* Before 0.9.76 libmicrohttpd hands out the lines of a head where it received them: CR, LF and the
 * colon became NULs, and folded lines were copied to another place. So whatever lies between two
 * lines, or between a name and its value, is a NUL of the sender, a bare LF or a folded line. Later
 * versions refuse these themselves. */
static bool is_in_place(const struct head *h, const char *name, const char *value)
{
#if MHD_VERSION < 0x00097600
    const char *between = name + strlen(name) + 1;

    return name == h->end + 2 && value >= between &&
           strspn(between, " \t") == (size_t)(value - between);
#else
    (void)h;
    (void)name;
    (void)value;
    return true;
#endif
}

/* Whether the empty line follows the last header. */
static bool ends_in_place(const struct head *h)
{
#if MHD_VERSION < 0x00097600
    return h->end[1] == '\0' && h->end[2] == '\0' && h->end[3] == '\0';
#else
    (void)h;
    return true;
#endif
}

static enum MHD_Result read_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct head *h = cls;

    (void)kind;
    value = value ? value : "";
    if (!is_token(name))
        h->fault = "the name of a header is empty or has a character that names cannot have";
    else if (has_control(value))
        h->fault = "the value of a header has a control character";
    else if (!is_in_place(h, name, value))
        h->fault = "a header has a NUL, is folded over two lines, or ends without CR and LF";
    h->end = value + strlen(value);
    h->authorizations += strcasecmp(name, "Authorization") == 0;
    h->lengths += strcasecmp(name, "Content-Length") == 0;
    if (strcasecmp(name, "Host") == 0) {
        h->hosts++;
        h->host = value;
    }
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        h->encodings++;
        h->encoding = value;
    }
    return h->fault ? MHD_NO : MHD_YES;
}

/* "host", "host:port" or "[v6]:port", as far as the port. */
static bool has_good_port(const char *host)
{
    const char *p = host[0] == '[' ? strchr(host, ']') : host + strcspn(host, ":");

    if (!p)
        return false;
    p += *p == ']';
    if (*p == '\0')
        return true;
    return *p == ':' && strlen(p + 1) <= 5 && p[1 + strspn(p + 1, "0123456789")] == '\0' &&
           strtoul(p + 1, NULL, 10) <= 65535;
}

static const char *find_fault(const struct head *h, bool is_http10)
{
    if (h->fault)
        return h->fault;
    if (!ends_in_place(h))
        return "the last header has a NUL, is folded over two lines, or ends without CR and LF";
    if (h->hosts > 1)
        return "the request has two Host headers; send one";
    if (h->host && !has_good_port(h->host))
        return "the port in the Host header is not a number up to 65535";
    if (h->authorizations > 1)
        return "the request has two Authorization headers; send one";
    if (h->lengths > 1)
        return "the request has two Content-Length headers; send one";
    if (h->lengths > 0 && h->encodings > 0)
        return "the request has both Content-Length and Transfer-Encoding; send one of them";
    if (h->encodings > 1 || (h->encodings == 1 && strcasecmp(h->encoding, "chunked") != 0))
        return "the only Transfer-Encoding that is taken is \"chunked\", once";
    if (h->encodings > 0 && is_http10)
        return "HTTP/1.0 has no Transfer-Encoding; send Content-Length";
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
    struct head h = {.end = version + strlen(version)};
    const bool is_http10 = strcmp(version, "HTTP/1.0") == 0;
    const char *fault = "the version must be HTTP/1.1 or HTTP/1.0";

    if (is_http10 || strcmp(version, "HTTP/1.1") == 0) {
        MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, read_header, &h);
        fault = find_fault(&h, is_http10);
    }
    if (!fault && has_nul(r->conn, url, version))
        fault = "the path or the query has a NUL (%00)";
    if (!fault)
        return true;
    r->at_once = true;
    stk_request_error(r, 400, NULL, "%s", fault);
    stk_request_add(r, "Connection", "close");
    return false;
}
