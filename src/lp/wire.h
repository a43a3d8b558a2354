/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - what stoker-lp is asked and answers, on one machine: a head, then the numbers as they
 * lie in memory. It is asked on standard input, which is a socket, and answers there; it ends when
 * that is closed.
 *
 *     asked:    jobs, types; count[types], gpus[jobs], weight[jobs], need[jobs],
 *               speed[jobs x types] (lp/solve.h)
 *     answered: status; z, share[jobs x types] when it is 0
 */
#ifndef STK_LP_WIRE_H
#define STK_LP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STK_LP_MAX_JOBS 1000000u
#define STK_LP_MAX_TYPES 64u

struct stk_lp_head {
    uint32_t jobs, types;
};

/* Over the socket. True: all of it; false: the other side is gone. */
bool stk_lp_put(int fd, const void *from, size_t len);
bool stk_lp_get(int fd, void *to, size_t len);

#endif
