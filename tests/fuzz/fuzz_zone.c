/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_zone.c - bytes as a time zone file, or as a rule: whatever is read gives offsets within a
 * day, and times of a cron expression that go forward. */
#include <stdint.h>

#include "fuzz/require.h"
#include "when/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct stk_zone *z)
{
    static const int64_t when[] = {INT64_C(-4000000000), 0, 1000000000, 1774746000, 4000000000};
    struct stk_cron c;
    int64_t t = 1774746000;

    for (size_t i = 0; i < sizeof(when) / sizeof(*when); i++) {
        int32_t offset = stk_zone_offset(z, when[i]);

        require(offset > -30 * 3600 && offset < 30 * 3600, "an offset within a day or so");
        (void)stk_zone_date(z, when[i]);
    }
    for (int i = 0; i < 3 && stk_cron_parse(i ? "30 2 * * *" : "7 * * * *", &c, NULL) == 0; i++) {
        int64_t next = stk_cron_next(&c, z, t);

        require(next > t, "times go forward");
        t = next < INT64_MAX ? next : t;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stk_zone z;

    if (stk_zone_read(data, size, &z, NULL) == 0)
        ask(&z);
    stk_zone_utc(&z);
    if (stk_zone_rule((const char *)data, size, &z, NULL) == 0)
        ask(&z);
    return 0;
}
