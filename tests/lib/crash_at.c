/* SPDX-License-Identifier: Apache-2.0 */
/* crash_at.c - a library to preload into the daemon: it counts the calls that change something
 * outside the process and kills it, as kill -9 would, just before the one numbered CRASH_AT (or
 * just after, with CRASH_AFTER=1). So a test can stop the daemon at every single step.
 *
 * Counted: write, writev, pwrite64, fsync, fdatasync, sendto, sendmsg, rename, unlink, ftruncate64,
 * posix_spawn, connect, bind. CRASH_COUNT=FILE: at exit, the number of calls is written there. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls, at = -1, after;
static pid_t owner;

__attribute__((constructor)) static void begin(void)
{
    const char *n = getenv("CRASH_AT"), *a = getenv("CRASH_AFTER");

    at = n ? atol(n) : 0;
    after = a ? atol(a) : 0;
    owner = getpid();
    unsetenv("LD_PRELOAD"); /* not for what the daemon starts */
}

static int step(void)
{
    if (at <= 0 || getpid() != owner || ++calls != at)
        return 0;
    if (!after)
        (void)kill(owner, SIGKILL);
    return 1;
}

static void stepped(int now)
{
    if (now)
        (void)kill(owner, SIGKILL);
}

/* through a union: ISO C has no conversion from object to function pointers */
#define NEXT(name)                                                                                 \
    (((union {                                                                                     \
         void *object;                                                                             \
         __typeof__(&(name)) function;                                                             \
     }){dlsym(RTLD_NEXT, #name)})                                                                  \
         .function)
#define STEP(type, name, params, args)                                                             \
    type name params                                                                               \
    {                                                                                              \
        static __typeof__(&(name)) next;                                                           \
        int now = step();                                                                          \
        type r;                                                                                    \
                                                                                                   \
        if (!next)                                                                                 \
            next = NEXT(name);                                                                     \
        r = next args;                                                                             \
        stepped(now);                                                                              \
        return r;                                                                                  \
    }

STEP(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
STEP(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
STEP(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o))
STEP(int, fsync, (int fd), (fd))
STEP(int, fdatasync, (int fd), (fd))
STEP(ssize_t, send, (int fd, const void *b, size_t n, int f), (fd, b, n, f))
STEP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), (fd, m, f))
STEP(int, rename, (const char *a, const char *b), (a, b))
STEP(int, unlink, (const char *a), (a))
STEP(int, unlinkat, (int d, const char *a, int f), (d, a, f))
STEP(int, posix_spawn,
     (pid_t *restrict p, const char *restrict path, const posix_spawn_file_actions_t *restrict fa,
      const posix_spawnattr_t *restrict attr, char *const argv[restrict],
      char *const envp[restrict]),
     (p, path, fa, attr, argv, envp))
STEP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
STEP(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
