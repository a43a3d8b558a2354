/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_slurm_work.c - any lines as what stoker-libslurm is asked. Slurm's calls are replaced: they
 * read all that they are given, as Slurm would send it, and say yes or no in turn. Each request has
 * an answer, and a no says why. */
#include <stdint.h>
#include <string.h>

#include "fuzz/require.h"
#include "libslurm/helper.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned calls;
static size_t bytes; /* of all texts, so that they are read */

static void read_text(const char *s)
{
    bytes += s ? strlen(s) : 0;
}

static int outcome(void)
{
    static const int errors[] = {0, ESLURM_INVALID_JOB_ID, 0, ESLURM_ACCESS_DENIED, ETIMEDOUT};
    int error = errors[calls++ % (sizeof(errors) / sizeof(*errors))];

    errno = error;
    return error ? SLURM_ERROR : SLURM_SUCCESS;
}

static void read_all(const job_desc_msg_t *d)
{
    const char *const texts[] = {
        d->name,          d->partition,     d->account,      d->qos,
        d->comment,       d->admin_comment, d->work_dir,     d->std_out,
        d->std_err,       d->std_in,        d->req_nodes,    d->script,
        d->tres_per_node, d->tres_per_task, d->tres_per_job, d->job_id_str};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        read_text(texts[i]);
}

/* ---- in place of Slurm's ---- */

int slurm_submit_batch_job(job_desc_msg_t *job_desc_msg, submit_response_msg_t **slurm_alloc_msg)
{
    const job_desc_msg_t *d = job_desc_msg;

    read_all(d);
    require(d->script && *d->script, "what is sent has a script");
    require(d->env_size > 0, "and an environment");
    for (uint32_t i = 0; i < d->env_size; i++) {
        require(d->environment[i], "of so many variables");
        read_text(d->environment[i]);
    }
    for (uint32_t i = 0; i < d->argc; i++)
        read_text(d->argv[i]);
    *slurm_alloc_msg = NULL;
    return outcome();
}

int slurm_update_job(job_desc_msg_t *job_msg)
{
    read_all(job_msg);
    return outcome();
}

int slurm_update_job2(job_desc_msg_t *job_msg, job_array_resp_msg_t **resp)
{
    read_all(job_msg);
    require(job_msg->job_id_str, "elements are named");
    *resp = NULL;
    return outcome();
}

int slurm_kill_job(uint32_t job, uint16_t sig, uint16_t flags)
{
    (void)job;
    (void)flags;
    require(sig >= 1 && sig <= 64, "a signal is one");
    return outcome();
}

int slurm_kill_job2(const char *job, uint16_t sig, uint16_t flags, const char *sibling)
{
    read_text(job);
    read_text(sibling);
    return slurm_kill_job(0, sig, flags);
}

int slurm_requeue(uint32_t job, uint32_t flags)
{
    (void)job;
    (void)flags;
    return outcome();
}

int slurm_requeue2(char *job_id, uint32_t flags, job_array_resp_msg_t **resp)
{
    (void)flags;
    read_text(job_id);
    *resp = NULL;
    return outcome();
}

int slurm_job_batch_script(FILE *out, uint32_t job)
{
    (void)fprintf(out, "#!/bin/sh\n#SBATCH --signal=B:USR1@%u\n", job);
    return outcome();
}

int slurm_job_step_get_pids(slurm_step_id_t *step_id, char *node_list,
                            job_step_pids_response_msg_t **resp)
{
    (void)step_id;
    (void)resp;
    read_text(node_list);
    return outcome() == SLURM_SUCCESS ? SLURM_SUCCESS : errno;
}

json_t *stk_slurm_past(json_t *o)
{
    return json_pack("{s:b,s:O?}", "ok", 1, "past", json_object_get(o, "comment"));
}

json_t *stk_slurm_show_groups(json_t *o)
{
    (void)o;
    return json_pack("{s:b}", "ok", 1);
}

/* ---- */

static void take(const char *line, size_t len)
{
    json_t *o = json_loadb(line, len, JSON_DISABLE_EOF_CHECK, NULL), *out, *ok;

    if (json_is_object(o)) {
        out = stk_slurm_work(o);
        ok = json_object_get(out, "ok");
        require(json_is_boolean(ok), "each request has an answer");
        require(json_is_true(ok) || json_string_length(json_object_get(out, "why")) > 0,
                "a no says why");
        json_decref(out);
    }
    json_decref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data, *end = line + size;

    calls = 0;
    bytes = 0;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        stop = stop ? stop : end;
        take(line, (size_t)(stop - line));
        line = stop + 1;
    }
    return bytes == SIZE_MAX;
}
