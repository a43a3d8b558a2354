/* SPDX-License-Identifier: Apache-2.0 */
/* amounts.c - amounts by interval of time. A lease that covers many intervals costs as much as one
 * that covers two: the first and the last get their parts, and those between get the same, which is
 * noted as a change where it begins and where it ends. */
#include <errno.h>
#include <stdlib.h>

#include "figures/figures.h"

int stk_gpu_amounts_init(struct stk_gpu_amounts *b, struct stk_period p, stk_time step)
{
    struct stk_gpu_amounts new = {.since = p.since - p.since % step, .step = step};
    bool made = true;

    if (p.until > new.since)
        new.n = (uint32_t)((p.until - new.since + step - 1) / step);
    for (int i = 0; i < STK_AMOUNT_MAX; i++) {
        new.amount[i] = calloc(new.n + 1u, sizeof(*new.amount[i]));
        new.change[i] = calloc(new.n + 1u, sizeof(*new.change[i]));
        made = made && new.amount[i] && new.change[i];
    }
    if (made)
        *b = new;
    else
        stk_gpu_amounts_done(&new);
    return made ? 0 : -ENOMEM;
}

void stk_gpu_amounts_done(struct stk_gpu_amounts *b)
{
    for (int i = 0; i < STK_AMOUNT_MAX; i++) {
        free(b->amount[i]);
        free(b->change[i]);
    }
    *b = (struct stk_gpu_amounts){0};
}

static void add_inside(struct stk_gpu_amounts *b, enum stk_amount which, struct stk_period p,
                       stk_gpu_time amount)
{
    const stk_time first = (p.since - b->since) / b->step,
                   last = (p.until - 1 - b->since) / b->step;
    const uint64_t length = (uint64_t)(p.until - p.since);
    stk_gpu_time head, each, left = amount;

    if (first < last) {
        head = amount * (uint64_t)(b->since + (first + 1) * b->step - p.since) / length;
        each = amount * (uint64_t)b->step / length;
        b->amount[which][first] += (uint64_t)head;
        b->change[which][first + 1] += (int64_t)each;
        b->change[which][last] -= (int64_t)each;
        left = amount - head - each * (uint64_t)(last - first - 1);
    }
    b->amount[which][last] += (uint64_t)left;
}

void stk_gpu_amounts_add(struct stk_gpu_amounts *b, enum stk_amount which, stk_time from,
                         stk_time to, stk_gpu_time amount)
{
    const stk_time end = b->since + (stk_time)b->n * b->step;

    if (from >= to || to <= b->since || to > end)
        return;
    if (from < b->since) {
        amount = amount * (uint64_t)(to - b->since) / (uint64_t)(to - from);
        from = b->since;
    }
    add_inside(b, which, (struct stk_period){from, to}, amount);
}

void stk_gpu_amounts_finish(struct stk_gpu_amounts *b)
{
    for (int i = 0; i < STK_AMOUNT_MAX; i++) {
        int64_t each = 0;

        for (uint32_t k = 0; k < b->n; k++) {
            each += b->change[i][k];
            b->amount[i][k] += (uint64_t)each;
            b->change[i][k] = 0;
        }
    }
}
