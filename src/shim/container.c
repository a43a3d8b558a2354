/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - which processes of a job are in a container that podman made, and which are podman.
 *
 * Podman and conmon, its watcher, stand between the shim and the container. They pass on its exit
 * code and remove it when its processes have ended, so the steps that end a job spare them and hit
 * what is inside; only when that does not help are they ended too. A process is inside when it is
 * in a pid namespace below ours. For a user that is not root podman also leaves a process behind
 * that does nothing but hold the user's namespace ("pause"); it is ended with the job, and podman
 * makes another.
 *
 * The kernel shields the first process of a pid namespace from signals that it does not handle:
 * SIGTERM would do nothing to most programs. When nothing inside handles it, SIGKILL does what it
 * would have done. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/shim.h"
#include "sys/procs.h"

#define SPARE_KILLS 100 /* as many times they are left alone while the rest is killed */

static bool inside(const struct stk_proc *p, struct stk_proc_look *ret_look)
{
    return stk_proc_look(p->pid, ret_look) == 0 && ret_look->depth > 1;
}

static bool pauses(const struct stk_shim *s, const struct stk_proc *p,
                   const struct stk_proc_look *look)
{
    bool task = false;

    for (uint32_t i = 0; i < s->n_tasks; i++)
        task = task || s->tasks[i].pid == p->pid;
    return p->ppid == getpid() && !task && strcmp(look->name, "conmon") != 0;
}

bool stk_container_spares(const struct stk_shim *s, const struct stk_proc *p)
{
    struct stk_proc_look look;

    if (s->kills >= SPARE_KILLS)
        return false;
    if (p->pid == s->helper)
        return true;
    return s->runtime == STK_PODMAN && stk_proc_look(p->pid, &look) == 0 && look.depth <= 1 &&
           !pauses(s, p, &look);
}

bool stk_container_first(const struct stk_proc *p)
{
    struct stk_proc_look look;

    return inside(p, &look) && look.inner == 1;
}

bool stk_container_none(const struct stk_shim *s)
{
    struct stk_proc_look look;
    struct stk_proc *list;
    bool none = true;
    size_t n;

    if (s->runtime != STK_PODMAN || stk_shim_members(s, &list, &n) < 0)
        return false;
    for (size_t i = 0; i < n && none; i++)
        none = !inside(&list[i], &look);
    free(list);
    return none;
}

void stk_container_shielded(const struct stk_shim *s, const struct stk_proc *list, size_t n,
                            int sig)
{
    struct stk_proc_look look;
    bool handled = false;

    if (s->runtime != STK_PODMAN)
        return;
    for (size_t i = 0; i < n; i++)
        handled = handled || (inside(&list[i], &look) && look.handled >> (sig - 1) & 1);
    for (size_t i = 0; i < n && !handled; i++)
        if (stk_container_first(&list[i]))
            (void)stk_proc_signal(list[i].pid, list[i].start, SIGKILL);
}
