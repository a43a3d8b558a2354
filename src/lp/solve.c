/* SPDX-License-Identifier: Apache-2.0 */
/* solve.c - see solve.h. The columns are x, job by job, then z; the rows are the types, then for
 * each job its time and its progress. */
#include "lp/solve.h"

#include <coin/Clp_C_Interface.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define SLACK 1e-6 /* by which an answer may miss a row, relative */

struct rows { /* of the matrix, column by column */
    int *start, *row;
    double *value;
    double *low, *high;         /* of rows */
    double *floor, *top, *goal; /* of columns */
};

static void rows_done(struct rows *r)
{
    free(r->start);
    free(r->row);
    free(r->value);
    free(r->low);
    free(r->high);
    free(r->floor);
    free(r->top);
    free(r->goal);
}

static bool rows_new(struct rows *r, uint32_t jobs, uint32_t types)
{
    size_t cols = (size_t)jobs * types + 1, rows = types + 2 * (size_t)jobs, n = cols * 3 + jobs;

    *r = (struct rows){calloc(cols + 1, sizeof(int)), calloc(n, sizeof(int)),
                       calloc(n, sizeof(double)),     calloc(rows, sizeof(double)),
                       calloc(rows, sizeof(double)),  calloc(cols, sizeof(double)),
                       calloc(cols, sizeof(double)),  calloc(cols, sizeof(double))};
    return r->start && r->row && r->value && r->low && r->high && r->floor && r->top && r->goal;
}

/* Fills the matrix. Progress is written in units of the job's best speed: rows of like size. */
static void fill(const struct stk_lp *p, struct rows *r)
{
    uint32_t m = p->jobs, k = p->types, z = m * k;
    int n = 0;

    for (uint32_t t = 0; t < k; t++) {
        r->low[t] = -DBL_MAX;
        r->high[t] = p->count[t];
    }
    for (uint32_t i = 0; i < m; i++) {
        r->low[k + i] = -DBL_MAX;
        r->high[k + i] = 1;
        r->low[k + m + i] = p->need[i];
        r->high[k + m + i] = DBL_MAX;
        for (uint32_t t = 0; t < k; t++) {
            uint32_t c = i * k + t;

            r->start[c] = n;
            r->top[c] = DBL_MAX;
            r->row[n] = (int)t;
            r->value[n++] = p->gpus[i];
            r->row[n] = (int)(k + i);
            r->value[n++] = 1;
            r->row[n] = (int)(k + m + i);
            r->value[n++] = p->speed[c];
        }
    }
    r->start[z] = n;
    r->top[z] = DBL_MAX;
    for (uint32_t i = 0; i < m; i++)
        if (p->weight[i] > 0) {
            r->goal[z] = -1;
            r->row[n] = (int)(k + m + i);
            r->value[n++] = -p->weight[i];
        }
    r->start[z + 1] = n;
}

/* Whether the answer is one: an interior point method stops near the rows, not on them. */
static bool holds(const struct stk_lp *p, double z, const double *x)
{
    for (uint32_t i = 0; i < p->jobs; i++) {
        double got = 0, want = p->need[i] + z * p->weight[i];

        for (uint32_t t = 0; t < p->types; t++)
            got += x[i * p->types + t] * p->speed[i * p->types + t];
        if (!(got >= want - 100 * SLACK * (fabs(want) + 1e-9)))
            return false;
    }
    return true;
}

int stk_lp_solve(const struct stk_lp *p, double *ret_z, double *ret_x)
{
    uint32_t n = p->jobs * p->types;
    struct rows r;
    Clp_Simplex *model = NULL;
    int rc = -EIO, status;
    double *x;

    if (!rows_new(&r, p->jobs, p->types) || !(model = Clp_newModel()))
        goto out;
    fill(p, &r);
    Clp_setLogLevel(model, 0);
    Clp_loadProblem(model, (int)n + 1, (int)(p->types + 2 * p->jobs), r.start, r.row, r.value,
                    r.floor, r.top, r.goal, r.low, r.high);
    status = Clp_initialBarrierNoCrossSolve(model);
    x = Clp_primalColumnSolution(model);
    for (uint32_t i = 0; i < n; i++)
        ret_x[i] = fmin(fmax(x[i], 0), 1);
    *ret_z = x[n];
    rc = status == 0 && holds(p, x[n], ret_x) ? 0 : -ERANGE;
out:
    if (model)
        Clp_deleteModel(model);
    rows_done(&r);
    return rc;
}
