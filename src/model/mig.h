/* SPDX-License-Identifier: Apache-2.0 */
/* mig.h - GPUs that NVIDIA's MIG divides: into which instances, and where each may lie.
 *
 * The memory of a GPU is 8 slices in a row (4 on an A30). An instance takes some of them side by
 * side and may start only where its profile allows; two never overlap. Compute slices need no
 * counting: there are 7 for 8 slices of memory, and no profile starts where they would run out. So
 * the set of memory slices in use, one byte, is all there is to know about a divided GPU.
 *
 * A profile is known by what its name says: "1g.10gb" is one compute slice and 10 GB. The same name
 * may be a different share of different models: 1g.10gb has two memory slices of an A100 with
 * 40 GB and one of an A100 with 80 GB.
 *
 * Profiles with more than that in their name (+me, +gfx) are not here.
 *
 * See: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles"; nvidia-smi mig -lgipp.
 */
#ifndef STK_MODEL_MIG_H
#define STK_MODEL_MIG_H

#include <stddef.h>
#include <stdint.h>

#define STK_MIG_SLICES 8    /* of memory, at most */
#define STK_MIG_ANY 255     /* no start in particular; none */
#define STK_MIG_NAME_LEN 16 /* bytes that are enough for a profile's name */

/* A profile as a number, the same in every version: 0 is none. */
#define STK_MIG(compute, gb) ((uint16_t)((compute) << 12 | (gb)))

/* The profile of a name such as "1g.10gb", whether or not some GPU has it; 0: not such a name. */
uint16_t stk_mig_parse(const char *name, size_t len);
const char *stk_mig_name(uint16_t profile, char buf[STK_MIG_NAME_LEN]);

/* The model of a GPU by its name, such as "NVIDIA H200" or "A100-SXM4-40GB", and its memory (0: not
 * known). 0: it has no MIG, or there are several such models and the memory does not say which. */
uint8_t stk_mig_model(const char *name, size_t len, uint32_t mem_mib);
const char *stk_mig_model_name(uint8_t model); /* NULL: there is no such model */

/* The profiles of a model, by number from 0 on, smallest first; 0: there are no more. */
uint16_t stk_mig_profile(uint8_t model, uint32_t i);

/* All memory slices of a GPU, a bit each. */
uint8_t stk_mig_all(uint8_t model);
/* Memory slices a profile takes when it starts at 'start'; 0: it may not start there, or the model
 * does not have it. */
uint8_t stk_mig_slices(uint8_t model, uint16_t profile, uint32_t start);
/* A bit for each start at which it may be put beside the slices in use; 0: it does not fit. */
uint8_t stk_mig_starts(uint8_t model, uint16_t profile, uint8_t used);

/* In how many ways one more instance, of any profile, could be put beside these. */
uint32_t stk_mig_ways(uint8_t model, uint8_t used);
/* The start after which the most ways remain, the lowest of several; STK_MIG_ANY: it does not
 * fit. On an empty GPU this is where NVIDIA's driver starts too. */
uint32_t stk_mig_choose(uint8_t model, uint16_t profile, uint8_t used);

/* Thousandths of the GPU's memory that are not in use. */
uint32_t stk_mig_left(uint8_t model, uint8_t used);
/* What a profile counts as where only thousandths of a GPU are counted: an eighth per compute
 * slice. Never more than what is left on a GPU on which it fits; 1 to 999. */
uint32_t stk_mig_milli(uint16_t profile);

#endif
