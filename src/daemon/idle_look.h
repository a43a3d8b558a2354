/* SPDX-License-Identifier: Apache-2.0 */
/* idle_look.h - what there is to read about a job that may be idle: its GPUs, the CPU time of its
 * processes, its terminal, and what its description says about idleness. */
#ifndef STK_DAEMON_IDLE_LOOK_H
#define STK_DAEMON_IDLE_LOOK_H

#include "daemon/daemon.h"
#include "daemon/idleness.h"
#include "sys/procs.h"

struct stk_idle_words { /* of one description, over the configuration */
    struct stk_idle_rule rule;
    bool may_suspend;
};

/* False: nothing ever happens to it. */
bool stk_idle_words(struct stk_daemon *d, const struct stk_entry *e, struct stk_idle_words *ret);

struct stk_procs { /* all processes, by pid; read once for many jobs */
    struct stk_proc *list;
    size_t n;
    bool known;
};

struct stk_idle_on { /* the GPUs a job has now */
    uint64_t mask;
    bool shared; /* others use them at the same time: what its own processes do counts */
};

void stk_idle_look(struct stk_daemon *d, stk_job_number number, const struct stk_idle_on *on,
                   struct stk_procs *procs, struct stk_idle_reading *ret);

/* What it has on its GPUs can be put aside. */
bool stk_idle_can_sleep(const struct stk_daemon *d, uint64_t mask);

#endif
