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

/* Copies the value of a variable in the environment of a process; "": it has none. */
static void value_of(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[64], *env = malloc(MAX_ENV);
    size_t len = strlen(name);
    ssize_t n = -1;
    int fd;

    buf[0] = '\0';
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = env ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        n = read(fd, env, MAX_ENV - 1);
        (void)close(fd);
    }
    if (n > 0)
        env[n] = '\0';
    for (char *s = env; n > 0 && s < env + n; s += strlen(s) + 1)
        if (strncmp(s, name, len) == 0 && s[len] == '=')
            (void)snprintf(buf, size, "%s", s + len + 1);
    free(env);
}

static stk_job_number by_environment(struct stk_daemon *d, pid_t pid, uint32_t uid)
{
    const struct stk_entry *e;
    char number[24];

    value_of(pid, "STOKER_JOB_ID", number, sizeof(number));
    e = number[0] ? stk_live_entry(d->live, (stk_job_number)strtoul(number, NULL, 10)) : NULL;
    return e && (uid == e->rec.uid || uid == UINT32_MAX) ? e->number : 0;
}

bool stk_daemon_is_mps(struct stk_daemon *d, pid_t pid, uint32_t uid, uint32_t gpu)
{
    struct stk_proc p = {.ppid = pid};
    char folder[512];

    for (int i = 0; i < 3 && p.ppid > 1; i++) { /* it, or the control daemon that started it */
        value_of(p.ppid, STK_MPS_MARK, folder, sizeof(folder));
        if (stk_local_is_mps(d->engine, gpu, folder, uid))
            return true;
        if (stk_proc_read(p.ppid, &p) < 0)
            break;
    }
    return false;
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
