/* SPDX-License-Identifier: Apache-2.0 */
/* fake.h - what the stand-ins for NVML and CUDA share: a folder, $STOKER_FAKE_DIR, with the world.
 *
 *     procs       a line each: GPU PID MIB SM [g|m]   (g: graphics, m: client of MPS)
 *     PID.state   running, locked, checkpointed, failed: of a process that uses CUDA
 *     xid         lines "GPU CODE", taken once
 *     lost        numbers of GPUs that are gone
 *     log         every checkpoint call, a line each
 *     topology    how many GPUs there are and how they are connected (fake_links.c)
 *
 * $STOKER_FAKE_FAIL: steps that fail, "lock:123:801 restore:124:hang"; PID 0 is any.
 * $STOKER_FAKE_WITHOUT: readings that do not exist, "gpm energy ecc ...".
 */
#ifndef STK_TESTS_FAKE_H
#define STK_TESTS_FAKE_H

#include <stdbool.h>
#include <stdio.h>

#define FAKE_GPUS 64 /* handles; there are two GPUs unless the topology says more */
#define FAKE_MIB 81920

FILE *fake_open(const char *name, const char *mode);
bool fake_without(const char *what);
/* The code a step must fail with, 0 for none; hangs when it must. */
int fake_fail(const char *step, int pid);
/* 0..3, -1: no CUDA in it */
int fake_state(int pid);
void fake_set_state(int pid, int state);
/* MiB a process holds on a GPU now; a saved one holds 4. */
unsigned long long fake_held(int gpu, int pid);
unsigned long long fake_used(int gpu);

#endif
