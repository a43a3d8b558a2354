/* SPDX-License-Identifier: Apache-2.0 */
/* config_teams.h - tenants, queues and classes as a file would say them. */
#ifndef STK_CLI_CONFIG_TEAMS_H
#define STK_CLI_CONFIG_TEAMS_H

#include "teams/teams.h"

/* The value of this key. */
void stk_config_print_teams(const struct stk_teams *t, const char *key);

#endif
