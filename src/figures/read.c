/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - what the figures are made of: the leases of a job, of which the last is in its record
 * and earlier ones in a table; and how many GPUs there were when. */
#include <errno.h>
#include <stdlib.h>

#include "figures/figures.h"

void stk_leases_done(struct stk_leases *l)
{
    free(l->list);
    *l = (struct stk_leases){0};
}

static int push_lease(void *ctx, const struct stk_lease *lease)
{
    struct stk_leases *l = ctx;

    if (l->n == l->cap) {
        const uint32_t cap = l->cap ? 2 * l->cap : 16;
        struct stk_lease *more = realloc(l->list, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        l->list = more;
        l->cap = cap;
    }
    l->list[l->n++] = *lease;
    return 0;
}

int stk_leases_read(struct stk_leases *l, struct stk_store *st, const struct stk_record *r,
                    struct stk_err *err)
{
    int rc = 0;

    l->n = 0;
    if (r->leases > 0)
        rc = stk_store_leases(st, r->number, push_lease, l, err);
    if (rc == 0 && r->lease.from > 0)
        rc = push_lease(l, &r->lease);
    return rc == -ENOMEM ? stk_err_set(err, rc, "out of memory") : rc;
}

struct reading {
    struct stk_period p;
    struct stk_capacity_figures *to;
    struct stk_gpu_amounts *bins;
    struct stk_capacity last; /* at 0: none yet */
};

static int read_row(void *ctx, const struct stk_capacity *c)
{
    struct reading *x = ctx;

    if (x->last.at > 0)
        stk_figures_capacity(x->to, x->p, (struct stk_period){x->last.at, c->at}, x->last.gpus,
                             x->bins);
    x->last = *c;
    return 0;
}

int stk_figures_read_capacity(struct stk_store *st, struct stk_period p,
                              struct stk_capacity_figures *ret, struct stk_gpu_amounts *bins,
                              struct stk_err *err)
{
    struct stk_capacity_figures sum = {0};
    struct reading x = {.p = p, .to = &sum, .bins = bins};
    int rc = stk_store_capacity(st, p.since, p.until, read_row, &x, err);

    if (rc < 0)
        return rc;
    if (x.last.at > 0)
        stk_figures_capacity(&sum, p, (struct stk_period){x.last.at, p.until}, x.last.gpus, bins);
    *ret = sum;
    return 0;
}
