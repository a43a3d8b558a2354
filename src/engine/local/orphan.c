/* SPDX-License-Identifier: Apache-2.0 */
/* orphan.c - processes whose shim was killed. They live on; nobody is their parent any more, so
 * they are found by what was written down about them: pids with start times; processes of the job's
 * user, not older than the job, that are in their sessions or have its secret in their environment;
 * and everything below those. What other users write into an environment counts for nothing, and
 * sessions whose number is used again are others'. The job has ended when a look at the whole
 * machine finds none. Until then its GPUs stay taken. Its time limit is ours to keep now. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/local/inner.h"

#define LOOK_MS 250
#define DEFAULT_GRACE_MS 30000

static bool of_session(const struct stk_run *r, const struct stk_proc *p,
                       const struct stk_proc *all, size_t n)
{
    for (uint32_t i = 0; i < r->n_tasks; i++) {
        const struct stk_run_task *t = &r->tasks[i];
        bool other = false;

        if (t->pid == 0 || p->sid != t->pid)
            continue;
        /* a session number lives as long as a member of it; with another leader it is another */
        for (size_t k = 0; k < n && !other; k++)
            other = all[k].pid == t->pid && all[k].start != t->start;
        if (!other)
            return true;
    }
    return false;
}

static bool is_task(const struct stk_run *r, const struct stk_proc *p)
{
    for (uint32_t i = 0; i < r->n_tasks; i++)
        if (r->tasks[i].pid == p->pid && r->tasks[i].start == p->start)
            return true;
    return false;
}

/* Whether a process may be the job's at all: it is its user's and not older than its first task. */
static bool may_be_its(const struct stk_run *r, const struct stk_proc *p)
{
    uint64_t first = UINT64_MAX;
    uid_t uid;

    for (uint32_t i = 0; i < r->n_tasks; i++)
        if (r->tasks[i].pid && r->tasks[i].start < first)
            first = r->tasks[i].start;
    if (first != UINT64_MAX && p->start < first)
        return false;
    return r->uid == STK_RUN_NO_UID || (stk_proc_uid(p->pid, &uid) == 0 && uid == r->uid);
}

/* A process of the job by itself: one of its tasks, or of its session or with its mark. */
static bool is_member(const struct stk_run *r, const struct stk_proc *p, const struct stk_proc *all,
                      size_t n)
{
    if (is_task(r, p))
        return true;
    if (!of_session(r, p, all, n) && !(r->mark[0] && stk_proc_marked(p->pid, r->mark)))
        return false;
    return may_be_its(r, p);
}

/* All living processes of the job; the caller frees the list. */
static int members(const struct stk_run *r, struct stk_proc **ret_list, size_t *ret_n)
{
    struct stk_proc *all, *mine = NULL;
    size_t n, k = 0;
    bool grown = true;
    int rc = stk_proc_list(&all, &n);

    if (rc < 0)
        return rc;
    mine = calloc(n + 1, sizeof(*mine));
    for (size_t i = 0; mine && i < n; i++) {
        if (all[i].state == 'Z' || all[i].state == 'X')
            all[i].pid = 0;
        if (all[i].pid && is_member(r, &all[i], all, n)) {
            mine[k++] = all[i];
            all[i].pid = 0;
        }
    }
    while (mine && grown) { /* and whatever they have started */
        grown = false;
        for (size_t i = 0; i < n; i++)
            for (size_t p = 0; all[i].pid && p < k; p++)
                if (all[i].ppid == mine[p].pid) {
                    mine[k++] = all[i];
                    all[i].pid = 0;
                    grown = true;
                }
    }
    free(all);
    *ret_list = mine;
    *ret_n = k;
    return mine ? 0 : -ENOMEM;
}

static void signal_members(const struct stk_run *r, int sig, int sig2)
{
    struct stk_proc *list;
    size_t n;

    if (members(r, &list, &n) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        (void)stk_proc_signal(list[i].pid, list[i].start, sig);
        if (sig2)
            (void)stk_proc_signal(list[i].pid, list[i].start, sig2);
    }
    free(list);
}

static void gone(struct stk_local_job *j)
{
    if (j->run.started)
        stk_local_emit_started(j);
    if (j->final_cause == STK_CAUSE_EVICTED)
        stk_local_emit_exited(j, j->final_cause,
                              "its supervisor was killed while it was suspended; it starts anew");
    else if (j->final_cause != STK_CAUSE_NONE)
        stk_local_emit_exited(j, j->final_cause, "over its time limit; its supervisor was gone");
    else if (j->stopping && j->kill_at)
        stk_local_emit_exited(j, j->stop.cause, "stopped; its supervisor was gone");
    else
        stk_local_emit_exited(j, STK_CAUSE_UNKNOWN,
                              "its supervisor was killed; how it ended is not known");
}

/* True when it is over. */
static bool look(struct stk_local_job *j, int64_t now)
{
    struct stk_proc *list;
    size_t n;

    if (members(&j->run, &list, &n) < 0)
        return false;
    if (n > 0 && !j->kill_at && j->limit_at && stk_local_boot_us() >= j->limit_at) {
        j->final_cause = STK_CAUSE_TIMEOUT;
        stk_local_orphan_stop(j);
    }
    if (n > 0 && j->kill_at && now >= j->kill_at)
        for (size_t i = 0; i < n; i++)
            (void)stk_proc_signal(list[i].pid, list[i].start, SIGKILL);
    free(list);
    if (n > 0)
        return false;
    gone(j);
    return true;
}

static int64_t now_ms(const struct stk_local *m)
{
    return (int64_t)uv_now(m->cfg.loop);
}

/* Its shim was alive when the connection broke. True when that must be looked at again. */
static bool connect_again(struct stk_local_job *j)
{
    if (j->conn || j->where == STK_W_ENDED || j->where == STK_W_WAITING)
        return false;
    if (stk_local_link_connect(j) < 0) {
        stk_local_lost(j);
        return true;
    }
    j->adopted = true;
    return false;
}

static void tick(uv_timer_t *t)
{
    struct stk_local *m = t->data;
    struct stk_local_job *j, *next;
    bool more = false;

    if (!m)
        return;
    for (j = m->jobs; j; j = next) {
        next = j->next;
        if (j->where == STK_W_ORPHANED) {
            bool over = look(j, now_ms(m));

            more = more || !over;
            if (over && j->stray) {
                stk_local_unlink(j);
                stk_local_job_free(j);
            }
        } else {
            more = connect_again(j) || (j->where == STK_W_WAITING && m->strays == 0 && !j->seat) ||
                   more;
            more = stk_local_resume_due(j, now_ms(m)) || more;
        }
    }
    if (!more)
        (void)uv_timer_stop(t);
    stk_local_strays_gone(m); /* and what could not be started is tried again */
}

void stk_local_timer_need(struct stk_local *m)
{
    if (!m->timer) {
        m->timer = calloc(1, sizeof(*m->timer));
        if (!m->timer)
            return;
        (void)uv_timer_init(m->cfg.loop, m->timer);
        m->timer->data = m;
    }
    if (!uv_is_active((uv_handle_t *)m->timer))
        (void)uv_timer_start(m->timer, tick, 1, LOOK_MS);
}

void stk_local_orphan(struct stk_local_job *j)
{
    bool asleep = j->run.asleep;
    /* nobody can tell what of its GPU is saved, and it must not keep its turn for ever */
    bool lost = j->seat && j->real_gpus && !j->stopping &&
                (j->where == STK_W_SAVING || j->where == STK_W_FREEZING ||
                 j->where == STK_W_THAWING || j->where == STK_W_RESTORING);

    j->where = STK_W_ORPHANED;
    j->yielding = false;
    if (lost)
        j->final_cause = STK_CAUSE_EVICTED;
    if (j->run.limited && !asleep)
        j->limit_at = (j->run.at ? j->run.at : stk_local_boot_us()) + j->run.left;
    stk_local_limit_orphan(j);
    (void)snprintf(j->sentence, sizeof(j->sentence),
                   "its supervisor was killed; its processes run on unwatched");
    stk_local_note(j, "its supervisor was killed; waiting until its processes are gone");
    if (j->stray || lost || (j->stopping && !(j->stop.suspend && asleep)))
        stk_local_orphan_stop(j);
    stk_local_timer_need(j->m);
    stk_local_turn_changed(j);
}

void stk_local_orphan_stop(struct stk_local_job *j)
{
    if (j->kill_at)
        return;
    signal_members(&j->run, SIGTERM, SIGCONT);
    j->kill_at = now_ms(j->m) + (j->run.grace_ms > 0 ? j->run.grace_ms : DEFAULT_GRACE_MS);
    stk_local_timer_need(j->m);
}

void stk_local_orphan_wake(struct stk_local_job *j)
{
    signal_members(&j->run, SIGCONT, 0);
    j->run.asleep = false;
    j->run.at = stk_local_boot_us();
    if (j->run.limited)
        j->limit_at = j->run.at + j->run.left;
    stk_local_limit_orphan(j);
    stk_local_timer_need(j->m);
}
