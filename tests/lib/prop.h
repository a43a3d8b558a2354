/* SPDX-License-Identifier: Apache-2.0 */
/* prop.h - running property tests: worlds by seed, and a failure that says which seed it was. */
#ifndef STK_TESTS_LIB_PROP_H
#define STK_TESTS_LIB_PROP_H

#include <stdint.h>

extern uint64_t prop_seed;     /* of the world that is being played */
extern const char *prop_world; /* what kind of world it is; NULL: there is one */

/* From now on a failure says the seed. */
void prop_watch(const char *program);
/* A number from the environment, such as STOKER_RUNS. */
uint64_t prop_number(const char *name, uint64_t usual);

#endif
