/* SPDX-License-Identifier: Apache-2.0 */
/* whys.c - the line of those who ask why a job waits.
 *
 * What would start a job is found by trying (core/remedy.h), and each try copies the state: with
 * 100,000 jobs all tries of one question take a sixth of a second and more. No other request is
 * answered while the one thread works, so it makes some tries, serves the others for as long as
 * that took, and goes on (slices.h). Where few jobs wait, and nobody is in the line, the first
 * slice is all of it.
 *
 * The answer is of the moment at which it is complete; a try is of the moment at which it was made.
 * When the job's description has changed meanwhile, all is tried again. */
#include <stdlib.h>

#include "api/handlers.h"
#include "api/slices.h"
#include "core/remedy.h"

struct asked {
    struct stk_sliced turn;
    stk_job_number number;
    int64_t spec; /* that the tries are of */
    struct stk_remedy_tries tries;
};

static bool is_scheduled(const struct stk_api *a, stk_job_number number)
{
    stk_job_number last;
    stk_time next = 0;

    (void)stk_live_schedule(a->cfg.live, number, &next, &last);
    return next != 0;
}

/* Whether the question is answered now. */
static bool make_slice(struct stk_api *a, struct asked *q)
{
    const struct stk_entry *e = stk_live_entry(a->cfg.live, q->number);
    struct stk_remedies all = {.n = 0};
    int rc = 0;

    if (e && e->rec.spec != q->spec) {
        q->tries.n = 0;
        q->spec = e->rec.spec;
    }
    if (e && !is_scheduled(a, q->number))
        rc = stk_live_remedies(a->cfg.live, stk_request_who(q->turn.req), e, &q->tries, &all, NULL);
    if (rc > 0)
        return false;
    if (rc < 0)
        all.n = 0;
    stk_why_answer(a, q->turn.req, q->number, &all);
    return true;
}

static bool work(void *ctx, struct stk_sliced *s)
{
    struct stk_api *a = ctx;

    return stk_live_core(a->cfg.live) && make_slice(a, (struct asked *)s);
}

static void drop(struct stk_sliced *s)
{
    free(s); /* it begins what is freed */
}

static struct stk_slices *whys_of(struct stk_api *a)
{
    if (!a->whys)
        a->whys = stk_slices_new(&(struct stk_slices_config){
            .loop = a->cfg.loop, .ctx = a, .rests = true, .work = work, .drop = drop});
    return a->whys;
}

void stk_do_why(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_slices *w = whys_of(a);
    stk_job_number number;
    struct asked *q;

    if (stk_api_job_number(a, r, &number) < 0)
        return;
    q = w ? calloc(1, sizeof(*q)) : NULL;
    if (!q) {
        stk_request_error(r, 503, "no_memory", "the daemon has no memory for this now");
        return;
    }
    q->turn.req = r;
    q->number = number;
    if (!stk_slices_any(w) && make_slice(a, q))
        drop(&q->turn);
    else
        stk_slices_put(w, &q->turn);
}
