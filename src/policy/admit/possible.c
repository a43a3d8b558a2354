/* SPDX-License-Identifier: Apache-2.0 */
/* possible.c - admit: refuse a job that could not run even on the empty pool, with the reason. A
 * demand the queue already knows was checked when it was first seen. */
#include "policy/registry.h"

#include "core/place.h"
#include "core/shape.h"

static int check(const struct stk_state *s, const struct stk_job_spec *spec, struct stk_err *err)
{
    if (stk_shape_known(s, spec))
        return 0;
    if (s->pools_change && stk_place_anywhere(s, &spec->demand))
        return 0;
    return stk_place_possible(s, &spec->demand, spec->pool.i, err);
}

const struct stk_admit_ops stk_admit_possible = {
    .name = "possible",
    .help = "refuse what can never run",
    .check = check,
};
