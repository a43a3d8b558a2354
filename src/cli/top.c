/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - "stoker top": the live view. Plain escapes on the alternate screen; a frame is made in
 * memory and written in one go, so that nothing flickers. */
#include "cli/top.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/view.h"

#define REFRESH_MS 1000

struct screen {
    struct stk_ask *k;
    struct stk_top top;
    struct termios before;
    int signals;
    bool done;
};

/* Writes a frame: from the top left corner, each line cleared to its end, then the rest. */
static void draw(struct screen *s, const json_t *cluster, const char *trouble)
{
    struct stk_term t = s->k->out;
    char *text = NULL;
    size_t n = 0;

    t.f = open_memstream(&text, &n);
    if (!t.f)
        return;
    if (cluster)
        stk_top_frame(&s->top, cluster, &t);
    (void)fclose(t.f);
    (void)fputs("\033[H", stdout);
    for (size_t i = 0; text && i < n; i++) {
        if (text[i] == '\n')
            (void)fputs("\033[K\r", stdout);
        (void)fputc(text[i], stdout);
    }
    (void)fputs("\033[J", stdout);
    if (trouble)
        (void)fprintf(stdout, "\033[%d;1H\033[K%s", t.height, trouble);
    else
        (void)fprintf(stdout, "\033[%d;1H\033[Kq quit  s sort  / filter  %s", t.height,
                      s->top.typing ? "Enter ends typing" : "");
    (void)fflush(stdout);
    free(text);
}

static void on_key(struct screen *s, char c)
{
    size_t n = strlen(s->top.filter);

    if (c == 3 || (c == 'q' && !s->top.typing)) {
        s->done = true;
    } else if (s->top.typing) {
        if (c == '\r' || c == '\n')
            s->top.typing = false;
        else if (c == 27)
            s->top.filter[0] = '\0', s->top.typing = false;
        else if ((c == 127 || c == 8) && n > 0)
            s->top.filter[n - 1] = '\0';
        else if (c >= 32 && c != 127 && n + 1 < sizeof(s->top.filter))
            s->top.filter[n] = c, s->top.filter[n + 1] = '\0';
    } else if (c == 's') {
        s->top.sort = (enum stk_top_sort)((s->top.sort + 1) % STK_TOP_SORTS);
    } else if (c == '/' || c == 'f') {
        s->top.typing = true;
    }
}

static void on_keys(struct screen *s)
{
    char keys[64];
    ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

    if (n <= 0)
        s->done = true;
    for (ssize_t i = 0; i < n; i++)
        on_key(s, keys[i]);
}

static void on_signal(struct screen *s)
{
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGWINCH)
        stk_term_size(&s->k->out);
    else
        s->done = true;
}

static void enter(struct screen *s)
{
    struct termios raw = s->before;
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    (void)fputs("\033[?1049h\033[?25l", stdout);
}

static void leave(struct screen *s)
{
    (void)fputs("\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
    (void)close(s->signals);
}

static int live(struct stk_ask *k)
{
    struct screen s = {.k = k};
    struct stk_err err = {""};
    json_t *cluster = NULL;
    double next = 0;
    int rc = 0;

    if (tcgetattr(STDIN_FILENO, &s.before) < 0)
        return stk_misused(k->a, "standard input is not a terminal (--once prints one frame)");
    enter(&s);
    while (!s.done) {
        struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                              {.fd = s.signals, .events = POLLIN}};
        double now = stk_now();

        if (now >= next) {
            json_t *fresh = NULL;

            rc = stk_client_get(k->c, &fresh, &err, "/v1/cluster");
            if (rc == 0) {
                json_decref(cluster);
                cluster = fresh;
            }
            next = stk_now() + (double)REFRESH_MS / 1000;
        }
        draw(&s, cluster, rc < 0 ? err.text : NULL);
        if (poll(p, 2, REFRESH_MS) > 0) {
            if (p[0].revents != 0)
                on_keys(&s);
            if (p[1].revents != 0)
                on_signal(&s);
        }
    }
    leave(&s);
    json_decref(cluster);
    return STK_EXIT_OK;
}

static int run_top(const struct stk_args *a)
{
    const struct stk_top top = {0};
    json_t *cluster = NULL;
    struct stk_ask k = {0};
    int rc = a->n_words > 0 ? stk_misused(a, "takes no words") : stk_ask_open(&k, a);

    if (rc != STK_EXIT_OK)
        return rc;
    if (!stk_arg_is(a, "once") && !k.json && k.out.tty) {
        rc = live(&k);
    } else {
        rc = stk_ask_get(&k, &cluster, "/v1/cluster");
        if (!k.out.tty)
            k.out.height = 1000;
        if (rc == STK_EXIT_OK && k.json)
            stk_print_json(cluster);
        else if (rc == STK_EXIT_OK)
            stk_top_frame(&top, cluster, &k.out);
        json_decref(cluster);
    }
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"once", '1', NULL, "print one frame and leave", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_top = {
    .name = "top",
    .synopsis = "[--once]",
    .help = "a live view of GPUs, jobs and users",
    .about = "Keys: q quits, s changes the order, / filters by name or user.",
    .options = groups,
    .section = STK_SECTION_LOOK,
    .run = run_top,
};
