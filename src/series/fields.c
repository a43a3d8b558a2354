/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - what is measured of what. */
#include <string.h>

#include "series/series.h"

static const struct stk_series_field gpu[] = {
    [STK_SERIES_GPU_ALLOCATED] = {"allocated", STK_SERIES_MEAN},
    [STK_SERIES_GPU_ACTIVE] = {"active", STK_SERIES_MEAN},
    [STK_SERIES_GPU_UTILIZATION] = {"util", STK_SERIES_MEAN},
    [STK_SERIES_GPU_MEMORY] = {"mem_mib", STK_SERIES_MEAN},
    [STK_SERIES_GPU_POWER] = {"power_w", STK_SERIES_MEAN},
    [STK_SERIES_GPU_TEMPERATURE] = {"temp_c", STK_SERIES_MEAN},
    {0},
};

static const struct stk_series_field job[] = {
    [STK_SERIES_JOB_GPUS] = {"gpus", STK_SERIES_MEAN},
    [STK_SERIES_JOB_ACTIVE] = {"active", STK_SERIES_MEAN},
    [STK_SERIES_JOB_UTILIZATION] = {"util", STK_SERIES_MEAN},
    [STK_SERIES_JOB_GPU_MEMORY] = {"mem_mib", STK_SERIES_MEAN},
    [STK_SERIES_JOB_POWER] = {"power_w", STK_SERIES_MEAN},
    [STK_SERIES_JOB_CPUS] = {"cpus", STK_SERIES_MEAN},
    [STK_SERIES_JOB_MEMORY] = {"rss_mib", STK_SERIES_MEAN},
    [STK_SERIES_JOB_STEP] = {"step", STK_SERIES_LAST},
    {0},
};

static const struct stk_series_field tenant[] = {
    [STK_SERIES_TENANT_USED] = {"used", STK_SERIES_MEAN},
    [STK_SERIES_TENANT_ACTIVE] = {"active", STK_SERIES_MEAN},
    [STK_SERIES_TENANT_GUARANTEE] = {"guarantee", STK_SERIES_MEAN},
    [STK_SERIES_TENANT_LIMIT] = {"limit", STK_SERIES_MEAN},
    [STK_SERIES_TENANT_DUE] = {"due", STK_SERIES_MEAN},
    [STK_SERIES_TENANT_WAITING] = {"waiting", STK_SERIES_MEAN},
    [STK_SERIES_TENANT_RUNNING] = {"jobs_running", STK_SERIES_MEAN},
    [STK_SERIES_TENANT_QUEUED] = {"jobs_waiting", STK_SERIES_MEAN},
    [STK_SERIES_TENANT_STARTED] = {"started", STK_SERIES_SUM},
    [STK_SERIES_TENANT_WAITED] = {"waited_s", STK_SERIES_SUM},
    {0},
};

static const struct stk_series_field cluster[] = {
    [STK_SERIES_CLUSTER_GPUS] = {"gpus", STK_SERIES_MEAN},
    [STK_SERIES_CLUSTER_ALLOCATED] = {"allocated", STK_SERIES_MEAN},
    [STK_SERIES_CLUSTER_ACTIVE] = {"active", STK_SERIES_MEAN},
    [STK_SERIES_CLUSTER_OFF] = {"off", STK_SERIES_MEAN},
    [STK_SERIES_CLUSTER_RUNNING] = {"jobs_running", STK_SERIES_MEAN},
    [STK_SERIES_CLUSTER_QUEUED] = {"jobs_waiting", STK_SERIES_MEAN},
    [STK_SERIES_CLUSTER_WAITING] = {"gpus_waiting", STK_SERIES_MEAN},
    [STK_SERIES_CLUSTER_STARTED] = {"started", STK_SERIES_SUM},
    [STK_SERIES_CLUSTER_WAITED] = {"waited_s", STK_SERIES_SUM},
    [STK_SERIES_CLUSTER_ENDED] = {"ended", STK_SERIES_SUM},
    [STK_SERIES_CLUSTER_PREEMPTED] = {"preempted", STK_SERIES_SUM},
    [STK_SERIES_CLUSTER_POWER] = {"power_w", STK_SERIES_MEAN},
    [STK_SERIES_CLUSTER_UTILIZATION] = {"util", STK_SERIES_MEAN},
    {0},
};

static const struct stk_series_field job_gpu[] = {
    [STK_SERIES_JOB_GPU_INDEX] = {"index", STK_SERIES_LAST},
    [STK_SERIES_JOB_GPU_ACTIVE] = {"active", STK_SERIES_MEAN},
    [STK_SERIES_JOB_GPU_UTILIZATION] = {"util", STK_SERIES_MEAN},
    [STK_SERIES_JOB_GPU_MEM] = {"mem_mib", STK_SERIES_MEAN},
    [STK_SERIES_JOB_GPU_WATTS] = {"power_w", STK_SERIES_MEAN},
    {0},
};

const struct stk_series_field *const stk_series_fields[STK_SERIES_KIND_MAX] = {
    [STK_SERIES_GPU] = gpu,         [STK_SERIES_JOB] = job,         [STK_SERIES_TENANT] = tenant,
    [STK_SERIES_CLUSTER] = cluster, [STK_SERIES_JOB_GPU] = job_gpu,
};

uint32_t stk_series_n_fields(enum stk_series_kind k)
{
    uint32_t n = 0;

    while (stk_series_fields[k][n].name)
        n++;
    return n;
}

static const char *const names[STK_SERIES_KIND_MAX] = {"gpu", "job", "tenant", "cluster",
                                                       "job_gpu"};

const char *stk_series_kind_name(enum stk_series_kind k)
{
    return (unsigned)k < STK_SERIES_KIND_MAX ? names[k] : "?";
}

int stk_series_kind_of(const char *name)
{
    for (int k = 0; k < STK_SERIES_KIND_MAX; k++)
        if (strcmp(names[k], name) == 0)
            return k;
    return -1;
}

int64_t stk_series_id(const char *name)
{
    uint64_t h = UINT64_C(1469598103934665603);

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (int64_t)(h >> 1);
}
