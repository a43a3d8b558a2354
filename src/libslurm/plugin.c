/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - talks to sched/stoker in slurmctld, where that is loaded and runs on this machine:
 * asks for a scheduling pass, and hears what has come and ended. Where it is not, nothing is sent,
 * and nothing comes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libslurm/helper.h"
#include "slurmctld/where.h"

#define AGAIN_MS 2000 /* how often it is told that we are here: it may have been restarted */
#define SILENT_MS 7000
#define ROOM_MS 2 /* until a word that there was no room for is said again */

extern slurm_conf_t slurm_conf; /* exported by libslurm, declared nowhere */

struct stk_slurm_plugin {
    int fd;
    struct sockaddr_un addr;
    int64_t hear_at, heard_at; /* ms; 0: never */
    bool there;
    enum { PASS_NONE, PASS_TOP, PASS_ALL } owed; /* there was no room for it */
};

struct stk_slurm_plugin *stk_slurm_plugin_new(void)
{
    struct stk_slurm_plugin *p = calloc(1, sizeof(*p));
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    const int on = 1;

    if (!p)
        return NULL;
    p->fd = -1;
    if (stk_slurmctld_address(slurm_conf.sched_params, slurm_conf.state_save_location, &p->addr) <
        0)
        return p;
    p->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->fd >= 0 && (setsockopt(p->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
                       bind(p->fd, (const struct sockaddr *)&any, sizeof(any.sun_family)) < 0)) {
        (void)close(p->fd); /* the kernel gives us an address that nobody else has */
        p->fd = -1;
    }
    return p;
}

void stk_slurm_plugin_free(struct stk_slurm_plugin *p)
{
    if (p && p->fd >= 0)
        (void)close(p->fd);
    free(p);
}

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
bool stk_slurm_plugin_read(struct stk_slurm_plugin *p, int64_t now, char word[STK_SLURMCTLD_WORD])
{
    uid_t who;

    if (p->fd < 0 || !stk_slurmctld_receive(p->fd, word, &who, NULL, NULL))
        return false;
    if (who != 0 && who != slurm_conf.slurm_user_id)
        word[0] = '\0';
    if (strcmp(word, "hear") == 0) {
        p->heard_at = now;
        say_there(p, true);
    }
    return true;
}
