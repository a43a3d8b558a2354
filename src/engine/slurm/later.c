/* SPDX-License-Identifier: Apache-2.0 */
/* later.c - requests that can wait. Slurm does one request after the other, and a mark on each of
 * ten thousand users' jobs takes it half a minute: a start must not wait for that. So a few of
 * these are under way at a time, and the others wait here. One that is about a job goes first when
 * something else is asked about that job: what is asked of one job stays in order. */
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"

#define AT_A_TIME 4u

/* The number of the job, or of the array that it is an element of. */
static uint32_t job_of(const json_t *request)
{
    const json_t *v = json_object_get(request, "job");

    return (uint32_t)(json_is_string(v) ? (json_int_t)strtoul(json_string_value(v), NULL, 10)
                                        : json_integer_value(v));
}

static void ask_for(struct stk_slurm *m, struct stk_slurm_later *l)
{
    json_t *request = l->request;

    l->request = NULL;
    if (stk_slurm_ask_now(m, request, NULL, NULL, true) == 0)
        m->n_under_way++;
}

static void pump(struct stk_slurm *m)
{
    while (m->first_later < m->n_later && m->n_under_way < AT_A_TIME) {
        struct stk_slurm_later *l = &m->later[m->first_later++];

        if (l->request)
            ask_for(m, l);
    }
    if (m->first_later == m->n_later)
        m->first_later = m->n_later = 0;
}

void stk_slurm_of_boot(const struct stk_slurm *m, json_t *request)
{
    int64_t boot = m->told && job_of(request) == m->told ? m->told_boot : m->boot;

    if (boot && json_object_get(request, "job"))
        (void)json_object_set_new(request, "boot", json_integer(boot));
}

void stk_slurm_ask_later(struct stk_slurm *m, json_t *take_request)
{
    if (m->first_later > m->n_later / 2) {
        m->n_later -= m->first_later;
        memmove(m->later, m->later + m->first_later, m->n_later * sizeof(*m->later));
        m->first_later = 0;
    }
    if (stk_mem_grow(&m->mem, &m->later, &m->cap_later, m->n_later + 1, sizeof(*m->later)) < 0) {
        json_decref(take_request);
        return; /* it is asked for again when the job is told of again */
    }
    stk_slurm_of_boot(m, take_request);
    m->later[m->n_later++] =
        (struct stk_slurm_later){.job = job_of(take_request), .request = take_request};
    pump(m);
}

void stk_slurm_later_first(struct stk_slurm *m, const json_t *request)
{
    uint32_t job = m->first_later < m->n_later ? job_of(request) : 0;

    for (uint32_t i = m->first_later; i < m->n_later && job > 0; i++)
        if (m->later[i].job == job && m->later[i].request)
            ask_for(m, &m->later[i]);
}

void stk_slurm_later_answered(struct stk_slurm *m)
{
    m->n_under_way -= m->n_under_way > 0;
    pump(m);
}

void stk_slurm_later_forget(struct stk_slurm *m)
{
    for (uint32_t i = m->first_later; i < m->n_later; i++)
        json_decref(m->later[i].request);
    m->first_later = m->n_later = 0;
}

void stk_slurm_later_drop(struct stk_slurm *m)
{
    stk_slurm_later_forget(m);
    m->n_under_way = 0;
}
