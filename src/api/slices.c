/* SPDX-License-Identifier: Apache-2.0 */
/* slices.c - requests in a line take turns, one slice each, those of different users before two of
 * the same user. */
#include "api/slices.h"

#include <stdlib.h>

struct stk_slices {
    struct stk_slices_config cfg;
    uv_timer_t timer;
    struct stk_sliced *first; /* whose turn it is next first */
    uint32_t last_uid;        /* whose slice was the last */
};

static uint32_t uid_of(const struct stk_sliced *s)
{
    const struct stk_who *who = stk_request_who(s->req);

    return who ? who->uid : UINT32_MAX;
}

/* Takes the one whose turn it is out of the line, if any; those whose clients have left go. */
static struct stk_sliced *take_next(struct stk_slices *w)
{
    struct stk_sliced **at = &w->first, **chosen = NULL, *s;

    while ((s = *at) != NULL) {
        if (!s->req) {
            *at = s->next;
            w->cfg.drop(s);
            continue;
        }
        if (!chosen || (uid_of(*chosen) == w->last_uid && uid_of(s) != w->last_uid))
            chosen = at;
        at = &s->next;
    }
    s = chosen ? *chosen : NULL;
    if (s)
        *chosen = s->next;
    return s;
}

static void put_last(struct stk_slices *w, struct stk_sliced *s)
{
    struct stk_sliced **at = &w->first;

    while (*at)
        at = &(*at)->next;
    s->next = NULL;
    *at = s;
}

static void on_slice(uv_timer_t *t)
{
    struct stk_slices *w = t->data;
    const uint64_t begun = uv_hrtime();
    struct stk_sliced *s = take_next(w);

    if (s) {
        w->last_uid = uid_of(s);
        if (w->cfg.work(w->cfg.ctx, s))
            w->cfg.drop(s);
        else
            put_last(w, s);
    }
    if (w->first)
        (void)uv_timer_start(t, on_slice, w->cfg.rests ? (uv_hrtime() - begun) / 1000000 + 1 : 1,
                             0);
}

static void on_gone(void *ctx, struct stk_request *r)
{
    struct stk_sliced *s = ctx;

    (void)r;
    s->req = NULL;
}

struct stk_slices *stk_slices_new(const struct stk_slices_config *cfg)
{
    struct stk_slices *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->cfg = *cfg;
    (void)uv_timer_init(cfg->loop, &w->timer);
    w->timer.data = w;
    return w;
}

bool stk_slices_any(const struct stk_slices *w)
{
    return w->first != NULL;
}

void stk_slices_put(struct stk_slices *w, struct stk_sliced *take)
{
    stk_request_on_gone(take->req, on_gone, take);
    put_last(w, take);
    if (!uv_is_active((uv_handle_t *)&w->timer)) /* 1 ms: not in this turn of the loop */
        (void)uv_timer_start(&w->timer, on_slice, 1, 0);
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void stk_slices_free(struct stk_slices *w)
{
    if (!w)
        return;
    for (struct stk_sliced *s = w->first, *next; s; s = next) {
        next = s->next;
        w->cfg.drop(s);
    }
    uv_close((uv_handle_t *)&w->timer, on_closed);
}
