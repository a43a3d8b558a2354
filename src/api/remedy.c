/* SPDX-License-Identifier: Apache-2.0 */
#include "api/remedy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/topology.h"

#define TEXT 200

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static const char *name_of(const char *const *names, uint32_t n, int64_t i)
{
    return names && i >= 0 && i < n ? names[i] : "?";
}

/* "2d3h", "1h30m", "59s": as --time takes it. */
static void say_time(int64_t s, char *buf, size_t size)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t n = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < 4; i++) {
        if (s / units[i].seconds > 0 && n < size)
            n += (size_t)snprintf(buf + n, size - n, "%" PRId64 "%c", s / units[i].seconds,
                                  units[i].unit);
        s %= units[i].seconds;
    }
}

/* All the types it would take then: "a100,h100". Names are as long as vendors like. */
static void say_types(const struct stk_remedy *r, const struct stk_remedy_names *n, char *buf,
                      size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < n->n_gpu_types && i < STK_MAX_GPU_TYPES && len < size; i++)
        if (r->spec.demand.gpu_types >> i & 1)
            len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? "," : "", n->gpu_types[i]);
}

/* What is different, after "it would start now": of what the machine gives. */
static void say_less(const struct stk_remedy *r, const struct stk_remedy_names *n, char *buf)
{
    const char *each = r->spec.demand.tasks > 1 ? " per task" : "";
    char text[64];

    switch ((int)r->kind) {
    case STK_REMEDY_CPU:
        (void)snprintf(buf, TEXT, "with %g CPU%s%s", (double)r->to / 1000, plural(r->to / 1000),
                       each);
        break;
    case STK_REMEDY_MEM:
        (void)snprintf(buf, TEXT, "with %g GiB of memory%s", (double)r->to / 1024, each);
        break;
    case STK_REMEDY_RESOURCE:
        (void)snprintf(buf, TEXT, "with %" PRId64 " of %.60s%s", r->to,
                       name_of(n->resources, STK_MAX_RESOURCES, r->resource), each);
        break;
    case STK_REMEDY_TIME:
        say_time(r->to / STK_SECOND, text, sizeof(text));
        (void)snprintf(buf, TEXT, "with a time limit of %s", text);
        break;
    case STK_REMEDY_GPUS:
        (void)snprintf(buf, TEXT, "with %" PRId64 " GPU%s%s", r->to, plural(r->to), each);
        break;
    case STK_REMEDY_TASKS:
        (void)snprintf(buf, TEXT, "with %" PRId64 " task%s", r->to, plural(r->to));
        break;
    default:
        (void)snprintf(buf, TEXT, "with %g of a GPU%s", (double)r->to / 1000, each);
    }
}

static void say_what(const struct stk_remedy *r, const struct stk_remedy_names *n, char *buf)
{
    switch (r->kind) {
    case STK_REMEDY_RELEASE:
        (void)snprintf(buf, TEXT, "released");
        return;
    case STK_REMEDY_BEGIN:
        (void)snprintf(buf, TEXT, "without its begin time");
        return;
    case STK_REMEDY_TYPE:
        (void)snprintf(buf, TEXT, "on GPUs of type %.100s",
                       name_of(n->gpu_types, n->n_gpu_types, r->to));
        return;
    case STK_REMEDY_LEVEL:
        if (r->to)
            (void)snprintf(buf, TEXT, "with its GPUs in one %s",
                           stk_level_name((enum stk_level)r->to));
        else
            (void)snprintf(buf, TEXT, "with its GPUs anywhere");
        return;
    case STK_REMEDY_SPREAD:
        (void)snprintf(buf, TEXT, "with any number of its tasks on a node");
        return;
    case STK_REMEDY_EXCLUSIVE:
        (void)snprintf(buf, TEXT, "with others on its nodes");
        return;
    case STK_REMEDY_POOL:
        (void)snprintf(buf, TEXT, "in pool %.60s", name_of(n->pools, n->n_pools, r->to));
        return;
    case STK_REMEDY_QUEUE:
        (void)snprintf(buf, TEXT, "in queue %.60s", n->queue ? n->queue : "?");
        return;
    case STK_REMEDY_TENANT:
        (void)snprintf(buf, TEXT, "for tenant %.60s", n->tenant ? n->tenant : "?");
        return;
    case STK_REMEDY_PREEMPTIBLE:
        (void)snprintf(buf, TEXT, "as a best-effort job, which gives way to others,");
        return;
    case STK_REMEDY_PRIORITY:
        (void)snprintf(buf, TEXT, "with priority %" PRId64, r->to);
        return;
    case STK_REMEDY_TIER:
        (void)snprintf(buf, TEXT, "in tier %s", stk_tier_name((enum stk_tier)r->to));
        return;
    default:
        say_less(r, n, buf);
    }
}

void stk_remedy_say(const struct stk_remedy *r, const struct stk_remedy_names *n, char *buf,
                    size_t size)
{
    char what[TEXT];

    say_what(r, n, what);
    if (r->evicts > 0)
        (void)snprintf(buf, size, "%s it would start now, in place of %u running job%s", what,
                       r->evicts, plural(r->evicts));
    else
        (void)snprintf(buf, size, "%s it would start now", what);
}

/* What "stoker update" is told, of numbers. */
static void less_option(const struct stk_remedy *r, const struct stk_remedy_names *n, char *buf)
{
    char text[64];

    switch ((int)r->kind) {
    case STK_REMEDY_CPU:
        (void)snprintf(buf, TEXT, "--cpus %g", (double)r->to / 1000);
        break;
    case STK_REMEDY_MEM:
        (void)snprintf(buf, TEXT, "--mem %gG", (double)r->to / 1024);
        break;
    case STK_REMEDY_RESOURCE:
        (void)snprintf(buf, TEXT, "--resource %.60s=%" PRId64,
                       name_of(n->resources, STK_MAX_RESOURCES, r->resource), r->to);
        break;
    case STK_REMEDY_TIME:
        say_time(r->to / STK_SECOND, text, sizeof(text));
        (void)snprintf(buf, TEXT, "--time %s", text);
        break;
    case STK_REMEDY_GPUS:
        (void)snprintf(buf, TEXT, "--gpus %" PRId64, r->to);
        break;
    case STK_REMEDY_TASKS:
        (void)snprintf(buf, TEXT, "--tasks %" PRId64, r->to);
        break;
    case STK_REMEDY_PRIORITY:
        (void)snprintf(buf, TEXT, "--priority %" PRId64, r->to);
        break;
    default:
        (void)snprintf(buf, TEXT, "--gpus %g", (double)r->to / 1000);
    }
}

static void option(const struct stk_remedy *r, const struct stk_remedy_names *n, char *buf)
{
    char types[160];

    switch (r->kind) {
    case STK_REMEDY_BEGIN:
        (void)snprintf(buf, TEXT, "--begin now");
        return;
    case STK_REMEDY_TYPE:
        say_types(r, n, types, sizeof(types));
        (void)snprintf(buf, TEXT, "--gpu-type '%s'", types);
        return;
    case STK_REMEDY_LEVEL:
        (void)snprintf(buf, TEXT, "--topology %s",
                       r->to ? stk_level_name((enum stk_level)r->to) : "none");
        return;
    case STK_REMEDY_SPREAD:
        (void)snprintf(buf, TEXT, "--tasks-per-node none");
        return;
    case STK_REMEDY_EXCLUSIVE:
        (void)snprintf(buf, TEXT, "--exclusive no");
        return;
    case STK_REMEDY_POOL:
        (void)snprintf(buf, TEXT, "--pool %.60s", name_of(n->pools, n->n_pools, r->to));
        return;
    case STK_REMEDY_QUEUE:
        (void)snprintf(buf, TEXT, "--queue %.60s", n->queue ? n->queue : "?");
        return;
    case STK_REMEDY_TENANT:
        (void)snprintf(buf, TEXT, "--tenant %.60s", n->tenant ? n->tenant : "?");
        return;
    case STK_REMEDY_PREEMPTIBLE:
    case STK_REMEDY_TIER:
        (void)snprintf(buf, TEXT, "--tier %s", stk_tier_name(r->spec.tier));
        return;
    default:
        less_option(r, n, buf);
    }
}

void stk_remedy_command(const struct stk_remedy *r, const struct stk_remedy_names *n,
                        const char *job, char *buf, size_t size)
{
    char what[TEXT];

    if (r->kind == STK_REMEDY_RELEASE) {
        (void)snprintf(buf, size, "stoker release %s", job);
        return;
    }
    option(r, n, what);
    (void)snprintf(buf, size, "stoker update %s %s", job, what);
}
