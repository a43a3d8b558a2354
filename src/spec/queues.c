/* SPDX-License-Identifier: Apache-2.0 */
/* queues.c - what a job gets from the queue it is sent to: priority, tier, a time limit. */
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "model/queue.h"
#include "spec/spec.h"

const struct stk_spec_queues stk_spec_standard = {.queues = stk_default_queues,
                                                  .classes = stk_default_classes};

static uint32_t n_queues(const struct stk_spec_queues *t)
{
    return t->n_queues ? t->n_queues : stk_n_default_queues;
}

static int no_queue(const struct stk_spec_queues *t, const char *name, struct stk_err *err)
{
    unsigned best = stk_near_limit(name);
    const char *near = NULL;
    char names[200] = "";
    size_t len = 0;

    for (uint32_t i = 0; i < n_queues(t); i++) {
        if (stk_near(name, t->queues[i].name, &best))
            near = t->queues[i].name;
        if (len < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
                                    t->queues[i].name);
    }
    return near
               ? stk_err_set(err, -EINVAL,
                             "queue: there is no queue \"%.63s\"; did you mean \"%s\"?", name, near)
               : stk_err_set(err, -EINVAL, "queue: there is no queue \"%.63s\"; there are: %s",
                             name, names);
}

/* The queue it names; a QOS of Slurm's means one when there is one of that name. */
static int find(const struct stk_spec *s, const struct stk_spec_queues *t, uint32_t *ret,
                struct stk_err *err)
{
    uint32_t at = STK_NONE;

    if (s->queue)
        at = stk_queue_find(t->queues, n_queues(t), s->queue);
    if (s->queue && at == STK_NONE)
        return no_queue(t, s->queue, err);
    if (!s->queue && s->qos)
        at = stk_queue_find(t->queues, n_queues(t), s->qos);
    *ret = at == STK_NONE ? 0 : at;
    return 0;
}

static int of_class(const struct stk_spec *s, const struct stk_spec_queues *t, int32_t *ret,
                    struct stk_err *err)
{
    uint32_t n = t->n_classes ? t->n_classes : stk_n_default_classes;
    char names[200] = "";
    size_t len = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(t->classes[i].name, s->class_name) == 0) {
            *ret = t->classes[i].priority;
            return 0;
        }
        if (len < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
                                    t->classes[i].name);
    }
    return stk_err_set(err, -EINVAL, "class: there is no class \"%.63s\"; there are: %s",
                       s->class_name, names);
}

/* Nice jobs go as low as their queue lets them. */
static int32_t nicer(const struct stk_queue_spec *q, int32_t priority, int32_t nice)
{
    int64_t p = (int64_t)priority - nice;

    if (nice == 0)
        return priority;
    return p < q->lowest ? q->lowest : p > q->most ? q->most : (int32_t)p;
}

static int limit_time(struct stk_spec *s, const struct stk_queue_spec *q, bool beyond,
                      struct stk_err *err)
{
    if (q->job_time == 0 || beyond)
        return 0;
    if (s->time_limit > q->job_time)
        return stk_err_set(
            err, -EINVAL, "time_limit_s: a job in queue %.63s may run for at most %lld s, got %lld",
            q->name, (long long)(q->job_time / STK_SECOND),
            (long long)(s->time_limit / STK_SECOND));
    if (s->time_limit == 0)
        s->time_limit = q->job_time;
    if (s->job.estimate == 0)
        s->job.estimate = s->time_limit;
    return 0;
}

int stk_spec_enqueue(struct stk_spec *s, const struct stk_spec_queues *t, struct stk_err *err)
{
    const struct stk_queue_spec *q;
    uint32_t at = 0;
    int rc = find(s, t, &at, err);

    if (rc < 0)
        return rc;
    q = &t->queues[at];
    s->job.terms.queue = at;
    if (s->class_name)
        rc = of_class(s, t, &s->job.priority, err);
    else if (!s->priority_said)
        s->job.priority = q->priority;
    s->job.priority = nicer(q, s->job.priority, s->nice);
    if (!s->tier_said)
        s->job.tier = q->tier;
    return rc < 0 ? rc : limit_time(s, q, t->beyond, err);
}
