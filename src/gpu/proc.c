/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - a process's name is whatever its user made it, brackets and line ends included: the
 * fields of stat are looked for after the last bracket, and the name comes from comm.
 */
#include "gpu/proc.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The whole of a small file, with an end mark; its length or -1. */
static ssize_t slurp(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n, all = 0;

    if (fd < 0)
        return -1;
    while ((size_t)all < size - 1 && (n = read(fd, buf + all, size - 1 - (size_t)all)) > 0)
        all += n;
    (void)close(fd);
    buf[all] = '\0';
    return all;
}

static bool slurp_of(int pid, const char *file, char *buf, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    return slurp(path, buf, size) > 0;
}

/* The value of "KEY:" in a file of such lines. */
static bool keyed(const char *text, const char *key, unsigned long long *ret)
{
    const char *at = strstr(text, key);
    char *end;

    if (!at)
        return false;
    at += strlen(key);
    *ret = strtoull(at, &end, 10);
    return end != at;
}

/* Fields 3 (state), 6 (session) and 22 (start, in ticks since boot). */
static bool stat_fields(const char *stat, struct stk_proc *p, unsigned long long *ret_start)
{
    const char *at = strrchr(stat, ')');
    unsigned long long field = 0;
    char *end;

    if (!at || at[1] != ' ' || at[2] == '\0')
        return false;
    p->state = at[2];
    at += 3;
    for (int i = 4; i <= 22; i++) {
        field =
            strtoull(at, &end, 10); /* a negative one is of no interest, only that it is there */
        if (end == at)
            return false;
        at = end;
        if (i == 6)
            p->sid = (int32_t)field;
    }
    *ret_start = field;
    return true;
}

static void take_name(struct stk_proc *p, const char *comm)
{
    size_t n = strnlen(comm, sizeof(p->name) - 1);

    if (n > 0 && comm[n - 1] == '\n')
        n--; /* the kernel's own line end */
    for (size_t i = 0; i < n; i++) {
        bool prints = comm[i] >= ' ' && comm[i] < 0x7f;

        p->name[i] = '?';
        if (prints)
            p->name[i] = comm[i];
    }
    p->name[n] = '\0';
}

bool stk_proc_read(int pid, struct stk_proc *ret)
{
    struct stk_proc p = {.uid = 0};
    unsigned long long start, uid;
    struct timespec now;
    char text[4096];

    if (!slurp_of(pid, "stat", text, sizeof(text)) || !stat_fields(text, &p, &start))
        return false;
    if (!slurp_of(pid, "status", text, sizeof(text)) || !keyed(text, "\nUid:", &uid))
        return false;
    p.uid = (uint32_t)uid;
    if (!slurp_of(pid, "comm", text, sizeof(text)))
        return false;
    take_name(&p, text);
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    p.age_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
              (double)start / (double)sysconf(_SC_CLK_TCK);
    if (p.age_s < 0)
        p.age_s = 0;
    *ret = p;
    return true;
}

bool stk_proc_user(uint32_t uid, char *ret, unsigned size)
{
    struct passwd pw, *found = NULL;
    char buf[16384];

    if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) != 0 || !found)
        return false;
    (void)snprintf(ret, size, "%s", found->pw_name);
    return true;
}

uint64_t stk_proc_mem_available(void)
{
    unsigned long long kib;
    char text[4096];

    if (slurp("/proc/meminfo", text, sizeof(text)) <= 0 || !keyed(text, "\nMemAvailable:", &kib))
        return UINT64_MAX;
    return (uint64_t)kib << 10;
}
