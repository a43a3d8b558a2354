/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_abi.h - the part of NVIDIA's management library that is used here, declared by hand: the
 * library is opened at run time, so that the program builds and runs without it.
 *
 * Names and layouts are those of the public API documentation. A wrong layout would corrupt memory,
 * so every struct that crosses the border has its size and offsets asserted. Only functions that
 * read are declared: nothing here can change a setting of a GPU.
 */
#ifndef STK_GPU_NVML_ABI_H
#define STK_GPU_NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

#define NVML_SUCCESS 0
#define NVML_NOT_SUPPORTED 3
#define NVML_NOT_FOUND 6
#define NVML_INSUFFICIENT_SIZE 7
#define NVML_TIMEOUT 10
#define NVML_GPU_IS_LOST 15
#define NVML_RESET_REQUIRED 16

#define NVML_UUID_SIZE 96
#define NVML_NAME_SIZE 96
#define NVML_VERSION_SIZE 80
#define NVML_EVENT_XID 0x8ULL
#define NVML_NOT_AVAILABLE UINT64_MAX /* of a 64-bit member */

enum { NVML_CORRECTED, NVML_UNCORRECTED };
enum { NVML_VOLATILE, NVML_AGGREGATE };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_PCIE_TX, NVML_PCIE_RX };

#define NVML_NVLINKS 18 /* most links of a GPU; those beyond what it has answer with an error */
enum { NVML_REMOTE_GPU, NVML_REMOTE_NPU, NVML_REMOTE_SWITCH, NVML_REMOTE_UNKNOWN = 255 };
enum { /* of nvmlDeviceGetTopologyCommonAncestor: what two GPUs have in common, nearest first */
       NVML_PATH_BOARD = 0,
       NVML_PATH_ONE_SWITCH = 10,
       NVML_PATH_SWITCHES = 20,
       NVML_PATH_HOST_BRIDGE = 30,
       NVML_PATH_NODE = 40,
       NVML_PATH_SYSTEM = 50
};

/* fields of nvmlDeviceGetFieldValues */
#define NVML_FIELD_RETIRED_SBE 29
#define NVML_FIELD_RETIRED_DBE 30
#define NVML_FIELD_NVLINK_DATA_TX 138 /* KiB since the driver was loaded; scope: all links */
#define NVML_FIELD_NVLINK_DATA_RX 139
#define NVML_FIELD_RECOVERY_ACTION 230
#define NVML_SCOPE_ALL UINT32_MAX

/* metrics of nvmlGpmMetricsGet: percent, or MiB per second */
#define NVML_GPM_SM_UTIL 2
#define NVML_GPM_SM_OCCUPANCY 3
#define NVML_GPM_TENSOR_UTIL 5
#define NVML_GPM_DRAM_UTIL 10
#define NVML_GPM_PCIE_TX 20
#define NVML_GPM_PCIE_RX 21
#define NVML_GPM_NVLINK_RX 60
#define NVML_GPM_NVLINK_TX 61
#define NVML_GPM_VERSION 1
/* The array's length has grown with every release; the library touches only the first n_metrics, so
 * a longer one is safe and a shorter one would be too. */
#define NVML_GPM_MAX 333

struct nvml_memory {
    unsigned long long total, free, used;
};
_Static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

struct nvml_memory_v2 {
    unsigned version; /* size and version, in one word */
    unsigned long long total, reserved, free, used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2U << 24)

struct nvml_gpu_instance {
    void *device;
    unsigned id, profile;
    unsigned start, size; /* slices of memory */
};
_Static_assert(sizeof(struct nvml_gpu_instance) == 24 &&
                   offsetof(struct nvml_gpu_instance, start) == 16,
               "nvmlGpuInstanceInfo_t");

struct nvml_utilization {
    unsigned gpu, memory;
};

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci) == 68 && offsetof(struct nvml_pci, bus_id) == 36,
               "nvmlPciInfo_t");

/* of the _v2 and _v3 calls */
struct nvml_process {
    unsigned pid;
    unsigned long long used; /* bytes; NVML_NOT_AVAILABLE */
    unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_process) == 24 && offsetof(struct nvml_process, used) == 8,
               "nvmlProcessInfo_v2_t");

struct nvml_process_sample {
    unsigned pid;
    unsigned long long at_us;
    unsigned sm, memory, encoder, decoder;
};
_Static_assert(sizeof(struct nvml_process_sample) == 32 &&
                   offsetof(struct nvml_process_sample, sm) == 16,
               "nvmlProcessUtilizationSample_t");

struct nvml_event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_event) == 32, "nvmlEventData_t");

struct nvml_field {
    unsigned id, scope;
    long long at_us, latency_us;
    int type;
    int rc;
    union {
        double d;
        int i;
        unsigned u;
        unsigned long ul;
        unsigned long long ull;
        long long ll;
        unsigned short us;
    } value;
};
_Static_assert(sizeof(struct nvml_field) == 40 && offsetof(struct nvml_field, value) == 32,
               "nvmlFieldValue_t");

struct nvml_gpm_metric {
    unsigned id;
    int rc;
    double value;
    char *short_name, *long_name, *unit;
};
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "nvmlGpmMetric_t");

struct nvml_gpm_get {
    unsigned version, n_metrics;
    void *sample1, *sample2;
    struct nvml_gpm_metric metric[NVML_GPM_MAX];
};
_Static_assert(offsetof(struct nvml_gpm_get, metric) == 24, "nvmlGpmMetricsGet_t");

struct nvml_gpm_support {
    unsigned version, supported;
};
_Static_assert(sizeof(struct nvml_gpm_support) == 8, "nvmlGpmSupport_t");

/* The functions; any of them may be NULL when the library is older than the function. 'dev' is an
 * nvmlDevice_t, a pointer that only the library looks behind. All return NVML_SUCCESS or a code. */
struct nvml_calls {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int rc);
    int (*driver_version)(char *text, unsigned size);
    int (*cuda_version)(int *version);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, void **dev);
    int (*by_uuid)(const char *uuid, void **dev);
    int (*uuid)(void *dev, char *text, unsigned size);
    int (*name)(void *dev, char *text, unsigned size);
    int (*minor)(void *dev, unsigned *minor);
    int (*pci)(void *dev, struct nvml_pci *pci);
    int (*cpu_affinity)(void *dev, unsigned words, unsigned long *cpus);
    int (*link_state)(void *dev, unsigned link, unsigned *active);
    int (*link_pci)(void *dev, unsigned link, struct nvml_pci *pci);
    int (*link_type)(void *dev, unsigned link, unsigned *type);
    int (*common_ancestor)(void *dev, void *other, unsigned *path);
    int (*mig_mode)(void *dev, unsigned *current, unsigned *pending);
    int (*mig_count)(void *dev, unsigned *max);
    int (*mig_device)(void *dev, unsigned i, void **mig);
    int (*mig_gi)(void *mig, unsigned *id);
    int (*mig_ci)(void *mig, unsigned *id);
    int (*mig_gi_by_id)(void *dev, unsigned id, void **gi); /* needs root */
    int (*mig_gi_info)(void *gi, struct nvml_gpu_instance *info);
    int (*memory)(void *dev, struct nvml_memory *m);
    int (*memory_v2)(void *dev, struct nvml_memory_v2 *m);
    int (*utilization)(void *dev, struct nvml_utilization *u);
    int (*power)(void *dev, unsigned *mw);
    int (*energy)(void *dev, unsigned long long *mj);
    int (*temperature)(void *dev, int sensor, unsigned *c);
    int (*clock)(void *dev, int type, unsigned *mhz);
    int (*clock_reasons)(void *dev, unsigned long long *bits);
    int (*pcie)(void *dev, int direction, unsigned *kib_s);
    int (*ecc)(void *dev, int error, int counter, unsigned long long *n);
    int (*rows)(void *dev, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                unsigned *failed);
    int (*fields)(void *dev, int n, struct nvml_field *f);
    int (*compute_procs)(void *dev, unsigned *n, struct nvml_process *p);
    int (*graphics_procs)(void *dev, unsigned *n, struct nvml_process *p);
    int (*mps_procs)(void *dev, unsigned *n, struct nvml_process *p);
    int (*process_samples)(void *dev, struct nvml_process_sample *s, unsigned *n,
                           unsigned long long since_us);
    int (*event_set_new)(void **set);
    int (*event_register)(void *dev, unsigned long long types, void *set);
    int (*event_wait)(void *set, struct nvml_event *e, unsigned timeout_ms);
    int (*event_set_free)(void *set);
    int (*gpm_support)(void *dev, struct nvml_gpm_support *s);
    int (*gpm_alloc)(void **sample);
    int (*gpm_free)(void *sample);
    int (*gpm_sample)(void *dev, void *sample);
    int (*gpm_get)(struct nvml_gpm_get *g);
};

#endif
