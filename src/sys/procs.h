/* SPDX-License-Identifier: Apache-2.0 */
/* procs.h - looking at processes through /proc: who is whose child, in what state, since when, and
 * which of them belong to a job.
 *
 * A process is named by its pid and its start time: pids are reused, the pair is not (until the
 * next boot, which the boot id tells). */
#ifndef STK_SYS_PROCS_H
#define STK_SYS_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STK_BOOT_ID_LEN 37 /* with the final zero */
#define STK_MARK_NAME "STOKER_MARK"

struct stk_proc {
    pid_t pid, ppid, pgid, sid;
    char state;     /* as in /proc/PID/stat: R S D T t Z X ... */
    uint64_t start; /* clock ticks since boot */
    uint64_t cpu;   /* clock ticks used, those of children it has waited for included */
    uint64_t rss;   /* pages of memory that it has */
};

/* One process. -ESRCH: there is none. */
int stk_proc_read(pid_t pid, struct stk_proc *ret_proc);

/* What more there is to know of a process, at a higher price. */
struct stk_proc_look {
    char name[16];
    uint32_t depth;   /* how many pid namespaces it is in, from ours inwards; 1: only in ours */
    pid_t inner;      /* its pid in the innermost of them */
    uint64_t handled; /* signals it catches or ignores, SIGHUP being the lowest bit */
};
int stk_proc_look(pid_t pid, struct stk_proc_look *ret_look); /* -ESRCH: there is none */

/* Whose process it is: the real uid, which a set-user-id program does not change. -ESRCH. */
int stk_proc_uid(pid_t pid, uid_t *ret_uid);

/* True when that very process still lives; a zombie does not. */
bool stk_proc_alive(pid_t pid, uint64_t start);

/* All processes of the machine, by pid; the caller frees the array. */
int stk_proc_list(struct stk_proc **ret_list, size_t *ret_n);
/* The one with this pid in such a list; NULL: there is none. */
const struct stk_proc *stk_proc_find(const struct stk_proc *list, size_t n, pid_t pid);

/* Keeps, in place, the processes below 'root' in the list (root itself not), zombies left out,
 * parents before their children. Returns how many. */
size_t stk_proc_below(struct stk_proc *list, size_t n, pid_t root);

/* Sends a signal to that very process: never to another one that got its pid since. */
int stk_proc_signal(pid_t pid, uint64_t start, int sig);

/* The process has STOKER_MARK=mark in its environment. */
bool stk_proc_marked(pid_t pid, const char *mark);

/* This boot's id; -errno where the system does not tell. */
int stk_boot_id(char ret_id[STK_BOOT_ID_LEN]);

#endif
