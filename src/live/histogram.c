/* SPDX-License-Identifier: Apache-2.0 */
#include "live/counts.h"

void stk_histogram_add(struct stk_histogram *h, double v)
{
    uint32_t i = 0;

    while (h->le[i] > 0 && v > h->le[i])
        i++;
    h->in[i]++;
    h->count++;
    h->sum += v;
}
