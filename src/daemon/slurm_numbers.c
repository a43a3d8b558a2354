/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_numbers.c - Slurm's numbers of jobs, for people: "slurm:1234" in place of ours, and beside
 * it. What waits or runs in Slurm the engine knows; an element that has not come off its array, and
 * a user's own job that Slurm has forgotten, say in their description what they are there. */
#include <stdio.h>

#include "daemon/daemon.h"
#include "engine/slurm/slurm.h"

/* What it was when it was taken in; 0: it was sent by us. Elements of an array come one after the
 * other, and have one description: it is read once for all of them. */
static uint32_t imported(struct stk_daemon *d, const struct stk_record *rec)
{
    json_t *spec;
    json_int_t n;

    if (rec->array && d->slurm_array.number == rec->array)
        return d->slurm_array.job;
    spec = stk_live_spec(d->live, rec->spec);
    n = json_integer_value(json_object_get(json_object_get(spec, "imported"), "job"));
    json_decref(spec);
    n = n > 0 && n < UINT32_MAX ? n : 0;
    if (rec->array) {
        d->slurm_array.number = rec->array;
        d->slurm_array.job = (uint32_t)n;
    }
    return (uint32_t)n;
}

void stk_daemon_slurm_name(void *ctx, const struct stk_record *rec, bool deep, char *buf,
                           size_t size)
{
    struct stk_daemon *d = ctx;
    uint32_t job;

    buf[0] = '\0';
    if (!d->slurm || *stk_slurm_number_text(d->engine, rec->number, buf, size))
        return;
    job = deep || rec->array ? imported(d, rec) : 0;
    if (job && rec->array)
        (void)snprintf(buf, size, "%u_%u", job, rec->array_index);
    else if (job)
        (void)snprintf(buf, size, "%u", job);
}

stk_job_number stk_daemon_slurm_number(void *ctx, uint32_t slurm)
{
    const struct stk_daemon *d = ctx;

    return d->slurm ? stk_slurm_number_find(d->engine, slurm) : 0;
}

void stk_daemon_slurm_detail(struct stk_daemon *d, stk_job_number number, json_t *job)
{
    const json_t *o = stk_slurm_of(d->engine, number);
    json_t *out = json_object_get(job, "slurm");

    if (!o || !out)
        return;
    (void)json_object_set(out, "job", json_object_get(o, "job"));
    (void)json_object_set(out, "state", json_object_get(o, "state"));
    (void)json_object_set(out, "pieces", json_object_get(o, "pieces"));
    (void)json_object_set(out, "restarts", json_object_get(o, "restarts"));
}
