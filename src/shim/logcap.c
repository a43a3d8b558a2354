/* SPDX-License-Identifier: Apache-2.0 */
/* logcap.c - keeps logs from filling the disk: one that grows beyond its cap loses its middle
 * (sys/logcut.h). Tasks write to their files themselves, so that output goes on without us; we look
 * how large the files are, the sooner the faster they grow, and once more when the job is over. */
#include <sys/stat.h>

#include "shim/shim.h"
#include "sys/logcut.h"

#define SLOW_MS 10000
#define QUICK_MS 50

/* A cut costs time: it is made when the log is over its cap by an eighth of it. */
static uint64_t cut_size(const struct stk_launch *l)
{
    return l->log_max + l->log_max / 8;
}

/* When the log is worth another look, in ms: at the rate it grew since the last look, half of the
 * bytes that are left; but at most twice as long as that look is ago, because what pauses may go on
 * soon. */
static int64_t next_wait(int64_t past, uint64_t grown, uint64_t left)
{
    int64_t wait = 2 * past,
            by_rate = grown > 0 ? (int64_t)(left / 2 * (uint64_t)past / grown) : wait;

    wait = by_rate < wait ? by_rate : wait;
    return wait < QUICK_MS ? QUICK_MS : wait > SLOW_MS ? SLOW_MS : wait;
}

/* Returns when the log is worth another look, in ms. */
static int64_t look(const struct stk_launch *l, struct stk_log *log, int64_t now)
{
    const int64_t past = now - log->seen_ms;
    uint64_t size, grown;
    struct stat st;

    if (fstat(log->fd, &st) < 0)
        return SLOW_MS;
    size = (uint64_t)st.st_size;
    grown = size > log->seen ? size - log->seen : 0;
    if (size > cut_size(l)) {
        (void)stk_logcut_make(log->fd, l->log_max / 4, l->log_max, STK_LOGCUT_RUNS);
        if (fstat(log->fd, &st) == 0)
            size = (uint64_t)st.st_size;
    }
    log->seen = size;
    log->seen_ms = now;
    return next_wait(past, grown, size < cut_size(l) ? cut_size(l) - size : 0);
}

void stk_shim_logs_check(struct stk_shim *s, int64_t now)
{
    int64_t wait = SLOW_MS;

    for (uint32_t i = 0; i < s->n_logs; i++) {
        int64_t at = look(&s->l, &s->logs[i], now);

        wait = at < wait ? at : wait;
    }
    s->log_at = s->n_logs > 0 ? now + wait : STK_SHIM_NEVER;
}

void stk_shim_logs_end(struct stk_shim *s)
{
    for (uint32_t i = 0; i < s->n_logs; i++)
        (void)stk_logcut_make(s->logs[i].fd, s->l.log_max / 4, s->l.log_max, STK_LOGCUT_OVER);
    s->n_logs = 0;
}
