/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - the commands, one file each. A command gets its own name as argv[0] and returns the exit
 * code: 0 done, 1 the request failed, 2 bad usage or bad input. */
#ifndef STK_CLI_CLI_H
#define STK_CLI_CLI_H

#define STK_VERSION "0.1.0"

int stk_cmd_sim(int argc, char **argv);

#endif
