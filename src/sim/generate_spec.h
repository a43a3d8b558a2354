/* SPDX-License-Identifier: Apache-2.0 */
/* generate_spec.h - the words of a generator specification as numbers. */
#ifndef STK_SIM_GENERATE_SPEC_H
#define STK_SIM_GENERATE_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/job.h"

#define STK_GEN_MAX_SIZES 32
#define STK_GEN_MAX_CLASSES 8

struct stk_gen_size {
    uint32_t gpus;
    double weight; /* relative to the other sizes */
};

/* Jobs that are alike. */
struct stk_gen_class {
    enum stk_job_kind kind;
    enum stk_tier tier;
    int32_t priority;
    uint32_t n_sizes;
    double weight;                             /* relative to the other classes */
    double dur_median_s, dur_sigma, dur_max_s; /* lognormal, cut off at the maximum */
    struct stk_gen_size sizes[STK_GEN_MAX_SIZES];
};

struct stk_gen_spec {
    uint64_t seed;
    double jobs, gpus;
    double load, rate, days, hours; /* at most one is given; others are 0 */
    double day, week;
    double tenants, estimate_factor;
    double deadlines, slack;
    struct stk_gen_class classes[STK_GEN_MAX_CLASSES];
    uint32_t n_classes;
};

int stk_gen_spec_parse(struct stk_gen_spec *g, const char *spec, uint64_t default_seed,
                       struct stk_err *err);

#endif
