/* SPDX-License-Identifier: Apache-2.0 */
/* rlimits.h - limits of processes that go along with a job, by the names that descriptions have
 * (docs/spec/job.md): a client reads its own, the supervisor sets the job's. */
#ifndef STK_SYS_RLIMITS_H
#define STK_SYS_RLIMITS_H

#include <stddef.h>
#include <sys/resource.h>

#define STK_RLIMIT_MAX (INT64_C(1) << 53) /* the largest that is told; -1: no limit */

static const struct stk_rlimit {
    const char *name;
    __rlimit_resource_t what;
} stk_rlimits[] = {{"as", RLIMIT_AS},       {"core", RLIMIT_CORE},       {"cpu", RLIMIT_CPU},
                   {"fsize", RLIMIT_FSIZE}, {"memlock", RLIMIT_MEMLOCK}, {"nofile", RLIMIT_NOFILE},
                   {"nproc", RLIMIT_NPROC}, {"stack", RLIMIT_STACK}};

#define STK_N_RLIMITS (sizeof(stk_rlimits) / sizeof(stk_rlimits[0]))

#endif
