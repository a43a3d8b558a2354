/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - how much a request may send, by its route and the role of who sends it; how much of
 * what was answered may be unread.
 *
 * Parsed JSON takes up to a hundred times the memory of its text, and time in which no other
 * request is served. So bytes, values and depth are bounded while a body is read (scan.h).
 * Descriptions of jobs are parsed one by one, so there the bound on values is for each of them.
 */
#include <string.h>

#include "api/conn.h"

#define MIB (UINT64_C(1) << 20)
#define DEPTH 32u

void stk_limits_of(const struct stk_request *r, struct stk_scan_limits *ret)
{
    const bool trusted = r->known && r->who.role >= STK_ROLE_OPERATOR;

    *ret = (struct stk_scan_limits){.bytes = trusted ? STK_HTTP_MAX_BODY : 2 * MIB,
                                    .values = trusted ? 500000 : 120000,
                                    .depth = DEPTH,
                                    .who = trusted ? "operators" : "users"};
    if (!r->route->takes || strcmp(r->route->takes, "Login") == 0) /* strangers send these */
        ret->bytes = 65536;
    if (r->route->takes && strcmp(r->route->takes, "WhatIfNew") == 0) /* may bring a trace */
        ret->bytes = trusted ? STK_HTTP_MAX_BODY : 16 * MIB;
    if (!r->route->takes || strcmp(r->route->takes, "Submit") != 0)
        return;
    ret->bytes = trusted ? STK_HTTP_MAX_BODY : 16 * MIB;
    ret->jobs = trusted ? STK_MAX_SPECS_TRUSTED : STK_MAX_SPECS_USER;
}

size_t stk_limits_bytes(const struct stk_request *r)
{
    return r->known && r->who.role >= STK_ROLE_OPERATOR ? STK_HTTP_MAX_BODIES : 48 * MIB;
}

size_t stk_limits_unread(const struct stk_request *r)
{
    return r->known && r->who.role >= STK_ROLE_OPERATOR ? 128 * MIB : 32 * MIB;
}
