/* SPDX-License-Identifier: Apache-2.0 */
/* trace_ids.h - which job of a trace an id names, for formats in which jobs refer to each other. */
#ifndef STK_SIM_TRACE_IDS_H
#define STK_SIM_TRACE_IDS_H

#include <stdint.h>

struct stk_id_slot {
    uint64_t id;
    uint32_t job; /* index + 1; 0: the slot is empty; UINT32_MAX: more than one job */
};

struct stk_id_map { /* zeroed: empty */
    struct stk_id_slot *slot;
    uint32_t n, n_slots;
};

int stk_id_map_put(struct stk_id_map *m, uint64_t id, uint32_t job); /* 0 or -ENOMEM */
int64_t stk_id_map_get(const struct stk_id_map *m, uint64_t id);     /* index, -ENOENT, -ENOTUNIQ */
void stk_id_map_done(struct stk_id_map *m);

#endif
