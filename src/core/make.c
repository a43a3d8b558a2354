/* SPDX-License-Identifier: Apache-2.0 */
/* make.c - cores come and go. */
#include "core/core.h"

#include <string.h>

#include "core/account.h"
#include "core/booking.h"
#include "core/defrag.h"
#include "core/evictable.h"
#include "core/index.h"
#include "core/pair.h"
#include "core/power.h"
#include "core/score.h"
#include "core/settings.h"
#include "core/tenant.h"
#include "core/topo.h"
#include "core/txn.h"
#include "core/usage.h"
#include "core/verbs.h"
#include "core/victims.h"
#include "core/walk.h"

enum {
    P_ROUND,
    P_DEPTH,
    P_DEFRAG,
    P_MOVABLE,
    P_RESTART,
    P_SUSPEND,
    P_UNREPORTED,
    P_FIRST,
    P_MIN_RUN,
    P_PER_DAY,
    P_SPARE,
    P_BEST_EFFORT,
    P_STANDARD,
    P_DRAIN_AFTER,
    P_DRAIN_GPUS,
    P_DRAIN_LIMIT,
    P_DRAIN_MOST,
    P_DRAIN_SHARE,
    P_PATIENCE
};
const struct stk_param stk_core_params[] = {
    [P_ROUND] = {"round_s", STK_PARAM_SECONDS, "0", 0, 31536000, NULL,
                 "decide only at multiples of this; in the simulator jobs then end there too"},
    [P_DEPTH] = {"backfill.depth", STK_PARAM_INT, "500", 1, 1000000000, NULL,
                 "conservative: when plans change, this many jobs are planned anew at a time"},
    [P_DEFRAG] = {"defrag.most", STK_PARAM_INT, "0", 0, 1000, NULL,
                  "running jobs move to make room for one that fragments keep waiting: at most so "
                  "many moves in 1000 placements"},
    [P_MOVABLE] = {"defrag.jobs", STK_PARAM_WORD, "movable", 0, 0, "movable|all",
                   "which jobs move: those that say they may, or all"},
    [P_RESTART] = {"restart_s", STK_PARAM_SIZES, "0", 0, 31536000, NULL,
                   "what a restart costs a job that gave way: seconds, or by GPUs (8:40,*:60); the "
                   "simulator adds it to its work"},
    [P_SUSPEND] = {"suspend_s", STK_PARAM_SIZES, "10", 0, 31536000, NULL,
                   "what it costs a job to be suspended and resumed: seconds, or by GPUs; the "
                   "simulator adds it to its work"},
    [P_UNREPORTED] = {"preempt.unreported_s", STK_PARAM_SECONDS, "900", 0, 31536000, NULL,
                      "who gives way: a job that never reported a checkpoint counts as losing the "
                      "work of so long"},
    [P_FIRST] = {"preempt.first", STK_PARAM_WORD, "cheapest", 0, 0, "cheapest|latest",
                 "who gives way first of those that may: whoever loses least; or lower priorities, "
                 "then whoever started last"},
    [P_MIN_RUN] = {"preempt.min_run_s", STK_PARAM_SECONDS, "0", 0, 31536000, NULL,
                   "after a start a job gives way to nobody for so long, unless it says otherwise"},
    [P_PER_DAY] = {"preempt.per_day", STK_PARAM_INT, "0", 0, 1000000, NULL,
                   "a job gives way at most so often within 24 hours; 0: as often as it must"},
    [P_SPARE] =
        {"preempt.deadline_spare_s", STK_PARAM_SECONDS, "600", 0, 31536000, NULL,
         "a job that would have less than this to spare before its deadline, if it gave way "
         "and came back at once, gives way to nobody; not best-effort jobs"},
    [P_BEST_EFFORT] = {"preempt.best_effort", STK_PARAM_WORD, "suspend", 0, 0,
                       "suspend|signal|kill",
                       "how best-effort jobs that give way leave: asleep if they can, warned with "
                       "time to save, or at once"},
    [P_STANDARD] = {"preempt.standard", STK_PARAM_WORD, "suspend", 0, 0, "suspend|signal|kill",
                    "the same for standard jobs"},
    [P_DRAIN_AFTER] = {"drain.after_s", STK_PARAM_SECONDS, "0", 0, 31536000, NULL,
                       "GPUs are kept free for a job that has waited so long while later ones "
                       "passed it; 0: never"},
    [P_DRAIN_GPUS] = {"drain.gpus", STK_PARAM_INT, "2", 1, STK_MAX_GPUS, NULL,
                      "that is done for jobs of at least so many GPUs"},
    [P_DRAIN_LIMIT] = {"drain.limit_s", STK_PARAM_SECONDS, "86400", 1, 31536000, NULL,
                       "that is given up after so long, and not begun if it is expected to take "
                       "longer"},
    [P_DRAIN_MOST] = {"drain.most", STK_PARAM_INT, "1", 1, 16, NULL,
                      "it is done for so many jobs of a pool at a time"},
    [P_DRAIN_SHARE] = {"drain.share", STK_PARAM_MILLI, "1", 1, 1000, NULL,
                       "with at most this share of the pool's GPUs"},
    [P_PATIENCE] =
        {"backfill.patience_s", STK_PARAM_SECONDS, "21600", 0, 31536000, NULL,
         "where jobs outrun predicted run times: the first in line that is so late after "
         "its first promised start is passed only by jobs whose limits end in time"},
    {0},
};

const struct stk_param *const stk_restart_s = &stk_core_params[P_RESTART];
const struct stk_param *const stk_suspend_s = &stk_core_params[P_SUSPEND];

static uint8_t leave_of(const struct stk_params *p, const struct stk_param *decl)
{
    if (stk_params_word(p, decl, "kill"))
        return STK_LEAVE_KILL;
    return stk_params_word(p, decl, "signal") ? STK_LEAVE_SIGNAL : STK_LEAVE_SUSPEND;
}

static void stake_init(struct stk_state *s, const struct stk_core_config *cfg)
{
    const struct stk_params *p = cfg->params;
    struct stk_stake_rule *r = &s->stake_rule;

    r->restart.n = stk_params_sizes(p, &stk_core_params[P_RESTART], r->restart.upto, r->restart.us,
                                    STK_MAX_SIZES);
    r->suspend.n = stk_params_sizes(p, &stk_core_params[P_SUSPEND], r->suspend.upto, r->suspend.us,
                                    STK_MAX_SIZES);
    r->unreported = stk_params_seconds(p, &stk_core_params[P_UNREPORTED]);
    r->latest = stk_params_word(p, &stk_core_params[P_FIRST], "latest");
    r->min_run = stk_params_seconds(p, &stk_core_params[P_MIN_RUN]);
    r->spare = stk_params_seconds(p, &stk_core_params[P_SPARE]);
    r->per_day = (uint32_t)stk_params_int(p, &stk_core_params[P_PER_DAY]);
    r->leave[STK_TIER_BEST_EFFORT] = leave_of(p, &stk_core_params[P_BEST_EFFORT]);
    r->leave[STK_TIER_STANDARD] = leave_of(p, &stk_core_params[P_STANDARD]);
    r->sleeps = cfg->sleeps;
}

static int drain_init(struct stk_state *s, const struct stk_core_config *cfg, struct stk_err *err)
{
    struct stk_drain *d = &s->book.drain;

    d->after = stk_params_seconds(cfg->params, &stk_core_params[P_DRAIN_AFTER]);
    d->gpus = (uint32_t)stk_params_int(cfg->params, &stk_core_params[P_DRAIN_GPUS]);
    d->limit = stk_params_seconds(cfg->params, &stk_core_params[P_DRAIN_LIMIT]);
    d->most = (uint32_t)stk_params_int(cfg->params, &stk_core_params[P_DRAIN_MOST]);
    d->share = (uint32_t)stk_params_milli(cfg->params, &stk_core_params[P_DRAIN_SHARE]);
    if (d->after > 0 && cfg->preempt->pass)
        return stk_err_set(err, -EINVAL,
                           "GPUs are not kept free for one job (drain.after_s) with preempt %s, "
                           "which decides by counts; take preempt none, tier or reclaim",
                           cfg->preempt->name);
    return 0;
}

static int policy_memory(struct stk_state *s, size_t size, void **ret)
{
    *ret = size ? s->mem.resize(s->mem.ctx, NULL, 0, size) : NULL;
    return size && !*ret ? -ENOMEM : 0;
}

static int policy_init(struct stk_state *s, const struct stk_core_config *cfg, struct stk_err *err)
{
    int rc = 0;

    if (policy_memory(s, cfg->order->state_size, &s->order_st) < 0 ||
        policy_memory(s, cfg->preempt->state_size, &s->preempt_st) < 0 ||
        policy_memory(s, cfg->place->state_size, &s->place_st) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (cfg->order->init)
        rc = cfg->order->init(s->order_st, cfg->params, err);
    if (rc == 0 && cfg->preempt->init)
        rc = cfg->preempt->init(s->preempt_st, cfg->params, err);
    if (rc == 0 && cfg->place->init)
        rc = cfg->place->init(s->place_st, cfg->params, err);
    if (rc < 0)
        return rc;
    s->round = stk_params_seconds(cfg->params, &stk_core_params[P_ROUND]);
    if (s->round == 0 && cfg->order->round)
        s->round = cfg->order->round(s->order_st);
    if (s->round == 0 && cfg->preempt->round)
        s->round = cfg->preempt->round(s->preempt_st);
    if (s->round > 0 && s->round < STK_SECOND / 1000)
        return stk_err_set(err, -EINVAL, "rounds must be at least 0.001 s");
    stake_init(s, cfg);
    s->backfill_depth = (uint32_t)stk_params_int(cfg->params, &stk_core_params[P_DEPTH]);
    s->patience = stk_params_seconds(cfg->params, &stk_core_params[P_PATIENCE]);
    s->defrag_all = stk_params_word(cfg->params, &stk_core_params[P_MOVABLE], "all");
    s->defrag = (uint32_t)stk_params_int(cfg->params, &stk_core_params[P_DEFRAG]);
    if (s->defrag > 0 && !stk_defrag_goes(cfg->preempt, cfg->backfill))
        return stk_err_set(err, -EINVAL,
                           "jobs do not move (defrag) with preempt %s and backfill %s; take "
                           "preempt none, tier or afresh, and backfill none, skip or easy",
                           cfg->preempt->name, cfg->backfill->name);
    if (cfg->preempt->pass && (s->stake_rule.min_run > 0 || s->stake_rule.per_day > 0))
        return stk_err_set(err, -EINVAL,
                           "preempt policy %s decides all anew and protects nobody: "
                           "preempt.min_run_s and preempt.per_day go with tier and reclaim",
                           cfg->preempt->name);
    return drain_init(s, cfg, err);
}

/* Whether some tenant is guaranteed anything. */
static bool guaranteed(const struct stk_core_config *cfg)
{
    for (uint32_t i = 0; i < cfg->n_tenants; i++) {
        const struct stk_tenant_spec *t = &cfg->tenants[i];
        bool any = t->guarantee != STK_GUARANTEE_SUM && t->guarantee > 0;

        for (uint32_t k = 0; k < STK_MAX_GPU_TYPES; k++)
            any |= t->type_guarantee[k] != STK_GUARANTEE_SUM && t->type_guarantee[k] > 0;
        if (any)
            return true;
    }
    return false;
}

/* Whether guarantees are kept, and ranks of running jobs count. */
static int set_fair(struct stk_state *s, const struct stk_core_config *cfg, struct stk_err *err)
{
    const struct stk_preempt_ops *p = s->preempt;
    const bool any = guaranteed(cfg);

    s->fair = p->fair && cfg->n_tenants > 0 && (any || !p->plain(s->preempt_st));
    s->by_due = s->fair && p->by_due(s->preempt_st, any);
    s->firm = s->fair && p->firm(s->preempt_st);
    s->fair_any = s->fair && p->any(s->preempt_st);
    s->ranked = p->ranked && p->ranked(s->preempt_st);
    if (s->ranked && !(s->order->preemptive && s->order->next_change))
        return stk_err_set(err, -EINVAL,
                           "order %s does not rank running jobs in levels, so they do not give way "
                           "by rank; take order las",
                           s->order->name);
    return 0;
}

static size_t tags_size(const struct stk_state *s)
{
    return (s->n_nodes + (size_t)1) * STK_TAGS * sizeof(*s->tags);
}

/* What follows from the policies, and memory for the nodes. */
static int finish_new(struct stk_state *s, struct stk_err *err)
{
    const struct stk_mem *mem = &s->mem;
    uint32_t n = s->n_nodes, pieces;

    s->next_number = s->next_lease = 1;
    s->protect_at = STK_NEVER_TIME;
    for (uint32_t i = 0; i < s->n_pools; i++)
        s->pools[i].protect_at = STK_NEVER_TIME;
    s->round_at = INT64_MIN;
    s->max_pieces = pieces = n + (s->any_mig ? s->n_parts : 0);
    s->kept_pool = STK_NONE;
    s->whole_pool = s->preempt->pass != NULL;
    s->n_levels = s->preempt->room ? s->preempt->levels(s->preempt_st) : 1;
    s->keep_ends = s->backfill->reserve_one || s->backfill->reserve_all || s->preempt->room ||
                   s->book.drain.after > 0;
    s->mix = mem->resize(mem->ctx, NULL, 0, sizeof(*s->mix));
    if (s->place->tags)
        s->tags = mem->resize(mem->ctx, NULL, 0, tags_size(s));
    if (s->place->share)
        s->place->share(s->place_st, &s->share);
    if (!s->mix || (s->place->tags && !s->tags) || stk_score_init(s) < 0 || stk_seen_init(s) < 0 ||
        stk_pair_init(s) < 0 || stk_booking_init(s) < 0 || stk_usage_init(s) < 0 ||
        (s->preempt->room && (stk_evictable_init(s) < 0 || stk_victims_init(s) < 0)) ||
        stk_mem_grow(mem, &s->try_pieces, &s->cap_try, pieces + 1, sizeof(*s->try_pieces)) < 0 ||
        stk_mem_grow(mem, &s->list_a, &s->cap_list_a, n + 1, sizeof(*s->list_a)) < 0 ||
        stk_mem_grow(mem, &s->batch, &s->cap_batch, pieces + STK_BATCH, sizeof(*s->batch)) < 0 ||
        stk_txn_reserve(s, 4 * pieces + s->n_parts + 3 * STK_BATCH) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for %u nodes", n);
    return stk_power_init(s, err);
}

static int copy_layouts(struct stk_state *s, const struct stk_layout *from, uint32_t n,
                        struct stk_err *err)
{
    if (n > STK_MAX_LAYOUTS)
        return stk_err_set(err, -EINVAL, "at most %d layouts of GPUs, got %u", STK_MAX_LAYOUTS, n);
    s->layouts = s->mem.resize(s->mem.ctx, NULL, 0, (n + (size_t)1) * sizeof(*from));
    if (!s->layouts)
        return stk_err_set(err, -ENOMEM, "out of memory");
    s->n_layouts = n;
    for (uint32_t i = 0; i < n; i++)
        s->layouts[i] = from[i];
    return 0;
}

int stk_core_make(const struct stk_core_config *cfg, const struct stk_mem *mem,
                  struct stk_core **ret_core, struct stk_err *err)
{
    struct stk_core *c = mem->resize(mem->ctx, NULL, 0, sizeof(*c));
    struct stk_state *s;
    int rc;

    if (!c)
        return stk_err_set(err, -ENOMEM, "out of memory");
    s = &c->s;
    s->mem = *mem;
    s->order = cfg->order;
    s->backfill = cfg->backfill;
    s->place = cfg->place;
    s->preempt = cfg->preempt;
    s->admit = cfg->admit;
    s->retain_done = cfg->retain_done;
    s->pools_change = cfg->pools_change;
    s->mix_given = cfg->mix != NULL;
    s->n_resources = cfg->n_resources;
    s->resource_names = cfg->resource_names;
    s->pool_names = cfg->pool_names;
    s->speeds = cfg->speeds;
    s->type_speed = cfg->type_speed;
    rc = copy_layouts(s, cfg->layouts, cfg->n_layouts, err);
    rc = rc < 0 ? rc : stk_index_build(s, cfg->nodes, cfg->n_nodes, cfg->n_pools, err);
    for (uint32_t p = 0; rc == 0 && p < s->n_pools; p++)
        stk_timeline_init(&s->pools[p].plan, &s->mem);
    rc = rc < 0 ? rc : policy_init(s, cfg, err);
    rc = rc < 0 ? rc : set_fair(s, cfg, err);
    rc = rc < 0 ? rc : stk_tenants_init(s, cfg->tenants, cfg->n_tenants, err);
    rc = rc < 0 ? rc : stk_accounts_init(s, cfg->queues, cfg->n_queues, err);
    rc = rc < 0 ? rc : finish_new(s, err);
    if (rc == 0 && cfg->mix)
        *s->mix = *cfg->mix;
    if (rc == 0 && s->place->learn)
        s->place->learn(s->place_st, s);
    if (rc < 0) {
        stk_core_free(c);
        return rc;
    }
    *ret_core = c;
    return 0;
}

int stk_core_new(const struct stk_core_config *cfg, const struct stk_mem *mem,
                 struct stk_core **ret_core, struct stk_err *err)
{
    struct stk_core *c = NULL;
    int rc = stk_core_make(cfg, mem, &c, err);

    rc = rc < 0 ? rc : stk_settings_keep(&c->s, cfg, err);
    if (rc < 0) {
        stk_core_free(c);
        return rc;
    }
    *ret_core = c;
    return 0;
}
