/* SPDX-License-Identifier: Apache-2.0 */
/* sim_list.h - the texts of "stoker sim --help" and "--list", made from the tables. */
#ifndef STK_CLI_SIM_LIST_H
#define STK_CLI_SIM_LIST_H

void stk_sim_help(void);
void stk_sim_list(void);

#endif
