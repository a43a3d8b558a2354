/* SPDX-License-Identifier: Apache-2.0 */
/* describe.h - a job's description (docs/spec/job.md) from the command line: options, a job file or
 * a command, and what goes along from here (environment, folder, umask). */
#ifndef STK_CLI_DESCRIBE_H
#define STK_CLI_DESCRIBE_H

#include <jansson.h>

#include "cli/options.h"

#define STK_DESCRIBE_MAX_FILE (1U << 20) /* of a script or job file */

/* The options of "run" and "submit" that describe the job. */
extern const struct stk_option stk_describe_resources[], stk_describe_when[], stk_describe_how[],
    stk_describe_output[];

/* -EINVAL with a sentence when it cannot be right. The caller frees *ret_spec. 'shell': with no
 * words the user's shell is meant. */
int stk_describe(const struct stk_args *a, bool shell, json_t **ret_spec, struct stk_err *err);

/* Only what the options say, for "update": "none" (types: "any") is null, which takes it away. */
int stk_describe_changes(const struct stk_args *a, json_t *changes, struct stk_err *err);

/* The words: a file, "-", or a command. Sets command, or script and args, or all that a job file
 * says. */
int stk_describe_words(const struct stk_args *a, json_t **ret_spec, struct stk_err *err);

/* Adds what goes along from here, where the description does not say otherwise. */
int stk_describe_context(const struct stk_args *a, json_t *spec, struct stk_err *err);

#endif
