/* SPDX-License-Identifier: Apache-2.0 */
#include "model/reason.h"

const char *stk_reason_name(enum stk_reason_code c)
{
    static const char *const names[STK_WHY_MAX] = {
        [STK_WHY_RUNNING] = "running",   [STK_WHY_ENDED] = "ended",
        [STK_WHY_HELD] = "held",         [STK_WHY_DEPENDENCY] = "dependency",
        [STK_WHY_BEGIN] = "begin",       [STK_WHY_STOPPING] = "stopping",
        [STK_WHY_GPUS] = "gpus",         [STK_WHY_FRAGMENTS] = "fragments",
        [STK_WHY_CPU_MEM] = "cpu_mem",   [STK_WHY_CLAIMED] = "claimed",
        [STK_WHY_BEHIND] = "behind",     [STK_WHY_RESERVED] = "reserved",
        [STK_WHY_ROUND] = "round",       [STK_WHY_RANK] = "rank",
        [STK_WHY_PINNED] = "pinned",     [STK_WHY_RESOURCE] = "resource",
        [STK_WHY_TOPOLOGY] = "topology", [STK_WHY_NEVER] = "never",
        [STK_WHY_POWER] = "power",       [STK_WHY_LIMIT] = "limit",
        [STK_WHY_QUEUE] = "queue_limit", [STK_WHY_BOOKED] = "booked",
        [STK_WHY_DRAINS] = "draining",   [STK_WHY_CLOSED] = "closed",
        [STK_WHY_NODES] = "nodes",
    };

    return (unsigned)c < STK_WHY_MAX ? names[c] : "?";
}
