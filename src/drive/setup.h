/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h - which policies and parameters a run uses: a bundle, changed by what the user
 * named. */
#ifndef STK_DRIVE_SETUP_H
#define STK_DRIVE_SETUP_H

#include "base/err.h"
#include "core/policy.h"

#define STK_SETUP_DRAIN_AFTER "7200" /* drain.after_s of a daemon where nobody says it */

struct stk_setup_words { /* as given; NULL: not */
    const char *bundle, *order, *backfill, *place, *preempt;
    const char *const *params; /* "k=v" */
    uint32_t n_params;
    bool tenants; /* some are given: "default" is then as "teams" */
};

struct stk_setup {
    char name[64]; /* shown */
    const struct stk_order_ops *order;
    const struct stk_backfill_ops *backfill;
    const struct stk_place_ops *place;
    const struct stk_preempt_ops *preempt;
    const struct stk_admit_ops *admit;
    struct stk_params params;
};

/* Without a bundle, the one named like the order is the base, or "default". Parameters of policies
 * that are not used are left out (stk_setup_uses() tells). -EINVAL with the names that exist when
 * one does not. */
int stk_setup_resolve(const struct stk_setup_words *w, struct stk_setup *ret_setup,
                      struct stk_err *err);
/* What a daemon adds where nobody says otherwise, the policies know reservations, and no guarantees
 * are kept: GPUs are kept free for jobs that others pass for too long. 'usual': the priority of the
 * default queue, for tier.plain. */
int stk_setup_serve(struct stk_setup *s, int32_t usual, struct stk_err *err);
/* Whether "k=v" means anything to the policies of this setup. */
bool stk_setup_uses(const struct stk_setup *s, const char *kv);
/* A policy that "k=v" means something to: "place: energy"; "" where it is no policy's. */
void stk_setup_owner(const char *kv, char *buf, size_t size);
void stk_setup_describe(const struct stk_setup *s, char *buf, size_t size);

#endif
