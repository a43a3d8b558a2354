/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/registry.h"

#include <string.h>

#include "core/core.h"

const struct stk_order_ops *const stk_orders[] = {
    &stk_order_fifo,
    &stk_order_priority,
    &stk_order_sjf,
    &stk_order_ssf,
    &stk_order_srtf,
    &stk_order_srsf,
    &stk_order_las,
    &stk_order_fairshare,
    &stk_order_drf,
    &stk_order_ftf,
    &stk_order_edf,
    &stk_order_advised,
    NULL,
};
const struct stk_backfill_ops *const stk_backfills[] = {
    &stk_backfill_none, &stk_backfill_skip, &stk_backfill_easy, &stk_backfill_conservative, NULL,
};
const struct stk_place_ops *const stk_places[] = {
    &stk_place_pack,    &stk_place_first_fit,  &stk_place_spread,
    &stk_place_count,   &stk_place_topology,   &stk_place_bestfit,
    &stk_place_dotprod, &stk_place_gpupacking, &stk_place_gpuclustering,
    &stk_place_fgd,     &stk_place_random,     &stk_place_stoker,
    &stk_place_share,   &stk_place_energy,     NULL,
};
const struct stk_preempt_ops *const stk_preempts[] = {
    &stk_preempt_none,
    &stk_preempt_tier,
    &stk_preempt_afresh,
    &stk_preempt_lucid,
    &stk_preempt_advised,
    &stk_preempt_reclaim,
    NULL,
};
const struct stk_admit_ops *const stk_admits[] = {&stk_admit_possible, NULL};

/* clang-format off */
const struct stk_bundle stk_bundles[] = {
    /* name            order       admit       backfill        place   preempt   share   parameters */
    {"default",        "priority", "possible", "easy",       "stoker", "tier",   "none", "",
     "by tier and priority, EASY backfill, least unsold: what you get when you say nothing; where "
     "tenants are given, teams"},
    {"teams",          "fairshare", "possible", "easy",      "stoker", "reclaim", "none", "",
     "by tier and class, then fair share of tenants, then priority; guarantees of tenants are kept"},
    {"fifo",           "fifo",     "possible", "none",         "pack", "none",   "none", "",
     "first come, first served; the head blocks"},
    {"fifo-skip",      "fifo",     "possible", "skip",         "pack", "none",   "none", "",
     "first come, but start whatever fits"},
    {"easy",           "fifo",     "possible", "easy",         "pack", "none",   "none", "",
     "first come with EASY backfill"},
    {"conservative",   "fifo",     "possible", "conservative", "pack", "none",   "none", "",
     "first come with conservative backfill"},
    {"priority",       "priority", "possible", "skip",         "pack", "tier",   "none", "",
     "by tier and priority; higher tiers and classes preempt lower ones"},
    {"fair",           "fairshare", "possible", "easy",      "stoker", "tier",   "none", "",
     "by tier and class, then tenants that have had least for their weight, EASY backfill"},
    {"drf",            "drf",      "possible", "easy",       "stoker", "tier",   "none", "",
     "the same with tenants by dominant share of GPUs, CPU and memory"},
    {"ftf",            "ftf",      "possible", "easy",       "stoker", "tier",   "none", "",
     "by tier and class, then jobs that fare worst against their tenant's part of the cluster (Themis)"},
    {"edf",            "edf",      "possible", "easy",       "stoker", "tier",   "none", "tier.classes=",
     "by tier, then earliest deadline, those in danger first, EASY backfill"},
    {"sjf",            "sjf",      "possible", "none",         "pack", "none",   "none", "",
     "shortest job first; the head blocks"},
    {"ssf",            "ssf",      "possible", "skip",         "pack", "none",   "none", "",
     "smallest run time x GPUs first"},
    {"srtf",           "srtf",     "possible", "skip",         "pack", "afresh", "none", "",
     "shortest remaining time first, preemptive"},
    {"srsf",           "srsf",     "possible", "skip",         "pack", "afresh", "none", "",
     "shortest remaining time x GPUs first, preemptive"},
    {"las",            "las",      "possible", "skip",         "pack", "afresh", "none", "",
     "least attained GPU-time first (Tiresias), preemptive, no estimates needed"},
    {"tenants",        "las",      "possible", "skip",         "pack", "reclaim", "none",
     "las.thresholds=1000,10000,100000,1000000 las.count=seconds las.stay=on reclaim.rank=on "
     "reclaim.move=on",
     "least run time first, in levels, inside guarantees of tenants that are always kept; preemptive, "
     "no estimates needed"},
    {"lucid-srtf",     "srtf",     "possible", "skip",         "pack", "lucid",  "none",
     "restart_s=8:40,*:60 sim.late_s=1",
     "SRTF exactly as in Lucid's simulator, for comparison"},
    {"lucid-tiresias", "las",      "possible", "skip",         "pack", "lucid",  "none",
     "las.thresholds=18001 las.round_s=60 lucid.list=running-first restart_s=8:40,*:60 sim.late_s=1",
     "Tiresias exactly as in Lucid's simulator, for comparison"},
    {"share",          "fifo",     "possible", "skip",         "share", "none",  "pairs", "share.all=true",
     "first come, whatever fits; jobs that disturb each other little share GPUs when none are free"},
    {"energy",         "fifo",     "possible", "skip",         "energy", "none", "none",  "",
     "first come, whatever fits, on few nodes; empty ones are switched off"},
    {"hetero",         "advised",  "possible", "skip",         "pack", "advised", "none", "",
     "unlike GPUs: each job where its speed counts most, no estimates needed"},
    {"gavel-hetero", "advised", "possible", "skip", "pack", "advised", "none",
     "sim.steps_s=360 sim.spread=off",
     "our own policy for unlike GPUs, under the rules of Gavel's simulator"},
    {"gavel-fifo", "advised", "possible", "skip", "pack", "advised", "none",
     "hetero.objective=fifo sim.steps_s=360 sim.spread=off",
     "Gavel, for comparison: first come, any type"},
    {"gavel-fifo_perf", "advised", "possible", "skip", "pack", "advised", "none",
     "hetero.objective=fifo_perf sim.steps_s=360 sim.spread=off",
     "Gavel, for comparison: first come, each on the fastest type that is free"},
    {"gavel-max_min_fairness", "advised", "possible", "skip", "pack", "advised", "none",
     "hetero.objective=max_min_fairness sim.steps_s=360 sim.spread=off",
     "Gavel, for comparison: equal time for all"},
    {"gavel-max_min_fairness_perf", "advised", "possible", "skip", "pack", "advised", "none",
     "hetero.objective=max_min_fairness_perf sim.steps_s=360 sim.spread=off",
     "Gavel, for comparison: equal progress for all"},
    {"gavel-finish_time_fairness", "advised", "possible", "skip", "pack", "advised", "none",
     "hetero.objective=finish_time_fairness sim.steps_s=360 sim.spread=off",
     "Gavel, for comparison: equal delay against an equal part of the cluster"},
    {"gavel-finish_time_fairness_perf", "advised", "possible", "skip", "pack", "advised", "none",
     "hetero.objective=finish_time_fairness_perf sim.steps_s=360 sim.spread=off",
     "Gavel, for comparison: the same, with measured speeds"},
    {"gavel-min_total_duration", "advised", "possible", "skip", "pack", "advised", "none",
     "hetero.objective=min_total_duration sim.steps_s=360 sim.spread=off",
     "Gavel, for comparison: the last job ends early"},
    {"gavel-min_total_duration_perf", "advised", "possible", "skip", "pack", "advised", "none",
     "hetero.objective=min_total_duration_perf sim.steps_s=360 sim.spread=off",
     "Gavel, for comparison: the same, with measured speeds"},
    {0},
};
/* clang-format on */

#define FIND(table, want)                                                                          \
    for (size_t i = 0; (table)[i]; i++)                                                            \
        if (strcmp((table)[i]->name, (want)) == 0)                                                 \
            return (table)[i];                                                                     \
    return NULL

const struct stk_order_ops *stk_order_find(const char *name)
{
    FIND(stk_orders, name);
}

const struct stk_backfill_ops *stk_backfill_find(const char *name)
{
    FIND(stk_backfills, name);
}

const struct stk_place_ops *stk_place_find(const char *name)
{
    FIND(stk_places, name);
}

const struct stk_preempt_ops *stk_preempt_find(const char *name)
{
    FIND(stk_preempts, name);
}

const struct stk_admit_ops *stk_admit_find(const char *name)
{
    FIND(stk_admits, name);
}

const struct stk_bundle *stk_bundle_find(const char *name)
{
    for (const struct stk_bundle *b = stk_bundles; b->name; b++)
        if (strcmp(b->name, name) == 0)
            return b;
    return NULL;
}

static const struct stk_param *in_table(const struct stk_param *t, const char *name)
{
    for (; t && t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

#define SEARCH(table, name)                                                                        \
    for (size_t i = 0; (table)[i] && !p; i++)                                                      \
    p = in_table((table)[i]->params, (name))

const struct stk_param *stk_param_find(const char *name, const struct stk_param *more)
{
    const struct stk_param *p = in_table(stk_core_params, name);

    if (!p)
        p = in_table(more, name);
    SEARCH(stk_orders, name);
    SEARCH(stk_backfills, name);
    SEARCH(stk_places, name);
    SEARCH(stk_preempts, name);
    SEARCH(stk_admits, name);
    return p;
}
