/* SPDX-License-Identifier: Apache-2.0 */
/* rlimits.c - the limits of this process, as a description says them. */
#include <stdint.h>

#include "spec/spec.h"
#include "sys/rlimits.h"

static json_t *tell(rlim_t v)
{
    return json_integer(v > STK_RLIMIT_MAX ? -1 : (json_int_t)v);
}

void stk_spec_add_rlimits(json_t *job)
{
    json_t *all = json_object();

    for (size_t i = 0; i < STK_N_RLIMITS; i++) {
        struct rlimit r;

        if (getrlimit(stk_rlimits[i].what, &r) == 0)
            (void)json_object_set_new(all, stk_rlimits[i].name,
                                      json_pack("[o,o]", tell(r.rlim_cur), tell(r.rlim_max)));
    }
    if (!json_object_get(job, "rlimits"))
        (void)json_object_set(job, "rlimits", all);
    json_decref(all);
}
