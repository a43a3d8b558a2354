/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - "list": which GPUs there are, and whether the driver can suspend. A GPU that does not
 * answer keeps its place in the list, with the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/args.h"
#include "gpu/cuda.h"
#include "gpu/json.h"
#include "gpu/links.h"
#include "gpu/nvml.h"

#define START_LIMIT_MS 120000 /* without persistence mode every GPU is started for this */

static void put_numa(json_t *o, const char *pci)
{
    char path[96], text[16] = "", *end = text;
    FILE *f;
    long node;

    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.31s/numa_node", pci);
    f = fopen(path, "re");
    if (!f)
        return;
    node = fgets(text, sizeof(text), f) ? strtol(text, &end, 10) : -1;
    if (end != text && node >= 0) /* -1: the machine has no such thing */
        stk_json_int(o, "numa", node);
    (void)fclose(f);
}

/* "NVIDIA H100 80GB HBM3 MIG 1g.10gb": what follows MIG; where it starts, as far as we may know. */
static void put_profile(const struct stk_nvml *nv, void *dev, json_t *inst)
{
    const char *name = json_string_value(json_object_get(inst, "name"));
    const char *mig = name ? strstr(name, " MIG ") : NULL;
    unsigned id = (unsigned)json_integer_value(json_object_get(inst, "gi"));
    struct nvml_gpu_instance info;
    void *gi;

    if (mig)
        stk_json_text(inst, "profile", mig + 5);
    if (json_object_get(inst, "gi") && STK_NVML(nv, mig_gi_by_id, dev, id, &gi) &&
        STK_NVML(nv, mig_gi_info, gi, &info))
        stk_json_int(inst, "start", info.start);
}

static void put_instances(const struct stk_nvml *nv, void *dev, json_t *o)
{
    json_t *all = json_array();
    unsigned max = 0;

    if (!STK_NVML(nv, mig_count, dev, &max))
        max = 0;
    for (unsigned i = 0; i < max && i < STK_GPU_MAX; i++) {
        char text[NVML_UUID_SIZE] = "";
        struct stk_nvml_mem m;
        json_t *inst;
        unsigned id;
        void *mig;

        if (!STK_NVML(nv, mig_device, dev, i, &mig))
            continue;
        inst = json_object();
        if (STK_NVML(nv, uuid, mig, text, sizeof(text)))
            stk_json_text(inst, "uuid", text);
        if (STK_NVML(nv, name, mig, text, sizeof(text)))
            stk_json_text(inst, "name", text);
        if (STK_NVML(nv, mig_gi, mig, &id))
            stk_json_int(inst, "gi", id);
        if (STK_NVML(nv, mig_ci, mig, &id))
            stk_json_int(inst, "ci", id);
        if (stk_nvml_memory(nv, mig, &m))
            stk_json_int(inst, "mem_mib", (int64_t)(m.total >> 20));
        put_profile(nv, dev, inst);
        (void)json_array_append_new(all, inst);
    }
    (void)json_object_set_new(o, "instances", all);
}

static json_t *one(const struct stk_nvml *nv, unsigned i)
{
    char text[NVML_UUID_SIZE] = "", pci[32];
    unsigned minor, current = 0, pending;
    struct stk_nvml_mem m;
    struct nvml_pci p;
    json_t *o = json_object();
    void *dev;
    int rc = nv->call.by_index(i, &dev);

    stk_json_int(o, "index", i);
    if (rc != NVML_SUCCESS) {
        stk_json_text(o, "error", stk_nvml_error(nv, rc));
        return o;
    }
    if (STK_NVML(nv, uuid, dev, text, sizeof(text)))
        stk_json_text(o, "uuid", text);
    if (STK_NVML(nv, name, dev, text, sizeof(text)))
        stk_json_text(o, "name", text);
    if (stk_nvml_memory(nv, dev, &m))
        stk_json_int(o, "mem_mib", (int64_t)(m.total >> 20));
    if (STK_NVML(nv, minor, dev, &minor))
        stk_json_int(o, "minor", minor);
    if (STK_NVML(nv, pci, dev, &p)) {
        stk_gpu_pci_name(pci, sizeof(pci), p.bus_id);
        stk_json_text(o, "pci", pci);
        put_numa(o, pci);
    }
    stk_gpu_put_cpus(nv, dev, o);
    if (!STK_NVML(nv, mig_mode, dev, &current, &pending))
        current = 0;
    (void)json_object_set_new(o, "mig", json_boolean(current != 0));
    if (current)
        put_instances(nv, dev, o);
    return o;
}

static void put_suspend(json_t *line, unsigned n_gpus)
{
    struct stk_err err;
    struct stk_cuda cu;
    bool can = n_gpus > 0 && stk_cuda_open(&cu, &err) == 0;

    (void)json_object_set_new(line, "suspend", json_boolean(can));
    (void)json_object_set_new(line, "move", json_boolean(can && cu.version >= CUDA_VERSION_MOVE));
    if (n_gpus == 0)
        stk_json_text(line, "why", "the driver knows no GPU");
    else if (!can)
        stk_json_text(line, "why", err.text);
}

int stk_gpu_list(struct stk_guard *g, void *args)
{
    const struct stk_gpu_args *a = args;
    json_t *line = json_object(), *gpus = json_array();
    int64_t limit = a->timeout_ms ? a->timeout_ms : START_LIMIT_MS;
    char text[NVML_VERSION_SIZE] = "", why[sizeof(struct stk_err) + 20];
    struct stk_nvml nv;
    struct stk_err err;
    int version;

    stk_guard_step(g, limit, "starting NVML");
    if (stk_nvml_open(&nv, &err) < 0) {
        (void)snprintf(why, sizeof(why), "no NVIDIA driver: %s", err.text);
        (void)json_object_set_new(line, "gpus", gpus);
        (void)json_object_set_new(line, "suspend", json_false());
        stk_json_text(line, "why", why);
        return stk_guard_put(g, line) < 0;
    }
    if (STK_NVML(&nv, driver_version, text, sizeof(text)))
        stk_json_text(line, "driver", text);
    if (STK_NVML(&nv, cuda_version, &version)) {
        (void)snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
        stk_json_text(line, "cuda", text);
    }
    for (unsigned i = 0; i < nv.n; i++) {
        stk_guard_step(g, limit, "reading GPU %u", i);
        (void)json_array_append_new(gpus, one(&nv, i));
    }
    (void)json_object_set_new(line, "gpus", gpus);
    stk_guard_step(g, limit, "reading the links between the GPUs");
    stk_gpu_put_links(&nv, line);
    stk_guard_step(g, limit, "starting CUDA");
    put_suspend(line, nv.n);
    return stk_guard_put(g, line) < 0;
}
