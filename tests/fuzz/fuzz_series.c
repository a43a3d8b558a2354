/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_series.c - bytes as a row of measurements, and as what is kept of alerts. A row that is
 * taken has every number it says it has; what is read of alerts can be written and read again. */
#include <stdint.h>
#include <string.h>

#include "alert/alert.h"
#include "fuzz/require.h"
#include "series/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW (INT64_C(1800000000) * STK_SECOND)

static void row(const uint8_t *data, size_t size)
{
    struct stk_row_shape s;
    struct stk_fold f = {0};

    if (stk_row_get(data, size, &s) < 0)
        return;
    require(stk_row_size(&s) == size, "its size is what it says");
    for (uint32_t k = 0; k < s.steps; k++)
        for (uint32_t m = 0; m < s.members; m++)
            for (uint32_t i = 0; i < s.fields; i++)
                stk_fold_add(&f, STK_SERIES_MEAN, stk_row_value(data, &s, k, m, i), s.step_s);
    (void)stk_fold_value(&f, STK_SERIES_MEAN);
}

static void alerts(const uint8_t *data, size_t size)
{
    json_t *saved = json_loadb((const char *)data, size, 0, NULL), *again;
    struct stk_alerts a = {0}, b = {0};

    stk_alerts_load(&a, saved, NOW);
    require(a.n <= STK_ALERTS_MAX, "not too many");
    again = stk_alerts_save(&a);
    stk_alerts_load(&b, again, NOW);
    require(a.n == b.n, "what was written is read");
    json_decref(stk_alerts_show(&b));
    json_decref(stk_alerts_send(&b));
    json_decref(again);
    json_decref(saved);
    stk_alerts_done(&a);
    stk_alerts_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    row(data, size);
    alerts(data, size);
    return 0;
}
