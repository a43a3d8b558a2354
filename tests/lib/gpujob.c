/* SPDX-License-Identifier: Apache-2.0 */
/* gpujob.c - a job for tests that knows when it shares a GPU: "gpujob DIR MILLISECONDS [nolock]".
 *
 * Appends lines to DIR/log, each in one write: "start JOB RESTARTS PID GPUS", "end JOB RESTARTS",
 * and "conflict JOB GPU" when another process holds a lock on one of its GPUs (DIR/gpu-N). A job
 * that may be suspended keeps its locks while it sleeps: it runs with "nolock". Linked statically,
 * so that thousands start quickly. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char *env(const char *name)
{
    const char *v = getenv(name);

    return v ? v : "?";
}

static void say(const char *dir, const char *line, int n)
{
    char path[512];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/log", dir);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        _exit(99);
    (void)close(fd);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : ".";
    long ms = argc > 2 ? atol(argv[2]) : 10;
    char gpus[256], line[512], *save = NULL;
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    say(dir, line,
        snprintf(line, sizeof(line), "start %s %s %d %s\n", env("STOKER_JOB_ID"),
                 env("STOKER_RESTARTS"), getpid(), env("CUDA_VISIBLE_DEVICES")));
    (void)snprintf(gpus, sizeof(gpus), "%s", env("CUDA_VISIBLE_DEVICES"));
    for (char *g = argc > 3 ? NULL : strtok_r(gpus, ",", &save); g;
         g = strtok_r(NULL, ",", &save)) {
        char path[512];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/gpu-%s", dir, g);
        fd = open(path, O_RDWR | O_CREAT, 0666);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
            say(dir, line,
                snprintf(line, sizeof(line), "conflict %s %s\n", env("STOKER_JOB_ID"), g));
    }
    while (nanosleep(&t, &t) < 0)
        ;
    say(dir, line,
        snprintf(line, sizeof(line), "end %s %s\n", env("STOKER_JOB_ID"), env("STOKER_RESTARTS")));
    return 0;
}
