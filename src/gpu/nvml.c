/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvml.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/lib.h"

#define CALL(member, symbol, old, need)                                                            \
    {                                                                                              \
        offsetof(struct nvml_calls, member), symbol, old, need                                     \
    }
static const struct stk_lib_call calls[] = {
    CALL(init, "nvmlInit_v2", "nvmlInit", true),
    CALL(shutdown, "nvmlShutdown", NULL, true),
    CALL(error_string, "nvmlErrorString", NULL, true),
    CALL(driver_version, "nvmlSystemGetDriverVersion", NULL, false),
    CALL(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion",
         false),
    CALL(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", true),
    CALL(by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", true),
    CALL(by_uuid, "nvmlDeviceGetHandleByUUID", NULL, false),
    CALL(uuid, "nvmlDeviceGetUUID", NULL, true),
    CALL(name, "nvmlDeviceGetName", NULL, false),
    CALL(minor, "nvmlDeviceGetMinorNumber", NULL, false),
    CALL(pci, "nvmlDeviceGetPciInfo_v3", NULL, false), /* older ones have another layout */
    CALL(cpu_affinity, "nvmlDeviceGetCpuAffinity", NULL, false),
    CALL(link_state, "nvmlDeviceGetNvLinkState", NULL, false),
    CALL(link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2", NULL, false), /* likewise */
    CALL(link_type, "nvmlDeviceGetNvLinkRemoteDeviceType", NULL, false),
    CALL(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor", NULL, false),
    CALL(mig_mode, "nvmlDeviceGetMigMode", NULL, false),
    CALL(mig_count, "nvmlDeviceGetMaxMigDeviceCount", NULL, false),
    CALL(mig_device, "nvmlDeviceGetMigDeviceHandleByIndex", NULL, false),
    CALL(mig_gi, "nvmlDeviceGetGpuInstanceId", NULL, false),
    CALL(mig_ci, "nvmlDeviceGetComputeInstanceId", NULL, false),
    CALL(mig_gi_by_id, "nvmlDeviceGetGpuInstanceById", NULL, false),
    CALL(mig_gi_info, "nvmlGpuInstanceGetInfo", NULL, false),
    CALL(memory, "nvmlDeviceGetMemoryInfo", NULL, false),
    CALL(memory_v2, "nvmlDeviceGetMemoryInfo_v2", NULL, false),
    CALL(utilization, "nvmlDeviceGetUtilizationRates", NULL, false),
    CALL(power, "nvmlDeviceGetPowerUsage", NULL, false),
    CALL(energy, "nvmlDeviceGetTotalEnergyConsumption", NULL, false),
    CALL(temperature, "nvmlDeviceGetTemperature", NULL, false),
    CALL(clock, "nvmlDeviceGetClockInfo", NULL, false),
    CALL(clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons",
         "nvmlDeviceGetCurrentClocksThrottleReasons", false),
    CALL(pcie, "nvmlDeviceGetPcieThroughput", NULL, false),
    CALL(ecc, "nvmlDeviceGetTotalEccErrors", NULL, false),
    CALL(rows, "nvmlDeviceGetRemappedRows", NULL, false),
    CALL(fields, "nvmlDeviceGetFieldValues", NULL, false),
    CALL(compute_procs, "nvmlDeviceGetComputeRunningProcesses_v3",
         "nvmlDeviceGetComputeRunningProcesses_v2", false),
    CALL(graphics_procs, "nvmlDeviceGetGraphicsRunningProcesses_v3",
         "nvmlDeviceGetGraphicsRunningProcesses_v2", false),
    CALL(mps_procs, "nvmlDeviceGetMPSComputeRunningProcesses_v3",
         "nvmlDeviceGetMPSComputeRunningProcesses_v2", false),
    CALL(process_samples, "nvmlDeviceGetProcessUtilization", NULL, false),
    CALL(event_set_new, "nvmlEventSetCreate", NULL, false),
    CALL(event_register, "nvmlDeviceRegisterEvents", NULL, false),
    CALL(event_wait, "nvmlEventSetWait_v2", NULL, false), /* the first one has another layout */
    CALL(event_set_free, "nvmlEventSetFree", NULL, false),
    CALL(gpm_support, "nvmlGpmQueryDeviceSupport", NULL, false),
    CALL(gpm_alloc, "nvmlGpmSampleAlloc", NULL, false),
    CALL(gpm_free, "nvmlGpmSampleFree", NULL, false),
    CALL(gpm_sample, "nvmlGpmSampleGet", NULL, false),
    CALL(gpm_get, "nvmlGpmMetricsGet", NULL, false),
};

const char *stk_nvml_error(const struct stk_nvml *nv, int rc)
{
    const char *text = nv->call.error_string ? nv->call.error_string(rc) : NULL;

    return text ? text : "unknown error";
}

int stk_nvml_open(struct stk_nvml *nv, struct stk_err *err)
{
    int rc;

    *nv = (struct stk_nvml){.n = 0};
    rc = stk_lib_open("libnvidia-ml.so.1", calls, sizeof(calls) / sizeof(*calls), &nv->call,
                      &nv->lib, err);
    if (rc < 0)
        return rc;
    rc = nv->call.init();
    if (rc == NVML_SUCCESS) {
        rc = nv->call.count(&nv->n);
        if (rc == NVML_SUCCESS) {
            nv->n = nv->n < STK_GPU_MAX ? nv->n : STK_GPU_MAX;
            return 0;
        }
        (void)nv->call.shutdown();
    }
    (void)stk_err_set(err, 0, "NVML does not start: %.100s (%d)", stk_nvml_error(nv, rc), rc);
    stk_lib_close(nv->lib);
    *nv = (struct stk_nvml){.n = 0};
    return -EIO;
}

bool stk_nvml_memory(const struct stk_nvml *nv, void *dev, struct stk_nvml_mem *ret)
{
    struct nvml_memory_v2 two = {.version = NVML_MEMORY_V2};
    struct nvml_memory one;

    if (STK_NVML(nv, memory_v2, dev, &two)) {
        *ret = (struct stk_nvml_mem){two.total, two.free, two.used};
        return true;
    }
    if (STK_NVML(nv, memory, dev, &one)) {
        *ret = (struct stk_nvml_mem){one.total, one.free, one.used};
        return true;
    }
    return false;
}

/* One list. A few releases of the _v3 call wrote 8 bytes more per process than they should: the
 * buffer has room for that, so that the worst is a process that is not found in /proc. */
static int list(int (*call)(void *, unsigned *, struct nvml_process *), void *dev,
                struct nvml_process **ret)
{
    *ret = NULL;
    for (unsigned cap = 64; call && cap <= STK_PROC_MAX; cap *= 2) {
        unsigned n = cap;
        int rc;

        free(*ret);
        *ret = calloc(cap, sizeof(**ret) + 8);
        rc = *ret ? call(dev, &n, *ret) : -1;
        if (rc == NVML_SUCCESS && n <= cap)
            return (int)n;
        if (rc != NVML_INSUFFICIENT_SIZE)
            break;
    }
    return -1;
}

static int merge(struct stk_nvml_proc *ret, int n, int max, const struct nvml_process *p,
                 bool graphics)
{
    bool known = p->used != NVML_NOT_AVAILABLE;
    int i = 0;

    while (i < n && ret[i].pid != p->pid)
        i++;
    if (i == max || p->pid == 0)
        return n;
    if (i == n)
        ret[n++] = (struct stk_nvml_proc){.pid = p->pid};
    ret[i].compute |= !graphics;
    ret[i].graphics |= graphics;
    if (known && (!ret[i].mem_known || ret[i].mem < p->used))
        ret[i].mem = p->used; /* the same memory in both lists */
    ret[i].mem_known |= known;
    return n;
}

int stk_nvml_processes(const struct stk_nvml *nv, void *dev, struct stk_nvml_proc *ret, int max)
{
    struct nvml_process *c, *g, *m;
    int n_compute = list(nv->call.compute_procs, dev, &c);
    int n_graphics = list(nv->call.graphics_procs, dev, &g);
    int n_mps = list(nv->call.mps_procs, dev, &m); /* clients of MPS, who may be in no other */
    int n = n_compute >= 0 ? 0 : -1;

    for (int i = 0; i < n_compute; i++)
        n = merge(ret, n, max, &c[i], false);
    for (int i = 0; n >= 0 && i < n_mps; i++)
        n = merge(ret, n, max, &m[i], false);
    for (int i = 0; n >= 0 && i < n_graphics; i++)
        n = merge(ret, n, max, &g[i], true);
    free(c);
    free(g);
    free(m);
    return n;
}

bool stk_nvml_field(const struct stk_nvml *nv, void *dev, unsigned id, unsigned scope, double *ret)
{
    struct nvml_field f = {.id = id, .scope = scope, .rc = -1};
    double v;

    if (!STK_NVML(nv, fields, dev, 1, &f) || f.rc != NVML_SUCCESS)
        return false;
    switch (f.type) {
    case 0:
        v = f.value.d;
        break;
    case 1:
        v = f.value.u;
        break;
    case 2:
        v = (double)f.value.ul;
        break;
    case 3:
        v = (double)f.value.ull;
        break;
    case 4:
        v = (double)f.value.ll;
        break;
    case 5:
        v = f.value.i;
        break;
    case 6:
        v = f.value.us;
        break;
    default:
        return false;
    }
    *ret = v;
    return true;
}
