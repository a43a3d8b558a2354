/* SPDX-License-Identifier: Apache-2.0 */
/* hear.c - a thread that hears what the plugins in slurmctld say, and asks for single jobs
 * (follow.c). It is a thread of its own so that an end is never late because of something else that
 * is asked of Slurm: a node that is down is waited for for seconds. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libslurm/follow.h"
#include "libslurm/helper.h"

#define FOLLOW_MS 12 /* Slurm has started what was released, with sched/stoker */
#define TICK_MS 100  /* likewise, without */
#define WORDS 64u    /* that are read at a time: there may be no end of them */

struct stk_slurm_hear {
    struct stk_slurm_told *told;
    struct stk_slurm_watch *watch;
    struct stk_slurm_plugin *plugin;
    int wake;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock; /* of what follows, and of the plugin */
    struct stk_slurm_follow *follow;
    bool pushed, ends; /* pushed: ends are */
};

static void wake(struct stk_slurm_hear *h)
{
    const uint64_t one = 1;

    (void)!write(h->wake, &one, sizeof(one));
}

/* ---- words ---- */

static void take_word(struct stk_slurm_hear *h, const char *word)
{
    int64_t now = stk_slurm_now_ms();

    if (strncmp(word, "end ", 4) == 0) {
        stk_slurm_follow_job(h->follow, (uint32_t)strtoul(word + 4, NULL, 10), now, 0, true);
        h->pushed = true;
    } else if (strcmp(word, "hear") == 0) {
        stk_slurm_plugin_heard(h->plugin, now);
    } else if (strcmp(word, "new") == 0) {
        stk_slurm_follow_new_jobs(h->follow, now);
    } else if (strcmp(word, "look") == 0) {
        stk_slurm_watch_soon(h->watch);
    }
}

/* Those that have come; how many. The lock is not held: who asks for something does not wait. */
static uint32_t read_words(const struct stk_slurm_hear *h, char words[][STK_SLURMCTLD_WORD])
{
    uint32_t n = 0;

    while (n < WORDS && stk_slurm_plugin_read(h->plugin, words[n]))
        n++;
    return n;
}

static void take_words(struct stk_slurm_hear *h, char words[][STK_SLURMCTLD_WORD], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        take_word(h, words[i]);
    h->pushed = h->pushed && stk_slurm_plugin_there(h->plugin);
    stk_slurm_watch_pushed(h->watch, h->pushed);
}

/* ---- single jobs ---- */

/* It is about to start, or to be gone. */
static bool restless(const job_info_msg_t *m)
{
    for (uint32_t i = 0; i < m->record_count; i++) {
        const slurm_job_info_t *j = &m->job_array[i];
        bool waits = (j->job_state & JOB_STATE_BASE) == JOB_PENDING && j->priority != 0;

        if (waits || (j->job_state & JOB_COMPLETING))
            return true;
    }
    return false;
}

static enum stk_slurm_rest ask(struct stk_slurm_hear *h, uint32_t id)
{
    int64_t now = stk_slurm_now_ms();
    job_info_msg_t *m = NULL;
    bool rests;

    if (id == 0) /* there is no number to go on from */
        return STK_SLURM_UNKNOWN;
    if (slurm_load_job(&m, id, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS)
        return errno == ESLURM_INVALID_JOB_ID ? STK_SLURM_UNKNOWN : STK_SLURM_SILENT;
    stk_slurm_told_one(h->told, m, now);
    rests = !restless(m);
    slurm_free_job_info_msg(m);
    return rests ? STK_SLURM_RESTS : STK_SLURM_RESTLESS;
}

/* One that is due, if one is. The lock is held, but not while Slurm is asked. */
static void ask_one(struct stk_slurm_hear *h)
{
    struct stk_slurm_followed j;
    enum stk_slurm_rest rest;

    if (stk_slurm_follow_take(h->follow, stk_slurm_told_highest(h->told), stk_slurm_now_ms(), &j)) {
        (void)pthread_mutex_unlock(&h->lock);
        rest = ask(h, j.id);
        (void)pthread_mutex_lock(&h->lock);
        stk_slurm_follow_asked(h->follow, j, stk_slurm_now_ms(), rest);
    }
    if (stk_slurm_follow_full(h->follow))
        stk_slurm_watch_soon(h->watch);
}

/* ---- the thread ---- */

static void *run(void *arg)
{
    struct stk_slurm_hear *h = arg;
    struct pollfd p[2] = {{.fd = h->wake, .events = POLLIN},
                          {.fd = stk_slurm_plugin_fd(h->plugin), .events = POLLIN}};
    char words[WORDS][STK_SLURMCTLD_WORD];
    uint32_t n_words;
    uint64_t n;

    (void)pthread_mutex_lock(&h->lock);
    while (!h->ends) {
        int64_t now = stk_slurm_now_ms(), hear = stk_slurm_plugin_hear(h->plugin, now),
                next = stk_slurm_follow_next(h->follow);

        next = next < hear ? next : hear;
        (void)pthread_mutex_unlock(&h->lock);
        (void)poll(p, 2, next > now ? (int)(next - now) : 0);
        if (p[0].revents)
            (void)!read(h->wake, &n, sizeof(n));
        n_words = read_words(h, words);
        (void)pthread_mutex_lock(&h->lock);
        take_words(h, words, n_words);
        ask_one(h);
    }
    (void)pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void follow_now(void *ctx, uint32_t id)
{
    struct stk_slurm_hear *h = ctx;

    (void)pthread_mutex_lock(&h->lock);
    stk_slurm_follow_job(h->follow, id, stk_slurm_now_ms(), 0, true);
    (void)pthread_mutex_unlock(&h->lock);
    wake(h);
}

struct stk_slurm_hear *stk_slurm_hear_new(struct stk_slurm_told *told,
                                          struct stk_slurm_watch *watch)
{
    struct stk_slurm_hear *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->told = told;
    h->watch = watch;
    (void)pthread_mutex_init(&h->lock, NULL);
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    h->plugin = stk_slurm_plugin_new();
    h->follow = stk_slurm_follow_new();
    h->runs =
        h->wake >= 0 && h->plugin && h->follow && pthread_create(&h->thread, NULL, run, h) == 0;
    if (!h->runs) {
        stk_slurm_hear_free(h);
        return NULL;
    }
    stk_slurm_watch_follow(watch, follow_now, h);
    return h;
}

void stk_slurm_hear_free(struct stk_slurm_hear *h)
{
    if (!h)
        return;
    (void)pthread_mutex_lock(&h->lock);
    h->ends = true;
    (void)pthread_mutex_unlock(&h->lock);
    if (h->runs) {
        wake(h);
        (void)pthread_join(h->thread, NULL);
    }
    if (h->wake >= 0)
        (void)close(h->wake);
    stk_slurm_follow_free(h->follow);
    stk_slurm_plugin_free(h->plugin);
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}

void stk_slurm_hear_follow(struct stk_slurm_hear *h, uint32_t id, bool hurry)
{
    (void)pthread_mutex_lock(&h->lock);
    stk_slurm_follow_job(h->follow, id, stk_slurm_now_ms(),
                         stk_slurm_plugin_there(h->plugin) ? FOLLOW_MS : TICK_MS, hurry);
    (void)pthread_mutex_unlock(&h->lock);
    wake(h);
}

void stk_slurm_hear_pass(struct stk_slurm_hear *h, bool all)
{
    (void)pthread_mutex_lock(&h->lock);
    stk_slurm_plugin_pass(h->plugin, all);
    (void)pthread_mutex_unlock(&h->lock);
}
