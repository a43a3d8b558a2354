/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - talks to sched/stoker in slurmctld, where that is loaded and runs on this machine:
 * asks for a scheduling pass, and hears what has come and ended. Where it is not, nothing is sent,
 * and nothing comes.
 *
 * Our own socket lies in the folder of its socket, and is SlurmUser's alone: others on the machine
 * cannot fill it. One that a process left which was killed is removed by the next. Where it cannot
 * lie there the kernel gives us an address, to which everybody may send; what others do is passed
 * over. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libslurm/helper.h"
#include "slurmctld/where.h"

#define AGAIN_MS 2000 /* how often it is told that we are here: it may have been restarted */
#define SILENT_MS 7000
#define ROOM_MS 2 /* until a word that there was no room for is said again */

extern slurm_conf_t slurm_conf; /* exported by libslurm, declared nowhere */

struct stk_slurm_plugin {
    int fd;
    struct sockaddr_un addr, own; /* own.sun_path "": it has no path */
    int64_t hear_at, heard_at;    /* ms; 0: never */
    bool there;
    enum { PASS_NONE, PASS_TOP, PASS_ALL } owed; /* there was no room for it */
};

/* ---- our own socket ---- */

/* "/var/spool/slurmctld/stoker-hear-HOST-", 'size' with room for a number; false: too long. */
static bool own_prefix(const struct stk_slurm_plugin *p, char *buf, size_t size)
{
    const char *slash = strrchr(p->addr.sun_path, '/');
    char host[65] = "";
    int n;

    if (!slash || gethostname(host, sizeof(host) - 1) < 0)
        return false;
    host[strcspn(host, "./")] = '\0';
    n = snprintf(buf, size, "%.*s/stoker-hear-%s-", (int)(slash - p->addr.sun_path),
                 p->addr.sun_path, host);
    return n > 0 && (size_t)n + sizeof("4194304.sock") <= size;
}

/* Nobody listens there any more. */
static bool is_left(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool left;

    if (strlen(path) < sizeof(a.sun_path))
        memcpy(a.sun_path, path, strlen(path));
    left = fd >= 0 && a.sun_path[0] && connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 &&
           errno == ECONNREFUSED;
    if (fd >= 0)
        (void)close(fd);
    return left;
}

/* What processes of ours left that were killed, on this machine. */
static void sweep(const char *prefix)
{
    const char *name = strrchr(prefix, '/') + 1;
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)], path[sizeof(folder) + 256];
    DIR *d;

    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(name - prefix), prefix);
    d = opendir(folder);
    /* cppcheck-suppress readdirCalled ; nobody else reads this stream */
    for (const struct dirent *e; d && (e = readdir(d));) {
        (void)snprintf(path, sizeof(path), "%s%s", folder, e->d_name);
        if (strncmp(e->d_name, name, strlen(name)) == 0 && is_left(path))
            (void)unlink(path);
    }
    if (d)
        (void)closedir(d);
}

/* False: it cannot lie there, or slurmctld could not write to it. */
static bool bind_path(struct stk_slurm_plugin *p)
{
    uid_t me = geteuid(), slurm = slurm_conf.slurm_user_id;
    char prefix[sizeof(p->own.sun_path)];

    if ((me != 0 && me != slurm) || !own_prefix(p, prefix, sizeof(prefix)))
        return false;
    sweep(prefix);
    p->own.sun_family = AF_UNIX;
    (void)snprintf(p->own.sun_path, sizeof(p->own.sun_path), "%.90s%d.sock", prefix, (int)getpid());
    if (fchmod(p->fd, 0600) == 0 && /* before it is there */
        bind(p->fd, (const struct sockaddr *)&p->own, sizeof(p->own)) == 0) {
        if (me == slurm || chown(p->own.sun_path, slurm, (gid_t)-1) == 0)
            return true;
        (void)unlink(p->own.sun_path);
    }
    p->own.sun_path[0] = '\0';
    return false;
}

static int new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* At an address that the kernel chooses. */
static int any_socket(void)
{
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    int fd = new_socket();

    if (fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)) < 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

struct stk_slurm_plugin *stk_slurm_plugin_new(void)
{
    struct stk_slurm_plugin *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->fd = -1;
    if (stk_slurmctld_address(slurm_conf.sched_params, slurm_conf.state_save_location, &p->addr) <
        0)
        return p;
    p->fd = new_socket();
    if (p->fd < 0 || bind_path(p))
        return p;
    (void)close(p->fd); /* it may be bound already */
    p->fd = any_socket();
    return p;
}

void stk_slurm_plugin_free(struct stk_slurm_plugin *p)
{
    if (p && p->fd >= 0)
        (void)close(p->fd);
    if (p && p->own.sun_path[0])
        (void)unlink(p->own.sun_path);
    free(p);
}

/* ---- words ---- */

int stk_slurm_plugin_fd(const struct stk_slurm_plugin *p)
{
    return p->fd;
}

bool stk_slurm_plugin_there(const struct stk_slurm_plugin *p)
{
    return p->there;
}

/* False: there was no room. Nobody there is no error. */
static bool send_word(const struct stk_slurm_plugin *p, const char *word)
{
    return p->fd < 0 ||
           sendto(p->fd, word, strlen(word), MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)&p->addr, sizeof(p->addr)) >= 0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static void pay(struct stk_slurm_plugin *p)
{
    if (p->owed != PASS_NONE && send_word(p, p->owed == PASS_ALL ? "pass all" : "pass"))
        p->owed = PASS_NONE;
}

void stk_slurm_plugin_pass(struct stk_slurm_plugin *p, bool all)
{
    if (all)
        p->owed = PASS_ALL;
    else if (p->owed == PASS_NONE)
        p->owed = PASS_TOP;
    pay(p);
}

static void say_there(struct stk_slurm_plugin *p, bool there)
{
    if (p->there != there)
        stk_slurm_say(json_pack("{s:s,s:b}", "op", "plugin", "there", there));
    p->there = there;
}

int64_t stk_slurm_plugin_hear(struct stk_slurm_plugin *p, int64_t now)
{
    if (now >= p->hear_at) {
        (void)send_word(p, "hear");
        p->hear_at = now + AGAIN_MS;
    }
    pay(p);
    if (p->there && now - p->heard_at > SILENT_MS)
        say_there(p, false);
    return p->owed == PASS_NONE ? p->hear_at : now + ROOM_MS;
}

/* Slurmctld runs as SlurmUser; what others on this machine send is not for us. */
bool stk_slurm_plugin_read(const struct stk_slurm_plugin *p, char word[STK_SLURMCTLD_WORD])
{
    uid_t who;

    if (p->fd < 0 || !stk_slurmctld_receive(p->fd, word, &who, NULL, NULL))
        return false;
    if (who != 0 && who != slurm_conf.slurm_user_id)
        word[0] = '\0';
    return true;
}

void stk_slurm_plugin_heard(struct stk_slurm_plugin *p, int64_t now)
{
    p->heard_at = now;
    say_there(p, true);
}
