/* SPDX-License-Identifier: Apache-2.0 */
/* items.c - batch jobs: each worker runs the command once per item. Which item is next is the
 * daemon's to say, so that no item is handed out twice; while it is away free workers wait. What
 * came of an item is in the run file before it is told, and is told again to whoever connects. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/shim.h"

static void ask(struct stk_shim *s, uint32_t worker)
{
    s->tasks[worker].asked = true;
    (void)stk_shim_say(s, json_pack("{s:s,s:i}", "ev", "item_next", "worker", (int)worker),
                       STK_SAY_CONN);
}

void stk_items_begin(struct stk_shim *s)
{
    for (uint32_t i = 0; i < s->n_tasks; i++)
        ask(s, i);
}

void stk_items_ask(struct stk_shim *s)
{
    for (uint32_t i = 0; i < s->n_tasks && s->started; i++)
        if (s->tasks[i].asked)
            ask(s, i);
}

static bool idle(const struct stk_shim *s)
{
    for (uint32_t i = 0; i < s->n_tasks; i++)
        if (s->tasks[i].item >= 0 || s->tasks[i].asked)
            return false;
    return true;
}

/* The job ends with its last item, or when it was told to and its workers are done. */
static void over(struct stk_shim *s)
{
    if (!idle(s) || s->end.known)
        return;
    if (s->timed_out)
        stk_shim_decide(s, STK_CAUSE_TIMEOUT, 0, "over its time limit; %u items done",
                        s->items_done);
    else if (s->stop_cause != STK_CAUSE_NONE)
        stk_shim_decide(s, s->stop_cause, 0, "stopped; %u items done", s->items_done);
    else if (s->shutdown)
        stk_shim_decide(s, STK_CAUSE_NODE_LOST, 0, "its supervisor was told to end");
    else if (s->items_failed > 0)
        stk_shim_decide(s, STK_CAUSE_FAILED, 1, "%u of %u items failed", s->items_failed,
                        s->items_done);
    else
        stk_shim_decide(s, STK_CAUSE_OK, 0, "%u items done", s->items_done);
}

void stk_items_stop(struct stk_shim *s)
{
    for (uint32_t i = 0; i < s->n_tasks; i++)
        s->tasks[i].asked = false;
    over(s);
}

static int start(struct stk_shim *s, uint32_t worker, struct stk_err *err)
{
    int pair[2], rc;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    s->items_handed++;
    rc = stk_task_start(s, worker, pair[1], err);
    (void)close(pair[1]);
    (void)close(pair[0]); /* an item that cannot be started has exit code 127 */
    return rc;
}

static void outcome(struct stk_shim *s, uint32_t item, int code, int sig)
{
    s->items_done++;
    s->items_failed += code != 0 || sig != 0;
    (void)stk_shim_say(s,
                       json_pack("{s:s,s:i,s:i,s:i}", "ev", "item_done", "item", (int)item, "code",
                                 code, "signal", sig),
                       STK_SAY_BOTH);
}

void stk_items_message(struct stk_shim *s, const json_t *m)
{
    int64_t worker = stk_int(m, "worker", -1), item = stk_int(m, "item", -1);
    struct stk_task *t;
    struct stk_err err = {0};

    if (worker < 0 || worker >= s->n_tasks || !s->tasks[worker].asked)
        return;
    t = &s->tasks[worker];
    t->asked = false;
    if (item < 0 || (size_t)item >= json_array_size(s->l.items) || s->step != STK_STEP_NONE) {
        over(s);
        return;
    }
    t->item = (int32_t)item;
    if (start(s, (uint32_t)worker, &err) < 0) {
        t->item = -1;
        outcome(s, (uint32_t)item, 127, 0);
        ask(s, (uint32_t)worker);
    }
}

void stk_items_ended(struct stk_shim *s, struct stk_task *t)
{
    uint32_t item = (uint32_t)t->item;
    bool told = s->stop_cause != STK_CAUSE_NONE || s->timed_out || s->shutdown;
    bool failed = !WIFEXITED(t->status) || WEXITSTATUS(t->status) != 0;

    t->item = -1;
    t->pid = 0;
    if (!told || !failed) /* an item that was cut short is still to be done */
        outcome(s, item, WIFEXITED(t->status) ? WEXITSTATUS(t->status) : 0,
                WIFSIGNALED(t->status) ? WTERMSIG(t->status) : 0);
    if (told)
        over(s);
    else
        ask(s, (uint32_t)(t - s->tasks));
}
