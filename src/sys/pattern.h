/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - names of log files from patterns: %j job, %A array (the job where there is none),
 * %a index in the array (0 where there is none), %x job name, %t task, %N node, %u user, %% a
 * percent sign. A number between the two pads with zeros: %4t. Anything else stays as it is. */
#ifndef STK_SYS_PATTERN_H
#define STK_SYS_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct stk_pattern {
    uint32_t number, array, index, task; /* array 0: none */
    const char *name, *node, *user;      /* NULL: empty */
};

/* Writes the path into 'buf'; a relative one begins at 'workdir' (may be NULL). -ENAMETOOLONG when
 * it does not fit. */
int stk_pattern_path(const char *pattern, const struct stk_pattern *p, const char *workdir,
                     char *buf, size_t size);

/* Where output goes when the description does not say: stoker-%j.out, stoker-%A_%a.out. */
const char *stk_pattern_default(const struct stk_pattern *p);

#endif
