/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - the dashboard (web/, bundled into this program), and the way in: /?token=... sets a
 * cookie that scripts cannot read and other sites cannot send, and goes on to the page without the
 * secret in its address. It lasts half a day after the last look at the page, and never longer than
 * the token. /?token= with nothing takes the cookie away. */
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"

extern const char stk_page_html[], stk_page_js[], stk_page_css[];
extern const size_t stk_page_html_len, stk_page_js_len, stk_page_css_len;

#define LOGIN_S 43200 /* half a day */

static void set_cookie(struct stk_api *a, struct stk_request *r, const char *token)
{
    char cookie[320];
    int64_t left = stk_api_token_left_s(a, token);

    (void)snprintf(cookie, sizeof(cookie),
                   "stoker=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%lld%s", token,
                   (long long)(left < LOGIN_S ? left : LOGIN_S),
                   stk_request_is_tls(r) ? "; Secure" : "");
    stk_request_add(r, "Set-Cookie", cookie);
}

void stk_api_stay_logged_in(struct stk_api *a, struct stk_request *r)
{
    const char *token = stk_request_cookie(r);

    if (token)
        set_cookie(a, r, token);
}

static void log_in(struct stk_api *a, struct stk_request *r, const char *token)
{
    struct stk_peer peer = {.token = token};
    struct stk_who who;

    if (stk_request_is_unix(r) || strlen(token) > 200 || strpbrk(token, "; \t\r\n,\"\\") ||
        stk_api_identify(a, &peer, &who) < 0) {
        stk_request_error(r, 401, NULL, "this link is not, or no longer, valid");
        return;
    }
    stk_request_text(r, 303, "text/plain", "", 0);
    set_cookie(a, r, token);
    stk_request_add(r, "Location", "/");
}

static void log_out(struct stk_request *r)
{
    stk_request_text(r, 303, "text/plain", "", 0);
    stk_request_add(r, "Set-Cookie", "stoker=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    stk_request_add(r, "Location", "/");
}

void stk_do_page(void *ctx, struct stk_request *r)
{
    const char *token = stk_request_query(r, "token");

    if (token && !*token) {
        log_out(r);
        return;
    }
    if (token) {
        log_in(ctx, r, token);
        return;
    }
    stk_request_text(r, 200, "text/html; charset=utf-8", stk_page_html, stk_page_html_len);
    stk_api_stay_logged_in(ctx, r);
}

void stk_do_page_js(void *ctx, struct stk_request *r)
{
    (void)ctx;
    stk_request_text(r, 200, "text/javascript; charset=utf-8", stk_page_js, stk_page_js_len);
}

void stk_do_page_css(void *ctx, struct stk_request *r)
{
    (void)ctx;
    stk_request_text(r, 200, "text/css; charset=utf-8", stk_page_css, stk_page_css_len);
}
