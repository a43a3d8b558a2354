/* SPDX-License-Identifier: Apache-2.0 */
/* gpujob.c - a job for tests that knows when it is not alone: "gpujob DIR MILLISECONDS [sleeps]".
 *
 * Appends lines to DIR/log, each in one write: "start JOB RESTARTS LEASE PID GPUS", "end JOB
 * RESTARTS LEASE", and "conflict JOB WHAT" when
 * - another process of this job and task lives (a lock on DIR/job-N.T),
 * - another process holds a lock on one of its GPUs (DIR/gpu-N). A job that may be suspended would
 *   keep that lock while it sleeps: with "sleeps" it takes none;
 * - another process uses one of its GPUs at the same time: each writes its pid into DIR/mark-N
 *   again and again, and may find somebody else's there once in the beginning, and once more each
 *   time it was woken.
 * With $GPUJOB_CUDA it uses CUDA, as far as tests/lib/fake.h is concerned: that is its folder.
 * Linked statically, so that thousands start quickly. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_GPUS 64

struct gpu {
    char name[16];
    int *mark;
    int others; /* times that somebody else's pid was there */
};

static const char *dir;
static struct gpu gpus[MAX_GPUS];
static int n_gpus;
static volatile sig_atomic_t woken;

static void on_cont(int sig)
{
    (void)sig;
    woken++;
}

static const char *env(const char *name)
{
    const char *v = getenv(name);

    return v ? v : "?";
}

static int open_in(const char *kind, const char *name)
{
    char path[8192];

    (void)snprintf(path, sizeof(path), "%s/%s%s", dir, kind, name);
    return open(path, O_RDWR | O_APPEND | O_CREAT, 0666);
}

static void say(const char *word, const char *rest)
{
    int fd = open_in("log", "");
    char line[4096];
    int n = snprintf(line, sizeof(line), "%s %s %s\n", word, env("STOKER_JOB_ID"), rest);

    if (fd < 0 || write(fd, line, (size_t)n) != n)
        _exit(99);
    (void)close(fd);
}

static void lock(const char *kind, const char *name)
{
    int fd = open_in(kind, name);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        say("conflict", kind);
}

static void find_gpus(void)
{
    static char list[512];
    char *save = NULL;

    (void)snprintf(list, sizeof(list), "%s", env("STOKER_GPUS"));
    for (char *g = strtok_r(list, ",", &save); g && n_gpus < MAX_GPUS;
         g = strtok_r(NULL, ",", &save)) {
        int fd = open_in("mark-", g);
        void *page = MAP_FAILED;

        if (fd >= 0 && ftruncate(fd, sizeof(int)) == 0)
            page = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
            _exit(98);
        (void)snprintf(gpus[n_gpus].name, sizeof(gpus->name), "%s", g);
        gpus[n_gpus++].mark = page;
    }
}

static void use_cuda(const char *fakes)
{
    char path[8192];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%d.state", fakes, getpid());
    f = fopen(path, "w");
    if (!f || fputs("running\n", f) < 0 || fclose(f) != 0)
        _exit(97);
}

static void use_gpus(void)
{
    for (struct gpu *g = gpus; g < gpus + n_gpus; g++)
        if (__atomic_exchange_n(g->mark, getpid(), __ATOMIC_SEQ_CST) != getpid() &&
            ++g->others == woken + 2)
            say("conflict", g->name);
}

static long long now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    long long ms = argc > 2 ? atol(argv[2]) : 10, last;
    const struct timespec slice = {0, 1000000};
    char text[512];

    dir = argc > 1 ? argv[1] : ".";
    (void)signal(SIGCONT, on_cont);
    (void)snprintf(text, sizeof(text), "%s %s %d %s", env("STOKER_RESTARTS"), env("STOKER_LEASE"),
                   getpid(), env("STOKER_GPUS"));
    say("start", text);
    (void)snprintf(text, sizeof(text), "%s.%s", env("STOKER_JOB_ID"), env("STOKER_TASK"));
    lock("job-", text);
    find_gpus();
    if (n_gpus > 0 && getenv("GPUJOB_CUDA"))
        use_cuda(getenv("GPUJOB_CUDA"));
    for (int i = 0; i < n_gpus && argc <= 3; i++)
        lock("gpu-", gpus[i].name);
    for (last = now_ms(); ms > 0;) { /* time asleep does not count */
        long long now = now_ms();

        ms -= now - last < 20 ? now - last : 20;
        last = now;
        use_gpus();
        (void)nanosleep(&slice, NULL);
    }
    (void)snprintf(text, sizeof(text), "%s %s", env("STOKER_RESTARTS"), env("STOKER_LEASE"));
    say("end", text);
    return 0;
}
