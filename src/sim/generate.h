/* SPDX-License-Identifier: Apache-2.0 */
/* generate.h - synthetic workloads from a seed. The same specification gives the same trace on
 * every compiler with the same mathematical library. */
#ifndef STK_SIM_GENERATE_H
#define STK_SIM_GENERATE_H

#include <stdint.h>

#include "base/err.h"
#include "sim/trace.h"

/* Appends jobs to 't' as 'spec' ("jobs=1000,seed=1,...", may be empty) says, then puts all jobs in
 * order. 'default_seed' is used when the specification has none. 0 or -EINVAL / -ENOMEM with a
 * sentence; 't' is then still valid to free. */
int stk_generate(struct stk_trace *t, const char *spec, uint64_t default_seed, struct stk_err *err);

/* What a specification can say, for --help. */
extern const char stk_generate_help[];

#endif
