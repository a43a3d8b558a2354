/* SPDX-License-Identifier: Apache-2.0 */
/* generate_spec.c - reads "jobs=1000,load=0.9,sizes=1:70/8:30"; see generate.h.
 *
 * Numbers are a table of name, bounds and place; sizes and mix are lists and names and have code of
 * their own. A specification describes either one class of jobs (sizes, dur_*) or a named mix of
 * classes, not both.
 */
#include "sim/generate_spec.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "sim/generate.h"
#include "sim/trace_lines.h"

const char stk_generate_help[] =
    "A workload is generated from a list of key=value, joined by commas:\n"
    "  jobs=N            how many jobs (1000)\n"
    "  seed=N            another seed, another workload (1)\n"
    "  gpus=N            size of the cluster that 'load' refers to; no job is larger (64)\n"
    "  load=X            GPU time asked for, as a part of what the cluster has (0.9)\n"
    "  rate=X            instead of load: jobs per hour\n"
    "  days=X, hours=X   instead of load: the span over which the jobs arrive\n"
    "  day=X             how much busier days are than nights, 0 to 1 (0.5)\n"
    "  week=X            how much quieter weekends are, 0 to 1 (0.3)\n"
    "  sizes=G:W/G:W...  GPUs per job and how frequent (1:70/2:10/4:8/8:10/16:1.5/32:0.5)\n"
    "  dur_median_s=X    run times are lognormal: their median (1200),\n"
    "  dur_sigma=X       their spread (2),\n"
    "  dur_max_s=X       and the longest allowed (2592000)\n"
    "  tenants=N         teams; the k-th submits 1/k as much as the first (8)\n"
    "  mix=sample        instead of sizes and dur_*: a mixed day of training gangs, short jobs,\n"
    "                    inference replicas and notebooks\n"
    "  estimate_factor=X users ask for X times what they need, on average (1: they know)\n"
    "  deadlines=X       part of the jobs that have a deadline (0),\n"
    "  slack=X           which is X times their estimate after they come, on average (4)\n"
    "Time begins on a Monday at midnight.\n";

static const struct stk_gen_class one_class = {
    .kind = STK_KIND_TRAIN,
    .tier = STK_TIER_STANDARD,
    .weight = 1,
    .dur_median_s = 1200,
    .dur_sigma = 2,
    .dur_max_s = 2592000,
    .sizes = {{1, 70}, {2, 10}, {4, 8}, {8, 10}, {16, 1.5}, {32, 0.5}},
    .n_sizes = 6,
};

/* kind, tier, priority, number of sizes, weight, median, sigma, maximum, sizes. On 64 GPUs some 600
 * jobs make a busy day. */
/* clang-format off */
static const struct stk_gen_class sample_mix[] = {
    {STK_KIND_TRAIN, STK_TIER_STANDARD, 500, 4, 20, 1800, 1.0, 28800,
     {{4, 30}, {8, 45}, {16, 20}, {32, 5}}},
    {STK_KIND_BATCH, STK_TIER_BEST_EFFORT, 100, 2, 62, 300, 1.5, 14400, {{1, 85}, {2, 15}}},
    {STK_KIND_SERVICE, STK_TIER_CRITICAL, 1000, 3, 3, 21600, 0.5, 43200,
     {{1, 70}, {2, 20}, {4, 10}}},
    {STK_KIND_SHELL, STK_TIER_STANDARD, 500, 1, 15, 3600, 0.8, 21600, {{1, 100}}},
};
/* clang-format on */

#define OF(m) offsetof(struct stk_gen_spec, m)
#define OF_CLASS(m) (offsetof(struct stk_gen_spec, classes) + offsetof(struct stk_gen_class, m))

enum excludes { NOTHING, SPAN, MIX }; /* keys of one group, of which at most one may be given */

static const struct number {
    const char *name;
    size_t member; /* a double */
    double min, max;
    bool whole;
    enum excludes group;
} numbers[] = {
    {"jobs", OF(jobs), 1, STK_TRACE_MAX_JOBS, true, NOTHING},
    {"gpus", OF(gpus), 1, STK_MAX_GPUS, true, NOTHING},
    {"load", OF(load), 0.001, 1000, false, SPAN},
    {"rate", OF(rate), 0.001, 1e9, false, SPAN},
    {"days", OF(days), 0.001, 36525, false, SPAN},
    {"hours", OF(hours), 0.001, 876600, false, SPAN},
    {"day", OF(day), 0, 1, false, NOTHING},
    {"week", OF(week), 0, 1, false, NOTHING},
    {"dur_median_s", OF_CLASS(dur_median_s), 1, 1e8, false, MIX},
    {"dur_sigma", OF_CLASS(dur_sigma), 0, 5, false, MIX},
    {"dur_max_s", OF_CLASS(dur_max_s), 1, 1e8, false, MIX},
    {"tenants", OF(tenants), 1, 100000, true, NOTHING},
    {"estimate_factor", OF(estimate_factor), 1, 1000, false, NOTHING},
    {"deadlines", OF(deadlines), 0, 1, false, NOTHING},
    {"slack", OF(slack), 1, 1000, false, NOTHING},
};
#define N_NUMBERS (sizeof(numbers) / sizeof(*numbers))

struct parser {
    struct stk_gen_spec *g;
    struct stk_err *err;
    const char *span; /* the key of that group that was given */
    bool own_class, mix, own_sizes;
};

static bool read_double(struct stk_field f, double *ret)
{
    uint64_t micro;

    if (!stk_field_micro(f, &micro))
        return false;
    *ret = (double)micro / 1e6;
    return true;
}

static int read_number(struct parser *p, const struct number *n, struct stk_field value)
{
    double v;

    if (!read_double(value, &v) || v < n->min || v > n->max ||
        (n->whole && v != (double)(uint64_t)v))
        return stk_err_set(p->err, -EINVAL,
                           "generate: %s must be a %snumber (%g to %.10g), got \"%s\"", n->name,
                           n->whole ? "whole " : "", n->min, n->max, stk_field_show(value).text);
    if (n->group == SPAN && p->span && strcmp(p->span, n->name) != 0)
        return stk_err_set(p->err, -EINVAL, "generate: %s and %s exclude each other", p->span,
                           n->name);
    if (n->group == SPAN)
        p->span = n->name;
    if (n->group == MIX)
        p->own_class = true;
    memcpy((char *)p->g + n->member, &v, sizeof(v));
    return 0;
}

/* "8:10": eight GPUs, weight ten. */
static bool read_size(struct stk_field f, struct stk_gen_size *ret)
{
    const char *colon = memchr(f.s, ':', f.len);
    struct stk_field gpus = f, weight = {"1", 1};
    uint64_t n;

    if (colon) {
        gpus.len = (uint32_t)(colon - f.s);
        weight.s = colon + 1;
        weight.len = f.len - gpus.len - 1;
    }
    if (!stk_field_whole(gpus, &n) || n < 1 || n > STK_MAX_GPUS ||
        !read_double(weight, &ret->weight) || ret->weight > 1e9)
        return false;
    ret->gpus = (uint32_t)n;
    return true;
}

static int read_sizes(struct parser *p, struct stk_field value)
{
    struct stk_gen_class *c = &p->g->classes[0];
    const char *s = value.s, *end = value.s + value.len;
    double sum = 0;

    c->n_sizes = 0;
    for (const char *next; s <= end; s = next + 1) {
        const char *slash = memchr(s, '/', (size_t)(end - s));
        struct stk_field f = {s, (uint32_t)((slash ? slash : end) - s)};

        next = slash ? slash : end;
        if (c->n_sizes == STK_GEN_MAX_SIZES)
            return stk_err_set(p->err, -EINVAL, "generate: sizes has more than %d entries",
                               STK_GEN_MAX_SIZES);
        if (!read_size(f, &c->sizes[c->n_sizes]))
            return stk_err_set(p->err, -EINVAL,
                               "generate: sizes must be like 1:70/8:30 (GPUs:weight), got \"%s\"",
                               stk_field_show(f).text);
        sum += c->sizes[c->n_sizes++].weight;
    }
    if (!(sum > 0))
        return stk_err_set(p->err, -EINVAL, "generate: sizes needs a weight above 0");
    p->own_class = p->own_sizes = true;
    return 0;
}

static int read_key(struct parser *p, struct stk_field key, struct stk_field value)
{
    if (stk_field_is(key, "seed"))
        return stk_field_whole(value, &p->g->seed)
                   ? 0
                   : stk_err_set(p->err, -EINVAL,
                                 "generate: seed must be a whole number, got \"%s\"",
                                 stk_field_show(value).text);
    if (stk_field_is(key, "sizes"))
        return read_sizes(p, value);
    if (stk_field_is(key, "mix")) {
        p->mix = true;
        return stk_field_is(value, "sample")
                   ? 0
                   : stk_err_set(p->err, -EINVAL, "generate: the only mix is sample, got \"%s\"",
                                 stk_field_show(value).text);
    }
    for (size_t i = 0; i < N_NUMBERS; i++)
        if (stk_field_is(key, numbers[i].name))
            return read_number(p, &numbers[i], value);
    return stk_err_set(p->err, -EINVAL, "generate: unknown key \"%s\"", stk_field_show(key).text);
}

static int read_pairs(struct parser *p, const char *spec)
{
    while (*spec) {
        size_t len = strcspn(spec, ","), key = strcspn(spec, "=,");
        int rc;

        if (len > STK_TRACE_MAX_LINE || key == 0 || key >= len)
            return stk_err_set(p->err, -EINVAL, "generate: expected key=value, got \"%.40s\"",
                               spec);
        rc = read_key(p, (struct stk_field){spec, (uint32_t)key},
                      (struct stk_field){spec + key + 1, (uint32_t)(len - key - 1)});
        if (rc < 0)
            return rc;
        spec += len + (spec[len] == ',');
    }
    return 0;
}

/* No job is larger than the cluster: our own sizes give way, the user's are refused. */
static int fit_sizes(struct parser *p)
{
    for (uint32_t k = 0; k < p->g->n_classes; k++) {
        struct stk_gen_class *c = &p->g->classes[k];

        for (uint32_t i = 0; i < c->n_sizes; i++) {
            if (c->sizes[i].gpus <= p->g->gpus)
                continue;
            if (p->own_sizes)
                return stk_err_set(p->err, -EINVAL,
                                   "generate: sizes has %" PRIu32 " GPUs, but gpus is %.0f",
                                   c->sizes[i].gpus, p->g->gpus);
            c->sizes[i].gpus = (uint32_t)p->g->gpus;
        }
    }
    return 0;
}

int stk_gen_spec_parse(struct stk_gen_spec *g, const char *spec, uint64_t default_seed,
                       struct stk_err *err)
{
    struct parser p = {.g = g, .err = err};
    int rc;

    *g = (struct stk_gen_spec){.jobs = 1000,
                               .gpus = 64,
                               .day = 0.5,
                               .week = 0.3,
                               .tenants = 8,
                               .estimate_factor = 1,
                               .slack = 4};
    g->seed = default_seed;
    g->classes[0] = one_class;
    g->n_classes = 1;
    rc = read_pairs(&p, spec);
    if (rc < 0)
        return rc;
    if (p.mix && p.own_class)
        return stk_err_set(err, -EINVAL, "generate: mix has its own sizes and durations");
    if (p.mix) {
        memcpy(g->classes, sample_mix, sizeof(sample_mix));
        g->n_classes = sizeof(sample_mix) / sizeof(*sample_mix);
    }
    if (!p.span)
        g->load = 0.9;
    return fit_sizes(&p);
}
