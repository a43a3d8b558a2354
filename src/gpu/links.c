/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - how the GPUs are connected.
 *
 * Each NVLink of a GPU says what is at its other end: another GPU, or a switch. GPUs that are all
 * on the switches reach each other with as many links as the poorer of the two has there. Where
 * there is no NVLink, the driver says how far up the PCIe tree two GPUs meet. A driver that is too
 * old to tell leaves members out.
 */
#include "gpu/links.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/json.h"

#define MAX_CPUS 8192
#define WORD_BITS (8 * sizeof(unsigned long))

struct ends {  /* of a GPU's links */
    void *dev; /* NULL: it does not answer */
    bool known;
    char pci[32];
    unsigned active, to_switch, to_gpu[STK_GPU_MAX];
};

void stk_gpu_pci_name(char *ret, size_t size, const char *bus_id)
{
    size_t n = strnlen(bus_id, 31);
    size_t skip = n == 16 && strncmp(bus_id, "0000", 4) == 0 ? 4 : 0;

    (void)snprintf(ret, size, "%.*s", (int)(n - skip), bus_id + skip);
    for (char *s = ret; *s; s++)
        *s = (char)tolower((unsigned char)*s);
}

static bool has(const unsigned long *set, unsigned i)
{
    return i < MAX_CPUS && (set[i / WORD_BITS] >> i % WORD_BITS & 1) != 0;
}

void stk_gpu_put_cpus(const struct stk_nvml *nv, void *dev, json_t *gpu)
{
    unsigned long set[MAX_CPUS / WORD_BITS] = {0};
    char text[4096] = "";
    size_t used = 0;

    if (!STK_NVML(nv, cpu_affinity, dev, sizeof(set) / sizeof(*set), set))
        return;
    for (unsigned i = 0, end; i < MAX_CPUS; i = end + 1) {
        int n;

        for (end = i; has(set, end); end++)
            ;
        if (end == i)
            continue;
        n = end == i + 1 ? snprintf(text + used, sizeof(text) - used, "%s%u", used ? "," : "", i)
                         : snprintf(text + used, sizeof(text) - used, "%s%u-%u", used ? "," : "", i,
                                    end - 1);
        if (n < 0 || (size_t)n >= sizeof(text) - used)
            return; /* half a list would be a wrong one */
        used += (size_t)n;
    }
    if (used > 0)
        stk_json_text(gpu, "cpus", text);
}

static unsigned find(const struct ends *e, unsigned n, const char *pci)
{
    unsigned i = 0;

    while (i < n && (!e[i].dev || strcmp(e[i].pci, pci) != 0))
        i++;
    return i;
}

/* What has an address that is no GPU's of this machine, and does not say what it is, is a switch. A
 * link of which neither is known may lead anywhere. */
static bool is_switch(const struct stk_nvml *nv, void *dev, unsigned link, bool has_address)
{
    unsigned type = NVML_REMOTE_UNKNOWN;

    if (!STK_NVML(nv, link_type, dev, link, &type) || type == NVML_REMOTE_UNKNOWN)
        return has_address;
    return type == NVML_REMOTE_SWITCH;
}

static void read_link(const struct stk_nvml *nv, struct ends *e, unsigned n, unsigned gpu,
                      unsigned link)
{
    struct nvml_pci p;
    bool has_address = STK_NVML(nv, link_pci, e[gpu].dev, link, &p);
    unsigned other = n;
    char pci[32];

    if (has_address) {
        stk_gpu_pci_name(pci, sizeof(pci), p.bus_id);
        other = find(e, n, pci);
    }
    e[gpu].active++;
    if (other < n)
        e[gpu].to_gpu[other]++;
    else if (is_switch(nv, e[gpu].dev, link, has_address))
        e[gpu].to_switch++;
}

static void read_ends(const struct stk_nvml *nv, struct ends *e)
{
    struct nvml_pci p;

    for (unsigned i = 0; i < nv->n; i++) {
        if (nv->call.by_index(i, &e[i].dev) != NVML_SUCCESS)
            e[i].dev = NULL;
        else if (STK_NVML(nv, pci, e[i].dev, &p))
            stk_gpu_pci_name(e[i].pci, sizeof(e[i].pci), p.bus_id);
    }
    for (unsigned i = 0; i < nv->n; i++)
        for (unsigned link = 0, active; e[i].dev && link < NVML_NVLINKS; link++) {
            if (!STK_NVML(nv, link_state, e[i].dev, link, &active))
                continue;
            e[i].known = true;
            if (active)
                read_link(nv, e, nv->n, i, link);
        }
}

static const char *path_name(unsigned path)
{
    switch (path) {
    case NVML_PATH_BOARD:
        return "board";
    case NVML_PATH_ONE_SWITCH:
        return "pix";
    case NVML_PATH_SWITCHES:
        return "pxb";
    case NVML_PATH_HOST_BRIDGE:
        return "phb";
    case NVML_PATH_NODE:
        return "node";
    case NVML_PATH_SYSTEM:
        return "sys";
    default:
        return NULL;
    }
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static json_t *pair(const struct stk_nvml *nv, const struct ends *e, unsigned a, unsigned b)
{
    unsigned direct = e[a].to_gpu[b] > e[b].to_gpu[a] ? e[a].to_gpu[b] : e[b].to_gpu[a];
    unsigned through = least(e[a].to_switch, e[b].to_switch), path;
    const char *name = NULL;
    json_t *o;

    if (STK_NVML(nv, common_ancestor, e[a].dev, e[b].dev, &path))
        name = path_name(path);
    if (direct + through == 0 && !name)
        return NULL;
    o = json_object();
    stk_json_int(o, "a", a);
    stk_json_int(o, "b", b);
    if (direct + through > 0)
        stk_json_int(o, "nvlinks", direct + through);
    if (through > 0)
        (void)json_object_set_new(o, "switch", json_true());
    if (name)
        stk_json_text(o, "path", name);
    return o;
}

void stk_gpu_put_links(const struct stk_nvml *nv, json_t *line)
{
    struct ends *e = calloc(STK_GPU_MAX, sizeof(*e));
    json_t *gpus = json_object_get(line, "gpus"), *links = json_array(), *o;

    if (e)
        read_ends(nv, e);
    for (unsigned a = 0; e && a < nv->n; a++) {
        json_t *gpu = json_array_get(gpus, a);

        if (e[a].known)
            stk_json_int(gpu, "nvlinks", e[a].active);
        if (e[a].to_switch > 0)
            stk_json_int(gpu, "switch_links", e[a].to_switch);
        for (unsigned b = a + 1; b < nv->n; b++)
            if (e[a].dev && e[b].dev && (o = pair(nv, e, a, b)) != NULL)
                (void)json_array_append_new(links, o);
    }
    (void)json_object_set_new(line, "links", links);
    free(e);
}
