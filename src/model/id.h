/* SPDX-License-Identifier: Apache-2.0 */
/* id.h - handles. Indices into the core's tables, never pointers: state can be copied, hashed and
 * saved, nothing is ordered by address, and mixing two kinds does not compile. */
#ifndef STK_MODEL_ID_H
#define STK_MODEL_ID_H

#include <stdint.h>

#define STK_NONE UINT32_MAX

typedef struct {
    uint32_t i;
} stk_job_id; /* slot in the job table; reused once a finished job has been dropped */
typedef struct {
    uint32_t i;
} stk_node_id;
typedef struct {
    uint32_t i;
} stk_pool_id;

/* The number a user sees. Grows by one with every submit and is never reused. */
typedef uint32_t stk_job_number;

/* One start of a job. Never reused; an engine's report about an older lease is refused. */
typedef uint32_t stk_lease_id;

#endif
