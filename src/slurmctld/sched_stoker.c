/* SPDX-License-Identifier: Apache-2.0 */
/* sched_stoker.c - sched/stoker: a plugin that slurmctld loads in place of sched/backfill. It
 * decides nothing: stoker has decided, and releases a job pinned to its nodes. Slurm would look at
 * it with its next tick, up to a second later; a datagram here makes it look at once.
 *
 * Jobs in partitions that are not stoker's are scheduled as before: the main scheduler's own passes
 * go on, and sched/backfill is loaded and run by us, unless SchedulerParameters has
 * stoker_no_backfill. What waits for stoker is held, so neither of them looks at it.
 *
 * The plugin also passes on what other plugins of ours know first: that a job has come, that one
 * has ended. One thread, which sleeps until a datagram comes; at most one pass per GAP_MS. Only
 * root, SlurmUser and slurmctld itself are listened to. Built with Slurm's public headers alone;
 * what is called in slurmctld is looked up by name, and done without where it is not there.
 *
 * As loaded by slurmctld it is under Slurm's licence (GPL); this source is ours (Apache-2.0). */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slurmctld/news.h"
#include "slurmctld/other.h"
#include "slurmctld/where.h"

#define GAP_MS 2 /* between two passes */
#define MAX_HEARERS 4u
#define EXPORT __attribute__((visibility("default")))

extern slurm_conf_t slurm_conf; /* exported by slurmctld, declared nowhere */
extern void slurm_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
extern int slurm_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What Slurm asks of a sched plugin. */
extern const char plugin_name[], plugin_type[];
extern const uint32_t plugin_version;
int init(void);
void fini(void);
int sched_p_reconfig(void);

EXPORT const char plugin_name[] = "stoker decides; released jobs start at once";
EXPORT const char plugin_type[] = "sched/stoker";
EXPORT const uint32_t plugin_version = SLURM_VERSION_NUMBER;

struct hearer {
    struct sockaddr_un addr;
    socklen_t len;                 /* 0: nobody */
    int fd;                        /* connected to it */
    struct stk_news news;          /* to be told */
    char word[STK_SLURMCTLD_WORD]; /* that there was no room for; "": none */
};

static struct {
    int fd, wake; /* -1: not open */
    pthread_t thread;
    bool runs;
    struct sockaddr_un addr;
    struct hearer hearers[MAX_HEARERS];
    uint32_t next; /* whose place the next one takes */
    void (*schedule)(bool full);
    void *backfill; /* the other plugin */
    int (*backfill_reconfig)(void);
} self = {.fd = -1, .wake = -1};

/* ---- what others know first ---- */

static void drop(struct hearer *h)
{
    if (h->len > 0)
        (void)close(h->fd);
    h->len = 0;
}

/* As much as there is room for. True: there is more, for when there is room again. */
static bool tell(struct hearer *h)
{
    while (h->len > 0 && (h->word[0] || stk_news_take(&h->news, h->word))) {
        if (send(h->fd, h->word, strlen(h->word), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            h->word[0] = '\0';
        else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
            return true;
        else if (errno != EINTR)
            drop(h); /* it has gone */
    }
    return false;
}

static void pass_on(const char *word)
{
    for (uint32_t i = 0; i < MAX_HEARERS; i++)
        if (self.hearers[i].len > 0)
            (void)stk_news_word(&self.hearers[i].news, word);
}

static struct hearer *find_hearer(const struct sockaddr_un *from, socklen_t len)
{
    for (uint32_t i = 0; i < MAX_HEARERS; i++)
        if (self.hearers[i].len == len && memcmp(&self.hearers[i].addr, from, len) == 0)
            return &self.hearers[i];
    return NULL;
}

/* One that comes looks for itself: what was before it was not told. */
static struct hearer *new_hearer(const struct sockaddr_un *from, socklen_t len)
{
    struct hearer *h = NULL;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)from, len) < 0) {
        if (fd >= 0)
            (void)close(fd);
        return NULL; /* it says so again */
    }
    for (uint32_t i = 0; i < MAX_HEARERS && !h; i++)
        h = self.hearers[i].len == 0 ? &self.hearers[i] : NULL;
    if (!h) {
        h = &self.hearers[self.next];
        self.next = (self.next + 1) % MAX_HEARERS;
    }
    drop(h);
    *h = (struct hearer){.addr = *from, .len = len, .fd = fd, .news = {.look = true}};
    return h;
}

static void add_hearer(const struct sockaddr_un *from, socklen_t len)
{
    struct hearer *h;

    if (len <= sizeof(sa_family_t) || len > sizeof(*from))
        return; /* it has no address */
    h = find_hearer(from, len);
    h = h ? h : new_hearer(from, len);
    if (h)
        h->news.hear = true;
}

/* ---- datagrams ---- */

/* False: there is none. One that nobody may send, or that is too long, is an empty word. */
static bool receive(char word[STK_SLURMCTLD_WORD], struct sockaddr_un *from, socklen_t *ret_len)
{
    uid_t who;

    if (!stk_slurmctld_receive(self.fd, word, &who, from, ret_len))
        return false;
    if (who != 0 && who != slurm_conf.slurm_user_id && who != geteuid())
        word[0] = '\0';
    return true;
}

/* 1: a pass is wanted, 2: a full one. */
static int take(const char *word, const struct sockaddr_un *from, socklen_t len)
{
    if (strcmp(word, "pass") == 0)
        return 1;
    if (strcmp(word, "pass all") == 0)
        return 2;
    if (strcmp(word, "hear") == 0)
        add_hearer(from, len);
    else
        pass_on(word);
    return 0;
}

/* All that have come. */
static int take_all(void)
{
    char word[STK_SLURMCTLD_WORD];
    struct sockaddr_un from;
    socklen_t len = 0;
    int want = 0;

    while (receive(word, &from, &len)) {
        int w = take(word, &from, len);

        want = w > want ? w : want;
    }
    return want;
}

/* Tells those who hear, and waits for a word, or for room for what is left to tell. < 0: it failed.
 */
static int wait_here(struct pollfd p[2 + MAX_HEARERS])
{
    for (uint32_t i = 0; i < MAX_HEARERS; i++) {
        struct hearer *h = &self.hearers[i];

        p[2 + i] = (struct pollfd){.fd = tell(h) ? h->fd : -1, .events = POLLOUT};
    }
    return poll(p, 2 + MAX_HEARERS, -1) < 0 && errno != EINTR ? -1 : 0;
}

static void *listen_here(void *arg)
{
    struct pollfd p[2 + MAX_HEARERS] = {{.fd = self.wake, .events = POLLIN},
                                        {.fd = self.fd, .events = POLLIN}};

    while (p[0].revents == 0 && wait_here(p) == 0) {
        int want = take_all();

        if (want == 0 || !self.schedule)
            continue;
        self.schedule(want == 2); /* wakes Slurm's own thread */
        (void)poll(p, 1, GAP_MS);
    }
    return arg;
}

/* ---- coming and going ---- */

static int open_socket(void)
{
    int on = 1;

    if (stk_slurmctld_address(slurm_conf.sched_params, slurm_conf.state_save_location, &self.addr) <
        0)
        return slurm_error("sched/stoker: no place for a socket: SchedulerParameters="
                           "stoker_socket=PATH (at most %zu characters) gives it one",
                           sizeof(self.addr.sun_path) - 1);
    (void)unlink(self.addr.sun_path);
    self.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    self.wake = eventfd(0, EFD_CLOEXEC);
    if (self.fd < 0 || self.wake < 0 ||
        setsockopt(self.fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
        bind(self.fd, (struct sockaddr *)&self.addr, sizeof(self.addr)) < 0 ||
        chmod(self.addr.sun_path, 0600) < 0)
        return slurm_error("sched/stoker: cannot listen at %s: %s", self.addr.sun_path,
                           strerror(errno));
    return 0;
}

static void close_socket(void)
{
    if (self.fd >= 0) {
        (void)close(self.fd);
        (void)unlink(self.addr.sun_path);
    }
    if (self.wake >= 0)
        (void)close(self.wake);
    self.fd = self.wake = -1;
    for (uint32_t i = 0; i < MAX_HEARERS; i++)
        drop(&self.hearers[i]);
}

static void start_backfill(void)
{
    if (stk_slurmctld_param(slurm_conf.sched_params, "stoker_no_backfill"))
        return;
    self.backfill = stk_other_start(slurm_conf.plugindir, "sched_backfill", plugin_version);
    if (self.backfill)
        stk_other_find(self.backfill, "sched_p_reconfig", &self.backfill_reconfig);
    else
        (void)slurm_error("sched/stoker: there is no sched/backfill of this Slurm in PluginDir: "
                          "partitions that are not stoker's are scheduled without backfill");
}

EXPORT int init(void)
{
    stk_other_find(RTLD_DEFAULT, "schedule", &self.schedule);
    if (!self.schedule)
        (void)slurm_error("sched/stoker: this slurmctld has no schedule(): released jobs start "
                          "with its own passes");
    start_backfill();
    if (open_socket() == 0 && pthread_create(&self.thread, NULL, listen_here, NULL) == 0) {
        self.runs = true;
        slurm_info("sched/stoker: listening at %s", self.addr.sun_path);
    } else {
        close_socket(); /* everything works without, later */
    }
    return SLURM_SUCCESS;
}

EXPORT void fini(void)
{
    const uint64_t one = 1;

    if (self.runs && write(self.wake, &one, sizeof(one)) == (ssize_t)sizeof(one))
        (void)pthread_join(self.thread, NULL);
    self.runs = false;
    close_socket();
    stk_other_stop(self.backfill);
    self.backfill = NULL;
    self.backfill_reconfig = NULL;
}

EXPORT int sched_p_reconfig(void)
{
    return self.backfill_reconfig ? self.backfill_reconfig() : SLURM_SUCCESS;
}
