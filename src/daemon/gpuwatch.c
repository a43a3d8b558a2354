/* SPDX-License-Identifier: Apache-2.0 */
/* gpuwatch.c - what the GPUs do: "stoker-gpu watch" runs as a child of ours and prints a line every
 * few seconds. From each line come the readings that the API shows, and which GPUs must be left
 * alone, because somebody uses them without asking or because they are broken.
 *
 * A helper that ends is started again, later each time: a fault in the driver must not take more
 * than the readings away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/state.h"
#include "daemon/daemon.h"
#include "daemon/faults.h"
#include "daemon/memwatch.h"

#define FIRST_PAUSE_MS 1000u
#define MAX_PAUSE_MS 60000u

struct stk_gpuwatch {
    struct stk_daemon *d;
    uv_process_t process;
    uv_pipe_t out, in;              /* a byte into the latter asks for a line at once */
    uint32_t kept[STK_GPUVIEW_MAX]; /* faults as the store has them */
    uint64_t seen[STK_GPUVIEW_MAX]; /* jobs on GPUs that they were not given, at the last reading */
    stk_job_number stray[STK_GPUVIEW_MAX]; /* those that were told of it */
    struct stk_memwatch memory;
    uv_timer_t again;
    bool running, closing;
    int open_handles;
    uint64_t pause_ms;
    char *line; /* what has come of the next line */
    size_t len;
};

static int start(struct stk_gpuwatch *w);

/* Which of the GPUs that are read a running job has; false: it does not run. */
static bool given_to(const struct stk_gpuwatch *w, stk_job_number number, uint64_t *ret_mask)
{
    const struct stk_core *core = stk_live_core(w->d->live);
    const struct stk_state *s = stk_core_state(core);
    uint32_t slot = stk_core_find(core, number);
    const struct stk_job *j = slot == STK_NONE ? NULL : &s->jobs[slot];

    if (!j || j->state != STK_JOB_RUNNING)
        return false;
    *ret_mask = 0;
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];

        *ret_mask |= stk_machine_read_mask(&w->d->machine, p->node.i, p->mask);
    }
    return true;
}

/* A process of a job on a GPU that is not the job's counts as foreign. A job that does not run has
 * none: what is left of it is just going. MPS's own processes belong to no job and are ours. */
static struct stk_gpu_owner owner(void *ctx, uint32_t gpu, const struct stk_gpu_proc *p)
{
    struct stk_gpuwatch *w = ctx;
    struct stk_gpu_owner own = {.job = stk_daemon_job_of(w->d, p->pid, p->uid)};
    uint64_t mask = 0;

    own.given = own.job != 0 && (!given_to(w, (stk_job_number)own.job, &mask) || mask >> gpu & 1);
    if (own.job == 0)
        own.given = stk_daemon_is_mps(w->d, p->pid, p->uid, gpu);
    return own;
}

/* Says it with the job, and once in the log, when a job begins to use a GPU that it was not given,
 * and takes it back when it does no more. */
static void tell_stray(struct stk_gpuwatch *w, uint32_t gpu, stk_job_number job)
{
    stk_job_number before = w->stray[gpu];
    char text[400];

    if (job == before)
        return;
    w->stray[gpu] = job;
    if (before)
        stk_live_warn(w->d->live, before, STK_WARN_STRAY, NULL);
    if (!job)
        return;
    (void)snprintf(text, sizeof(text),
                   "uses GPU %s, which it was not given; jobs must heed CUDA_VISIBLE_DEVICES",
                   w->d->machine.gpus.gpu[gpu].label);
    stk_live_warn(w->d->live, job, STK_WARN_STRAY, text);
    stk_log(STK_LOG_WARN, "job %u %s", job, text);
}

/* A job whose lease has just begun or ended may be seen on its GPU at the wrong side of that: what
 * counts is what two readings in a row show. */
static struct stk_gpu_verdict judge(struct stk_gpuwatch *w, uint32_t gpu,
                                    const struct stk_gpu_rule *rule)
{
    struct stk_gpu_verdict v;

    stk_gpuview_judge(&w->d->machine.gpus, gpu, rule, owner, w, &v);
    if (v.stray != 0 && v.stray != w->seen[gpu]) {
        w->seen[gpu] = v.stray;
        if (v.n_foreign == 1)
            v.off = v.last = false;
        v.stray = 0;
    } else {
        w->seen[gpu] = v.stray;
    }
    tell_stray(w, gpu, (stk_job_number)v.stray);
    return v;
}

/* GPUs that had an error and have been well for long enough are used again. */
static void forgive(struct stk_gpuwatch *w)
{
    struct stk_gpus *t = &w->d->machine.gpus;
    double quiet_s = (double)w->d->config.gpus.quiet_s;

    for (uint32_t i = 0; quiet_s > 0 && i < t->n && i < STK_GPUVIEW_MAX; i++) {
        if (!stk_gpuview_is_well(t, i, quiet_s))
            continue;
        stk_log(STK_LOG_INFO, "GPU %s is used again: well since its error, XID %u", t->gpu[i].label,
                t->gpu[i].fault_xid);
        stk_gpuview_clear(t, i);
    }
}

/* A GPU that has failed stays out of use over restarts. */
static void keep_faults(struct stk_gpuwatch *w)
{
    const struct stk_gpus *t = &w->d->machine.gpus;
    char name[80], value[64];

    for (uint32_t i = 0; i < t->n && i < STK_GPUVIEW_MAX; i++) {
        if (t->gpu[i].fault_xid == w->kept[i])
            continue;
        stk_fault_words(&t->gpu[i], name, sizeof(name), value, sizeof(value));
        if (stk_daemon_keep(w->d, name, value) == 0)
            w->kept[i] = t->gpu[i].fault_xid;
    }
}

static void ask(struct stk_gpuwatch *w)
{
    char byte[] = "\n";
    uv_buf_t buf = uv_buf_init(byte, 1);

    if (w->running && uv_is_writable((uv_stream_t *)&w->in))
        (void)uv_try_write((uv_stream_t *)&w->in, &buf, 1);
}

int stk_gpuwatch_fault(void *ctx, const struct stk_gpu_span *span, char *text, size_t size)
{
    struct stk_daemon *d = ctx;
    const uint64_t mask = stk_machine_read_mask(&d->machine, span->node, span->mask);
    int rc;

    if (!d->watch || !d->watch->running || mask == 0)
        return 0;
    rc = stk_fault_find(&d->machine.gpus, mask, span->since - d->clock.ahead, text, size);
    if (rc > 0 || d->machine.gpus.at_us >= span->until - d->clock.ahead) /* by the wall clock */
        return rc;
    ask(d->watch);
    return -EAGAIN;
}

void stk_gpuwatch_resumed(void *ctx, uint32_t node, uint64_t mask)
{
    struct stk_daemon *d = ctx;
    const uint64_t read = stk_machine_read_mask(&d->machine, node, mask);

    for (uint32_t i = 0; d->watch && i < d->machine.gpus.n && i < STK_GPUVIEW_MAX; i++)
        if (read >> i & 1)
            stk_gpuview_clear(&d->machine.gpus, i);
    if (d->watch)
        ask(d->watch);
}

/* Judges every GPU by its last reading, and passes that on. */
static void judge_all(struct stk_gpuwatch *w)
{
    const struct stk_config *c = &w->d->config;
    const struct stk_gpus *t = &w->d->machine.gpus;
    const struct stk_gpu_rule rule = {.foreign = (enum stk_foreign)c->gpus.foreign,
                                      .stale_s = c->gpus.idle_s > 0 ? (double)c->gpus.idle_s : 1e18,
                                      .min_free_mib = (double)c->gpus.pack_mib,
                                      .quiet_s = (double)c->gpus.quiet_s,
                                      .instances = w->d->machine.nodes[0].mig != 0};
    uint64_t off[STK_MAX_NODE_GPUS] = {0}, last[STK_MAX_NODE_GPUS] = {0}; /* by node */
    json_t *list = json_array();

    for (uint32_t i = 0; i < t->n && i < STK_MAX_NODE_GPUS; i++) {
        struct stk_gpu_verdict v = judge(w, i, &rule);
        uint32_t gpu, node = stk_machine_node_of(&w->d->machine, i, &gpu);

        w->d->gpu_notes[i] = (struct stk_gpu_note){.state = v.state, .n_foreign = v.n_foreign};
        (void)snprintf(w->d->gpu_notes[i].text, sizeof(w->d->gpu_notes[i].text), "%.199s", v.text);
        off[node] |= (uint64_t)v.off << gpu;
        last[node] |= (uint64_t)v.last << gpu;
        (void)json_array_append_new(list, stk_gpuview_show(t, i, &v, owner, w));
    }
    for (uint32_t i = 0; i < w->d->machine.n_nodes; i++)
        stk_live_gpus_off(w->d->live, i, off[i], last[i], false);
    stk_api_take_sample(w->d->api, json_pack("{s:o}", "gpus", list));
}

static void take_line(struct stk_gpuwatch *w, const char *line, size_t len)
{
    struct stk_err err = {""};

    if (stk_gpuview_sample(&w->d->machine.gpus, line, len, &err) < 0) {
        stk_log(STK_LOG_WARN, "stoker-gpu watch: %s", err.text);
        return;
    }
    w->pause_ms = FIRST_PAUSE_MS;
    forgive(w);
    keep_faults(w);
    judge_all(w);
    stk_memwatch_look(&w->memory, w->d);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct stk_gpuwatch *w = h->data;

    (void)suggested;
    *buf = uv_buf_init(w->line + w->len, (unsigned)(STK_GPUVIEW_LINE - w->len));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct stk_gpuwatch *w = s->data;
    char *begin = w->line, *end;

    (void)buf;
    if (n < 0) {
        (void)uv_read_stop(s);
        return;
    }
    w->len += (size_t)n;
    while ((end = memchr(begin, '\n', w->len - (size_t)(begin - w->line)))) {
        take_line(w, begin, (size_t)(end - begin));
        begin = end + 1;
    }
    w->len -= (size_t)(begin - w->line);
    memmove(w->line, begin, w->len);
    if (w->len >= STK_GPUVIEW_LINE)
        w->len = 0; /* not a line of ours */
}

static void on_again(uv_timer_t *t)
{
    (void)start(t->data);
}

static void on_closed(uv_handle_t *h)
{
    struct stk_gpuwatch *w = h->data;

    if (--w->open_handles > 0)
        return;
    w->running = false;
    if (w->closing && !uv_is_closing((uv_handle_t *)&w->again)) {
        w->open_handles = 1;
        uv_close((uv_handle_t *)&w->again, on_closed);
    } else if (w->closing) {
        free(w->line);
        free(w);
    } else {
        (void)uv_timer_start(&w->again, on_again, w->pause_ms, 0);
        w->pause_ms = w->pause_ms * 2 < MAX_PAUSE_MS ? w->pause_ms * 2 : MAX_PAUSE_MS;
    }
}

static void close_child(struct stk_gpuwatch *w)
{
    w->open_handles = 3;
    uv_close((uv_handle_t *)&w->out, on_closed);
    uv_close((uv_handle_t *)&w->in, on_closed);
    uv_close((uv_handle_t *)&w->process, on_closed);
}

static void on_end(uv_process_t *p, int64_t status, int sig)
{
    struct stk_gpuwatch *w = p->data;

    if (!w->closing)
        stk_log(STK_LOG_WARN, "stoker-gpu watch ended (exit %d, signal %d); again in %llu s",
                (int)status, sig, (unsigned long long)w->pause_ms / 1000);
    close_child(w);
}

static int start(struct stk_gpuwatch *w)
{
    char interval[32], verb[] = "watch", option[] = "--interval-ms";
    char *args[] = {w->d->machine.helper, verb, option, interval, NULL};
    uv_stdio_container_t io[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&w->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&w->out},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    uv_process_options_t o = {
        .exit_cb = on_end, .file = args[0], .args = args, .stdio = io, .stdio_count = 3};
    int rc;

    (void)snprintf(interval, sizeof(interval), "%llu",
                   (unsigned long long)w->d->config.gpus.interval_ms);
    (void)uv_pipe_init(&w->d->loop, &w->out, 0);
    (void)uv_pipe_init(&w->d->loop, &w->in, 0);
    w->out.data = w->in.data = w->process.data = w;
    w->len = 0;
    w->running = true;
    rc = uv_spawn(&w->d->loop, &w->process, &o);
    if (rc < 0) {
        close_child(w);
        return rc;
    }
    (void)uv_read_start((uv_stream_t *)&w->out, on_alloc, on_read);
    return 0;
}

int stk_gpuwatch_new(struct stk_daemon *d, struct stk_gpuwatch **ret, struct stk_err *err)
{
    struct stk_gpuwatch *w;

    *ret = NULL;
    if (d->machine.is_virtual || !d->machine.helper[0])
        return 0;
    w = calloc(1, sizeof(*w));
    if (w)
        w->line = malloc(STK_GPUVIEW_LINE);
    if (!w || !w->line) {
        free(w);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    w->d = d;
    w->pause_ms = FIRST_PAUSE_MS;
    stk_faults_load(&d->machine.gpus, d->store);
    for (uint32_t i = 0; i < d->machine.gpus.n && i < STK_GPUVIEW_MAX; i++)
        w->kept[i] = d->machine.gpus.gpu[i].fault_xid;
    (void)uv_timer_init(&d->loop, &w->again);
    w->again.data = w;
    *ret = w;
    judge_all(w); /* before anything is started: what has not been read is not used */
    (void)start(w);
    return 0;
}

void stk_gpuwatch_free(struct stk_gpuwatch *w)
{
    if (!w)
        return;
    w->closing = true;
    if (w->running) {
        (void)uv_process_kill(&w->process, SIGTERM);
    } else {
        w->open_handles = 1;
        uv_close((uv_handle_t *)&w->again, on_closed);
    }
}
