/* SPDX-License-Identifier: Apache-2.0 */
/* left.c - whether processes of a job are left on nodes. slurmctld may have lost a job that runs,
 * so the nodes' own daemons are asked. */
#include <stdio.h>

#include "libslurm/helper.h"

/* A step that still watches over nothing has an end to tell: slurmctld was away, and it tries again
 * after some seconds. */
static void add_nodes(json_t *list, json_t *steps, const job_step_pids_response_msg_t *r)
{
    ListIterator it = r->pid_list ? slurm_list_iterator_create(r->pid_list) : NULL;
    const job_step_pids_t *p;

    while (it && (p = slurm_list_next(it))) {
        if (p->node_name)
            (void)json_array_append_new(steps, stk_slurm_text(p->node_name));
        if (p->pid_cnt > 0 && p->node_name)
            (void)json_array_append_new(list, stk_slurm_text(p->node_name));
    }
    if (it)
        slurm_list_iterator_destroy(it);
}

json_t *stk_slurm_left(json_t *o)
{
    static const uint32_t steps[] = {SLURM_BATCH_SCRIPT, 0};
    json_int_t job = json_integer_value(json_object_get(o, "job"));
    union {
        const char *in;
        char *out;
    } nodes = {.in = json_string_value(json_object_get(o, "nodes"))};
    json_t *list, *known;

    if (job <= 0 || job >= UINT32_MAX || !nodes.in || !*nodes.in)
        return json_pack("{s:b,s:s}", "ok", 0, "why", "left needs job and nodes");
    list = json_array();
    known = json_array();
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        slurm_step_id_t id = {
            .job_id = (uint32_t)job, .step_het_comp = NO_VAL, .step_id = steps[i]};
        job_step_pids_response_msg_t *r = NULL;

        (void)slurm_job_step_get_pids(&id, nodes.out, &r);
        if (!r)
            continue;
        add_nodes(list, known, r);
        slurm_job_step_pids_response_msg_free(r);
    }
    return json_pack("{s:b,s:o,s:o}", "ok", 1, "nodes", list, "steps", known);
}
