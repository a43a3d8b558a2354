/* SPDX-License-Identifier: Apache-2.0 */
#include "model/queue.h"

#include <string.h>

#define INFERENCE 1000
#define TRAINING 500
#define BATCH 100

#define NO_LIMITS                                                                                  \
    .lowest = -STK_MAX_PRIORITY, .most = STK_MAX_PRIORITY, .job_milli = STK_NO_LIMIT,              \
    .limit = {                                                                                     \
        {STK_NO_LIMIT, STK_NO_JOB_LIMIT},                                                          \
        {STK_NO_LIMIT, STK_NO_JOB_LIMIT},                                                          \
        {STK_NO_LIMIT, STK_NO_JOB_LIMIT},                                                          \
    }

const struct stk_class stk_default_classes[] = {
    {"inference", INFERENCE},
    {"training", TRAINING},
    {"batch", BATCH},
};
const uint32_t stk_n_default_classes = sizeof(stk_default_classes) / sizeof(*stk_default_classes);

const struct stk_queue_spec stk_default_queues[] = {
    {.name = "standard", .priority = TRAINING, .tier = STK_TIER_STANDARD, NO_LIMITS},
    {.name = "express", .priority = INFERENCE, .tier = STK_TIER_STANDARD, NO_LIMITS},
    {.name = "batch", .priority = BATCH, .tier = STK_TIER_STANDARD, NO_LIMITS},
    {.name = "preemptible", .priority = BATCH, .tier = STK_TIER_BEST_EFFORT, NO_LIMITS},
    {.name = "reserved", .priority = TRAINING, .tier = STK_TIER_CRITICAL, NO_LIMITS},
};
const uint32_t stk_n_default_queues = sizeof(stk_default_queues) / sizeof(*stk_default_queues);

uint32_t stk_queue_find(const struct stk_queue_spec *queues, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(queues[i].name, name) == 0)
            return i;
    for (uint32_t i = 0; i < n; i++)
        if (queues[i].was && strcmp(queues[i].was, name) == 0)
            return i;
    return STK_NONE;
}

bool stk_queue_limited(const struct stk_queue_spec *q)
{
    for (int of = 0; of < STK_QUEUE_OF_MAX; of++)
        if (q->limit[of].milli != STK_NO_LIMIT || q->limit[of].jobs != STK_NO_JOB_LIMIT)
            return true;
    return false;
}

static int too_large(const struct stk_queue_spec *q, uint64_t milli, struct stk_err *err)
{
    uint64_t most = q->job_milli;

    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        if (milli > 0 && q->limit[of].milli < most)
            most = q->limit[of].milli;
        if (q->limit[of].jobs == 0)
            return stk_err_set(err, -ERANGE, "queue %.63s takes no jobs: none may run at a time",
                               q->name);
    }
    if (milli <= most)
        return 0;
    return stk_err_set(err, -ERANGE, "needs %g GPUs; a job in queue %.63s may have at most %g",
                       (double)milli / 1000, q->name, (double)most / 1000);
}

int stk_queue_allows(const struct stk_queue_spec *q, int32_t priority, stk_time time,
                     uint64_t milli, struct stk_err *err)
{
    if (priority < q->lowest || priority > q->most)
        return stk_err_set(err, -EINVAL, "priority in queue %.63s must be %d to %d, got %d",
                           q->name, q->lowest, q->most, priority);
    if (q->job_time > 0 && time > q->job_time)
        return stk_err_set(
            err, -ERANGE, "takes %lld s; a job in queue %.63s may run for at most %lld s",
            (long long)(time / STK_SECOND), q->name, (long long)(q->job_time / STK_SECOND));
    return too_large(q, milli, err);
}

const char *stk_queue_of_name(enum stk_queue_of of)
{
    static const char *const names[STK_QUEUE_OF_MAX] = {
        [STK_OF_USER] = "user", [STK_OF_TENANT] = "tenant", [STK_OF_QUEUE] = "all"};

    return (unsigned)of < STK_QUEUE_OF_MAX ? names[of] : "?";
}
