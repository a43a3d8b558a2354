/* SPDX-License-Identifier: Apache-2.0 */
/* windows.c - reservations in scenarios: read as the simulator's file has them, and what is
 * expected of them. What GPUs are kept free for a job is one, too: "reservation for JOB". */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "core/booking.h"
#include "parse.h"

/* ---- reading ---- */

static uint32_t find(const struct scenario *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_windows; i++)
        if (strcmp(s->window[i], name) == 0)
            return i;
    return SCN_NONE;
}

static int name_clause(struct parser *p, struct scn_text *to)
{
    struct scenario *s = p->s;

    if (p->n != 1 || !scn_name_ok(p->word[0]))
        return scn_wrong(p, "expected \"reserve: NAME, N GPUs for TIME, ...\"");
    if (find(s, p->word[0]) != SCN_NONE || s->n_windows == SCN_MAX_WINDOWS)
        return scn_wrong(p, "there is a reservation %s already, or there are %d", p->word[0],
                         SCN_MAX_WINDOWS);
    (void)snprintf(s->window[s->n_windows++], SCN_MAX_NAME, "%s", p->word[0]);
    return scn_add(to, "name: %s", p->word[0]) ? 0 : scn_wrong(p, "too long");
}

/* "nodes 1 2": numbered from 1 on here. */
static int nodes_clause(struct parser *p, struct scn_text *to)
{
    bool ok = p->n > 1 && scn_add(to, ", nodes: [");

    for (uint32_t i = 1; i < p->n && ok; i++) {
        int64_t node = scn_whole(p->word[i]);

        ok = node > 0 && scn_add(to, "%s%lld", i > 1 ? ", " : "", (long long)node - 1);
    }
    return ok && scn_add(to, "]") ? 0 : scn_wrong(p, "expected \"nodes 1 2\"; the first is node 1");
}

/* All words after the first, as one text. */
static int text_clause(struct parser *p, struct scn_text *to)
{
    bool ok = scn_add(to, ", %s: \"", p->word[0]);

    for (uint32_t i = 1; i < p->n && ok; i++)
        ok = !strpbrk(p->word[i], "\"\\") && scn_add(to, "%s%s", i > 1 ? " " : "", p->word[i]);
    return ok && scn_add(to, "\"") ? 0 : scn_wrong(p, "too long, or with quotes");
}

static int one_clause(struct parser *p, void *ctx, bool first)
{
    struct scn_text *to = ctx;
    uint32_t at = 0;
    bool ok = true;

    if (first)
        return name_clause(p, to);
    if (scn_is(p, 0, "evict") && p->n == 1)
        return scn_add(to, ", evict: yes") ? 0 : scn_wrong(p, "too long");
    if (scn_is(p, 0, "nodes") || scn_is(p, 0, "node"))
        return nodes_clause(p, to);
    if (p->n >= 2 && scn_is_gpus(p, 1)) {
        ok = scn_whole(p->word[0]) > 0 && scn_add(to, ", gpus: %s", p->word[0]);
        at = 2;
    }
    if (ok && at + 2 == p->n && scn_is(p, at, "for"))
        ok = scn_add(to, ", for: %s", p->word[at + 1]), at += 2;
    if (!ok || (at > 0 && at < p->n))
        return scn_wrong(p, "expected \"N GPUs for TIME\"");
    if (at > 0)
        return 0;
    return p->n >= 2 && scn_name_ok(p->word[0]) ? text_clause(p, to)
                                                : scn_wrong(p, "expected KEY VALUE");
}

int scn_read_reserve(struct parser *p, char *text)
{
    struct scn_text *to = &p->s->windows;
    int rc;

    if (!scn_add(to, to->len ? "  - {" : "reservations:\n  - {"))
        return scn_wrong(p, "too long");
    rc = scn_clauses(p, text, one_clause, to);
    return rc < 0 ? rc : scn_add(to, "}\n") ? 0 : scn_wrong(p, "too long");
}

int scn_window_named(struct parser *p, uint32_t *io_at, struct scn_step *step)
{
    const uint32_t at = (*io_at)++;

    if (scn_is(p, at, "for") && at + 1 < p->n) {
        step->job = scn_find_job(p->s, p->word[at + 1], strlen(p->word[at + 1]));
        (*io_at)++;
        return step->job == SCN_NONE ? scn_wrong(p, "no job %.40s above this line", p->word[at + 1])
                                     : 0;
    }
    step->window = at < p->n ? find(p->s, p->word[at]) : SCN_NONE;
    return step->window == SCN_NONE
               ? scn_wrong(p, "no reservation %.40s above this line", at < p->n ? p->word[at] : "")
               : 0;
}

/* "expect reservation NAME is open", "... holds 4 GPUs", "... is refused: TEXT" */
int scn_expect_window(struct parser *p, struct scn_step *step)
{
    static const char *const states[] = {
        "pending", "open",     "ended", "lapsed", "removed", "started",
        "given",   "refused:", "holds", "lost",   "refused", "none"};
    uint32_t at = 2;
    size_t used = 0;

    if (scn_window_named(p, &at, step) < 0)
        return -EINVAL;
    at += scn_is(p, at, "is") || scn_is(p, at, "was");
    step->not = scn_is(p, at, "not");
    at += step->not ;
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (scn_is(p, at, states[i])) {
            for (; at < p->n && used < sizeof(step->text); at++)
                used += (size_t)snprintf(step->text + used, sizeof(step->text) - used, "%s%s",
                                         used ? " " : "", p->word[at]);
            return used < sizeof(step->text) ? 0 : scn_wrong(p, "too long");
        }
    return scn_wrong(p, "expected pending, open, ended, lapsed, removed, refused, started, given "
                        "up, lost, none or holds N GPUs");
}

/* ---- playing ---- */

static struct scn_window *of(const struct scn_windows *w, const struct scn_step *step)
{
    return &w->of[step->window != SCN_NONE ? step->window : w->n + step->job];
}

int scn_windows_init(struct scn_windows *w, const struct scenario *s)
{
    w->n = s->n_windows;
    w->of = calloc(w->n + s->n_jobs + (size_t)1, sizeof(*w->of));
    w->total = w->n + s->n_jobs;
    return w->of ? 0 : -ENOMEM;
}

void scn_windows_event(struct scn_windows *w, const struct stk_event *ev, uint32_t job)
{
    if (ev->type == STK_EV_RESERVE) {
        const uint32_t i = ev->u.booking->drain ? w->n + job : ev->u.booking->tag - 1;

        if (i < w->total)
            w->of[i] = (struct scn_window){.number = ev->u.booking->number};
    }
    for (uint32_t i = 0; ev->type == STK_EV_UNRESERVE && i < w->total; i++)
        if (w->of[i].number && w->of[i].number == ev->u.unreserve.number) {
            w->of[i].number = 0;
            w->of[i].was = stk_over_name(ev->u.unreserve.why);
        }
}

void scn_windows_refused(struct scn_windows *w, uint32_t i, const char *why)
{
    if (i >= w->n)
        return;
    w->of[i].was = "refused";
    (void)snprintf(w->of[i].refused, sizeof(w->of[i].refused), "%s", why);
}

static uint32_t held(const struct stk_state *s, const struct stk_booking *b)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < b->n; i++)
        sum += s->book.fence[b->first + i].held;
    return sum;
}

void scn_window_show(const struct scn_windows *w, const struct stk_state *s,
                     const struct scn_step *step, char *buf, size_t size)
{
    const struct scn_window *x = of(w, step);
    const struct stk_booking *b = x->number ? stk_booking_find(s, x->number) : NULL;

    if (b)
        (void)snprintf(buf, size, "%s, holds %u GPUs", b->open ? "open" : "pending", held(s, b));
    else
        (void)snprintf(buf, size, "%s%s%s", x->was ? x->was : "none", x->refused[0] ? ": " : "",
                       x->refused);
}

bool scn_window_is(const struct scn_windows *w, const struct stk_state *s,
                   const struct scn_step *step)
{
    const struct scn_window *x = of(w, step);
    const struct stk_booking *b = x->number ? stk_booking_find(s, x->number) : NULL;
    const char *t = step->text;

    if (strncmp(t, "holds ", 6) == 0)
        return b && held(s, b) == strtoul(t + 6, NULL, 10);
    if (strcmp(t, "pending") == 0 || strcmp(t, "open") == 0)
        return b && b->open == (t[0] == 'o');
    if (b)
        return false;
    if (strncmp(t, "refused: ", 9) == 0)
        return x->was && strcmp(x->was, "refused") == 0 && strstr(x->refused, t + 9);
    if (strcmp(t, "none") == 0)
        return !x->was;
    return x->was && (strcmp(x->was, t) == 0 ||
                      (strcmp(t, "given up") == 0 && strcmp(x->was, "given_up") == 0));
}
