/* SPDX-License-Identifier: Apache-2.0 */
/* reading.c - every value is asked for by itself, and left out when the answer is an error:
 * drivers, cards and permissions differ in what they give.
 *
 * Activity comes from the hardware counters (GPM: Hopper and later) where they can be read, since
 * "utilization" only says that something ran, not how much of the GPU it used. They are the
 * difference of two samples, so the first line has none.
 */
#include "gpu/reading.h"

#include <string.h>

#include "gpu/json.h"

static const struct {
    unsigned id;
    const char *key;
    double scale;
} metrics[] = {
    {NVML_GPM_SM_UTIL, "sm_active", 1},
    {NVML_GPM_SM_OCCUPANCY, "sm_occupancy", 1},
    {NVML_GPM_TENSOR_UTIL, "tensor_active", 1},
    {NVML_GPM_DRAM_UTIL, "dram_active", 1},
    {NVML_GPM_PCIE_TX, "pcie_tx_kib_s", 1024},
    {NVML_GPM_PCIE_RX, "pcie_rx_kib_s", 1024},
    {NVML_GPM_NVLINK_TX, "nvlink_tx_kib_s", 1024},
    {NVML_GPM_NVLINK_RX, "nvlink_rx_kib_s", 1024},
};

static const struct {
    unsigned long long bit;
    const char *name;
} throttles[] = {
    {0x4, "sw_power_cap"}, {0x8, "hw_slowdown"}, {0x10, "sync_boost"},
    {0x20, "sw_thermal"},  {0x40, "hw_thermal"}, {0x80, "hw_power_brake"},
};

void stk_gpu_reader_init(struct stk_gpu_reader *r, const struct stk_nvml *nv, unsigned index)
{
    struct nvml_gpm_support gpm = {.version = NVML_GPM_VERSION};
    unsigned current, pending;

    *r = (struct stk_gpu_reader){.rc = NVML_SUCCESS};
    r->rc = nv->call.by_index(index, &r->dev);
    if (r->rc != NVML_SUCCESS)
        return;
    if (!STK_NVML(nv, uuid, r->dev, r->uuid, sizeof(r->uuid)))
        r->uuid[0] = '\0';
    r->mig = STK_NVML(nv, mig_mode, r->dev, &current, &pending) && current != 0;
    r->gpm = !r->mig && nv->call.gpm_sample && nv->call.gpm_get && nv->call.gpm_free &&
             STK_NVML(nv, gpm_support, r->dev, &gpm) && gpm.supported != 0 &&
             STK_NVML(nv, gpm_alloc, &r->sample[0]) && STK_NVML(nv, gpm_alloc, &r->sample[1]);
}

static void read_counters(struct stk_gpu_reader *r, const struct stk_nvml *nv, json_t *o)
{
    static const unsigned n = sizeof(metrics) / sizeof(*metrics);
    struct nvml_gpm_get g = {.version = NVML_GPM_VERSION, .n_metrics = n};
    unsigned next = !r->current;

    if (r->gpm && !STK_NVML(nv, gpm_sample, r->dev, r->sample[next]))
        r->gpm = false; /* not for us: the older readings then */
    if (!r->gpm)
        return;
    g.sample1 = r->sample[r->current];
    g.sample2 = r->sample[next];
    for (unsigned i = 0; i < n; i++) {
        g.metric[i].id = metrics[i].id;
        g.metric[i].rc = -1;
    }
    if (r->has_sample && nv->call.gpm_get(&g) == NVML_SUCCESS)
        for (unsigned i = 0; i < n; i++)
            if (g.metric[i].rc == NVML_SUCCESS && g.metric[i].value >= 0)
                stk_json_real(o, metrics[i].key, g.metric[i].value * metrics[i].scale);
    r->current = next;
    r->has_sample = true;
}

/* What older cards have instead of hardware counters. PCIe costs 20 ms each: only then. */
static void read_traffic(struct stk_gpu_reader *r, const struct stk_nvml *nv, int64_t now_us,
                         json_t *o)
{
    double tx, rx, s = (double)(now_us - r->nvlink_us) / 1e6;
    unsigned kib_s;

    if (!r->gpm && STK_NVML(nv, pcie, r->dev, NVML_PCIE_TX, &kib_s))
        stk_json_int(o, "pcie_tx_kib_s", kib_s);
    if (!r->gpm && STK_NVML(nv, pcie, r->dev, NVML_PCIE_RX, &kib_s))
        stk_json_int(o, "pcie_rx_kib_s", kib_s);
    if (json_object_get(o, "nvlink_tx_kib_s") ||
        !stk_nvml_field(nv, r->dev, NVML_FIELD_NVLINK_DATA_TX, NVML_SCOPE_ALL, &tx) ||
        !stk_nvml_field(nv, r->dev, NVML_FIELD_NVLINK_DATA_RX, NVML_SCOPE_ALL, &rx))
        return;
    if (r->has_nvlink && s > 0 && tx >= r->nvlink_kib[0] && rx >= r->nvlink_kib[1]) {
        stk_json_real(o, "nvlink_tx_kib_s", (tx - r->nvlink_kib[0]) / s);
        stk_json_real(o, "nvlink_rx_kib_s", (rx - r->nvlink_kib[1]) / s);
    }
    r->nvlink_kib[0] = tx;
    r->nvlink_kib[1] = rx;
    r->nvlink_us = now_us;
    r->has_nvlink = true;
}

static void read_load(const struct stk_gpu_reader *r, const struct stk_nvml *nv, json_t *o)
{
    struct nvml_utilization u;
    struct stk_nvml_mem m;

    if (!r->mig && STK_NVML(nv, utilization, r->dev, &u)) {
        stk_json_int(o, "util", u.gpu);
        stk_json_int(o, "mem_util", u.memory);
    }
    if (stk_nvml_memory(nv, r->dev, &m)) {
        stk_json_int(o, "mem_total_mib", (int64_t)(m.total >> 20));
        stk_json_int(o, "mem_used_mib", (int64_t)(m.used >> 20));
        stk_json_int(o, "mem_free_mib", (int64_t)(m.free >> 20));
    }
}

static void read_power(const struct stk_gpu_reader *r, const struct stk_nvml *nv, json_t *o)
{
    unsigned long long mj, bits;
    json_t *why;
    unsigned v;

    if (STK_NVML(nv, power, r->dev, &v))
        stk_json_real(o, "power_w", v / 1000.0);
    if (STK_NVML(nv, energy, r->dev, &mj))
        stk_json_real(o, "energy_j", (double)mj / 1000);
    if (STK_NVML(nv, temperature, r->dev, 0, &v))
        stk_json_int(o, "temp_c", v);
    if (STK_NVML(nv, clock, r->dev, NVML_CLOCK_SM, &v))
        stk_json_int(o, "clock_sm_mhz", v);
    if (STK_NVML(nv, clock, r->dev, NVML_CLOCK_MEM, &v))
        stk_json_int(o, "clock_mem_mhz", v);
    if (!STK_NVML(nv, clock_reasons, r->dev, &bits))
        return;
    why = json_array();
    for (size_t i = 0; i < sizeof(throttles) / sizeof(*throttles); i++)
        if (bits & throttles[i].bit)
            (void)json_array_append_new(why, json_string(throttles[i].name));
    (void)json_object_set_new(o, "throttle", why);
}

static void read_health(const struct stk_gpu_reader *r, const struct stk_nvml *nv, json_t *o)
{
    static const char *const keys[2][2] = {
        {"ecc_volatile_corrected", "ecc_aggregate_corrected"},
        {"ecc_volatile_uncorrected", "ecc_aggregate_uncorrected"}};
    static const char *const actions[] = {"none",  "reset",           "reboot",
                                          "drain", "drain_and_reset", "recover_domain"};
    unsigned corrected, uncorrected, pending, failed, known;
    unsigned long long n;
    double sbe, dbe, action;

    for (int error = 0; error < 2; error++)
        for (int counter = 0; counter < 2; counter++)
            if (STK_NVML(nv, ecc, r->dev, error, counter, &n))
                stk_json_int(o, keys[error][counter], (int64_t)n);
    if (STK_NVML(nv, rows, r->dev, &corrected, &uncorrected, &pending, &failed)) {
        stk_json_int(o, "rows_corrected", corrected);
        stk_json_int(o, "rows_uncorrected", uncorrected);
        (void)json_object_set_new(o, "rows_pending", json_boolean(pending != 0));
        (void)json_object_set_new(o, "rows_failed", json_boolean(failed != 0));
    }
    if (stk_nvml_field(nv, r->dev, NVML_FIELD_RETIRED_SBE, 0, &sbe) &&
        stk_nvml_field(nv, r->dev, NVML_FIELD_RETIRED_DBE, 0, &dbe))
        stk_json_int(o, "retired_pages", (int64_t)(sbe + dbe));
    if (!stk_nvml_field(nv, r->dev, NVML_FIELD_RECOVERY_ACTION, 0, &action) || action < 0)
        return;
    known = sizeof(actions) / sizeof(*actions);
    stk_json_text(o, "recovery", action < known ? actions[(unsigned)action] : "unknown");
}

/* A GPU that is gone answers nothing: say so, instead of a line without values. */
static bool is_lost(const struct stk_gpu_reader *r, const struct stk_nvml *nv, int *ret_rc)
{
    char uuid[NVML_UUID_SIZE];
    struct nvml_memory m;

    *ret_rc = r->rc;
    if (r->rc == NVML_SUCCESS && nv->call.memory)
        *ret_rc = nv->call.memory(r->dev, &m);
    if (*ret_rc == NVML_NOT_SUPPORTED)
        *ret_rc = nv->call.uuid(r->dev, uuid, sizeof(uuid));
    return r->rc != NVML_SUCCESS || *ret_rc == NVML_GPU_IS_LOST || *ret_rc == NVML_RESET_REQUIRED;
}

json_t *stk_gpu_read(struct stk_gpu_reader *r, const struct stk_nvml *nv, unsigned index,
                     int64_t now_us, struct stk_users *users)
{
    json_t *o = json_object();
    int rc;

    stk_json_int(o, "index", index);
    if (r->uuid[0])
        stk_json_text(o, "uuid", r->uuid);
    if (r->xid)
        (void)json_object_set_new(o, "xid", r->xid);
    r->xid = NULL;
    if (is_lost(r, nv, &rc)) {
        stk_json_text(o, "lost", stk_nvml_error(nv, rc));
        return o;
    }
    (void)json_object_set_new(o, "mig", json_boolean(r->mig));
    read_load(r, nv, o);
    read_counters(r, nv, o);
    read_traffic(r, nv, now_us, o);
    read_power(r, nv, o);
    read_health(r, nv, o);
    stk_gpu_read_processes(r, nv, now_us, users, o);
    return o;
}
