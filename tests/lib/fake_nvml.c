/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml.c - a libnvidia-ml.so.1 with GPUs of 80 GiB that are not there. See fake.h. The
 * second has MIG on when $STOKER_FAKE_MIG is set. Some functions are left out on purpose, as in a
 * real library that is older. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "fake_links.h"
#include "gpu/nvml_abi.h"

#define API(name, ...)                                                                             \
    int name(__VA_ARGS__);                                                                         \
    int name(__VA_ARGS__)
#define UNLESS(what)                                                                               \
    if (fake_without(what))                                                                        \
    return NVML_NOT_SUPPORTED

char fake_devices[FAKE_GPUS];
static char instances[2]; /* their addresses are the handles */
static unsigned samples;

static int gpu_of(const void *dev)
{
    int g = fake_gpu_of(dev);

    return g >= 0 ? g : 0; /* an instance's GPU does not matter */
}

/* Two cards that are divided, when $STOKER_FAKE_MIG is "all"; their addresses are handles, too. */
static const struct divided {
    unsigned gpu, id, start;
    const char *profile;
} divided[] = {{0, 1, 0, "3g.40gb"}, {0, 9, 4, "1g.10gb"}, {0, 10, 5, "1g.10gb"},
               {1, 7, 0, "1g.10gb"}, {1, 5, 2, "2g.20gb"}, {1, 8, 6, "1g.10gb+me"}};
#define N_DIVIDED (sizeof(divided) / sizeof(*divided))

static int all_mig(void)
{
    const char *s = getenv("STOKER_FAKE_MIG");

    return s && strcmp(s, "all") == 0;
}

static const struct divided *divided_of(const void *mig)
{
    for (size_t i = 0; i < N_DIVIDED; i++)
        if (mig == &divided[i])
            return &divided[i];
    return NULL;
}

static int is_lost(const void *dev)
{
    FILE *f = fake_open("lost", "re");
    int g, lost = 0;

    while (f && fscanf(f, "%d", &g) == 1)
        lost |= g == gpu_of(dev);
    if (f)
        (void)fclose(f);
    return lost;
}

/* How busy the file "busy" ("GPU PERCENT" a line) says that it is; -1: it says nothing. */
static int told_busy(const void *dev)
{
    FILE *f = fake_open("busy", "re");
    int g, percent, found = -1;

    while (f && fscanf(f, "%d %d", &g, &percent) == 2)
        found = g == gpu_of(dev) ? percent : found;
    if (f)
        (void)fclose(f);
    return found;
}

API(nvmlInit_v2, void)
{
    return fake_fail("nvml", 0);
}

API(nvmlShutdown, void)
{
    return NVML_SUCCESS;
}

const char *nvmlErrorString(int rc);
const char *nvmlErrorString(int rc)
{
    return rc == NVML_GPU_IS_LOST ? "GPU is lost" : rc == 9 ? "Driver Not Loaded" : "Some Error";
}

API(nvmlSystemGetDriverVersion, char *text, unsigned size)
{
    (void)snprintf(text, size, "580.00.00");
    return NVML_SUCCESS;
}

API(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
    *version = 13000;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetCount_v2, unsigned *n)
{
    *n = fake_without("gpus") ? 0 : (unsigned)fake_gpus();
    return NVML_SUCCESS;
}

API(nvmlDeviceGetHandleByIndex_v2, unsigned i, void **dev)
{
    if (i >= (unsigned)fake_gpus())
        return 2;
    *dev = &fake_devices[i];
    return is_lost(*dev) ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

API(nvmlDeviceGetUUID, void *dev, char *text, unsigned size)
{
    if (divided_of(dev))
        (void)snprintf(text, size, "MIG-00000000-0000-0000-%04u-%012u", divided_of(dev)->gpu,
                       divided_of(dev)->id);
    else if (dev == &instances[0] || dev == &instances[1])
        (void)snprintf(text, size, "MIG-00000000-0000-0000-0000-00000000000%d",
                       dev == &instances[1]);
    else
        (void)snprintf(text, size, "GPU-00000000-0000-0000-0000-%012d", gpu_of(dev));
    return NVML_SUCCESS;
}

API(nvmlDeviceGetHandleByUUID, const char *uuid, void **dev)
{
    char text[96];

    for (int i = 0; i < fake_gpus(); i++) {
        (void)nvmlDeviceGetUUID(&fake_devices[i], text, sizeof(text));
        if (strcmp(text, uuid) == 0) {
            *dev = &fake_devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_NOT_FOUND;
}

API(nvmlDeviceGetName, void *dev, char *text, unsigned size)
{
    const struct divided *d = divided_of(dev);

    (void)snprintf(text, size, "%s%s%s", all_mig() ? "NVIDIA H100 80GB HBM3" : "Fake H80",
                   d ? " MIG " : "", d ? d->profile : "");
    return NVML_SUCCESS;
}

API(nvmlDeviceGetMinorNumber, void *dev, unsigned *minor)
{
    *minor = (unsigned)gpu_of(dev);
    return NVML_SUCCESS;
}

API(nvmlDeviceGetPciInfo_v3, void *dev, struct nvml_pci *pci)
{
    memset(pci, 0, sizeof(*pci));
    fake_pci(gpu_of(dev), pci->bus_id, sizeof(pci->bus_id));
    return NVML_SUCCESS;
}

API(nvmlDeviceGetMigMode, void *dev, unsigned *current, unsigned *pending)
{
    UNLESS("mig");
    *current = *pending = getenv("STOKER_FAKE_MIG") && (all_mig() || gpu_of(dev) == 1);
    return NVML_SUCCESS;
}

API(nvmlDeviceGetMaxMigDeviceCount, void *dev, unsigned *n)
{
    (void)dev;
    *n = 7;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetMigDeviceHandleByIndex, void *dev, unsigned i, void **mig)
{
    if (all_mig()) {
        if (i >= N_DIVIDED || (int)divided[i].gpu != gpu_of(dev))
            return NVML_NOT_FOUND;
        memcpy(mig, &(const void *){&divided[i]}, sizeof(*mig));
        return NVML_SUCCESS;
    }
    if (i >= 2)
        return NVML_NOT_FOUND;
    *mig = &instances[i];
    return NVML_SUCCESS;
}

API(nvmlDeviceGetGpuInstanceId, void *mig, unsigned *id)
{
    *id = divided_of(mig) ? divided_of(mig)->id : mig == &instances[1] ? 2 : 1;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetGpuInstanceById, void *dev, unsigned id, void **gi)
{
    UNLESS("placement");
    for (size_t i = 0; i < N_DIVIDED; i++)
        if ((int)divided[i].gpu == gpu_of(dev) && divided[i].id == id && all_mig()) {
            memcpy(gi, &(const void *){&divided[i]}, sizeof(*gi));
            return NVML_SUCCESS;
        }
    return NVML_NOT_FOUND;
}

API(nvmlGpuInstanceGetInfo, void *gi, struct nvml_gpu_instance *info)
{
    *info = (struct nvml_gpu_instance){.id = divided_of(gi)->id, .start = divided_of(gi)->start};
    return NVML_SUCCESS;
}

API(nvmlDeviceGetMemoryInfo, void *dev, struct nvml_memory *m)
{
    unsigned long long used = fake_used(gpu_of(dev)) << 20;

    if (is_lost(dev))
        return NVML_GPU_IS_LOST;
    UNLESS("memory");
    m->total = (unsigned long long)FAKE_MIB << 20;
    m->used = used < m->total ? used : m->total;
    m->free = m->total - m->used;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetUtilizationRates, void *dev, struct nvml_utilization *u)
{
    const int told = told_busy(dev);

    UNLESS("util");
    u->gpu = told >= 0 ? (unsigned)told : fake_used(gpu_of(dev)) > 0 ? 37 : 0;
    u->memory = u->gpu / 2;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetPowerUsage, void *dev, unsigned *mw)
{
    const int told = told_busy(dev);

    UNLESS("power");
    *mw = told >= 0 ? 70000 + 6000 * (unsigned)told : 123456;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetTotalEnergyConsumption, void *dev, unsigned long long *mj)
{
    (void)dev;
    UNLESS("energy");
    *mj = 987654321;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetTemperature, void *dev, int sensor, unsigned *c)
{
    (void)dev;
    UNLESS("temp");
    *c = 41;
    return sensor == 0 ? NVML_SUCCESS : 2;
}

API(nvmlDeviceGetClockInfo, void *dev, int type, unsigned *mhz)
{
    (void)dev;
    *mhz = type == NVML_CLOCK_SM ? 1980 : 3201;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetCurrentClocksThrottleReasons, void *dev, unsigned long long *bits)
{
    (void)dev;
    *bits = 0x1 | 0x4 | 0x40;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetPcieThroughput, void *dev, int direction, unsigned *kib_s)
{
    (void)dev;
    *kib_s = direction == NVML_PCIE_TX ? 111 : 222;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetTotalEccErrors, void *dev, int error, int counter, unsigned long long *n)
{
    (void)dev;
    UNLESS("ecc");
    *n = (unsigned long long)(error * 10 + counter);
    return NVML_SUCCESS;
}

API(nvmlDeviceGetRemappedRows, void *dev, unsigned *corrected, unsigned *uncorrected,
    unsigned *pending, unsigned *failed)
{
    (void)dev;
    UNLESS("rows");
    *corrected = 1;
    *uncorrected = 2;
    *pending = 1;
    *failed = 0;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetFieldValues, void *dev, int n, struct nvml_field *f)
{
    (void)dev;
    UNLESS("fields");
    for (int i = 0; i < n; i++) {
        f[i].rc = f[i].id == NVML_FIELD_RECOVERY_ACTION ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
        f[i].type = 1;
        f[i].value.u = 0;
    }
    return NVML_SUCCESS;
}

static int processes(const void *dev, unsigned *n, struct nvml_process *p, char which)
{
    FILE *f = fake_open("procs", "re");
    unsigned found = 0, room = *n;
    char line[256];

    while (f && fgets(line, sizeof(line), f)) {
        char kind = 'c';
        int g, pid;

        if (sscanf(line, "%d %d %*u %*u %c", &g, &pid, &kind) < 2 || g != gpu_of(dev) ||
            kind != which)
            continue;
        if (found < room)
            p[found] = (struct nvml_process){(unsigned)pid, fake_held(g, pid) << 20, ~0U, ~0U};
        if (found < room && fake_without("procmem"))
            p[found].used = NVML_NOT_AVAILABLE;
        found++;
    }
    if (f)
        (void)fclose(f);
    *n = found;
    return found > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

API(nvmlDeviceGetComputeRunningProcesses_v3, void *dev, unsigned *n, struct nvml_process *p)
{
    UNLESS("procs");
    return processes(dev, n, p, 'c');
}

API(nvmlDeviceGetGraphicsRunningProcesses_v3, void *dev, unsigned *n, struct nvml_process *p)
{
    return processes(dev, n, p, 'g');
}

API(nvmlDeviceGetMPSComputeRunningProcesses_v3, void *dev, unsigned *n, struct nvml_process *p)
{
    UNLESS("mps");
    return processes(dev, n, p, 'm');
}

API(nvmlDeviceGetProcessUtilization, void *dev, struct nvml_process_sample *s, unsigned *n,
    unsigned long long since_us)
{
    FILE *f;
    unsigned found = 0, room = *n, sm;
    char line[256];
    int g, pid;

    UNLESS("procsm");
    f = fake_open("procs", "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%d %d %*u %u", &g, &pid, &sm) != 3 || g != gpu_of(dev) || sm == 0)
            continue;
        if (s && found < room)
            s[found] = (struct nvml_process_sample){(unsigned)pid, since_us + 1, sm, 0, 0, 0};
        found++;
    }
    if (f)
        (void)fclose(f);
    *n = found;
    if (found == 0)
        return NVML_NOT_FOUND;
    return !s || found > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

API(nvmlEventSetCreate, void **set)
{
    UNLESS("events");
    *set = &samples;
    return NVML_SUCCESS;
}

API(nvmlEventSetFree, void *set)
{
    (void)set;
    return NVML_SUCCESS;
}

API(nvmlDeviceRegisterEvents, void *dev, unsigned long long types, void *set)
{
    (void)dev;
    (void)set;
    return types == NVML_EVENT_XID ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

/* Takes the first line of the file away. */
API(nvmlEventSetWait_v2, void *set, struct nvml_event *e, unsigned timeout_ms)
{
    FILE *f = fake_open("xid", "r+e");
    char rest[4096];
    unsigned code;
    size_t n;
    int g, got;

    (void)set;
    if (timeout_ms != 0)
        abort(); /* never wait */
    if (!f)
        return NVML_TIMEOUT;
    got = fscanf(f, "%d %u ", &g, &code);
    n = fread(rest, 1, sizeof(rest), f);
    rewind(f);
    if (ftruncate(fileno(f), 0) == 0)
        (void)fwrite(rest, 1, n, f);
    (void)fclose(f);
    if (got != 2)
        return NVML_TIMEOUT;
    *e = (struct nvml_event){&fake_devices[g], NVML_EVENT_XID, code, ~0U, ~0U};
    return NVML_SUCCESS;
}

API(nvmlGpmQueryDeviceSupport, void *dev, struct nvml_gpm_support *s)
{
    (void)dev;
    s->supported = !fake_without("gpm");
    return s->version == NVML_GPM_VERSION ? NVML_SUCCESS : 25;
}

API(nvmlGpmSampleAlloc, void **sample)
{
    *sample = calloc(1, sizeof(unsigned));
    return *sample ? NVML_SUCCESS : 20;
}

API(nvmlGpmSampleFree, void *sample)
{
    free(sample);
    return NVML_SUCCESS;
}

API(nvmlGpmSampleGet, void *dev, void *sample)
{
    (void)dev;
    *(unsigned *)sample = ++samples;
    return NVML_SUCCESS;
}

/* The older sample must come first, and both must have been taken. */
API(nvmlGpmMetricsGet, struct nvml_gpm_get *g)
{
    unsigned a = *(unsigned *)g->sample1, b = *(unsigned *)g->sample2;

    if (g->version != NVML_GPM_VERSION || a == 0 || a >= b)
        return 2;
    for (unsigned i = 0; i < g->n_metrics; i++) {
        g->metric[i].rc = g->metric[i].id >= NVML_GPM_NVLINK_RX ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
        g->metric[i].value = g->metric[i].id == NVML_GPM_TENSOR_UTIL ? 0.0 / 0.0 /* has been seen */
                                                                     : g->metric[i].id + 0.5;
    }
    return NVML_SUCCESS;
}
