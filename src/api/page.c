/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - the dashboard (web/, bundled into this program). Anybody may read it: who looks is asked
 * by what it asks for. A token in its address ("/?token=...") is the page's own business: it takes
 * it out of there and logs in with it. */
#include "api/handlers.h"

extern const char stk_page_html[], stk_page_js[], stk_page_css[];
extern const size_t stk_page_html_len, stk_page_js_len, stk_page_css_len;

void stk_do_page(void *ctx, struct stk_request *r)
{
    (void)ctx;
    stk_request_constant(r, "text/html; charset=utf-8", stk_page_html, stk_page_html_len);
}

void stk_do_page_js(void *ctx, struct stk_request *r)
{
    (void)ctx;
    stk_request_constant(r, "text/javascript; charset=utf-8", stk_page_js, stk_page_js_len);
}

void stk_do_page_css(void *ctx, struct stk_request *r)
{
    (void)ctx;
    stk_request_constant(r, "text/css; charset=utf-8", stk_page_css, stk_page_css_len);
}
