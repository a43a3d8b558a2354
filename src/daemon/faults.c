/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpuview/xid.h"

#define XID_CONTAINED 94 /* a memory error of the GPU that ends one program, not its fault */

static bool ends_jobs(uint32_t code)
{
    return stk_xid_find(code)->kind == STK_XID_HARDWARE || code == XID_CONTAINED;
}

static int find_one(const struct stk_gpu *g, stk_time since, char *text, size_t size)
{
    uint64_t n = g->n_xids < STK_GPUVIEW_XIDS ? g->n_xids : STK_GPUVIEW_XIDS;

    if (g->now.lost[0]) {
        (void)snprintf(text, size, "GPU %s is lost: %s", g->label, g->now.lost);
        return 1;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t code = g->xid[i].code;

        if (g->xid[i].at_us < since)
            continue;
        (void)snprintf(text, size, "%s %u on GPU %s: %s", ends_jobs(code) ? "GPU error XID" : "XID",
                       code, g->label, stk_xid_find(code)->text);
        if (ends_jobs(code))
            return 1;
    }
    return 0;
}

int stk_fault_find(const struct stk_gpus *t, uint64_t mask, stk_time since, char *text, size_t size)
{
    int found = 0;

    for (uint32_t g = 0; g < t->n && !found; g++)
        if (mask >> g & 1)
            found = find_one(&t->gpu[g], since, text, size);
    return found;
}

void stk_fault_words(const struct stk_gpu *g, char *name, size_t name_size, char *value,
                     size_t value_size)
{
    (void)snprintf(name, name_size, "gpu.fault.%s", g->uuid);
    value[0] = '\0';
    if (g->fault_xid != 0)
        (void)snprintf(value, value_size, "%" PRIu32 " %" PRId64, g->fault_xid, g->fault_us);
}

void stk_faults_load(struct stk_gpus *t, struct stk_store *st)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct stk_gpu *g = &t->gpu[i];
        char name[80], none[64], *value = NULL, *end;
        size_t len;

        stk_fault_words(g, name, sizeof(name), none, sizeof(none));
        if (g->uuid[0] && stk_store_meta_get(st, name, &value, &len, NULL) == 0 && len > 0) {
            g->fault_xid = (uint32_t)strtoul(value, &end, 10);
            g->fault_us = strtoll(end, NULL, 10);
        }
        free(value);
    }
}
