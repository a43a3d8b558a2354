/* SPDX-License-Identifier: Apache-2.0 */
/* reservations.c - Slurm's reservations: which nodes, from when until when. All are told when one
 * has changed. */
#include <errno.h>

#include "libslurm/helper.h"
#include "libslurm/names.h"

static int add_name(void *ctx, const char *name)
{
    return json_array_append_new(ctx, stk_slurm_text(name));
}

static json_t *show(const reserve_info_t *r)
{
    json_t *nodes = json_array();

    if (r->node_list)
        (void)stk_slurm_hosts(r->node_list, add_name, nodes);
    return json_pack("{s:o,s:I,s:I,s:o}", "name", stk_slurm_text(r->name), "start",
                     (json_int_t)r->start_time, "end", (json_int_t)r->end_time, "nodes", nodes);
}

int stk_slurm_look_reservations(time_t *io_at)
{
    reserve_info_msg_t *m = NULL;
    json_t *list;

    if (slurm_load_reservations(*io_at, &m) != SLURM_SUCCESS) {
        int error = errno;

        return error == SLURM_NO_CHANGE_IN_DATA ? 0 : -error;
    }
    *io_at = m->last_update;
    list = json_array();
    for (uint32_t i = 0; i < m->record_count; i++)
        (void)json_array_append_new(list, show(&m->reservation_array[i]));
    stk_slurm_say(json_pack("{s:s,s:o}", "op", "reservations", "reservations", list));
    slurm_free_reservation_info_msg(m);
    return 1;
}
