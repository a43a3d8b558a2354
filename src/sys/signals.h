/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h - the signals that tell a program in the foreground to leave, as a file to poll. */
#ifndef STK_SYS_SIGNALS_H
#define STK_SYS_SIGNALS_H

/* Blocks SIGINT, SIGTERM and SIGHUP; they can be read from the file from now on. -1: not possible.
 */
int stk_signals(void);
int stk_signal_read(int fd); /* the signal, 0: none */

#endif
