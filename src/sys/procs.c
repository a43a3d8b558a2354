/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_PROCS (1U << 22) /* more than the kernel allows */

/* Reads a small file whole; the text ends with a zero. Returns its length. */
static ssize_t read_small(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, buf, size - 1);
    if (n < 0)
        n = -errno;
    (void)close(fd);
    if (n >= 0)
        buf[n] = 0;
    return n;
}

static const char *next_field(const char *s)
{
    while (*s && *s != ' ')
        s++;
    return *s ? s + 1 : s;
}

int stk_proc_read(pid_t pid, struct stk_proc *ret_proc)
{
    char path[64], buf[1024];
    struct stk_proc p = {.pid = pid};
    const char *s;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (read_small(path, buf, sizeof(buf)) <= 0)
        return -ESRCH;
    s = strrchr(buf, ')'); /* the name may hold anything */
    if (!s || s[1] != ' ' || !s[2])
        return -ESRCH;
    p.state = s[2];
    s = next_field(s + 2);
    p.ppid = (pid_t)strtol(s, NULL, 10);
    s = next_field(s);
    p.pgid = (pid_t)strtol(s, NULL, 10);
    s = next_field(s);
    p.sid = (pid_t)strtol(s, NULL, 10);
    for (int field = 6; field < 22; field++) {
        s = next_field(s);
        if (field >= 13 && field < 17) /* utime, stime, cutime, cstime */
            p.cpu += strtoull(s, NULL, 10);
    }
    p.start = strtoull(s, NULL, 10);
    s = next_field(next_field(s)); /* vsize, rss */
    p.rss = strtoull(s, NULL, 10);
    *ret_proc = p;
    return 0;
}

static void look_line(struct stk_proc_look *l, const char *line)
{
    const char *s = strchr(line, '\t');
    char *end;

    if (!s)
        return;
    if (strncmp(line, "Name:", 5) == 0) {
        (void)snprintf(l->name, sizeof(l->name), "%.*s", (int)strcspn(s + 1, "\n"), s + 1);
    } else if (strncmp(line, "NSpid:", 6) == 0) {
        for (long pid = strtol(s, &end, 10); end != s; pid = strtol(s, &end, 10), l->depth++) {
            l->inner = (pid_t)pid;
            s = end;
        }
    } else if (strncmp(line, "SigIgn:", 7) == 0 || strncmp(line, "SigCgt:", 7) == 0) {
        l->handled |= strtoull(s, NULL, 16);
    }
}

int stk_proc_look(pid_t pid, struct stk_proc_look *ret_look)
{
    struct stk_proc_look l = {0};
    char path[64], *line = NULL;
    size_t size = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return -ESRCH;
    while (getline(&line, &size, f) > 0)
        look_line(&l, line);
    free(line);
    (void)fclose(f);
    if (!l.name[0])
        return -ESRCH;
    *ret_look = l;
    return 0;
}

int stk_proc_uid(pid_t pid, uid_t *ret_uid)
{
    char path[64], buf[2048];
    const char *line;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (read_small(path, buf, sizeof(buf)) <= 0)
        return -ESRCH;
    line = strstr(buf, "\nUid:\t"); /* the name before it has no line end in it */
    if (!line)
        return -ESRCH;
    *ret_uid = (uid_t)strtoul(line + 6, NULL, 10);
    return 0;
}

bool stk_proc_alive(pid_t pid, uint64_t start)
{
    struct stk_proc p;

    return stk_proc_read(pid, &p) == 0 && p.start == start && p.state != 'Z' && p.state != 'X';
}

static int add(struct stk_proc **list, size_t *n, size_t *cap, const struct stk_proc *p)
{
    if (*n == *cap) {
        size_t want = *cap ? *cap * 2 : 256;
        struct stk_proc *more = want > MAX_PROCS ? NULL : realloc(*list, want * sizeof(**list));

        if (!more)
            return -ENOMEM;
        *list = more;
        *cap = want;
    }
    (*list)[(*n)++] = *p;
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    const struct stk_proc *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

int stk_proc_list(struct stk_proc **ret_list, size_t *ret_n)
{
    struct stk_proc *list = NULL;
    const struct dirent *de;
    size_t n = 0, cap = 0;
    int rc = 0;
    DIR *d = opendir("/proc");

    if (!d)
        return -errno;
    /* cppcheck-suppress readdirCalled ; nobody else reads this stream */
    while (rc == 0 && (de = readdir(d))) {
        struct stk_proc p;

        if (de->d_name[0] < '1' || de->d_name[0] > '9')
            continue;
        if (stk_proc_read((pid_t)strtol(de->d_name, NULL, 10), &p) == 0)
            rc = add(&list, &n, &cap, &p);
    }
    (void)closedir(d);
    if (rc < 0) {
        free(list);
        return rc;
    }
    if (n > 0)
        qsort(list, n, sizeof(*list), by_pid);
    *ret_list = list;
    *ret_n = n;
    return 0;
}

size_t stk_proc_below(struct stk_proc *list, size_t n, pid_t root)
{
    size_t kept = 0, from = 0, to = 0;
    pid_t parent = root;

    /* list[0..kept) are found, list[from..kept) have not been asked for children yet. Zombies are
     * followed too: a dead parent has no children, they were given away. */
    for (;;) {
        for (size_t i = kept; i < n; i++)
            if (list[i].ppid == parent && list[i].pid != root) {
                struct stk_proc p = list[i];

                list[i] = list[kept];
                list[kept++] = p;
            }
        if (from == kept)
            break;
        parent = list[from++].pid;
    }
    for (size_t i = 0; i < kept; i++)
        if (list[i].state != 'Z' && list[i].state != 'X')
            list[to++] = list[i];
    return to;
}

const struct stk_proc *stk_proc_find(const struct stk_proc *list, size_t n, pid_t pid)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (list[mid].pid < pid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && list[lo].pid == pid ? &list[lo] : NULL;
}

int stk_proc_signal(pid_t pid, uint64_t start, int sig)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0), rc = 0;

    if (fd < 0)
        return -errno;
    if (!stk_proc_alive(pid, start)) /* the descriptor holds whoever has the pid by now */
        rc = -ESRCH;
    else if (syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) < 0)
        rc = -errno;
    (void)close(fd);
    return rc;
}

/* The environment is read in pieces: it can be megabytes, and the mark may be anywhere. */
bool stk_proc_marked(pid_t pid, const char *mark)
{
    char path[64], want[128], buf[4096];
    size_t len, have = 0;
    bool found = false;
    int fd;

    len = (size_t)snprintf(want, sizeof(want), "%c" STK_MARK_NAME "=%s", 0, mark) + 1;
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || len > sizeof(want))
        goto out;
    buf[have++] = 0; /* the first variable has a zero before it too */
    while (!found) {
        ssize_t n = read(fd, buf + have, sizeof(buf) - have);

        if (n <= 0)
            break;
        have += (size_t)n;
        found = memmem(buf, have, want, len) != NULL;
        if (have > len) {
            memmove(buf, buf + have - len, len);
            have = len;
        }
    }
out:
    if (fd >= 0)
        (void)close(fd);
    return found;
}

int stk_boot_id(char ret_id[STK_BOOT_ID_LEN])
{
    char buf[64];
    ssize_t n = read_small("/proc/sys/kernel/random/boot_id", buf, sizeof(buf));

    if (n < STK_BOOT_ID_LEN - 1)
        return n < 0 ? (int)n : -EIO;
    memcpy(ret_id, buf, STK_BOOT_ID_LEN - 1);
    ret_id[STK_BOOT_ID_LEN - 1] = 0;
    return 0;
}
