/* SPDX-License-Identifier: Apache-2.0 */
/* freeze.c - putting the processes of a job to sleep and waking them.
 *
 * SIGSTOP goes to every process, parents first, again and again until a look at all of them finds
 * none that could still run or make another. Processes that somebody else had stopped before stay
 * stopped when the rest are woken, children first, so that no shell sees a stopped child. Time
 * asleep is not counted against the time limit. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/shim.h"
#include "sys/procs.h"

#define AGAIN_MS 2
#define GIVE_UP_MS 10000
#define DEEP_MS 100 /* after this long a process deep in the kernel counts as stopped */

static bool was_stopped(const struct stk_shim *s, pid_t pid)
{
    for (size_t i = 0; i < s->n_was_stopped; i++)
        if (s->was_stopped[i] == pid)
            return true;
    return false;
}

/* A job that takes turns sleeps and wakes for as long as it lives, and its run file must not grow
 * with that: when it ends with a sleep and its waking, the next sleep is written in their place. */
static void fold(struct stk_shim *s)
{
    off_t end = lseek(STK_SHIM_FD_RUN, 0, SEEK_END);

    if (s->nap_from >= 0 && s->nap_end == end && s->nap_lease == s->l.lease &&
        ftruncate(STK_SHIM_FD_RUN, s->nap_from) == 0) {
        end = s->nap_from;
        (void)fallocate(STK_SHIM_FD_RUN, FALLOC_FL_KEEP_SIZE, 0, STK_SHIM_RUN_ROOM);
    }
    s->nap_from = end;
    s->nap_end = -1;
    s->nap_lease = s->l.lease;
}

static void answer(struct stk_shim *s, const char *word, const char *why)
{
    json_t *rec = stk_shim_state(s);

    (void)json_object_set_new(rec, "ev", json_string(word));
    if (why)
        (void)json_object_set_new(rec, "why", json_string(why));
    else if (s->asleep)
        fold(s);
    (void)stk_shim_say(s, rec, why ? STK_SAY_CONN : STK_SAY_BOTH);
    if (!why && !s->asleep)
        s->nap_end = lseek(STK_SHIM_FD_RUN, 0, SEEK_END);
}

static bool is_ending(const struct stk_shim *s)
{
    return s->step != STK_STEP_NONE || s->live == 0;
}

void stk_shim_freeze(struct stk_shim *s, uint32_t lease, json_t *memo)
{
    struct stk_proc *list;
    size_t n, k = 0;

    if (s->asleep) {
        answer(s, "asleep", NULL);
        return;
    }
    if (is_ending(s) || stk_shim_members(s, &list, &n) < 0) {
        answer(s, "awake", "it is ending");
        return;
    }
    if (memo) {
        json_decref(s->memo);
        s->memo = json_incref(memo);
    }
    s->l.lease = lease ? lease : s->l.lease;
    if (s->freezing) { /* told again by another daemon: those that are stopped now were not before
                        */
        free(list);
        return;
    }
    free(s->was_stopped);
    s->was_stopped = calloc(n + 1, sizeof(*s->was_stopped));
    for (size_t i = 0; i < n && s->was_stopped; i++)
        if (list[i].state == 'T' || list[i].state == 't')
            s->was_stopped[k++] = list[i].pid;
    s->n_was_stopped = s->was_stopped ? k : 0;
    free(list);
    s->freezing = true;
    s->freeze_until = stk_shim_ms() + GIVE_UP_MS;
    stk_shim_freeze_more(s, stk_shim_ms());
}

/* SIGSTOP acts when a process comes back from the kernel. One that waits there uninterruptibly (for
 * a disk, or for the child of its vfork(), which has been stopped) does nothing of its own before.
 */
static bool stopped(const struct stk_shim *s, const struct stk_proc *p, int64_t now)
{
    return p->state == 'T' || p->state == 't' ||
           (p->state == 'D' && now >= s->freeze_until - GIVE_UP_MS + DEEP_MS);
}

static void stay_awake(struct stk_shim *s, const char *why)
{
    s->freezing = false;
    stk_shim_wake(s);
    answer(s, "awake", why);
}

void stk_shim_freeze_more(struct stk_shim *s, int64_t now)
{
    struct stk_proc *list;
    bool again = false;
    size_t n;

    s->freeze_at = STK_SHIM_NEVER;
    if (!s->freezing)
        return;
    if (is_ending(s)) {
        stay_awake(s, "it is ending");
        return;
    }
    if (stk_shim_members(s, &list, &n) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!stopped(s, &list[i], now)) {
            (void)stk_proc_signal(list[i].pid, list[i].start, SIGSTOP);
            again = true;
        }
    free(list);
    if (again && now < s->freeze_until) {
        s->freeze_at = now + AGAIN_MS;
        return;
    }
    if (!again)
        stk_shim_reap(s); /* what was not there to be stopped may have ended */
    if (again || is_ending(s)) {
        stay_awake(s, again ? "some of its processes did not stop" : "it is ending");
        return;
    }
    s->freezing = false;
    s->asleep = true;
    s->asleep_since = now;
    answer(s, "asleep", NULL);
}

void stk_shim_wake(struct stk_shim *s)
{
    struct stk_proc *list;
    size_t n;

    if (stk_shim_members(s, &list, &n) < 0)
        return;
    while (n-- > 0)
        if (!was_stopped(s, list[n].pid))
            (void)stk_proc_signal(list[n].pid, list[n].start, SIGCONT);
    free(list);
}

/* The GPUs may be others than before: the fence is moved, and the processes to other CPUs. */
static void new_gpus(struct stk_shim *s, json_t *gpus)
{
    char cpus[STK_SHIM_CPUS];
    bool bound = stk_near_job(&s->l, cpus, sizeof(cpus));

    if (json_equal(json_object_get(s->l.msg, "gpus"), gpus))
        return;
    if (!json_is_array(gpus) || stk_launch_gpus(&s->l, gpus, NULL) < 0)
        return;
    (void)json_object_set(s->l.msg, "gpus", gpus); /* their names live there */
    stk_cgroup_fence(s->cg, &s->l);
    if (bound || stk_near_job(&s->l, cpus, sizeof(cpus)))
        stk_near_move(s);
}

void stk_shim_thaw(struct stk_shim *s, uint32_t lease, json_t *gpus)
{
    int64_t slept;

    new_gpus(s, gpus);
    s->l.lease = lease ? lease : s->l.lease;
    if (s->asleep) {
        stk_shim_wake(s);
        slept = stk_shim_ms() - s->asleep_since;
        s->asleep = false;
        s->slept_ms += slept;
        if (s->limit_at != STK_SHIM_NEVER)
            s->limit_at += slept;
        if (s->warn_at != STK_SHIM_NEVER)
            s->warn_at += slept;
    }
    answer(s, "awake", NULL);
}
