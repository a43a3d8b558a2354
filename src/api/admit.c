/* SPDX-License-Identifier: Apache-2.0 */
/* admit.c - what is checked before a handler sees a request, in this order: the head, the URL, the
 * name it used for us, the route, the sender, the query, the size.
 *
 * The name (the Host header) matters on TCP: a web page of somebody else whose name is made to
 * point at this machine ("DNS rebinding") still sends its own name.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/conn.h"
#include "api/route.h"
#include "base/near.h"

/* The host part of "host:port" or "[v6]:port". */
static void host_part(const char *value, char *host, size_t size)
{
    size_t len = strcspn(value, ":");

    if (value[0] == '[') {
        value++;
        len = strcspn(value, "]");
        len = value[len] == ']' ? len : 0;
    }
    (void)snprintf(host, size, "%.*s", (int)(len < 255 ? len : 255), value);
}

static bool known_host(const struct stk_http *h, const char *value)
{
    unsigned char address[16];
    char host[256];
    size_t len;

    if (!value)
        return false;
    host_part(value, host, sizeof(host));
    len = strlen(host);
    if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, h->hostname) == 0 ||
        (len > 10 && strcasecmp(host + len - 10, ".localhost") == 0) ||
        inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return true;
    for (const char *const *n = h->cfg.hosts; n && *n; n++)
        if (strcasecmp(host, *n) == 0)
            return true;
    return false;
}

/* A session that is not valid makes a stranger of its browser, who may still read the page and log
 * in; a token that is not valid is an error of a program, which is told. */
static int identify(struct stk_request *r)
{
    const struct stk_conn *c = r->conn;
    struct stk_peer peer = {.is_unix = c->door->is_unix, .uid = c->uid, .gid = c->gid};
    const char *header = stk_request_header(r, "Authorization");
    int rc;

    if (peer.is_unix && peer.uid == UINT32_MAX)
        return -EACCES;
    if (!peer.is_unix && header)
        peer.token = strncasecmp(header, "Bearer ", 7) == 0 ? header + 7 : "";
    else if (!peer.is_unix)
        r->session_over = stk_cookie_read(r, &peer);
    if (!peer.is_unix && !peer.token && !peer.page)
        return 0;
    rc = r->http->cfg.identify(r->http->cfg.ctx, &peer, &r->who, &r->pass);
    r->known = rc == 0;
    if (rc == 0)
        r->session_over = false;
    return peer.page ? 0 : rc;
}

static bool allowed(struct stk_request *r)
{
    static const char *const names[] = {
        [STK_NEED_OPERATOR] = "operators", [STK_NEED_ADMIN] = "admins"};
    enum stk_need need = r->route->need;

    if (need == STK_NEED_NONE || (need == STK_NEED_LOCAL && r->conn->door->loopback))
        return true;
    if (!r->known) {
        if (r->session_over)
            stk_request_error(
                r, 401, NULL,
                "your session has ended or was revoked; log in again: \"stoker login\" "
                "on the machine itself prints a link");
        else
            stk_request_error(r, 401, NULL,
                              "this needs a token (Authorization: Bearer ...); make one with "
                              "\"stoker token create\" on the machine itself");
        return false;
    }
    if ((need == STK_NEED_OPERATOR && r->who.role < STK_ROLE_OPERATOR) ||
        (need == STK_NEED_ADMIN && r->who.role < STK_ROLE_ADMIN)) {
        stk_request_error(r, 403, NULL, "only %s may do this; %s is not one of them", names[need],
                          r->who.user);
        return false;
    }
    return true;
}

static enum MHD_Result check_name(void *cls, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct stk_request *r = cls;

    (void)kind;
    (void)value;
    if (!stk_route_takes(r->route, name)) {
        if (r->route->query && *r->route->query)
            stk_request_error(r, 400, NULL, "the query has no \"%.40s\"; there are: %s", name,
                              r->route->query);
        else
            stk_request_error(r, 400, NULL, "%s %s takes no query, got \"%.40s\"", r->route->method,
                              r->route->path, name);
        return MHD_NO;
    }
    return MHD_YES;
}

static bool find_route(struct stk_request *r, const char *url, const char *method)
{
    const struct stk_route *other, *routes = r->http->cfg.routes;
    const char *near;

    r->route = stk_route_find(routes, method, url, &other);
    if (r->route) {
        (void)stk_route_fits(r->route->path, url, r->params, STK_MAX_PATH_PARAMS);
        return true;
    }
    if (other) {
        char allow[64];

        stk_route_allow(routes, url, allow, sizeof(allow));
        stk_request_error(r, 405, NULL, "%.20s cannot be done to %.100s; %s can", method, url,
                          allow);
        stk_request_add(r, "Allow", allow);
        return false;
    }
    near = stk_route_near(routes, url);
    if (near)
        stk_request_error(r, 404, NULL, "there is no %.200s; did you mean %s?", url, near);
    else
        stk_request_error(r, 404, NULL, "there is no %.200s; /openapi.json lists what there is",
                          url);
    return false;
}

static bool check_size(struct stk_request *r)
{
    const char *length = stk_request_header(r, "Content-Length");
    struct stk_scan_limits max;

    stk_limits_of(r, &max);
    stk_scan_init(&r->scan, &max);
    if (!length || strtoull(length, NULL, 10) <= max.bytes)
        return true;
    r->at_once = true;
    stk_request_error(r, 413, NULL,
                      "the body has %.20s bytes; at most %zu are taken here from %s; split the "
                      "request",
                      length, max.bytes, max.who);
    return false;
}

/* A daemon that is not root can run jobs as its own user only: it says so before it takes one. */
static bool is_own_user(struct stk_request *r)
{
    const struct stk_conn *c = r->conn;

    if (!c->door->is_unix || !r->http->cfg.own_user_only || c->uid == geteuid())
        return true;
    stk_request_error(
        r, 403, NULL,
        "this daemon runs as uid %u and serves that user only, you are uid %u; use the "
        "machine's own daemon (systemctl start stoker), or start yours: stoker serve",
        (unsigned)geteuid(), c->uid);
    return false;
}

static bool in_order(struct stk_request *r, const char *url, const char *method)
{
    const struct stk_door *d = r->conn->door;
    int rc;

    if (r->http->stopping) {
        stk_request_error(r, 503, NULL, "the daemon is stopping; ask again when it is back");
        return false;
    }
    if (strlen(url) > STK_HTTP_MAX_URL) {
        stk_request_error(r, 414, NULL, "the URL is longer than %u characters", STK_HTTP_MAX_URL);
        return false;
    }
    if (!d->is_unix && !known_host(r->http, stk_request_header(r, "Host"))) {
        stk_request_error(r, 403, NULL,
                          "this daemon does not go by that name (Host header); use its address, or "
                          "list the name under \"hosts\" in its configuration");
        return false;
    }
    if (!find_route(r, url, method) || !is_own_user(r))
        return false;
    rc = identify(r);
    if (rc < 0) {
        stk_request_error(r, 401, NULL, "%s",
                          d->is_unix ? "this machine does not know your user id"
                                     : "the token is not known; it may have been deleted");
        return false;
    }
    if (!allowed(r))
        return false;
    MHD_get_connection_values(r->mhd, MHD_GET_ARGUMENT_KIND, check_name, r);
    return !r->response && check_size(r);
}

void stk_request_admit(struct stk_request *r, const char *url, const char *method,
                       const char *version)
{
    r->refused = !stk_strict_head(r, url, version) || !in_order(r, url, method);
}
