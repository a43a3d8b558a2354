/* SPDX-License-Identifier: Apache-2.0 */
/* seen.h - what jobs have asked for lately, counted by kind as they are submitted: where nobody
 * says what usually comes, the mix (model/mix.h) is learned from it.
 *
 * Counts fade: when they would add up to more than STK_SEEN_SUM all are halved, and kinds that come
 * to nothing are forgotten; no one job counts for more than half of that. So is done when there are
 * too many kinds. The mix is made anew after 20, 100 and 500 jobs, then each time half as many more
 * have come, at the latest after 5000; between that, what is decided does not depend on the counts.
 * Counts and the mix are state: they are saved, and in the digest.
 */
#ifndef STK_CORE_SEEN_H
#define STK_CORE_SEEN_H

#include "base/sort.h"
#include "core/policy.h"
#include "model/mix.h"

#define STK_SEEN_KINDS 512
#define STK_SEEN_SLOTS 1024u
#define STK_SEEN_SUM 20000

struct stk_seen_kind {
    uint32_t cpu_milli, gpus, gpu_milli; /* as in stk_kind */
    uint64_t gpu_types;
    uint32_t n;    /* tasks */
    uint32_t told; /* n when the mix was last made */
};

struct stk_seen {
    struct stk_seen_kind kind[STK_SEEN_KINDS];
    uint32_t n;
    uint64_t sum, jobs, next;      /* of tasks; submits so far, and when the mix is made anew */
    uint16_t slot[STK_SEEN_SLOTS]; /* cache: kind + 1 by hash */
    struct stk_sort_item sort[2 * STK_SEEN_KINDS]; /* scratch */
};

struct stk_state;
struct stk_visit;

int stk_seen_init(struct stk_state *s); /* if the place policy goes by a mix, and has none given */
void stk_seen_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* A job with this demand was submitted. Makes the mix anew when it is time. */
void stk_seen_add(struct stk_state *s, const struct stk_demand *d, uint32_t pool);

/* After loading: the mix as it was when it was last made. False: the counts are not possible. */
bool stk_seen_restore(struct stk_state *s);

#endif
