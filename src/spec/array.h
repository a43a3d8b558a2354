/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - from where to where the elements of an array go, as they are told in Slurm's words. The
 * supervisor has this too, and nothing else of what reads descriptions. */
#ifndef STK_SPEC_ARRAY_H
#define STK_SPEC_ARRAY_H

#include <jansson.h>
#include <stdint.h>

struct stk_array_bounds {
    int64_t first, last; /* that there are: of 1-6:2, 5 is the last */
    int64_t step, count;
};

/* Of "array" in a checked description. */
struct stk_array_bounds stk_array_bounds(const json_t *array);

#endif
