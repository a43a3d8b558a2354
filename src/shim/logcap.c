/* SPDX-License-Identifier: Apache-2.0 */
/* logcap.c - keeps logs from filling the disk. A log that takes more room than its cap loses its
 * middle: the first quarter of the cap and the newest three quarters stay, and the file reads as
 * zeros in between. Its size and the writer's position do not change, so nobody has to know. */
#include <fcntl.h>
#include <sys/stat.h>

#include "shim/shim.h"

#define SLOW_MS 10000
#define QUICK_MS 1000

/* Punches what must go; returns how full the file is, in percent of the cap. */
static uint64_t trim(const struct stk_launch *l, struct stk_log *log)
{
    uint64_t head = l->log_max / 4, used, size, block;
    struct stat st;

    if (fstat(log->fd, &st) < 0)
        return 0;
    size = (uint64_t)st.st_size;
    used = (uint64_t)st.st_blocks * 512;
    block = st.st_blksize > 0 ? (uint64_t)st.st_blksize : 4096;
    if (used > l->log_max && size > l->log_max) {
        uint64_t from = (head + block - 1) / block * block;
        uint64_t to = (size - (l->log_max - head)) / block * block;

        if (to > from)
            (void)fallocate(log->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                            (off_t)(to - from));
    }
    return l->log_max > 0 ? used * 100 / l->log_max : 0;
}

void stk_shim_logs_check(struct stk_shim *s, int64_t now)
{
    bool quick = false;

    for (uint32_t i = 0; i < s->n_logs; i++)
        quick = trim(&s->l, &s->logs[i]) >= 50 || quick;
    s->log_at = s->n_logs > 0 ? now + (quick ? QUICK_MS : SLOW_MS) : STK_SHIM_NEVER;
}
