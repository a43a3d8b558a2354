/* SPDX-License-Identifier: Apache-2.0 */
/* submit.h - sending a description; shared by submit, run, shell and demo. */
#ifndef STK_CLI_SUBMIT_H
#define STK_CLI_SUBMIT_H

#include "cli/ask.h"

/* With a key that makes it safe to send again: 'key', or one made up when NULL. 0 and *ret_reply,
 * or the exit code after having said why. */
int stk_ask_submit(struct stk_ask *k, const json_t *spec, const char *key, bool dry_run,
                   json_t **ret_reply);

/* The first job's number in a reply. */
int64_t stk_ask_submitted(const json_t *reply);

/* What "submit" prints. */
void stk_ask_submit_say(const struct stk_ask *k, const json_t *reply, bool dry_run);

extern const struct stk_options stk_submit_groups[];

#endif
