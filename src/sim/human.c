/* SPDX-License-Identifier: Apache-2.0 */
/* human.c - two units at most: nobody compares seconds of a wait that lasted days. */
#include "sim/human.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MINUTE UINT64_C(60)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

void stk_human_count(char *buf, size_t cap, uint64_t n)
{
    char rev[STK_HUMAN_LEN];
    size_t len = 0, digits = 0;

    do {
        if (digits && digits % 3 == 0)
            rev[len++] = ',';
        rev[len++] = (char)('0' + n % 10);
        digits++;
        n /= 10;
    } while (n);
    if (cap <= len) {
        if (cap)
            buf[0] = '\0';
        return;
    }
    for (size_t i = 0; i < len; i++)
        buf[i] = rev[len - 1 - i];
    buf[len] = '\0';
}

struct units {
    uint64_t big, small; /* in seconds */
    char names[2];
};

static const struct units minutes = {MINUTE, 1, {'m', 's'}};
static const struct units hours = {HOUR, MINUTE, {'h', 'm'}};
static const struct units days = {DAY, HOUR, {'d', 'h'}};

/* "4h 52m" of 's' whole seconds; the small unit is left out when it is 0. */
static void two_units(char *buf, size_t cap, uint64_t s, const struct units *u)
{
    char head[STK_HUMAN_LEN];
    unsigned rest = (unsigned)(s % u->big / u->small);

    stk_human_count(head, sizeof(head), s / u->big);
    if (rest && s / u->big < 1000)
        (void)snprintf(buf, cap, "%s%c %u%c", head, u->names[0], rest, u->names[1]);
    else
        (void)snprintf(buf, cap, "%s%c", head, u->names[0]);
}

void stk_human_duration(char *buf, size_t cap, double seconds)
{
    uint64_t s;

    if (!isfinite(seconds) || seconds < 0 || seconds > 1e18) {
        (void)snprintf(buf, cap, "-");
        return;
    }
    s = (uint64_t)(seconds + 0.5);
    if (seconds < 0.0005) {
        (void)snprintf(buf, cap, "0s");
    } else if (seconds < 0.9995) {
        (void)snprintf(buf, cap, "%ums", (unsigned)(seconds * 1000 + 0.5));
    } else if (seconds < 59.95) {
        unsigned tenths = (unsigned)(seconds * 10 + 0.5);

        if (tenths % 10)
            (void)snprintf(buf, cap, "%u.%us", tenths / 10, tenths % 10);
        else
            (void)snprintf(buf, cap, "%us", tenths / 10);
    } else if (s < HOUR) {
        two_units(buf, cap, s, &minutes);
    } else if (s + 30 < DAY) {
        two_units(buf, cap, s + 30, &hours);
    } else {
        two_units(buf, cap, s + HOUR / 2, &days);
    }
}
