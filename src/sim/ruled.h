/* SPDX-License-Identifier: Apache-2.0 */
/* ruled.h - rules (rules/rules.h) in a simulated run: virtual time 0 is some date in some zone. */
#ifndef STK_SIM_RULED_H
#define STK_SIM_RULED_H

#include "drive/loop.h"
#include "rules/read.h"
#include "sim/cluster.h"
#include "sim/tenants.h"

struct stk_run_rules { /* as given; shared by runs, which only read it */
    const char *name;  /* of the file */
    const char *text;
    size_t len;
    const char *zone; /* of rules that name none, and of 'start'; NULL: UTC */
    int64_t start_s;  /* Unix time at virtual time 0 */
};

struct stk_ruled;

/* 'c' and 't' (may be NULL) say what names mean; borrowed. */
int stk_ruled_new(const struct stk_run_rules *f, const struct stk_cluster *c,
                  const struct stk_tenants *t, struct stk_ruled **ret, struct stk_err *err);
void stk_ruled_free(struct stk_ruled *x);
bool stk_ruled_moves_nodes(const struct stk_ruled *x);

/* When a rule is due; STK_NEVER_TIME. */
stk_time stk_ruled_next(const struct stk_ruled *x);
/* Applies what follows. A value that is refused ends the run: it would be a mistake live, too. */
int stk_ruled_feed(struct stk_ruled *x, struct stk_loop *loop, const struct stk_state *s,
                   stk_time now, struct stk_err *err);

/* Seconds since 1970 of "2026-11-16", "2026-11-16 08:00" there. -EINVAL. */
int stk_ruled_start(const char *text, const char *zone, int64_t *ret, struct stk_err *err);

#endif
