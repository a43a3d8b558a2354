/* SPDX-License-Identifier: Apache-2.0 */
/* sim_list.h - the texts of "stoker sim --list" and the end of "--help", made from the tables. */
#ifndef STK_CLI_SIM_LIST_H
#define STK_CLI_SIM_LIST_H

#include <stdio.h>

void stk_sim_more(FILE *f); /* what --help says after the options */
void stk_sim_list(void);

#endif
