/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h - our other programs. */
#ifndef STK_CLI_PROGRAMS_H
#define STK_CLI_PROGRAMS_H

#include <stddef.h>

#include "cli/cli.h"

/* The path of one of our programs: next to this one, or in ../libexec/stoker. 0, or the exit code
 * after having said that it is not there. */
int stk_find_program(const char *name, char *ret, size_t size);

/* Becomes the program with these words; NULL ends them. Returns only where that failed, with the
 * exit code. */
int stk_become_program(const char *name, char *const *words);

/* Removes a folder and what is in it, without following links. */
void stk_remove_tree(const char *dir);

#endif
