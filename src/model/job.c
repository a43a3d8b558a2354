/* SPDX-License-Identifier: Apache-2.0 */
#include "model/job.h"

#include <stddef.h>

#define NAME(table, i) ((size_t)(i) < sizeof(table) / sizeof(*(table)) ? (table)[(size_t)(i)] : "?")

const char *stk_job_state_name(enum stk_job_state s)
{
    static const char *const names[] = {"none",   "held",    "blocked",  "waiting",
                                        "placed", "running", "stopping", "done"};

    return NAME(names, s);
}

const char *stk_cause_name(enum stk_cause c)
{
    static const char *const names[] = {
        "none",        "ok",      "failed",    "signal",     "oom", "timeout", "node_lost",
        "not_started", "evicted", "cancelled", "dependency", "gpu", "unknown"};

    return NAME(names, c);
}

const char *stk_cause_word(enum stk_cause c)
{
    static const char *const words[STK_CAUSE_MAX] = {
        [STK_CAUSE_NONE] = "",
        [STK_CAUSE_OK] = "completed",
        [STK_CAUSE_FAILED] = "failed",
        [STK_CAUSE_SIGNAL] = "killed",
        [STK_CAUSE_OOM] = "out_of_memory",
        [STK_CAUSE_TIMEOUT] = "timeout",
        [STK_CAUSE_NODE_LOST] = "node_lost",
        [STK_CAUSE_NOT_STARTED] = "not_started",
        [STK_CAUSE_EVICTED] = "evicted",
        [STK_CAUSE_CANCELLED] = "cancelled",
        [STK_CAUSE_DEPENDENCY] = "dependency_failed",
        [STK_CAUSE_GPU] = "gpu_error",
        [STK_CAUSE_UNKNOWN] = "lost",
    };

    return (unsigned)c < STK_CAUSE_MAX ? words[c] : "lost";
}

const char *stk_tier_name(enum stk_tier t)
{
    static const char *const names[] = {"best-effort", "standard", "critical"};

    return NAME(names, t);
}

const char *stk_kind_name(enum stk_job_kind k)
{
    static const char *const names[] = {"train", "batch", "service", "sweep", "shell"};

    return NAME(names, k);
}

const char *stk_dep_type_name(enum stk_dep_type t)
{
    static const char *const names[] = {"afterok", "afterany", "afternotok"};

    return NAME(names, t);
}

bool stk_dep_met(enum stk_dep_type type, enum stk_cause cause)
{
    return type == STK_DEP_AFTERANY || (type == STK_DEP_AFTEROK) == (cause == STK_CAUSE_OK);
}

const char *stk_retry_name(enum stk_retry r)
{
    static const char *const names[] = {"error", "oom", "timeout", "node"};

    return NAME(names, r);
}

enum stk_retry stk_retry_of(enum stk_cause cause)
{
    switch (cause) {
    case STK_CAUSE_FAILED:
    case STK_CAUSE_SIGNAL:
    case STK_CAUSE_NOT_STARTED:
        return STK_RETRY_ERROR;
    case STK_CAUSE_OOM:
        return STK_RETRY_OOM;
    case STK_CAUSE_TIMEOUT:
        return STK_RETRY_TIMEOUT;
    case STK_CAUSE_NODE_LOST:
    case STK_CAUSE_GPU:
    case STK_CAUSE_UNKNOWN:
        return STK_RETRY_NODE;
    case STK_CAUSE_NONE:
    case STK_CAUSE_OK:
    case STK_CAUSE_EVICTED:
    case STK_CAUSE_CANCELLED:
    case STK_CAUSE_DEPENDENCY:
    case STK_CAUSE_MAX:
        break;
    }
    return STK_RETRY_MAX;
}
