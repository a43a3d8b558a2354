/* SPDX-License-Identifier: Apache-2.0 */
/* rest.c - jobs that Slurm was told to start, and does not: they rest before they are tried again.
 *
 * It may be for their nodes that Slurm does not start them, and then another place helps. Or it has
 * nothing to do with nodes: a licence is in use, a limit of the account, the QOS or the partition
 * is reached. Then each try keeps GPUs from others in vain. So such a job rests at once, and twice
 * as long each time; any other from its second failure in a row on, since Slurm says "Resources"
 * as well of things that we know nothing of. And jobs of one user shut one node a minute at most.
 *
 * To rest is to have a begin time (cfg.rest), so that it ends by itself whoever is restarted. It
 * ends early when a job of the same user has ended, one for one, since a limit may not be reached
 * any more; and for all when partitions have changed. */
#include <stdio.h>
#include <string.h>

#include "engine/slurm/inner.h"

#define SHUT_S 60 /* jobs of one user shut a node once in so long */

/* ---- Slurm's reasons ---- */

bool stk_slurm_own_reason(const char *reason)
{
    static const char *const of_nodes[] = {
        "None",       "Priority",     "Resources",     "ReqNodeNotAvail", "NodeDown",
        "Prolog",     "Cleaning",     "PowerNotAvail", "PowerReserved",   "FrontEndDown",
        "SchedDefer", "JobHeldAdmin", "JobHeldUser",   "SystemFailure",   "JobLaunchFailure"};

    if (!reason || !*reason)
        return false;
    for (size_t i = 0; i < sizeof(of_nodes) / sizeof(*of_nodes); i++)
        if (strncmp(reason, of_nodes[i], strlen(of_nodes[i])) == 0)
            return false;
    return true;
}

/* ---- the table ---- */

struct stk_slurm_rest *stk_slurm_rest_find(const struct stk_slurm *m, stk_job_number number)
{
    uint32_t i = stk_map_get(&m->rest_at, number);

    return i == UINT32_MAX ? NULL : &m->rests[i];
}

struct stk_slurm_rest *stk_slurm_rest_add(struct stk_slurm *m, const struct stk_slurm_job *j)
{
    struct stk_slurm_rest *r = stk_slurm_rest_find(m, j->number);

    if (r)
        return r;
    if (stk_mem_grow(&m->mem, &m->rests, &m->cap_rests, m->n_rests + 1, sizeof(*r)) < 0 ||
        stk_map_reserve(&m->rest_at, &m->mem, m->n_rests + 1) < 0)
        return NULL;
    r = &m->rests[m->n_rests];
    *r = (struct stk_slurm_rest){.number = j->number, .uid = j->uid};
    stk_map_put(&m->rest_at, j->number, m->n_rests++);
    return r;
}

static void drop(struct stk_slurm *m, struct stk_slurm_rest *r)
{
    uint32_t at = (uint32_t)(r - m->rests);

    stk_map_remove(&m->rest_at, r->number);
    *r = m->rests[--m->n_rests];
    if (at < m->n_rests)
        stk_map_put(&m->rest_at, r->number, at);
}

void stk_slurm_rest_free(struct stk_slurm *m)
{
    stk_mem_drop(&m->mem, &m->rests, &m->cap_rests, sizeof(*m->rests));
    stk_map_done(&m->rest_at, &m->mem);
    stk_map_done(&m->shut_by, &m->mem);
}

/* ---- failures ---- */

/* One of its nodes, another with each failure: which of them it is nobody says. */
static void shut(struct stk_slurm *m, const struct stk_slurm_job *j, const struct stk_slurm_rest *r)
{
    uint32_t now = (uint32_t)(stk_slurm_ms() / 1000), before = stk_map_get(&m->shut_by, r->uid);

    if (j->n_pieces == 0 || (before != UINT32_MAX && now - before < SHUT_S) ||
        stk_map_reserve(&m->shut_by, &m->mem, m->shut_by.n + 1) < 0)
        return;
    stk_map_put(&m->shut_by, r->uid, now);
    stk_slurm_use_avoid(m, j->pieces[(r->failed - 1) % j->n_pieces].node.i);
}

void stk_slurm_failed(struct stk_slurm *m, struct stk_slurm_job *j, bool own, bool in_vain)
{
    struct stk_slurm_rest *r = stk_slurm_rest_add(m, j);
    uint32_t times;

    if (!r)
        return;
    r->failed++;
    times = own ? r->failed : r->failed - 1;
    j->rest_ms = times == 0 ? 0 : stk_slurm_rest_ms(times);
    if (in_vain && !own)
        shut(m, j, r);
}

void stk_slurm_rest_odd(struct stk_slurm *m, struct stk_slurm_job *j, uint32_t times)
{
    if (!stk_slurm_rest_add(m, j))
        return;
    j->rest_ms = stk_slurm_odd_ms(j->number, times);
}

/* ---- rest ---- */

static void wake(struct stk_slurm *m, struct stk_slurm_rest *r)
{
    r->until = 0;
    if (m->cfg.rest)
        m->cfg.rest(m->cfg.ctx, r->number, 0, NULL);
}

/* The first of those of this user that rest. O(jobs that rest). */
static void wake_one(struct stk_slurm *m, uint32_t uid)
{
    struct stk_slurm_rest *first = NULL;

    for (uint32_t i = 0; m->rests && i < m->n_rests; i++) {
        struct stk_slurm_rest *r = &m->rests[i];

        if (r->uid == uid && r->until > stk_slurm_ms() && (!first || r->number < first->number))
            first = r;
    }
    if (first)
        wake(m, first);
}

void stk_slurm_rest_wake(struct stk_slurm *m)
{
    for (uint32_t i = 0; i < m->n_rests; i++)
        if (m->rests[i].until > stk_slurm_ms())
            wake(m, &m->rests[i]);
}

void stk_slurm_rest_over(struct stk_slurm *m, const struct stk_slurm_job *j)
{
    struct stk_slurm_rest *r = stk_slurm_rest_find(m, j->number);

    if (!r)
        return;
    if (m->cfg.rest)
        m->cfg.rest(m->cfg.ctx, r->number, -1, NULL);
    drop(m, r);
}

static void rest(struct stk_slurm *m, const struct stk_slurm_job *j, const char *sentence)
{
    struct stk_slurm_rest *r = stk_slurm_rest_find(m, j->number);
    int64_t now_s = stk_slurm_wall_s(m);
    char text[600];

    if (!r || !m->cfg.rest)
        return;
    r->until = stk_slurm_ms() + j->rest_ms;
    (void)snprintf(text, sizeof(text), "%.500s; it is tried again after %lld s", sentence,
                   (long long)(j->rest_ms / 1000));
    m->cfg.rest(m->cfg.ctx, j->number, now_s + j->rest_ms / 1000, text);
}

void stk_slurm_rest_exited(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause,
                           const char *sentence)
{
    struct stk_slurm_rest *r = stk_slurm_rest_find(m, j->number);

    if (j->rest_ms > 0 && cause == STK_CAUSE_EVICTED)
        rest(m, j, *sentence ? sentence : "Slurm did not run it as was decided");
    else if (r && cause != STK_CAUSE_EVICTED)
        drop(m, r);
    if (j->told_started && j->rest_ms == 0)
        wake_one(m, j->uid);
}

void stk_slurm_rest_tick(struct stk_slurm *m)
{
    for (uint32_t i = m->n_rests; i-- > 0;)
        if (m->cfg.lives && !m->cfg.lives(m->cfg.ctx, m->rests[i].number))
            drop(m, &m->rests[i]);
}
