/* SPDX-License-Identifier: Apache-2.0 */
/* whose.c - the job a process belongs to: it has the job's number in its environment and runs as
 * its user, or it is a process that was adopted, or was started by one of those. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "sys/procs.h"

#define MAX_ENV ((size_t)262144)
#define MAX_DEPTH 64 /* of parents */

static stk_job_number by_environment(struct stk_daemon *d, pid_t pid, uint32_t uid)
{
    char path[64], *env = malloc(MAX_ENV);
    const struct stk_entry *e = NULL;
    ssize_t n = -1;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = env ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        n = read(fd, env, MAX_ENV - 1);
        (void)close(fd);
    }
    if (n > 0)
        env[n] = '\0';
    for (char *s = env; n > 0 && s < env + n; s += strlen(s) + 1)
        if (strncmp(s, "STOKER_JOB_ID=", 14) == 0)
            e = stk_live_entry(d->live, (stk_job_number)strtoul(s + 14, NULL, 10));
    free(env);
    return e && (uid == e->rec.uid || uid == UINT32_MAX) ? e->number : 0;
}

stk_job_number stk_daemon_job_of(struct stk_daemon *d, pid_t pid, uint32_t uid)
{
    stk_job_number number = by_environment(d, pid, uid);
    struct stk_proc p = {.ppid = pid};

    for (int i = 0; number == 0 && i < MAX_DEPTH && p.ppid > 1; i++) {
        number = stk_local_job_of_pid(d->engine, p.ppid);
        if (number == 0 && stk_proc_read(p.ppid, &p) < 0)
            break;
    }
    return number;
}
