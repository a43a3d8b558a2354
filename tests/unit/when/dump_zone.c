/* SPDX-License-Identifier: Apache-2.0 */
/* dump_zone.c - answers about time zones, for tests/e2e/test_zones.py. Lines of input:
 *     ZONE MOMENT           seconds east of UTC then
 *     ZONE MOMENT CRON      the next and the last time by that expression
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sys/zones.h"
#include "when/cron.h"

static struct stk_zone zone;

static int load(const char *name)
{
    struct stk_err err = {{0}};

    if (strcmp(zone.name, name) == 0 || stk_zones_load(name, &zone, &err) == 0)
        return 0;
    (void)fprintf(stderr, "%s\n", err.text);
    return 1;
}

int main(void)
{
    char line[512], name[64];
    int64_t at;
    int n;

    while (fgets(line, sizeof(line), stdin)) {
        struct stk_cron c;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%63s %" SCNd64 "%n", name, &at, &n) != 2 || load(name))
            return 1;
        if (line[n] == '\0') {
            (void)printf("%" PRId32 "\n", stk_zone_offset(&zone, at));
            continue;
        }
        if (stk_cron_parse(line + n + 1, &c, NULL) < 0)
            return 1;
        (void)printf("%" PRId64 " %" PRId64 "\n", stk_cron_next(&c, &zone, at),
                     stk_cron_last(&c, &zone, at));
    }
    return 0;
}
