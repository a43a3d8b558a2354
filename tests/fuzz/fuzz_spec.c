/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_spec.c - any bytes as a job file (STK_FUZZ_YAML), a batch script (STK_FUZZ_SBATCH) or a
 * description. What is accepted must pass the check and be read; what is refused must say why. */
#include <stdint.h>
#include <string.h>

#include "fuzz/fyaml_leaks.h"
#include "fuzz/require.h"
#include "spec/spec.h"
#include "spec/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parts of GPUs, turns and named resources. */
static void read_parts(const struct stk_spec *s)
{
    const struct stk_demand *d = &s->job.demand;

    require(d->gpu_milli < 1000 && (!d->gpu_milli || d->gpus == 1), "part of one GPU");
    require(!d->mig || (d->gpu_milli && d->gpus == 1), "an instance is a part");
    require(!s->by_memory || (d->gpu_mem_mib && !d->gpu_milli && d->gpus == 1), "by memory");
    require(d->share != STK_SHARE_TIME || (d->tasks == 1 && d->gpu_milli), "a seat");
    require(!d->share || d->gpu_milli || s->by_memory, "who shares has a part");
    require(s->n_resources <= STK_MAX_RESOURCES, "resources");
    for (uint32_t i = 0; i < s->n_resources; i++)
        require(stk_resource_name_ok(s->resources[i], strlen(s->resources[i])), "their names");
    for (uint32_t i = 0; i < s->n_gpu_types; i++)
        require(s->gpu_speeds[i] >= 1 && s->gpu_speeds[i] <= STK_MAX_SPEED, "speeds");
}

static void read_all(const json_t *job)
{
    struct stk_err err = {""};
    struct stk_spec s;

    require(stk_spec_parse(job, &s, &err) == 0, "what passed the check is read");
    require(s.job.demand.tasks >= 1 && s.job.demand.tasks <= STK_MAX_TASKS, "tasks");
    require((uint64_t)s.job.demand.tasks * s.job.demand.gpus <= STK_MAX_GPUS, "GPUs");
    require(s.n_indices <= STK_MAX_ARRAY && s.n_items <= STK_MAX_ARRAY, "elements");
    for (uint32_t i = 1; i < s.n_indices; i++)
        require(s.indices[i] > s.indices[i - 1], "indices ascend");
    require(s.job.estimate >= 0 && s.job.estimate <= STK_MAX_DURATION, "estimate");
    require(s.name && *s.name && s.out, "names");
    read_parts(&s);
    stk_spec_done(&s);
}

static json_t *read_input(const char *data, size_t size, struct stk_err *err)
{
#if defined(STK_FUZZ_YAML)
    return stk_spec_from_yaml(data, size, "fuzz", err);
#elif defined(STK_FUZZ_SBATCH)
    return stk_spec_from_sbatch(data, size, "fuzz", NULL, err);
#else
    json_t *job = json_loadb(data, size, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);

    if (!job)
        (void)stk_err_set(err, -EINVAL, "not JSON");
    else if (stk_spec_check(job, err) == 0)
        return job;
    json_decref(job);
    return NULL;
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_err err = {""};
    json_t *job = read_input((const char *)data, size, &err);

    if (!job) {
        require(err.text[0] != '\0', "a refusal says why");
        return 0;
    }
    require(stk_spec_check(job, &err) == 0, err.text);
    read_all(job);
    json_decref(job);
    return 0;
}
