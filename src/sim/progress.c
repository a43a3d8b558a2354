/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "sim/human.h"

#define SECOND_US 1000000
#define FIRST_US SECOND_US
#define EVERY_US (SECOND_US / 5)
#define BAR_MIN 8
#define BAR_MAX 40

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * SECOND_US + ts.tv_nsec / 1000;
}

static bool is_set(const char *name)
{
    const char *v = getenv(name);

    return v && *v;
}

void stk_progress_init(struct stk_progress *p, const char *label, uint64_t total)
{
    const char *term = getenv("TERM");

    *p = (struct stk_progress){.label = label, .total = total, .fd = STDERR_FILENO};
    p->on = isatty(p->fd) && !(term && strcmp(term, "dumb") == 0);
    if (p->on)
        p->started_us = now_us();
}

/* "1,234,567 of 2,000,000  312,000/s  4m 10s left" */
static void figures(const struct stk_progress *p, uint64_t done, double elapsed_s, char *buf,
                    size_t cap)
{
    double rate = elapsed_s > 0 ? (double)done / elapsed_s : 0;
    char n[STK_HUMAN_LEN], of[STK_HUMAN_LEN], speed[STK_HUMAN_LEN], left[STK_HUMAN_LEN];

    stk_human_count(n, sizeof(n), done);
    stk_human_count(speed, sizeof(speed), rate < 1e18 ? (uint64_t)(rate + 0.5) : 0);
    if (!p->total) {
        (void)snprintf(buf, cap, "%s  %s/s", n, speed);
        return;
    }
    stk_human_count(of, sizeof(of), p->total);
    if (done == 0 || done > p->total)
        (void)snprintf(left, sizeof(left), "?");
    else /* whole seconds: tenths would only flicker */
        stk_human_duration(left, sizeof(left),
                           (double)(uint64_t)((double)(p->total - done) / rate + 0.5));
    (void)snprintf(buf, cap, "%s of %s  %s/s  %s left", n, of, speed, left);
}

void stk_progress_line(const struct stk_progress *p, uint64_t done, double elapsed_s, size_t width,
                       struct stk_progress_line *ret_line)
{
    struct stk_progress_line *l = ret_line;
    double part = p->total ? (double)done / (double)p->total : 0;
    size_t cap = width < sizeof(l->text) ? width : sizeof(l->text); /* a full line would wrap */
    char text[4 * STK_HUMAN_LEN + 16], percent[8] = "";
    size_t used, bar;

    *l = (struct stk_progress_line){0};
    part = part > 1 ? 1 : part;
    figures(p, done, elapsed_s, text, sizeof(text));
    if (p->total)
        (void)snprintf(percent, sizeof(percent), " %3u%%", (unsigned)(part * 100));
    used = strlen(p->label) + strlen(percent) + strlen(" []  ") + strlen(text) + 1;
    bar = cap > used ? cap - used : 0;
    bar = bar > BAR_MAX ? BAR_MAX : bar;
    if (!p->total || bar < BAR_MIN) {
        (void)snprintf(l->text, cap, "%s%s  %s", p->label, percent, text);
        return;
    }
    if (snprintf(l->text, cap, "%s%s [%*s]  %s", p->label, percent, (int)bar, "", text) < 0)
        return;
    l->bar = strlen(p->label) + strlen(percent) + strlen(" [");
    l->filled = (size_t)(part * (double)bar);
    memset(l->text + l->bar, '=', l->filled);
    if (l->filled && l->filled < bar)
        l->text[l->bar + l->filled - 1] = '>';
}

/* One write, so that the line never shows half drawn; a full terminal is not our problem. */
static void put(const struct stk_progress *p, const char *s, size_t len)
{
    ssize_t n = write(p->fd, s, len);

    (void)n;
}

static size_t terminal_width(int fd)
{
    struct winsize w;

    return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80;
}

static void draw(struct stk_progress *p, uint64_t done, int64_t now)
{
    struct stk_progress_line l;
    char out[sizeof(l.text) + 32];
    bool colour;
    int n;

    stk_progress_line(p, done, (double)(now - p->started_us) / SECOND_US, terminal_width(p->fd),
                      &l);
    colour = l.filled && !is_set("NO_COLOR");
    n = snprintf(out, sizeof(out), "\r%.*s%s%.*s%s%s\033[K", (int)l.bar, l.text,
                 colour ? "\033[36m" : "", (int)l.filled, l.text + l.bar, colour ? "\033[0m" : "",
                 l.text + l.bar + l.filled);
    if (n > 0 && (size_t)n < sizeof(out))
        put(p, out, (size_t)n);
    p->drawn = true;
    p->shown_us = now;
}

void stk_progress_update(struct stk_progress *p, uint64_t done)
{
    int64_t now;

    if (!p->on)
        return;
    now = now_us();
    if (now - p->started_us >= FIRST_US && now - p->shown_us >= EVERY_US)
        draw(p, done, now);
}

void stk_progress_done(struct stk_progress *p)
{
    if (p->drawn)
        put(p, "\r\033[K", 4);
    p->drawn = false;
}
