/* SPDX-License-Identifier: Apache-2.0 */
/* act.h - the same done to many jobs. */
#ifndef STK_CLI_ACT_H
#define STK_CLI_ACT_H

#include "cli/ids.h"

/* Does what the command is called to all of them, with 'args' (NULL: none), and says what happened
 * job by job. The exit code. */
int stk_act(struct stk_ask *k, const struct stk_ids *ids, json_t *args);

#endif
