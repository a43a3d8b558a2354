/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - what is asked of Slurm: by the numbers that its jobs have as of what was told last. A
 * slurmctld that was killed gives these to others; so each request says of which slurmctld that
 * was, and stoker-libslurm does none that is older than the one there is. */
#include "engine/slurm/inner.h"

int stk_slurm_ask(struct stk_slurm *m, json_t *take_request, const struct stk_slurm_job *j,
                  stk_slurm_answer_fn fn)
{
    stk_slurm_of_boot(m, take_request);
    stk_slurm_later_first(m, take_request);
    return stk_slurm_ask_now(m, take_request, j, fn, false);
}

int stk_slurm_ask_of(struct stk_slurm *m, json_t *take_request, uint32_t slurm,
                     stk_slurm_heard_fn heard)
{
    int rc = stk_slurm_ask(m, take_request, NULL, NULL);

    if (rc == 0) {
        m->asks[m->n_asks - 1].slurm = slurm;
        m->asks[m->n_asks - 1].heard = heard;
    }
    return rc;
}

void stk_slurm_ask_cancel(struct stk_slurm *m, const json_t *job)
{
    (void)stk_slurm_ask(m, json_pack("{s:s,s:o}", "op", "cancel", "job", stk_slurm_id(job)), NULL,
                        NULL);
}
