/* SPDX-License-Identifier: Apache-2.0 */
/* env.h - an environment being put together. A lack of memory is remembered and shows at the end.
 */
#ifndef STK_SHIM_ENV_H
#define STK_SHIM_ENV_H

#include <stdbool.h>
#include <stddef.h>

#define STK_ENV_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct stk_envs {
    char **var; /* NAME=value, malloced; NULL at the end */
    size_t n, cap;
    bool failed;
};

/* Adds a variable, or changes it. */
void stk_env_set(struct stk_envs *e, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void stk_env_put(struct stk_envs *e, const char *name, const char *value); /* any length */
void stk_env_drop(struct stk_envs *e, const char *name);
const char *stk_env_get(const struct stk_envs *e, const char *name);

#endif
