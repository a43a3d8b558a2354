/* SPDX-License-Identifier: Apache-2.0 */
/* heard.c - what stoker-libslurm says, line by line: answers, and what there is in Slurm. */
#include <stdio.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "sys/json.h"

static void answered(struct stk_slurm *m, const struct stk_slurm_ask *a, const json_t *answer)
{
    struct stk_slurm_job *j = a->number ? stk_slurm_find(m, a->number) : NULL;

    if (a->fn && j && j->lease == a->lease)
        a->fn(j, answer);
    if (a->heard)
        a->heard(m, a->slurm, answer);
}

/* Its place among those that were asked; n_asks: it is not there. Numbers ascend. */
static uint32_t find_ask(const struct stk_slurm *m, json_int_t id)
{
    uint32_t low = m->first_ask, high = m->n_asks;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (m->asks[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->n_asks && m->asks[low].id == id ? low : m->n_asks;
}

/* Answers come in any order: what takes long does not keep the others waiting. */
static void take_answer(struct stk_slurm *m, const json_t *o)
{
    json_int_t id = stk_whole(o, "id");
    uint32_t at = find_ask(m, id);
    struct stk_slurm_ask a;

    if (id == 0) { /* whoever asked would wait for ever */
        stk_slurm_log(m, true, "stoker-libslurm could not read what it was asked");
        stk_slurm_link_end(m);
        return;
    }
    if (id == m->groups_ask)
        stk_slurm_groups_answer(m, o);
    if (at == m->n_asks || m->asks[at].done)
        return;
    a = m->asks[at];
    m->asks[at].done = true;
    while (m->first_ask < m->n_asks && m->asks[m->first_ask].done)
        m->first_ask++;
    if (m->first_ask == m->n_asks)
        m->first_ask = m->n_asks = 0;
    if (a.later)
        stk_slurm_later_answered(m);
    answered(m, &a, o);
}

static void take_away(struct stk_slurm *m, const json_t *o)
{
    const char *why = json_string_value(json_object_get(o, "why"));

    m->away = true;
    (void)snprintf(m->why, sizeof(m->why), "%s", why ? why : "it cannot be reached");
    stk_slurm_log(m, true, "Slurm: %s", m->why);
}

static void take_hello(struct stk_slurm *m, const json_t *o)
{
    m->heard = true;
    m->remembers_s = stk_whole(o, "remembers_s");
    m->accounts = stk_yes(o, "accounts");
    json_decref(m->enforces);
    m->enforces = json_incref(json_object_get(o, "enforces"));
}

static void take_booked(struct stk_slurm *m, const json_t *o)
{
    json_decref(m->booked);
    m->booked = json_incref(json_object_get(o, "reservations"));
    m->booked_news = true; /* the scheduler may not be open yet */
}

void stk_slurm_heard(struct stk_slurm *m, const char *line, size_t len)
{
    json_t *o = stk_json_load(line, len, 0, NULL);
    const char *op = json_string_value(json_object_get(o, "op"));

    if (!op)
        stk_slurm_log(m, true, "stoker-libslurm said something strange");
    else if (strcmp(op, "answer") == 0)
        take_answer(m, o);
    else if (strcmp(op, "hello") == 0)
        take_hello(m, o);
    else if (strcmp(op, "away") == 0)
        take_away(m, o);
    else if (strcmp(op, "nodes") == 0 || strcmp(op, "partitions") == 0)
        stk_slurm_cluster_news(m, o);
    else if (strcmp(op, "reservations") == 0)
        take_booked(m, o);
    else if (strcmp(op, "jobs") == 0)
        stk_slurm_jobs_news(m, o);
    else if (strcmp(op, "plugin") == 0)
        stk_slurm_log(m, false, "Slurm: sched/stoker %s",
                      stk_yes(o, "there") ? "is there" : "is silent");
    if (op && strcmp(op, "back") == 0) {
        m->away = false;
        m->why[0] = '\0';
        stk_slurm_log(m, false, "Slurm is back");
    }
    json_decref(o);
}

void stk_slurm_unheard(struct stk_slurm *m)
{
    m->telling = false;
    while (m->first_ask < m->n_asks && !m->closing) {
        struct stk_slurm_ask a = m->asks[m->first_ask++];

        if (!a.done)
            answered(m, &a, NULL);
    }
    m->first_ask = m->n_asks = 0;
    if (m->groups_ask)
        stk_slurm_groups_answer(m, NULL);
    stk_slurm_later_drop(m); /* what they were to do is found missing when all is told anew */
}
