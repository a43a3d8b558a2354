/* SPDX-License-Identifier: Apache-2.0 */
/* adviser.c - see hetero.h. Each round a view of the cluster is made for the objective, which says
 * where each job belongs; what differs from the round before becomes events. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "hetero/hetero.h"
#include "hetero/solver.h"
#include "hetero/view.h"
#include "policy/registry.h"
#include "sys/big.h"

#define KEPT 4 /* numbers per type kept of a job: share, got, deficit, speed */

static const struct {
    const char *name;
    bool gavel;
    enum stk_share_rule rule;
    bool perf;
} objectives[] = {
    {"speed", false, STK_FIFO, true},
    {"fifo", true, STK_FIFO, false},
    {"fifo_perf", true, STK_FIFO, true},
    {"max_min_fairness", true, STK_MAX_MIN, false},
    {"max_min_fairness_perf", true, STK_MAX_MIN, true},
    {"finish_time_fairness", true, STK_FINISH_TIME, false},
    {"finish_time_fairness_perf", true, STK_FINISH_TIME, true},
    {"min_total_duration", true, STK_TOTAL_DURATION, false},
    {"min_total_duration_perf", true, STK_TOTAL_DURATION, true},
};
#define N_OBJECTIVES (sizeof(objectives) / sizeof(*objectives))

struct stk_adviser {
    struct stk_adviser_config cfg;
    const struct stk_state *s;
    size_t objective;
    struct stk_gavel gavel;
    struct stk_view view;
    struct stk_memo *memos; /* by job slot */
    double *kept;           /* likewise, KEPT x types each */
    uint32_t cap_memos, cap_kept, cap_view;
    double largest[STK_MAX_GPU_TYPES]; /* GPUs of the largest node of each type */
    uint32_t n_before;                 /* jobs in the last round */
};

static size_t objective_of(const struct stk_params *params)
{
    size_t i = 0;

    while (i + 1 < N_OBJECTIVES &&
           !stk_params_word(params, stk_hetero_objective, objectives[i].name))
        i++;
    return i;
}

bool stk_adviser_solves(const struct stk_params *params)
{
    size_t i = objective_of(params);

    return objectives[i].gavel && objectives[i].rule != STK_FIFO;
}

/* Which types are faster, on the whole. */
static void order_types(struct stk_adviser *a)
{
    const struct stk_speeds *s = a->cfg.speeds;
    double sum[STK_MAX_GPU_TYPES] = {0};

    for (uint32_t row = 0; row < s->rows; row++) {
        double best = 0;

        for (uint32_t t = 0; t < s->types; t++)
            best = fmax(best, stk_speed_alone(s, row, t, false));
        for (uint32_t t = 0; t < s->types && best > 0; t++)
            sum[t] += stk_speed_alone(s, row, t, false) / best;
    }
    a->view.types = s->types;
    for (uint32_t t = 0; t < s->types; t++) {
        uint32_t at = t;

        for (; at > 0 && sum[a->view.faster[at - 1]] < sum[t]; at--)
            a->view.faster[at] = a->view.faster[at - 1];
        a->view.faster[at] = t;
    }
}

static int begin(struct stk_adviser *a, struct stk_err *err)
{
    struct stk_shares *sh = &a->gavel.shares;

    if (a->s->n_pools != 1)
        return stk_err_set(err, -EINVAL, "order advised goes with one pool, not %u", a->s->n_pools);
    a->objective = objective_of(a->cfg.params);
    sh->rule = objectives[a->objective].rule;
    sh->perf = objectives[a->objective].perf;
    a->view.round_s = (double)a->s->round / (double)STK_SECOND;
    if (stk_adviser_solves(a->cfg.params)) {
        if (!a->cfg.solver)
            return stk_err_set(err, -ENOENT, "this objective needs the program stoker-lp");
        if (stk_solver_new(a->cfg.solver, &sh->solver, err) < 0)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < a->s->n_nodes; i++)
        a->largest[a->s->nodes[i].gpu_type] =
            fmax(a->largest[a->s->nodes[i].gpu_type], a->s->nodes[i].gpus);
    order_types(a);
    return 0;
}

int stk_adviser_new(const struct stk_adviser_config *cfg, struct stk_adviser **ret,
                    struct stk_err *err)
{
    struct stk_adviser *a = calloc(1, sizeof(*a));
    int rc;

    if (!a)
        return stk_err_set(err, -ENOMEM, "out of memory");
    a->cfg = *cfg;
    a->s = stk_core_state(cfg->core);
    rc = begin(a, err);
    if (rc < 0) {
        stk_adviser_free(a);
        return rc;
    }
    *ret = a;
    return 0;
}

void stk_adviser_free(struct stk_adviser *a)
{
    if (!a)
        return;
    stk_shares_done(&a->gavel.shares);
    stk_mem_drop(&stk_big_mem, &a->memos, &a->cap_memos, sizeof(*a->memos));
    stk_mem_drop(&stk_big_mem, &a->kept, &a->cap_kept, sizeof(*a->kept));
    stk_mem_drop(&stk_big_mem, &a->view.jobs, &a->cap_view, sizeof(*a->view.jobs));
    free(a);
}

int stk_adviser_job(struct stk_adviser *a, stk_job_id job, uint32_t row, uint64_t steps)
{
    uint32_t per = KEPT * a->view.types;

    if (stk_mem_grow(&stk_big_mem, &a->memos, &a->cap_memos, job.i + 1, sizeof(*a->memos)) < 0 ||
        stk_mem_grow(&stk_big_mem, &a->kept, &a->cap_kept, (job.i + 1) * per, sizeof(*a->kept)) < 0)
        return -ENOMEM;
    a->memos[job.i] =
        (struct stk_memo){.number = a->s->jobs[job.i].number, .row = row, .steps = steps};
    memset(&a->kept[(size_t)job.i * per], 0, per * sizeof(*a->kept));
    a->view.changed = true;
    return 0;
}

static void view_job(struct stk_adviser *a, uint32_t slot, stk_time now)
{
    const struct stk_job *j = &a->s->jobs[slot];
    struct stk_view_job *v = &a->view.jobs[a->view.n++];
    uint32_t k = a->view.types;
    double *kept = &a->kept[(size_t)slot * KEPT * k];
    struct stk_memo *m = &a->memos[slot];

    *v = (struct stk_view_job){.memo = m,
                               .speed = kept + 3 * (size_t)k,
                               .share = kept,
                               .got = kept + k,
                               .deficit = kept + 2 * (size_t)k,
                               .gpus = j->gpus,
                               .weight = j->priority > 0 ? j->priority : 1,
                               .left = (double)a->cfg.left(a->cfg.ctx, (stk_job_id){slot}, now),
                               .age_s = (double)(now - j->submitted) / (double)STK_SECOND,
                               .slot = slot};
    v->done = (double)m->steps - v->left;
    for (uint32_t t = 0; t < k; t++) { /* what no node of a type can hold will lie on several */
        kept[3 * k + t] =
            stk_speed_alone(a->cfg.speeds, m->row, t, v->gpus > a->largest[t] && a->largest[t] > 0);
        v->best = fmax(v->best, kept[3 * k + t]);
    }
}

static int by_number(const void *pa, const void *pb)
{
    const struct stk_view_job *a = pa, *b = pb;

    return a->memo->number < b->memo->number ? -1 : a->memo->number > b->memo->number;
}

static bool active(const struct stk_job *j)
{
    return j->state == STK_JOB_WAITING || j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
}

static int make_view(struct stk_adviser *a, stk_time now, struct stk_err *err)
{
    struct stk_view *v = &a->view;

    if (stk_mem_grow(&stk_big_mem, &v->jobs, &a->cap_view, a->s->n_live + 1, sizeof(*v->jobs)) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    v->n = 0;
    for (uint32_t i = 0; i < a->s->n_jobs; i++)
        if (active(&a->s->jobs[i]))
            view_job(a, i, now);
    if (v->n > 1)
        qsort(v->jobs, v->n, sizeof(*v->jobs), by_number);
    memset(v->count, 0, sizeof(v->count));
    for (uint32_t i = 0; i < a->s->n_nodes; i++) {
        const struct stk_node *n = &a->s->nodes[i];

        if (n->up)
            v->count[n->gpu_type] += n->gpus - (uint32_t)__builtin_popcountll(n->mask_off);
    }
    v->now_s = (double)now / (double)STK_SECOND;
    v->changed |= v->n != a->n_before;
    a->n_before = v->n;
    return 0;
}

/* Tells the core what is new. A job's place in line is its place among the arrivals. */
static int advise(struct stk_adviser *a, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    for (uint32_t i = 0; i < a->view.n; i++) {
        const struct stk_view_job *j = &a->view.jobs[i];
        const struct stk_event ev = {
            .at = now, .type = STK_EV_ADVISE, .job = {j->slot}, .u.advice = {.where = j->where}};
        int rc;

        if (j->where == j->memo->where)
            continue;
        rc = stk_loop_apply(loop, &ev, err);
        if (rc < 0)
            return rc;
        j->memo->where = j->where;
    }
    return 0;
}

int stk_adviser_round(struct stk_adviser *a, struct stk_loop *loop, stk_time now,
                      struct stk_err *err)
{
    int rc = make_view(a, now, err);

    if (rc == 0)
        rc = objectives[a->objective].gavel ? stk_gavel_round(&a->gavel, &a->view, err)
                                            : stk_value_round(&a->view, err);
    a->view.changed = false;
    return rc < 0 ? rc : advise(a, loop, now, err);
}
