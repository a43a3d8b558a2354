/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_gpus.c - GPUs: under stoker's own names on /metrics, and under those of dcgm-exporter on
 * /metrics/dcgm, for dashboards that exist. Names, labels and units there are those of
 * dcgm-exporter up to 4.8 (percent, MiB, MHz, mJ); values that the driver does not give are left
 * out. GPUs that are pretended have no readings. */
#include <stdio.h>
#include <string.h>

#include "api/metrics.h"
#include "api/owners.h"
#include "core/state.h"
#include "sys/json.h"

struct family {
    const char *name, *type, *help;
    const char *key; /* of the reading */
    double scale;
};

struct of_gpu { /* labels of one, as texts */
    char index[16], device[24];
    const char *node, *uuid, *model, *pci;
};

static void name_gpu(struct stk_owners *v, uint32_t node, uint32_t gpu, struct of_gpu *ret)
{
    const struct stk_live_config *c = stk_live_config(v->api->cfg.live);
    const json_t *row = stk_owners_listed(v->api, node, gpu);
    const json_t *minor = json_object_get(row, "minor");

    (void)snprintf(ret->index, sizeof(ret->index), "%u", gpu);
    (void)snprintf(ret->device, sizeof(ret->device), "nvidia%lld",
                   json_is_integer(minor) ? (long long)json_integer_value(minor) : (long long)gpu);
    ret->node = c->nodes[node].name;
    ret->model = c->nodes[node].gpu_type;
    ret->uuid = stk_str(row, "uuid");
    ret->pci = stk_str(row, "pci");
}

static double reading(const struct stk_owners *v, uint32_t node, uint32_t gpu, const char *key,
                      bool *ret_known)
{
    const json_t *x = json_object_get(stk_owners_sample(v->api, node, gpu), key);

    *ret_known = json_is_number(x) || json_is_boolean(x);
    return json_is_boolean(x) ? json_is_true(x) : json_number_value(x);
}

typedef void (*line_fn)(struct stk_prom *p, const char *name, const struct of_gpu *g, double v,
                        const struct stk_api *a);

static void own_line(struct stk_prom *p, const char *name, const struct of_gpu *g, double v,
                     const struct stk_api *a)
{
    const struct stk_prom_labels l = {{"node", "gpu", "uuid", "model"},
                                      {g->node, g->index, g->uuid, g->model}};

    (void)a;
    stk_prom_line(p, name, &l, v);
}

static void dcgm_line(struct stk_prom *p, const char *name, const struct of_gpu *g, double v,
                      const struct stk_api *a)
{
    const struct stk_prom_labels l = {
        {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"},
        {g->index, g->uuid, g->pci, g->device, g->model, g->node, stk_str(a->cfg.gpus, "driver")}};

    stk_prom_line(p, name, &l, v);
}

static void put_family(struct stk_prom *p, struct stk_owners *v, const struct family *f,
                       line_fn line)
{
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));
    bool headed = false;

    for (uint32_t n = 0; n < s->n_nodes; n++)
        for (uint32_t g = 0; g < s->nodes[n].gpus && g < STK_MAX_NODE_GPUS; g++) {
            struct of_gpu of;
            bool known;
            double value = reading(v, n, g, f->key, &known) * f->scale;

            if (!known)
                continue;
            if (!headed)
                stk_prom_head(p, f->name, f->type, f->help);
            headed = true;
            name_gpu(v, n, g, &of);
            line(p, f->name, &of, value, v->api);
        }
}

#define MIB 1048576.0

static const struct family own[] = {
    {"stoker_gpu_utilization_ratio", "gauge", "Share of time in which something ran.", "util",
     0.01},
    {"stoker_gpu_memory_utilization_ratio", "gauge", "Share of time in which memory was used.",
     "mem_util", 0.01},
    {"stoker_gpu_sm_active_ratio", "gauge", "Share of the multiprocessors at work.", "sm_active",
     0.01},
    {"stoker_gpu_memory_used_bytes", "gauge", "Memory in use.", "mem_used_mib", MIB},
    {"stoker_gpu_memory_bytes", "gauge", "Memory there is.", "mem_total_mib", MIB},
    {"stoker_gpu_power_watts", "gauge", "Power drawn.", "power_w", 1},
    {"stoker_gpu_energy_joules_total", "counter", "Energy since the driver was loaded.", "energy_j",
     1},
    {"stoker_gpu_temperature_celsius", "gauge", "Temperature.", "temp_c", 1},
    {"stoker_gpu_ecc_uncorrected_total", "counter", "Errors of memory since the driver was loaded.",
     "ecc_volatile_uncorrected", 1},
};

static const struct family dcgm[] = {
    {"DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", "clock_sm_mhz", 1},
    {"DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", "clock_mem_mhz", 1},
    {"DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", "temp_c", 1},
    {"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", "power_w", 1},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter",
     "Total energy consumption since boot (in mJ).", "energy_j", 1000},
    {"DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", "util", 1},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).", "mem_util", 1},
    {"DCGM_FI_DEV_FB_TOTAL", "gauge", "Framebuffer memory total (in MiB).", "mem_total_mib", 1},
    {"DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", "mem_free_mib", 1},
    {"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", "mem_used_mib", 1},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Total number of single-bit volatile ECC errors.",
     "ecc_volatile_corrected", 1},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Total number of double-bit volatile ECC errors.",
     "ecc_volatile_uncorrected", 1},
    {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter",
     "Total number of single-bit persistent ECC errors.", "ecc_aggregate_corrected", 1},
    {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter",
     "Total number of double-bit persistent ECC errors.", "ecc_aggregate_uncorrected", 1},
    {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter",
     "Number of remapped rows for uncorrectable errors.", "rows_uncorrected", 1},
    {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter",
     "Number of remapped rows for correctable errors.", "rows_corrected", 1},
    {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed.",
     "rows_failed", 1},
    {"DCGM_FI_PROF_SM_ACTIVE", "gauge", "The ratio of cycles an SM has at least 1 warp assigned.",
     "sm_active", 0.01},
    {"DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "The ratio of number of warps resident on an SM.",
     "sm_occupancy", 0.01},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge",
     "Ratio of cycles the tensor (HMMA) pipe is active.", "tensor_active", 0.01},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "gauge",
     "Ratio of cycles the device memory interface is active sending or receiving data.",
     "dram_active", 0.01},
};

/* ---- what is not a reading ---- */

static double is_healthy(const struct stk_owners *v, uint32_t node, uint32_t gpu)
{
    const json_t *s = stk_owners_sample(v->api, node, gpu);

    return strcmp(stk_str(s, "state"), "faulty") != 0;
}

static double foreign(const struct stk_owners *v, uint32_t node, uint32_t gpu)
{
    const json_t *s = stk_owners_sample(v->api, node, gpu);

    return (double)json_array_size(json_object_get(s, "foreign"));
}

static double allocated(const struct stk_owners *v, uint32_t node, uint32_t gpu)
{
    return stk_owners_share(v, node, gpu);
}

static const struct {
    const char *name, *help;
    double (*of)(const struct stk_owners *v, uint32_t node, uint32_t gpu);
} states[] = {
    {"stoker_gpu_allocated_ratio", "How much of it jobs have.", allocated},
    {"stoker_gpu_healthy", "0 when it is out of use for an error.", is_healthy},
    {"stoker_gpu_foreign_processes", "Processes on it that are none of our jobs'.", foreign},
};

static void put_states(struct stk_prom *p, struct stk_owners *v)
{
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));

    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
        stk_prom_head(p, states[i].name, "gauge", states[i].help);
        for (uint32_t n = 0; n < s->n_nodes; n++)
            for (uint32_t g = 0; g < s->nodes[n].gpus && g < STK_MAX_NODE_GPUS; g++) {
                struct of_gpu of;

                name_gpu(v, n, g, &of);
                own_line(p, states[i].name, &of, states[i].of(v, n, g), v->api);
            }
    }
}

void stk_metrics_gpus(struct stk_prom *p, struct stk_api *a)
{
    struct stk_owner_counts c;
    struct stk_owners v;

    if (stk_owners_look(&v, a, NULL) < 0) {
        p->failed = true;
        return;
    }
    stk_owners_count(&v, &c);
    stk_prom_head(p, "stoker_gpus", "gauge", "GPUs, by state.");
    stk_prom_put(p, "stoker_gpus", "state", "busy", (double)c.busy);
    stk_prom_put(p, "stoker_gpus", "state", "free", (double)(c.total - c.busy - c.off - c.drained));
    stk_prom_put(p, "stoker_gpus", "state", "off", (double)c.off);
    stk_prom_put(p, "stoker_gpus", "state", "drained", (double)c.drained);
    put_states(p, &v);
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        put_family(p, &v, &own[i], own_line);
    stk_owners_done(&v);
}

/* The code of the latest error; 0: none. */
static void put_xids(struct stk_prom *p, struct stk_owners *v)
{
    const struct stk_state *s = stk_core_state(stk_live_core(v->api->cfg.live));

    if (!v->api->sample || s->n_nodes == 0)
        return;
    stk_prom_head(p, "DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.");
    for (uint32_t n = 0; n < s->n_nodes; n++)
        for (uint32_t g = 0; g < s->nodes[n].gpus && g < STK_MAX_NODE_GPUS; g++) {
            const json_t *list = json_object_get(stk_owners_sample(v->api, n, g), "xids");
            const json_t *last = json_array_get(list, json_array_size(list) - 1);
            struct of_gpu of;

            name_gpu(v, n, g, &of);
            dcgm_line(p, "DCGM_FI_DEV_XID_ERRORS", &of,
                      (double)json_integer_value(json_object_get(last, "code")), v->api);
        }
}

void stk_do_metrics_dcgm(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_prom p = {0};
    struct stk_owners v;

    if (stk_owners_look(&v, a, NULL) < 0) {
        stk_request_error(r, 503, "busy", "out of memory");
        return;
    }
    for (size_t i = 0; i < sizeof(dcgm) / sizeof(*dcgm); i++)
        put_family(&p, &v, &dcgm[i], dcgm_line);
    put_xids(&p, &v);
    stk_owners_done(&v);
    stk_prom_send(&p, r);
}
