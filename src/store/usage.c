/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - what jobs have used, one row each: read, added to, and written back. */
#include <string.h>

#include "store/db.h"

#define GPU_BYTES ((size_t)2 * STK_USAGE_GPUS * sizeof(float))

static double larger(double a, double b)
{
    return a > b ? a : b;
}

int stk_store_usage_get(struct stk_store *st, stk_job_number number, struct stk_usage *ret,
                        struct stk_err *err)
{
    struct stk_usage u = {0};
    sqlite3_stmt *s;
    size_t len;
    int rc = stk_db_read(st, STK_SLOT_USAGE_GET,
                         "SELECT seen_s, gpu_s, active_s, energy_j, cpu_s, gpu_mem_mib, mem_mib,"
                         " gpus FROM usage WHERE number = ?1",
                         &s, err);

    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(s, 1, number);
    rc = stk_db_row(st, s, "read what a job has used", err);
    if (rc > 0) {
        u.seen_s = sqlite3_column_double(s, 0);
        u.gpu_s = sqlite3_column_double(s, 1);
        u.active_s = sqlite3_column_double(s, 2);
        u.energy_j = sqlite3_column_double(s, 3);
        u.cpu_s = sqlite3_column_double(s, 4);
        u.gpu_mem_mib = sqlite3_column_double(s, 5);
        u.mem_mib = sqlite3_column_double(s, 6);
        len = (size_t)sqlite3_column_bytes(s, 7);
        if (len == GPU_BYTES) {
            memcpy(u.active, sqlite3_column_blob(s, 7), sizeof(u.active));
            memcpy(u.had, (const char *)sqlite3_column_blob(s, 7) + sizeof(u.active),
                   sizeof(u.had));
        }
        *ret = u;
    }
    (void)sqlite3_reset(s);
    if (rc == 0)
        return stk_err_set(err, -ENOENT, "nothing was measured of job %u", number);
    return rc < 0 ? rc : 0;
}

void stk_usage_add(struct stk_usage *to, const struct stk_usage *u)
{
    to->seen_s += u->seen_s;
    to->gpu_s += u->gpu_s;
    to->active_s += u->active_s;
    to->energy_j += u->energy_j;
    to->cpu_s += u->cpu_s;
    to->gpu_mem_mib = larger(to->gpu_mem_mib, u->gpu_mem_mib);
    to->mem_mib = larger(to->mem_mib, u->mem_mib);
    for (uint32_t i = 0; i < STK_USAGE_GPUS; i++) {
        to->active[i] += u->active[i];
        to->had[i] += u->had[i];
    }
}

int stk_store_usage_add(struct stk_store *st, stk_job_number number, const struct stk_usage *u,
                        struct stk_err *err)
{
    float gpus[2][STK_USAGE_GPUS];
    struct stk_usage all = {0};
    sqlite3_stmt *s;
    int rc = stk_store_usage_get(st, number, &all, err);

    if (rc < 0 && rc != -ENOENT)
        return rc;
    stk_usage_add(&all, u);
    rc = stk_db_write(st, STK_SLOT_USAGE_PUT,
                      "INSERT OR REPLACE INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                      &s, err);
    if (rc < 0)
        return rc;
    memcpy(gpus[0], all.active, sizeof(gpus[0]));
    memcpy(gpus[1], all.had, sizeof(gpus[1]));
    (void)sqlite3_bind_int64(s, 1, number);
    (void)sqlite3_bind_double(s, 2, all.seen_s);
    (void)sqlite3_bind_double(s, 3, all.gpu_s);
    (void)sqlite3_bind_double(s, 4, all.active_s);
    (void)sqlite3_bind_double(s, 5, all.energy_j);
    (void)sqlite3_bind_double(s, 6, all.cpu_s);
    (void)sqlite3_bind_double(s, 7, all.gpu_mem_mib);
    (void)sqlite3_bind_double(s, 8, all.mem_mib);
    stk_db_blob(s, 9, gpus, sizeof(gpus));
    return stk_db_run(st, s, "write what a job has used", err);
}
