/* SPDX-License-Identifier: Apache-2.0 */
/* slow.c - requests that may take long and change nothing: whether nodes have processes of a job,
 * what accounting knows. A node that hangs is waited for for seconds, and there may be thousands of
 * jobs to ask about after slurmctld was away. They are done one after the other in a thread of
 * their own, so that a start or a cancel never waits for them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libslurm/helper.h"

struct waiting {
    json_t *request;
    struct waiting *next;
};

struct stk_slurm_slow {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct waiting *first, **end;
    bool runs, ends;
};

bool stk_slurm_is_slow(const char *op)
{
    return op && (strcmp(op, "left") == 0 || strcmp(op, "past") == 0 || strcmp(op, "groups") == 0);
}

/* The next one, out of the list; NULL: there is none. The lock is held. */
static json_t *take(struct stk_slurm_slow *s)
{
    struct waiting *w = s->first;
    json_t *request = w ? w->request : NULL;

    if (!w)
        return NULL;
    s->first = w->next;
    if (!s->first)
        s->end = &s->first;
    free(w);
    return request;
}

static void *run(void *arg)
{
    struct stk_slurm_slow *s = arg;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->ends) {
        json_t *request = take(s);

        if (!request) {
            (void)pthread_cond_wait(&s->news, &s->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&s->lock);
        stk_slurm_answer(request, stk_slurm_work(request));
        json_decref(request);
        (void)pthread_mutex_lock(&s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

struct stk_slurm_slow *stk_slurm_slow_new(void)
{
    struct stk_slurm_slow *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->end = &s->first;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->news, NULL);
    s->runs = pthread_create(&s->thread, NULL, run, s) == 0;
    if (s->runs)
        return s;
    stk_slurm_slow_free(s);
    return NULL;
}

void stk_slurm_slow_free(struct stk_slurm_slow *s)
{
    json_t *request;

    if (!s)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->ends = true;
    (void)pthread_cond_signal(&s->news);
    (void)pthread_mutex_unlock(&s->lock);
    if (s->runs)
        (void)pthread_join(s->thread, NULL);
    while ((request = take(s)))
        json_decref(request);
    (void)pthread_cond_destroy(&s->news);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

void stk_slurm_slow_ask(struct stk_slurm_slow *s, json_t *take_request)
{
    struct waiting *w = calloc(1, sizeof(*w));

    if (!w) {
        stk_slurm_answer(take_request, json_pack("{s:b,s:s}", "ok", 0, "why", "out of memory"));
        json_decref(take_request);
        return;
    }
    w->request = take_request;
    (void)pthread_mutex_lock(&s->lock);
    *s->end = w;
    s->end = &w->next;
    (void)pthread_cond_signal(&s->news);
    (void)pthread_mutex_unlock(&s->lock);
}
