/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "daemon/daemon.h"

static enum stk_log_level log_most = STK_LOG_INFO; /* the one thing that is set for the process */

void stk_log_set_level(enum stk_log_level most)
{
    log_most = most;
}

void stk_log(enum stk_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    char line[1024], stamp[32] = "";
    struct timespec ts;
    struct tm tm;
    va_list ap;

    if (level > log_most)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    if (localtime_r(&ts.tv_sec, &tm))
        (void)strftime(stamp, sizeof(stamp), "%F %T", &tm);
    (void)fprintf(stderr, "%s %s: %s\n", stamp, names[level], line);
}
