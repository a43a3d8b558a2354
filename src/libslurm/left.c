/* SPDX-License-Identifier: Apache-2.0 */
/* left.c - whether processes of a job are left on nodes. slurmctld may have lost a job that runs,
 * so the nodes' own daemons are asked. A node that does not answer has said nothing: its jobs may
 * well run, while its slurmd is started again. */
#include <stdio.h>

#include "libslurm/helper.h"
#include "libslurm/names.h"

/* A step that still watches over nothing has an end to tell: slurmctld was away, and it tries again
 * after some seconds. */
static void add_nodes(json_t *list, json_t *steps, const job_step_pids_response_msg_t *r)
{
    struct listIterator *it = r->pid_list ? slurm_list_iterator_create(r->pid_list) : NULL;
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

struct looking {
    uint32_t job;
    json_t *list, *steps;
    char silent[STK_SLURM_HOST_LEN]; /* a node that did not answer; "": none */
    int error;
};

/* One node at a time: of several libslurm says of the last one alone whether it answered. */
static int look_on(void *ctx, const char *name)
{
    static const uint32_t steps[] = {SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP, 0,
                                     SLURM_EXTERN_CONT};
    struct looking *l = ctx;
    char node[STK_SLURM_HOST_LEN];

    (void)snprintf(node, sizeof(node), "%s", name);
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        slurm_step_id_t id = {.job_id = l->job, .step_het_comp = NO_VAL, .step_id = steps[i]};
        job_step_pids_response_msg_t *r = NULL;
        int rc = slurm_job_step_get_pids(&id, node, &r);

        if (r) {
            add_nodes(l->list, l->steps, r);
            slurm_job_step_pids_response_msg_free(r);
        }
        if (rc != SLURM_SUCCESS && rc != ESLURM_INVALID_JOB_ID) { /* the latter: none of it here */
            (void)snprintf(l->silent, sizeof(l->silent), "%s", name);
            l->error = rc;
            return -EIO;
        }
        if (json_array_size(l->list) > 0)
            return -EEXIST; /* one is enough */
    }
    return 0;
}

json_t *stk_slurm_left(json_t *o)
{
    json_int_t job = json_integer_value(json_object_get(o, "job"));
    const char *nodes = json_string_value(json_object_get(o, "nodes"));
    struct looking l = {.job = (uint32_t)job};
    char why[STK_SLURM_HOST_LEN + 256];
    int rc;

    if (job <= 0 || job >= UINT32_MAX || !nodes || !*nodes)
        return json_pack("{s:b,s:s}", "ok", 0, "why", "left needs job and nodes");
    l.list = json_array();
    l.steps = json_array();
    rc = stk_slurm_hosts(nodes, look_on, &l);
    if (rc == 0 || rc == -EEXIST)
        return json_pack("{s:b,s:o,s:o}", "ok", 1, "nodes", l.list, "steps", l.steps);
    json_decref(l.list);
    json_decref(l.steps);
    (void)snprintf(why, sizeof(why), "%s does not say whether processes of it are left: %s",
                   l.silent[0] ? l.silent : "a node",
                   l.silent[0] ? stk_slurm_trouble(l.error) : "nodes is no list of hosts");
    return json_pack("{s:b,s:s,s:i}", "ok", 0, "why", why, "code", l.error);
}
