/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - stoker-libslurm: all that stoker needs of Slurm's library, in a program of its own. It
 * talks to the daemon in JSON lines over its standard input and output, and ends with the daemon:
 * at once, also while Slurm's library tries to reach a slurmctld. What it asked for then would be
 * done later, when the next daemon has asked for it, too.
 *
 * libslurm is under the GNU GPL, and so is this program as it is linked; the daemon never loads it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "libslurm/helper.h"
#include "sys/lines.h"

#define MANY 64u /* released at once: Slurm would not look at all of them in a short pass */
#define MIN_MS 10
#define MAX_MS 60000

extern slurm_conf_t slurm_conf; /* exported by libslurm, declared nowhere */

struct helper {
    struct stk_slurm_watch *watch;
    struct stk_lines lines;
    struct stk_slurm_told *told;
    struct stk_slurm_hear *hear;
    struct stk_slurm_slow *slow;
    uint32_t released; /* jobs, since a pass was asked for */
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

/* A number, or "12_3": those of array 12. 0: none. */
static uint32_t job_of(const json_t *o)
{
    const json_t *v = json_object_get(o, "job");
    json_int_t id = json_is_string(v) ? (json_int_t)strtoul(json_string_value(v), NULL, 10)
                                      : json_integer_value(v);

    return id > 0 && id < UINT32_MAX ? (uint32_t)id : 0;
}

/* The job that this has changed, which shows soon; 0: none. */
static uint32_t changed(struct helper *h, const json_t *o, const json_t *out)
{
    bool sent = json_object_get(out, "job");
    uint32_t id = job_of(sent ? out : o);

    if (id == 0)
        return 0;
    if (sent)
        stk_slurm_told_sent(h->told, id, stk_slurm_now_ms());
    else
        stk_slurm_told_changed(h->told, id, stk_slurm_now_ms());
    return id;
}

static void take_line(struct helper *h, const char *line, size_t len)
{
    json_t *o = json_loadb(line, len, JSON_DISABLE_EOF_CHECK, NULL), *out;
    const char *op = json_string_value(json_object_get(o, "op"));
    uint32_t id;
    bool doubt;

    if (stk_slurm_is_slow(op)) {
        stk_slurm_slow_ask(h->slow, o);
        return;
    }
    if (!json_is_object(o))
        out = json_pack("{s:b,s:s}", "ok", 0, "why", "a line is a JSON object");
    else if (op && strcmp(op, "every") == 0)
        out = every(h, o);
    else if (!(out = stk_slurm_too_old(o)))
        out = stk_slurm_work(o);
    stk_slurm_told_answered(h->told, json_integer_value(json_object_get(o, "id")));
    h->released += releases(op, o) && json_is_true(json_object_get(out, "ok"));
    id = op ? changed(h, o, out) : 0;
    doubt = json_is_true(json_object_get(out, "unanswered"));
    stk_slurm_answer(o, out);
    if (doubt) /* all is told behind that answer */
        stk_slurm_watch_doubt(h->watch);
    if (id > 0)
        stk_slurm_hear_follow(h->hear, id, strcmp(op, "update") != 0);
    json_decref(o);
}

/* One that is too long: whose request it was stands at its end. The daemon sends none. */
static void refuse_line(void)
{
    stk_slurm_answer(
        NULL, json_pack("{s:b,s:s}", "ok", 0, "why", "the line is too long; it may have 64 MiB"));
}

/* Whole lines of what has come. */
static void take_lines(struct helper *h)
{
    enum stk_lines_what what;
    const char *line;
    size_t len = 0;

    while ((what = stk_lines_next(&h->lines, &line, &len)) != STK_LINES_NONE) {
        if (what == STK_LINES_LONG)
            refuse_line();
        else if (len > 0)
            take_line(h, line, len);
    }
    if (h->released > 0)
        stk_slurm_hear_pass(h->hear, h->released > MANY);
    h->released = 0;
}

/* False: the daemon is gone, or there is no memory. */
static bool read_some(struct helper *h)
{
    size_t size = 0;
    char *room = stk_lines_room(&h->lines, &size);
    ssize_t n = room ? read(STDIN_FILENO, room, size) : 0;

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    stk_lines_filled(&h->lines, (size_t)n);
    take_lines(h);
    return n > 0;
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
    h->told = stk_slurm_told_new();
    h->watch = h->told ? stk_slurm_watch_new(h->told) : NULL;
    h->hear = h->watch ? stk_slurm_hear_new(h->told, h->watch) : NULL;
    h->slow = h->hear ? stk_slurm_slow_new() : NULL;
    return h->slow;
}

static void close_all(struct helper *h)
{
    stk_slurm_slow_free(h->slow);
    stk_slurm_watch_stop(h->watch);
    stk_slurm_hear_free(h->hear);
    stk_slurm_watch_free(h->watch);
    stk_slurm_told_free(h->told);
    stk_lines_done(&h->lines);
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
    struct helper h = {.released = 0};
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
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setenv("SLURM_BITSTR_LEN", "0", 1); /* lists of array elements are told whole */
    if (!can_read(conf))
        return 1;
    if (conf)
        (void)setenv("SLURM_CONF", conf, 1);
    (void)signal(SIGPIPE, SIG_IGN);
    slurm_init(conf);
    stk_slurm_say(json_pack("{s:s,s:i,s:i,s:i,s:I,s:b,s:o}", "op", "hello", "major",
                            (int)SLURM_VERSION_MAJOR(slurm_api_version()), "minor",
                            (int)SLURM_VERSION_MINOR(slurm_api_version()), "micro",
                            (int)SLURM_VERSION_MICRO(slurm_api_version()), "remembers_s",
                            (json_int_t)slurm_conf.min_job_age, "accounts", stk_slurm_accounts(),
                            "enforces", stk_slurm_enforces()));
    rc = open_all(&h) ? 0 : 1;
    while (rc == 0 && read_some(&h))
        ;
    close_all(&h);
    slurm_fini();
    return rc;
}
