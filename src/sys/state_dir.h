/* SPDX-License-Identifier: Apache-2.0 */
/* state_dir.h - where the daemon's state is when nobody says: /var/lib/stoker for root, else
 * $XDG_STATE_HOME/stoker or ~/.local/state/stoker. */
#ifndef STK_SYS_STATE_DIR_H
#define STK_SYS_STATE_DIR_H

/* malloc'ed; NULL: it is not known, or out of memory. */
char *stk_state_dir(void);

#endif
