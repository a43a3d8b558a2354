/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - "stokerd --check", which "stoker config check FILE" runs: a start up to the point where
 * the store would be opened. Nothing is written.
 *
 * With engine slurm the cluster is Slurm's, and Slurm is not asked: the partitions are believed to
 * be there, with GPUs of every type that the file names and more of them than anybody is
 * guaranteed. What is wrong with that is found at the start. */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/daemon.h"

#define PRETENDED_NODES 512u /* of each GPU type */

static uint32_t count_names(char *const *names)
{
    uint32_t n = 0;

    while (names && names[n])
        n++;
    return n;
}

/* Nodes that Slurm may have. */
static int pretend_slurm(struct stk_daemon *d, struct stk_err *err)
{
    const struct stk_config *c = &d->config;
    const struct stk_names *types = &c->teams->types;
    struct stk_machine *m = &d->machine;

    m->n_gpu_types = types->n ? types->n : 1;
    m->n_pools = count_names(c->slurm.partitions);
    m->n_nodes = m->n_gpu_types * PRETENDED_NODES;
    m->nodes = calloc(m->n_nodes, sizeof(*m->nodes));
    m->gpu_types = calloc(m->n_gpu_types, sizeof(*m->gpu_types));
    m->pools = calloc(m->n_pools + 1, sizeof(*m->pools));
    if (!m->nodes || !m->gpu_types || !m->pools)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < m->n_gpu_types; i++)
        m->gpu_types[i] = types->n ? stk_names_get(types, i) : "gpu";
    for (uint32_t i = 0; i < m->n_nodes; i++)
        m->nodes[i] =
            (struct stk_node_spec){.gpu_type = i / PRETENDED_NODES, .gpus = STK_MAX_NODE_GPUS};
    for (uint32_t i = 0; i < m->n_pools; i++)
        m->pools[i] = c->slurm.partitions[i];
    return 0;
}

static void print_warning(void *ctx, const char *sentence)
{
    (void)ctx;
    (void)fprintf(stderr, "warning: %s\n", sentence);
}

int stk_daemon_check(struct stk_daemon *d, struct stk_err *err)
{
    struct stk_settled settled = {0};
    int rc = stk_daemon_read_config(d, &d->config, err);

    d->slurm = d->config.engine == 1;
    stk_gpus_init(&d->machine.gpus);
    if (rc == 0)
        rc = d->slurm ? pretend_slurm(d, err) : stk_machine_look(&d->machine, &d->config, err);
    rc = rc < 0 ? rc : stk_daemon_settle(d, &d->config, &settled, err);
    json_decref(settled.rules);
    if (d->slurm)
        free((void *)d->machine.pools);
    if (rc < 0)
        return rc;
    stk_daemon_warn(&d->config, print_warning, NULL);
    if (d->slurm)
        (void)printf(
            "partitions, GPU types and guarantees are compared with Slurm's nodes when the "
            "daemon starts\n");
    (void)printf("%s is right\n", d->opt.config ? d->opt.config : "the configuration");
    return 0;
}
