/* SPDX-License-Identifier: Apache-2.0 */
#include "model/demand.h"

#include <errno.h>

bool stk_resource_name_ok(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = s[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-' || c == '.'))
            return false;
    }
    return len > 0 && len < STK_MAX_RESOURCE_NAME;
}

void stk_demand_set_resource(struct stk_demand *d, uint32_t i, uint32_t amount)
{
    d->resource[i] = amount;
    if (amount > 0 && i >= d->n_resources)
        d->n_resources = (uint8_t)(i + 1);
    while (d->n_resources > 0 && d->resource[d->n_resources - 1] == 0)
        d->n_resources--;
}

static void remove_speed(struct stk_demand *d, uint32_t at)
{
    d->n_speeds--;
    for (uint32_t i = at; i < d->n_speeds; i++) {
        d->speed_type[i] = d->speed_type[i + 1];
        d->speed_milli[i] = d->speed_milli[i + 1];
    }
    d->speed_type[d->n_speeds] = 0;
    d->speed_milli[d->n_speeds] = 0;
}

int stk_demand_set_speed(struct stk_demand *d, uint32_t type, uint32_t milli)
{
    uint32_t at = 0;

    while (at < d->n_speeds && d->speed_type[at] < type)
        at++;
    if (at < d->n_speeds && d->speed_type[at] == type)
        remove_speed(d, at);
    if (milli == STK_SPEED)
        return 0;
    if (d->n_speeds == STK_MAX_SPEEDS)
        return -E2BIG;
    for (uint32_t i = d->n_speeds++; i > at; i--) {
        d->speed_type[i] = d->speed_type[i - 1];
        d->speed_milli[i] = d->speed_milli[i - 1];
    }
    d->speed_type[at] = (uint8_t)type;
    d->speed_milli[at] = (uint16_t)milli;
    return 0;
}
