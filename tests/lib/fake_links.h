/* SPDX-License-Identifier: Apache-2.0 */
/* fake_links.h - what fake_nvml.c wants to know of the topology. */
#ifndef STK_TESTS_FAKE_LINKS_H
#define STK_TESTS_FAKE_LINKS_H

#include <stddef.h>

#include "fake.h"

extern char fake_devices[FAKE_GPUS]; /* their addresses are the handles */

int fake_gpus(void);
int fake_gpu_of(const void *dev); /* -1: it is none */
void fake_pci(int gpu, char *text, size_t size);

#endif
