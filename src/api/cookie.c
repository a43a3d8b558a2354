/* SPDX-License-Identifier: Apache-2.0 */
/* cookie.c - a browser's session, as it comes in and goes out.
 *
 * Browsers send a cookie to every port of a host. So it is only half of a session; the other half
 * lies in the storage of the page, which belongs to one port alone, and comes in a header, which no
 * page of another origin may add. Cookies of the same name can also be set from other ports: all
 * that come are taken, and one of them must be the right one.
 *
 * The port is in the name, for several daemons on one host. Where the browser used https the name
 * begins with "__Host-": then it was set by this host over https, and is sent over nothing else.
 */
#include <stdio.h>
#include <string.h>

#include "api/conn.h"

#define SECURE "__Host-"
#define PAGE_HEADER "Stoker-Session"
#define MAX_HALF 200

bool stk_request_from_own_page(const struct stk_request *r)
{
    const char *site = stk_request_header(r, "Sec-Fetch-Site");
    const char *origin = stk_request_header(r, "Origin"), *host = stk_request_header(r, "Host");
    const char *rest = origin ? strstr(origin, "://") : NULL;

    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return false;
    if (!origin)
        return site || strcmp(r->route->method, "GET") == 0;
    return rest && host && strcmp(rest + 3, host) == 0;
}

/* "stoker-8470" */
static void name_cookie(const struct stk_http *h, char *buf, size_t size)
{
    const char *port = strrchr(h->url, ':');

    (void)snprintf(buf, size, "stoker-%.5s", port ? port + 1 : "0");
}

struct collecting {
    char name[16];
    struct stk_cookies *to;
};

static enum MHD_Result take_cookie(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct collecting *c = cls;

    (void)kind;
    if (strncmp(name, SECURE, sizeof(SECURE) - 1) == 0)
        name += sizeof(SECURE) - 1;
    if (strcmp(name, c->name) == 0 && value && strlen(value) <= MAX_HALF)
        c->to->value[c->to->n++] = value;
    return c->to->n < sizeof(c->to->value) / sizeof(*c->to->value) ? MHD_YES : MHD_NO;
}

bool stk_cookie_read(const struct stk_request *r, struct stk_peer *peer)
{
    const char *page = stk_request_header(r, PAGE_HEADER);
    struct collecting c = {.to = &peer->cookies};

    if (!page)
        return false;
    if (strlen(page) > MAX_HALF || !stk_request_from_own_page(r))
        return true;
    name_cookie(r->http, c.name, sizeof(c.name));
    (void)MHD_get_connection_values(r->mhd, MHD_COOKIE_KIND, take_cookie, &c);
    peer->page = page;
    return true;
}

void stk_request_set_cookie(struct stk_request *r, const char *value, int64_t max_age_s)
{
    const char *origin = stk_request_header(r, "Origin");
    bool secure = (r->conn && r->conn->door->tls) || (origin && strncmp(origin, "https:", 6) == 0);
    char name[16], cookie[MAX_HALF + 128];

    name_cookie(r->http, name, sizeof(name));
    (void)snprintf(cookie, sizeof(cookie),
                   "%s%s=%.*s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%lld%s",
                   secure ? SECURE : "", name, MAX_HALF, value, (long long)max_age_s,
                   secure ? "; Secure" : "");
    stk_request_add(r, "Set-Cookie", cookie);
}
