/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - what a rule changes, in words. */
#include <inttypes.h>
#include <stdio.h>

#include "rules/read.h"

static void describe_quota(const struct stk_set *e, char *buf, size_t size)
{
    static const char *const of[] = {"a user's GPUs",   "a user's jobs",    "a tenant's GPUs",
                                     "a tenant's jobs", "GPUs in all",      "jobs in all",
                                     "GPUs of a job",   "run time of a job"};
    bool queue = e->kind == STK_SET_QUEUE;
    bool whole = queue && (e->column == STK_SET_JOB_SECONDS ||
                           (e->column < STK_SET_JOB_MILLI && e->column % 2));
    char value[48] = "none";

    if (e->value >= 0 && whole)
        (void)snprintf(value, sizeof(value), "%" PRId64 "%s", e->value,
                       e->column == STK_SET_JOB_SECONDS ? " s" : "");
    else if (e->value >= 0)
        (void)snprintf(value, sizeof(value), "%.10g",
                       (double)e->value / (e->kind == STK_SET_KEEP_UP ? 1 : 1000));
    if (queue)
        (void)snprintf(buf, size, "queue %u, limit on %s: %s", e->row,
                       of[e->column % STK_SET_QUEUE_MAX], value);
    else if (e->column == STK_SET_MEM && e->value >= 0)
        (void)snprintf(buf, size, "tenant %u, limit on memory: %.10g GiB", e->row,
                       (double)e->value / 1024);
    else
        (void)snprintf(buf, size, "tenant %u, %s%s: %s", e->row, stk_set_kind_name(e->kind),
                       e->column == STK_SET_CPUS  ? " on CPUs"
                       : e->column == STK_SET_MEM ? " on memory"
                       : e->column                ? " of a type"
                                                  : "",
                       value);
}

void stk_rules_describe(const struct stk_set *e, char *buf, size_t size)
{
    if (e->kind == STK_SET_PARAM)
        (void)snprintf(buf, size, "%s=%s", e->name, e->text);
    else if (e->kind == STK_SET_PRIORITY)
        (void)snprintf(buf, size, "%s %u, priority %+" PRId64,
                       e->column == STK_SET_OF_QUEUE ? "queue" : "kind", e->row, e->value);
    else if (e->kind == STK_SET_POOL)
        (void)snprintf(buf, size, "node %u to pool %" PRId64 "%s", e->row, e->value,
                       e->evict ? ", jobs give way" : "");
    else
        describe_quota(e, buf, size);
}
