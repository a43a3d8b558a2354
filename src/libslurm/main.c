/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - stoker-libslurm: all that stoker needs of Slurm's library, in a program of its own. It
 * talks to the daemon in JSON lines over its standard input and output, and ends with the daemon.
 *
 * libslurm is under the GNU GPL, and so is this program as it is linked; the daemon never loads it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libslurm/helper.h"

#define MAX_LINE (8u << 20)
#define MANY 64u     /* released at once: Slurm would not look at all of them in a short pass */
#define FOLLOW_MS 12 /* Slurm has started what was released, with sched/stoker */
#define TICK_MS 100  /* likewise, without */
#define MIN_MS 10
#define MAX_MS 60000
#define PATIENCE_S 10 /* with a slurmctld that does not answer: Slurm's own default */

extern slurm_conf_t slurm_conf; /* exported by libslurm, declared nowhere */

struct helper {
    struct stk_slurm_watch *watch;
    char *line;
    size_t n;
    struct stk_slurm_told *told;
    struct stk_slurm_follow *follow;
    struct stk_slurm_plugin *plugin;
    uint32_t released; /* jobs, since a pass was asked for */
    bool pushed;       /* ends are */
};

/* How often to look, from now on. */
static json_t *every(struct helper *h, const json_t *o)
{
    json_int_t ms = json_integer_value(json_object_get(o, "ms"));

    if (ms < MIN_MS || ms > MAX_MS)
        return json_pack("{s:b,s:s}", "ok", 0, "why", "every needs ms, 10 to 60000");
    stk_slurm_watch_every(h->watch, (int)ms);
    return json_pack("{s:b}", "ok", 1);
}

/* Slurm may start a job after it. */
static bool releases(const char *op, const json_t *o)
{
    return op && (strcmp(op, "start") == 0 || strcmp(op, "release") == 0 ||
                  (strcmp(op, "submit") == 0 && !json_is_true(json_object_get(o, "hold"))));
}

/* What was asked for has changed something: it shows soon. */
static void follow(struct helper *h, const json_t *o, bool sent)
{
    json_int_t id = json_integer_value(json_object_get(o, "job"));
    int64_t now = stk_slurm_now_ms();

    if (id <= 0 || id >= UINT32_MAX)
        return;
    if (sent)
        stk_slurm_told_sent(h->told, (uint32_t)id, now);
    stk_slurm_follow_job(h->follow, (uint32_t)id, now,
                         stk_slurm_plugin_there(h->plugin) ? FOLLOW_MS : TICK_MS);
}

static void take_line(struct helper *h, const char *line, size_t len)
{
    json_t *o = json_loadb(line, len, JSON_DISABLE_EOF_CHECK, NULL), *out;
    const char *op = json_string_value(json_object_get(o, "op"));

    if (!json_is_object(o))
        out = json_pack("{s:b,s:s}", "ok", 0, "why", "a line is a JSON object");
    else if (op && strcmp(op, "every") == 0)
        out = every(h, o);
    else
        out = stk_slurm_work(o);
    h->released += releases(op, o) && json_is_true(json_object_get(out, "ok"));
    follow(h, json_object_get(out, "job") ? out : o, json_object_get(out, "job"));
    (void)json_object_set_new(out, "op", json_string("answer"));
    (void)json_object_set(out, "id",
                          json_object_get(o, "id") ? json_object_get(o, "id") : json_null());
    if (json_is_true(json_object_get(out, "unanswered")))
        stk_slurm_watch_doubt(h->watch);
    stk_slurm_say(out);
    json_decref(o);
}

/* Whole lines of what has come. */
static void take_lines(struct helper *h)
{
    char *from = h->line, *end;

    while ((end = memchr(from, '\n', h->n - (size_t)(from - h->line)))) {
        if (end > from)
            take_line(h, from, (size_t)(end - from));
        from = end + 1;
    }
    h->n -= (size_t)(from - h->line);
    memmove(h->line, from, h->n);
    if (h->released > 0)
        stk_slurm_plugin_pass(h->plugin, h->released > MANY);
    h->released = 0;
}

/* False: the daemon is gone, or says things that are too long. */
static bool read_some(struct helper *h)
{
    ssize_t n;

    if (h->n == MAX_LINE)
        return false;
    n = read(STDIN_FILENO, h->line + h->n, MAX_LINE - h->n);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    h->n += (size_t)n;
    take_lines(h);
    return n > 0;
}

static void take_word(struct helper *h, const char *word)
{
    int64_t now = stk_slurm_now_ms();

    if (strncmp(word, "end ", 4) == 0) {
        stk_slurm_follow_job(h->follow, (uint32_t)strtoul(word + 4, NULL, 10), now, 0);
        h->pushed = true;
    } else if (strcmp(word, "new") == 0) {
        stk_slurm_follow_new_jobs(h->follow, now);
        if (stk_slurm_told_highest(h->told) == 0) /* there is no number to go on from */
            stk_slurm_watch_soon(h->watch);
    } else if (strcmp(word, "look") == 0) {
        stk_slurm_watch_soon(h->watch);
    }
}

/* What the plugins in slurmctld know. */
static void take_words(struct helper *h)
{
    char word[STK_SLURMCTLD_WORD];

    while (stk_slurm_plugin_read(h->plugin, stk_slurm_now_ms(), word))
        take_word(h, word);
    h->pushed = h->pushed && stk_slurm_plugin_there(h->plugin);
    stk_slurm_watch_pushed(h->watch, h->pushed);
}

/* False: the daemon is gone. */
static bool turn(struct helper *h)
{
    int64_t now = stk_slurm_now_ms(), hear = stk_slurm_plugin_hear(h->plugin, now),
            next = stk_slurm_follow_next(h->follow);
    struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = stk_slurm_plugin_fd(h->plugin), .events = POLLIN}};

    next = next < hear ? next : hear;
    if (poll(p, 2, next > now ? (int)(next - now) : 0) < 0 && errno != EINTR)
        return false;
    take_words(h);
    if (p[0].revents && !read_some(h))
        return false;
    stk_slurm_follow_ask(h->follow, stk_slurm_now_ms());
    return true;
}

static int usage(FILE *f)
{
    (void)fprintf(f, "stoker-libslurm " STK_VERSION ": what stoker needs of Slurm\n\n"
                     "usage: stoker-libslurm [--conf FILE]\n\n"
                     "  --conf FILE  slurm.conf (default: $SLURM_CONF, or Slurm's own)\n\n"
                     "Requests are JSON lines on standard input (docs/spec/libslurm.md).\n");
    return f == stdout ? 0 : 2;
}

static bool open_all(struct helper *h)
{
    h->line = malloc(MAX_LINE);
    h->plugin = stk_slurm_plugin_new();
    h->told = stk_slurm_told_new();
    h->follow = h->told ? stk_slurm_follow_new(h->told) : NULL;
    h->watch = h->line && h->plugin && h->follow ? stk_slurm_watch_new(h->told) : NULL;
    return h->watch;
}

static void close_all(struct helper *h)
{
    stk_slurm_watch_free(h->watch);
    stk_slurm_follow_free(h->follow);
    stk_slurm_plugin_free(h->plugin);
    stk_slurm_told_free(h->told);
    free(h->line);
}

/* Where it cannot libslurm would end the process without a word for us. */
static bool can_read(const char *conf)
{
    char why[4400];

    if (!conf || access(conf, R_OK) == 0)
        return true;
    (void)snprintf(why, sizeof(why),
                   "cannot read %.4096s: %s; slurm.conf in stoker's configuration says where "
                   "Slurm's own is",
                   conf, strerror(errno));
    stk_slurm_say(json_pack("{s:s,s:s}", "op", "away", "why", why));
    return false;
}

int main(int argc, char **argv)
{
    struct helper h = {.n = 0};
    const char *conf = NULL;
    int rc;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return usage(stdout);
        if (strcmp(argv[i], "--conf") == 0 && i + 1 < argc)
            conf = argv[++i];
        else
            return usage(stderr);
    }
    (void)setenv("SLURM_BITSTR_LEN", "0", 1); /* lists of array elements are told whole */
    if (!can_read(conf))
        return 1;
    if (conf)
        (void)setenv("SLURM_CONF", conf, 1);
    (void)signal(SIGPIPE, SIG_IGN);
    slurm_init(conf);
    if (slurm_conf.msg_timeout > PATIENCE_S)
        slurm_conf.msg_timeout = PATIENCE_S;
    stk_slurm_say(json_pack("{s:s,s:i,s:i,s:i,s:I,s:b}", "op", "hello", "major",
                            (int)SLURM_VERSION_MAJOR(slurm_api_version()), "minor",
                            (int)SLURM_VERSION_MINOR(slurm_api_version()), "micro",
                            (int)SLURM_VERSION_MICRO(slurm_api_version()), "remembers_s",
                            (json_int_t)slurm_conf.min_job_age, "accounts", stk_slurm_accounts()));
    rc = open_all(&h) ? 0 : 1;
    while (rc == 0 && turn(&h))
        ;
    close_all(&h);
    slurm_fini();
    return rc;
}
