/* SPDX-License-Identifier: Apache-2.0 */
#include "base/span.h"

#include <stdio.h>

const char *stk_span(int64_t seconds, char *buf, size_t size)
{
    const long long day = seconds / 86400;
    const int hour = (int)(seconds / 3600 % 24), minute = (int)(seconds / 60 % 60);
    const int second = (int)(seconds % 60);

    if (seconds < 0)
        (void)snprintf(buf, size, "-");
    else if (day > 0)
        (void)snprintf(buf, size, "%lld-%02d:%02d:%02d", day, hour, minute, second);
    else if (hour > 0)
        (void)snprintf(buf, size, "%d:%02d:%02d", hour, minute, second);
    else
        (void)snprintf(buf, size, "%d:%02d", minute, second);
    return buf;
}
