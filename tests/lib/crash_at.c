/* SPDX-License-Identifier: Apache-2.0 */
/* crash_at.c - a library to preload into the daemon: it counts the calls that change something
 * outside the process and kills it, as kill -9 would, just before the one numbered CRASH_AT (or
 * just after, with CRASH_AFTER=1). So a test can stop the daemon at every single step. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
STEP(int, listen, (int fd, int n), (fd, n))
STEP(ssize_t, sendto,
     (int fd, const void *b, size_t n, int f, const struct sockaddr *a, socklen_t len),
     (fd, b, n, f, a, len))
STEP(int, ftruncate64, (int fd, off64_t n), (fd, n))
STEP(int, fallocate64, (int fd, int mode, off64_t from, off64_t n), (fd, mode, from, n))
STEP(int, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b))
STEP(int, mkdir, (const char *a, mode_t m), (a, m))
STEP(int, fchmod, (int fd, mode_t m), (fd, m))
STEP(int, flock, (int fd, int op), (fd, op))
STEP(pid_t, fork, (void), ())

/* Opening counts when it may make the file. */
#define OPEN(name, params, args)                                                                   \
    int name params                                                                                \
    {                                                                                              \
        static int(*next) params;                                                                  \
        int r, now = (flags & O_CREAT) && step();                                                  \
        va_list ap;                                                                                \
        mode_t mode;                                                                               \
                                                                                                   \
        va_start(ap, flags);                                                                       \
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;                             \
        va_end(ap);                                                                                \
        if (!next)                                                                                 \
            next = NEXT(name);                                                                     \
        r = next args;                                                                             \
        stepped(now);                                                                              \
        return r;                                                                                  \
    }

OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
