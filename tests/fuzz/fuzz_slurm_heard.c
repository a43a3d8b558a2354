/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_slurm_heard.c - any lines as what stoker-libslurm says, to an engine with two nodes. Between
 * them the core starts and stops jobs and time passes:
 *
 *   start N GPUS      job N is to run on both nodes, GPUS of each
 *   stop N            it is to make room
 *   wait MS           so much time passes, and the engine looks around
 *   end               stoker-libslurm dies, and says all anew
 *   anything else     a line
 *
 * The link to the program is replaced. A lease ends once, and only one that was started does. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/import.h"
#include "fuzz/require.h"

#define N_JOBS 8u
#define MAX_ASKS 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct { /* of one input */
    int64_t ms;
    struct stk_engine *engine;
    struct {
        stk_lease_id lease; /* 0: it does not run */
    } jobs[N_JOBS];
    stk_lease_id next_lease;
    json_t *made[64]; /* users' jobs that are to be taken in */
    uint32_t n_made;
    stk_job_number next_number;
} w;

/* ---- in place of link.c ---- */

static const char *const preamble[] = {
    "{\"op\":\"hello\",\"remembers_s\":300}",
    "{\"op\":\"partitions\",\"partitions\":[{\"name\":\"main\",\"up\":true,\"nodes\":[\"n1\","
    "\"n2\"]}]}",
    "{\"op\":\"nodes\",\"all\":true,\"nodes\":["
    "{\"name\":\"n1\",\"state\":\"up\",\"cpus\":64,\"mem_mib\":65536,\"gpus\":[{\"type\":\"h100\","
    "\"count\":4,\"indices\":[]}],\"used\":[],\"features\":\"\"},"
    "{\"name\":\"n2\",\"state\":\"up\",\"cpus\":64,\"mem_mib\":65536,\"gpus\":[{\"type\":\"h100\","
    "\"count\":4,\"indices\":[]}],\"used\":[],\"features\":\"\"}]}",
    "{\"op\":\"jobs\",\"all\":true,\"last\":true,\"jobs\":[],\"gone\":[]}"};

static void say_all(struct stk_slurm *m)
{
    for (size_t i = 0; i < sizeof(preamble) / sizeof(*preamble); i++)
        stk_slurm_heard(m, preamble[i], strlen(preamble[i]));
}

int64_t stk_slurm_ms(void)
{
    return w.ms;
}

int stk_slurm_link_open(struct stk_slurm *m)
{
    m->running = true;
    say_all(m);
    return 0;
}

void stk_slurm_link_close(struct stk_slurm *m)
{
    stk_slurm_free(m);
}

void stk_slurm_link_end(struct stk_slurm *m)
{
    m->away = true; /* until all is told anew */
}

int stk_slurm_ask_now(struct stk_slurm *m, json_t *take_request, const struct stk_slurm_job *j,
                      stk_slurm_answer_fn fn, bool later)
{
    struct stk_slurm_ask a = {.id = ++m->next_id,
                              .number = j ? j->number : 0,
                              .lease = j ? j->lease : 0,
                              .fn = fn,
                              .later = later};
    const char *op = json_string_value(json_object_get(take_request, "op"));

    require(op && *op, "a request says what is asked for");
    json_decref(take_request);
    if (m->n_asks >= MAX_ASKS ||
        stk_mem_grow(&m->mem, &m->asks, &m->cap_asks, m->n_asks + 1, sizeof(*m->asks)) < 0)
        return -EAGAIN;
    m->asks[m->n_asks++] = a;
    return 0;
}

/* ---- in place of the daemon ---- */

static stk_time now(void *ctx)
{
    (void)ctx;
    return (stk_time)(w.ms * 1000 + INT64_C(1800000000) * STK_SECOND);
}

static void on_off(void *ctx, uint32_t node, uint64_t mask, bool shut)
{
    const struct stk_slurm *m = (const struct stk_slurm *)w.engine;

    (void)ctx;
    (void)mask;
    (void)shut;
    require(!m || node < m->n_nodes, "GPUs that are off are a node's");
}

static bool on_lives(void *ctx, stk_job_number number)
{
    (void)ctx;
    return number <= N_JOBS;
}

static void on_bring(void *ctx, uint32_t uid, json_t *take_job, const char *key, json_t *take_made)
{
    (void)ctx;
    (void)uid;
    require(json_is_object(take_job) && *key, "a job that is brought is described");
    json_decref(take_job);
    if (w.n_made < sizeof(w.made) / sizeof(*w.made))
        w.made[w.n_made++] = take_made;
    else
        json_decref(take_made);
}

static void on_hold(void *ctx, const stk_job_number *numbers, uint32_t n, const char *why)
{
    (void)ctx;
    (void)why;
    require(n == 0 || numbers[0] > 0, "jobs have numbers");
}

static void on_wishes(void *ctx, const stk_job_number *numbers, uint32_t n, const json_t *wish)
{
    (void)ctx;
    require((n == 0 || numbers[0] > 0) && json_is_object(wish), "a wish is described");
}

static void on_gone(void *ctx, stk_job_number number, const char *sentence)
{
    (void)ctx;
    require(number > 0 && sentence, "one that is gone is named");
}

static int64_t on_limit(void *ctx, stk_job_number number)
{
    (void)ctx;
    return number % 2 ? 0 : 600;
}

static void on_emit(void *ctx, const struct stk_event *ev)
{
    (void)ctx;
    if (ev->type != STK_EV_EXITED && ev->type != STK_EV_STARTED)
        return;
    require(ev->job.i < N_JOBS, "an event is about a job that there is");
    require(w.jobs[ev->job.i].lease == ev->lease && ev->lease, "and about the lease that it has");
    if (ev->type == STK_EV_EXITED)
        w.jobs[ev->job.i].lease = 0;
}

/* ---- what happens ---- */

static void start(uint32_t k, uint32_t gpus)
{
    struct stk_piece pieces[2] = {{.node = {0}, .gpus = gpus, .tasks = 1},
                                  {.node = {1}, .gpus = gpus, .tasks = 1}};
    const struct stk_start s = {.job = {k},
                                .number = k + 1,
                                .lease = ++w.next_lease,
                                .gpus = 2 * gpus,
                                .pieces = pieces,
                                .n_pieces = 2,
                                .spec = "{\"command\":[\"true\"],\"uid\":1,\"gid\":1,\"workdir\":"
                                        "\"/\",\"tasks\":2,\"time_limit_s\":600}"};

    if (w.jobs[k].lease)
        return;
    pieces[0].mask = pieces[1].mask = (UINT64_C(1) << gpus) - 1;
    w.jobs[k].lease = s.lease;
    require(w.engine->ops->start(w.engine, now(NULL), &s) == 0, "there is memory");
}

static void stop(uint32_t k)
{
    const struct stk_stop s = {.job = {k},
                               .lease = w.jobs[k].lease,
                               .cause = k % 2 ? STK_CAUSE_EVICTED : STK_CAUSE_CANCELLED};

    if (s.lease)
        w.engine->ops->stop(w.engine, now(NULL), &s);
}

static void bring(void)
{
    for (uint32_t i = 0; i < w.n_made; i++) {
        const char *tasks = json_string_value(json_object_get(w.made[i], "tasks"));
        uint32_t n = tasks && *tasks ? stk_slurm_task_count(tasks) : 1;

        stk_slurm_brought(w.engine, w.made[i], w.next_number, n, i % 4 == 3 ? "no" : NULL);
        w.next_number += n;
        json_decref(w.made[i]);
    }
    w.n_made = 0;
}

static void settle(void)
{
    for (uint32_t k = 0; k < N_JOBS; k++)
        for (stk_lease_id l = 1; l <= w.next_lease && !w.jobs[k].lease; l++)
            w.engine->ops->settle(w.engine, k + 1, l);
}

static void look_around(struct stk_slurm *m, uint32_t ms)
{
    w.ms += ms;
    stk_slurm_ticks(m);
}

static void die(struct stk_slurm *m)
{
    m->away = true;
    stk_slurm_unheard(m);
    say_all(m);
}

static void take(const char *line, size_t len)
{
    struct stk_slurm *m = (struct stk_slurm *)w.engine;
    char words[64], *end;
    uint32_t a;

    (void)snprintf(words, sizeof(words), "%.*s", (int)(len < 63 ? len : 63), line);
    a = (uint32_t)strtoul(words + strcspn(words, " "), &end, 10);
    if (strncmp(words, "start ", 6) == 0)
        start(a % N_JOBS, (uint32_t)strtoul(end, NULL, 10) % 5);
    else if (strncmp(words, "stop ", 5) == 0)
        stop(a % N_JOBS);
    else if (strncmp(words, "wait ", 5) == 0)
        look_around(m, a % 100000);
    else if (strcmp(words, "end") == 0)
        die(m);
    else
        stk_slurm_heard(m, line, len);
    bring();
    settle();
}

static void make(void)
{
    static const char *const partitions[] = {"main", NULL};
    const struct stk_slurm_config cfg = {.program = "p",
                                         .mark = "0123abcd",
                                         .partitions = partitions,
                                         .now = now,
                                         .off = on_off,
                                         .lives = on_lives,
                                         .bring = on_bring,
                                         .hold = on_hold,
                                         .wishes = on_wishes,
                                         .gone = on_gone,
                                         .limit = on_limit};
    struct stk_err err = {""};

    memset(&w, 0, sizeof(w));
    w.ms = 1000000;
    w.next_number = N_JOBS + 1;
    require(stk_engine_slurm_new(&cfg, &w.engine, &err) == 0, "an engine can be made");
    w.engine->emit = on_emit;
    require(w.engine->ops->adopt(w.engine, now(NULL), NULL, 0, &err) == 0, "and has no jobs");
    stk_slurm_open(w.engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data, *end = line + size;

    make();
    for (int n = 0; line < end && n < 200; n++) {
        const char *stop_at = memchr(line, '\n', (size_t)(end - line));

        stop_at = stop_at ? stop_at : end;
        take(line, (size_t)(stop_at - line));
        line = stop_at + 1;
    }
    bring();
    w.engine->ops->close(w.engine);
    return 0;
}
