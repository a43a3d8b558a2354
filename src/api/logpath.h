/* SPDX-License-Identifier: Apache-2.0 */
/* logpath.h - where a job's output lies. */
#ifndef STK_API_LOGPATH_H
#define STK_API_LOGPATH_H

#include "api/handlers.h"

/* From the job's description: its pattern and its folder. 'spec' may be NULL: then the record's
 * own path. -ENOENT: it has none. */
struct stk_logpath {
    const struct stk_record *rec;
    const json_t *spec;
    bool err; /* stderr */
    uint32_t task;
};
uint64_t stk_logpath_cap(const json_t *spec); /* bytes that its files are cut down to */
int stk_logpath(const struct stk_api *a, const struct stk_logpath *which, char *buf, size_t size);

#endif
