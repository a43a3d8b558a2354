/* SPDX-License-Identifier: Apache-2.0 */
/* gpuview.h - the GPUs of a machine as last seen, and what to make of each.
 *
 * The helper program (docs/spec/gpu-helper.md) prints lines; this reads them into a table. Text in
 * them can come from any user of the machine (the name of a process), so it is bounded, and escaped
 * when it is read. A value that is not known is not 0: every value has a flag.
 *
 * A GPU is judged from the table and from who belongs to our jobs, which the caller knows:
 *
 *     unknown       no reading yet
 *     faulty        lost, a hardware error, or the driver says that it must be reset
 *     mig           split into instances, where these are not scheduled
 *     foreign-busy  a process that is none of ours uses it
 *     foreign-idle  such a process holds memory, and has not used the GPU for a while
 *     managed       our jobs use it
 *     free          nobody does
 */
#ifndef STK_GPUVIEW_GPUVIEW_H
#define STK_GPUVIEW_GPUVIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define STK_GPUVIEW_MAX 64          /* GPUs */
#define STK_GPUVIEW_PROCS 256       /* processes kept per GPU; the rest is counted */
#define STK_GPUVIEW_INSTANCES 8     /* MIG instances kept per GPU */
#define STK_GPUVIEW_XIDS 16         /* latest driver errors kept per GPU */
#define STK_GPUVIEW_LINE (4U << 20) /* longest line that is read, bytes */
#define STK_GPUVIEW_CPUS 1024       /* characters of a list of CPUs */
#define STK_GPUVIEW_NVLINKS 255     /* counted between two GPUs */

enum stk_gpu_metric {
    STK_GPU_UTIL,     /* percent of time in which something ran */
    STK_GPU_MEM_UTIL, /* percent of time in which memory was used */
    STK_GPU_SM_ACTIVE,
    STK_GPU_SM_OCCUPANCY,
    STK_GPU_TENSOR_ACTIVE,
    STK_GPU_DRAM_ACTIVE,
    STK_GPU_MEM_TOTAL_MIB,
    STK_GPU_MEM_USED_MIB,
    STK_GPU_MEM_FREE_MIB,
    STK_GPU_POWER_W,
    STK_GPU_ENERGY_J, /* since the driver was loaded */
    STK_GPU_TEMP_C,
    STK_GPU_CLOCK_SM_MHZ,
    STK_GPU_CLOCK_MEM_MHZ,
    STK_GPU_PCIE_TX_KIB_S,
    STK_GPU_PCIE_RX_KIB_S,
    STK_GPU_NVLINK_TX_KIB_S,
    STK_GPU_NVLINK_RX_KIB_S,
    STK_GPU_ECC_VOLATILE_CORRECTED,
    STK_GPU_ECC_VOLATILE_UNCORRECTED,
    STK_GPU_ECC_AGGREGATE_CORRECTED,
    STK_GPU_ECC_AGGREGATE_UNCORRECTED,
    STK_GPU_ROWS_CORRECTED,
    STK_GPU_ROWS_UNCORRECTED,
    STK_GPU_ROWS_PENDING, /* 0 or 1 */
    STK_GPU_ROWS_FAILED,  /* 0 or 1 */
    STK_GPU_RETIRED_PAGES,
    STK_GPU_METRIC_MAX,
};

/* As in the helper's lines: "sm_active". "?" for other values. */
const char *stk_gpu_metric_name(enum stk_gpu_metric m);

struct stk_gpu_value {
    double v;
    bool known;
};

struct stk_gpu_proc {
    int32_t pid;
    int32_t sid;             /* session; 0: not known */
    uint32_t uid;            /* UINT32_MAX: not known */
    bool compute;            /* false: graphics only, such as a display */
    char user[64], name[64]; /* escaped; "": not known */
    struct stk_gpu_value mem_mib, sm, age_s;
    int64_t idle_us; /* since when it has been seen without activity; 0: active, or not known */
};

struct stk_gpu_sample {
    int64_t at_us; /* wall clock; 0: none yet */
    struct stk_gpu_value value[STK_GPU_METRIC_MAX];
    char lost[96];     /* why it does not answer; "": it does */
    char recovery[24]; /* what the driver advises: none, reset, ...; "": not known */
    char throttle[96]; /* reasons for a lower clock, with spaces between */
    bool procs_known;
    struct stk_gpu_proc *proc;
    uint32_t n_procs, more_procs;
};

struct stk_gpu {
    bool present; /* false: the driver lists it, and gives no answer */
    char uuid[48], name[96], pci[32], error[96];
    char label[256];     /* what people call it: "0"; its owner may set another, as "node-2:0" */
    int32_t minor, numa; /* -1: not known */
    uint64_t mem_mib;    /* 0: not known */
    bool mig;
    char cpus[STK_GPUVIEW_CPUS]; /* near it, as the driver says: "0-15,64-79"; "": not known */
    int32_t nvlinks;             /* that are up; -1: not known */
    uint32_t switch_links;       /* of those, the ones that lead to a switch */
    uint32_t n_instances;        /* all there are */
    struct stk_gpu_instance {
        char uuid[64], profile[24];    /* "1g.10gb" */
        int32_t start;                 /* its first slice of memory; -1: not known */
    } instance[STK_GPUVIEW_INSTANCES]; /* the first of them */
    struct stk_gpu_sample now;
    struct {
        uint32_t code;
        int64_t at_us;
    } xid[STK_GPUVIEW_XIDS]; /* the latest; n_xids % STK_GPUVIEW_XIDS is the next place */
    uint64_t n_xids;         /* seen in all */
    uint32_t fault_xid;      /* hardware error since it was cleared: the first, or the first that
                              * does not go away by itself; 0: none */
    int64_t fault_us;        /* the latest of them */
    uint32_t unseen_rounds;  /* readings in a row with memory that no process accounts for */
};

/* Where two GPUs meet on PCIe, nearest first. */
enum stk_gpu_path {
    STK_PATH_UNKNOWN,
    STK_PATH_BOARD,
    STK_PATH_PIX,  /* one switch */
    STK_PATH_PXB,  /* several switches */
    STK_PATH_PHB,  /* the host bridge */
    STK_PATH_NODE, /* the NUMA node */
    STK_PATH_SYS,  /* between NUMA nodes */
    STK_PATH_MAX,
};
/* As in the helper's lines: "pix". "" when it is not known. */
const char *stk_gpu_path_name(enum stk_gpu_path p);

struct stk_gpu_link { /* between two GPUs */
    uint8_t nvlinks;
    bool through_switch;
    enum stk_gpu_path path;
};

struct stk_gpus {
    char driver[32], cuda[16];
    bool suspend, move; /* the driver can suspend, and resume on another GPU */
    char why[256];      /* why it cannot, or why there are no GPUs */
    int64_t at_us;      /* of the last reading */
    struct stk_gpu *gpu;
    uint32_t n;
    struct stk_gpu_link *link; /* n x n, the same both ways; NULL without GPUs */
};

void stk_gpus_init(struct stk_gpus *t);
void stk_gpus_done(struct stk_gpus *t);

/* A line of "list": replaces the whole table. -EIO with the helper's own sentence when it said that
 * it failed (no driver at all is no failure: a table without GPUs). On failure nothing has changed.
 */
int stk_gpuview_list(struct stk_gpus *t, const char *line, size_t len, struct stk_err *err);

/* A line of "watch": replaces the readings; what the line lacks is no longer known. Fails as above.
 */
int stk_gpuview_sample(struct stk_gpus *t, const char *line, size_t len, struct stk_err *err);

/* After a probe or a reset that went well: forgets the hardware error that made the GPU faulty. */
void stk_gpuview_clear(struct stk_gpus *t, uint32_t gpu);

/* A GPU with a hardware error that can go away by itself has been well for so long: it answers,
 * without another error, and neither the driver nor its memory say that something is wrong. */
bool stk_gpuview_is_well(const struct stk_gpus *t, uint32_t gpu, double quiet_s);

enum stk_gpu_state {
    STK_GPU_UNKNOWN,
    STK_GPU_FAULTY,
    STK_GPU_MIG,
    STK_GPU_FOREIGN_BUSY,
    STK_GPU_FOREIGN_IDLE,
    STK_GPU_MANAGED,
    STK_GPU_FREE,
    STK_GPU_STATE_MAX,
};
const char *stk_gpu_state_name(enum stk_gpu_state s);

/* What to do about a GPU that somebody uses without asking us. */
enum stk_foreign {
    STK_FOREIGN_BLOCK,  /* start nothing on it */
    STK_FOREIGN_PACK,   /* use it last, and only while enough memory is left */
    STK_FOREIGN_IGNORE, /* as if nobody were there */
    STK_FOREIGN_MAX,
};

struct stk_gpu_rule {
    enum stk_foreign foreign;
    double stale_s;      /* without activity for as long: foreign-idle, and as under 'pack' */
    double min_free_mib; /* pack: off when foreign processes leave less */
    double quiet_s;      /* a GPU that was faulty is used again after this; 0: never */
    bool instances;      /* MIG instances are scheduled */
};

struct stk_gpu_owner { /* of a process */
    uint64_t job;      /* 0: none of ours */
    bool given;        /* it belongs there: the job was given this GPU, or it serves those that
                        * were; else it is as foreign as any */
};
typedef struct stk_gpu_owner (*stk_gpu_owner_fn)(void *ctx, uint32_t gpu,
                                                 const struct stk_gpu_proc *p);

struct stk_gpu_verdict {
    enum stk_gpu_state state;
    bool off;           /* start nothing new on it */
    bool last;          /* only when no other GPU is free */
    uint64_t stray;     /* a job that uses it and was not given it; 0: none */
    uint32_t n_ours;    /* processes */
    uint32_t n_foreign; /* processes, without displays */
    double foreign_mib; /* memory of those, as far as known */
    char release[160];  /* the command that would end the foreign processes; "": none */
    char text[640];     /* a sentence for a person */
};

void stk_gpuview_judge(const struct stk_gpus *t, uint32_t gpu, const struct stk_gpu_rule *rule,
                       stk_gpu_owner_fn owner, void *ctx, struct stk_gpu_verdict *ret);

/* An object with everything that is known of a GPU: readings, "processes" (with "job" where they
 * are of one), "foreign" (those that are not ours, and those of jobs that were not given it),
 * "xids"; with a verdict also "state", "state_text", "release" and, when it is off, "off": why. 'v'
 * and 'owner' may be NULL. */
json_t *stk_gpuview_show(const struct stk_gpus *t, uint32_t gpu, const struct stk_gpu_verdict *v,
                         stk_gpu_owner_fn owner, void *ctx);

#endif
