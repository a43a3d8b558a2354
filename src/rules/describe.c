/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - what a rule changes, in words, with names and units. */
#include <inttypes.h>
#include <stdio.h>

#include "base/span.h"
#include "model/job.h"
#include "rules/read.h"

struct teller {
    stk_rules_name_fn name;
    void *ctx;
    char number[16]; /* of a row that has no name */
};

static const char *name_of(struct teller *t, enum stk_rules_noun noun, uint32_t row)
{
    const char *name = t->name(t->ctx, noun, row);

    if (name)
        return name;
    (void)snprintf(t->number, sizeof(t->number), "%" PRIu32, row);
    return t->number;
}

static void describe_queue(const struct stk_set *e, const char *queue, char *buf, size_t size)
{
    static const char *const of[] = {"GPUs per user",   "jobs per user",   "GPUs per tenant",
                                     "jobs per tenant", "GPUs in all",     "jobs in all",
                                     "GPUs per job",    "run time per job"};
    const unsigned column = e->column % STK_SET_QUEUE_MAX;
    const bool jobs = column < STK_SET_JOB_MILLI && column % 2;
    char span[STK_SPAN_SIZE];

    if (e->value < 0)
        (void)snprintf(buf, size, "queue %s: no limit on %s", queue, of[column]);
    else if (column == STK_SET_JOB_SECONDS)
        (void)snprintf(buf, size, "queue %s: at most %s %s", queue,
                       stk_span(e->value, span, sizeof(span)), of[column]);
    else
        (void)snprintf(buf, size, "queue %s: at most %.10g %s", queue,
                       (double)e->value / (jobs ? 1 : 1000), of[column]);
}

static void describe_limit(struct teller *t, const struct stk_set *e, const char *tenant, char *buf,
                           size_t size)
{
    const bool typed = e->column > 0 && e->column <= STK_MAX_GPU_TYPES;
    const char *what = e->column == STK_SET_CPUS  ? "CPUs"
                       : e->column == STK_SET_MEM ? "GiB of memory"
                                                  : "GPUs",
               *of = typed ? " of type " : "",
               *type = typed ? name_of(t, STK_RULES_GPU_TYPE, e->column - 1) : "";
    const bool limit = e->kind == STK_SET_LIMIT;

    if (e->value < 0 && limit)
        (void)snprintf(buf, size, "tenant %s: no limit on %s%s%s", tenant, what, of, type);
    else if (e->value < 0)
        (void)snprintf(buf, size, "tenant %s: guaranteed the %s%s%s of those below it together",
                       tenant, what, of, type);
    else
        (void)snprintf(buf, size, "tenant %s: %s %.10g %s%s%s", tenant,
                       limit ? "limit" : "guarantee",
                       (double)e->value / (e->column == STK_SET_MEM ? 1024 : 1000), what, of, type);
}

static void describe_tenant(struct teller *t, const struct stk_set *e, char *buf, size_t size)
{
    char tenant[128];

    (void)snprintf(tenant, sizeof(tenant), "%.120s", name_of(t, STK_RULES_TENANT, e->row));
    if (e->kind == STK_SET_WEIGHT)
        (void)snprintf(buf, size, "tenant %s: weight %.10g", tenant, (double)e->value / 1000);
    else if (e->kind == STK_SET_KEEP_UP)
        (void)snprintf(buf, size, "tenant %s: at least %" PRId64 " job%s stay%s up", tenant,
                       e->value, e->value == 1 ? "" : "s", e->value == 1 ? "s" : "");
    else
        describe_limit(t, e, tenant, buf, size);
}

static void describe_pool(struct teller *t, const struct stk_set *e, char *buf, size_t size)
{
    char node[128];

    (void)snprintf(node, sizeof(node), "%.120s", name_of(t, STK_RULES_NODE, e->row));
    (void)snprintf(buf, size, "node %s: to pool %s%s", node,
                   name_of(t, STK_RULES_POOL, (uint32_t)e->value),
                   e->evict ? "; jobs there are preempted" : " when it is empty");
}

void stk_rules_describe(const struct stk_set *e, stk_rules_name_fn name, void *ctx, char *buf,
                        size_t size)
{
    struct teller t = {.name = name, .ctx = ctx};

    if (e->kind == STK_SET_PARAM)
        (void)snprintf(buf, size, "parameter %s=%s", e->name, e->text);
    else if (e->kind == STK_SET_PRIORITY && e->column == STK_SET_OF_QUEUE)
        (void)snprintf(buf, size, "queue %s: priority %+" PRId64,
                       name_of(&t, STK_RULES_QUEUE, e->row), e->value);
    else if (e->kind == STK_SET_PRIORITY)
        (void)snprintf(buf, size, "jobs of kind %s: priority %+" PRId64,
                       stk_kind_name((enum stk_job_kind)e->row), e->value);
    else if (e->kind == STK_SET_POOL)
        describe_pool(&t, e, buf, size);
    else if (e->kind == STK_SET_QUEUE)
        describe_queue(e, name_of(&t, STK_RULES_QUEUE, e->row), buf, size);
    else
        describe_tenant(&t, e, buf, size);
}
