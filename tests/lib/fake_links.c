/* SPDX-License-Identifier: Apache-2.0 */
/* fake_links.c - how the fake GPUs are connected, from the file "topology" (fake.h):
 *
 *     gpus N            so many (two without the file)
 *     pci G BUS_ID      as NVML writes it: 00000000:1B:00.0
 *     cpus G HEX        the CPUs near it, up to 64
 *     link A B N        so many NVLinks between two GPUs
 *     switch G N        so many NVLinks to switches
 *     path A B N        what the two have in common on PCIe, as NVML counts (0 to 50)
 *
 * "nvlink", "remote" and "ancestor" in $STOKER_FAKE_WITHOUT: an older driver.
 */
#include "fake_links.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/nvml_abi.h"

#define API(name, ...)                                                                             \
    int name(__VA_ARGS__);                                                                         \
    int name(__VA_ARGS__)

struct row {
    char word[16], text[40];
    int a, b;
    unsigned n;
};

/* The next row of the file; 0 at its end. */
static int next_row(FILE *f, struct row *r)
{
    char line[128];

    while (f && fgets(line, sizeof(line), f)) {
        *r = (struct row){.b = -1};
        if (sscanf(line, "%15s %d %39s %u", r->word, &r->a, r->text, &r->n) >= 2) {
            r->b = atoi(r->text);
            return 1;
        }
    }
    return 0;
}

static int find(const char *word, int a, int b, struct row *ret)
{
    FILE *f = fake_open("topology", "re");
    int found = 0;

    while (!found && next_row(f, ret))
        found = strcmp(ret->word, word) == 0 && (a < 0 || ret->a == a || ret->a == b) &&
                (b < 0 || (ret->a == a ? ret->b == b : ret->b == a));
    if (f)
        (void)fclose(f);
    return found;
}

int fake_gpus(void)
{
    struct row r;

    return find("gpus", -1, -1, &r) && r.a <= FAKE_GPUS ? r.a : 2;
}

int fake_gpu_of(const void *dev)
{
    for (int i = 0; i < FAKE_GPUS; i++)
        if (dev == &fake_devices[i])
            return i;
    return -1;
}

void fake_pci(int gpu, char *text, size_t size)
{
    struct row r;

    if (find("pci", gpu, -1, &r))
        (void)snprintf(text, size, "%s", r.text);
    else
        (void)snprintf(text, size, "00000000:%X1:00.0", 10 + gpu);
}

/* The GPU at the other end of a link; FAKE_GPUS: a switch; -1: there is no such link. */
static int other_end(int gpu, unsigned link)
{
    FILE *f = fake_open("topology", "re");
    int end = -1;
    struct row r;

    while (end < 0 && next_row(f, &r)) {
        int to = strcmp(r.word, "switch") == 0 && r.a == gpu ? FAKE_GPUS
                 : strcmp(r.word, "link") != 0               ? -1
                 : r.a == gpu                                ? r.b
                 : r.b == gpu                                ? r.a
                                                             : -1;
        unsigned n = to == FAKE_GPUS ? (unsigned)r.b : r.n;

        if (to < 0)
            continue;
        if (link < n)
            end = to;
        link -= link < n ? 0 : n;
    }
    if (f)
        (void)fclose(f);
    return end;
}

API(nvmlDeviceGetCpuAffinity, void *dev, unsigned words, unsigned long *cpus)
{
    struct row r;

    if (words == 0 || !find("cpus", fake_gpu_of(dev), -1, &r))
        return NVML_NOT_SUPPORTED;
    memset(cpus, 0, words * sizeof(*cpus));
    cpus[0] = strtoul(r.text, NULL, 16);
    return NVML_SUCCESS;
}

/* A GPU of an older kind has fewer links: those beyond them are no links at all. */
API(nvmlDeviceGetNvLinkState, void *dev, unsigned link, unsigned *active)
{
    struct row r;

    if (fake_without("nvlink") || !find("gpus", -1, -1, &r) || link >= 18)
        return NVML_NOT_SUPPORTED;
    *active = other_end(fake_gpu_of(dev), link) >= 0;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetNvLinkRemotePciInfo_v2, void *dev, unsigned link, struct nvml_pci *pci)
{
    int to = other_end(fake_gpu_of(dev), link);

    if (fake_without("remote") || to < 0)
        return NVML_NOT_SUPPORTED;
    memset(pci, 0, sizeof(*pci));
    if (to == FAKE_GPUS)
        (void)snprintf(pci->bus_id, sizeof(pci->bus_id), "00000008:00:00.0");
    else
        fake_pci(to, pci->bus_id, sizeof(pci->bus_id));
    return NVML_SUCCESS;
}

API(nvmlDeviceGetNvLinkRemoteDeviceType, void *dev, unsigned link, unsigned *type)
{
    int to = other_end(fake_gpu_of(dev), link);

    if (fake_without("remote") || to < 0)
        return NVML_NOT_SUPPORTED;
    *type = to == FAKE_GPUS ? NVML_REMOTE_SWITCH : NVML_REMOTE_GPU;
    return NVML_SUCCESS;
}

API(nvmlDeviceGetTopologyCommonAncestor, void *dev, void *other, unsigned *path)
{
    struct row r;

    if (fake_without("ancestor") || !find("path", fake_gpu_of(dev), fake_gpu_of(other), &r))
        return NVML_NOT_SUPPORTED;
    *path = r.n;
    return NVML_SUCCESS;
}
