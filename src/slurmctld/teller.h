/* SPDX-License-Identifier: Apache-2.0 */
/* teller.h - a thread that tells sched/stoker what has happened. slurmctld calls our plugins with
 * its locks held: they hand over a word and go on, however full the socket is. */
#ifndef STK_SLURMCTLD_TELLER_H
#define STK_SLURMCTLD_TELLER_H

#include <stdbool.h>

struct stk_teller;

struct stk_teller *stk_teller_new(void);    /* NULL: no memory, thread or socket */
void stk_teller_free(struct stk_teller *t); /* NULL is a no-op; what was not told yet is not */
/* A word of the socket. 'params' and 'folder' as for stk_slurmctld_address(); NULL is a no-op. */
void stk_teller_say(struct stk_teller *t, const char *params, const char *folder, const char *word);

#endif
