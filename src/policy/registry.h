/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - every policy by name, and the bundles made of them. A new policy is a file and
 * three lines: its declaration here, its place in a table in registry.c, the file in meson.build.
 */
#ifndef STK_POLICY_REGISTRY_H
#define STK_POLICY_REGISTRY_H

#include "core/policy.h"

extern const struct stk_order_ops stk_order_fifo, stk_order_priority, stk_order_sjf, stk_order_ssf,
    stk_order_srtf, stk_order_srsf, stk_order_las, stk_order_advised, stk_order_fairshare,
    stk_order_drf, stk_order_ftf, stk_order_edf;
extern const struct stk_backfill_ops stk_backfill_none, stk_backfill_skip, stk_backfill_easy,
    stk_backfill_conservative;
extern const struct stk_place_ops stk_place_first_fit, stk_place_pack, stk_place_spread,
    stk_place_topology, stk_place_count, stk_place_bestfit, stk_place_dotprod, stk_place_gpupacking,
    stk_place_gpuclustering, stk_place_fgd, stk_place_random, stk_place_stoker, stk_place_share,
    stk_place_energy;
extern const struct stk_preempt_ops stk_preempt_none, stk_preempt_tier, stk_preempt_afresh,
    stk_preempt_lucid, stk_preempt_advised, stk_preempt_reclaim;
extern const struct stk_admit_ops stk_admit_possible;

extern const struct stk_param *const stk_energy_off_after; /* of place energy, for engines */
extern const struct stk_param *const stk_hetero_objective; /* of order advised, for advisers */

/* Tables, each ends with NULL. */
extern const struct stk_order_ops *const stk_orders[];
extern const struct stk_backfill_ops *const stk_backfills[];
extern const struct stk_place_ops *const stk_places[];
extern const struct stk_preempt_ops *const stk_preempts[];
extern const struct stk_admit_ops *const stk_admits[];

/* NULL when unknown. */
const struct stk_order_ops *stk_order_find(const char *name);
const struct stk_backfill_ops *stk_backfill_find(const char *name);
const struct stk_place_ops *stk_place_find(const char *name);
const struct stk_preempt_ops *stk_preempt_find(const char *name);
const struct stk_admit_ops *stk_admit_find(const char *name);

/* The declaration of a parameter of any policy, of the core, or of 'more' (may be NULL). */
const struct stk_param *stk_param_find(const char *name, const struct stk_param *more);

/* Shared by placement policies: the node with most free GPUs. */
uint32_t stk_place_emptiest(const struct stk_state *s, const struct stk_want *w);
/* ... with least that suffices. */
uint32_t stk_place_fullest(const struct stk_state *s, const struct stk_want *w);

/* A named choice of one policy for each decision. 'share' says whether whole GPUs may have two
 * owners: "none", or "pairs". That follows from 'place'. */
struct stk_bundle {
    const char *name;
    const char *order, *admit, *backfill, *place, *preempt, *share;
    const char *params; /* "k=v k=v", "" for none */
    const char *help;
};
extern const struct stk_bundle stk_bundles[]; /* ends with name NULL */
const struct stk_bundle *stk_bundle_find(const char *name);

#endif
