/* SPDX-License-Identifier: Apache-2.0 */
/* links.h - how the GPUs are connected: to each other, and to the CPUs. */
#ifndef STK_GPU_LINKS_H
#define STK_GPU_LINKS_H

#include <jansson.h>
#include <stddef.h>

#include "gpu/nvml.h"

/* NVML's "00000000:1B:00.0" as the kernel writes it: "0000:1b:00.0". */
void stk_gpu_pci_name(char *ret, size_t size, const char *bus_id);

/* "cpus" of a GPU: those that are near it, "0-15,64-79". Nothing when it is not known. */
void stk_gpu_put_cpus(const struct stk_nvml *nv, void *dev, json_t *gpu);

/* "nvlinks" and "switch_links" of the GPUs in line["gpus"], and line["links"]: a member for every
 * pair of which something is known. */
void stk_gpu_put_links(const struct stk_nvml *nv, json_t *line);

#endif
