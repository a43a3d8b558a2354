/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - stokerd: opens the parts in order (configuration, machine, store, engine, scheduler,
 * API), says what it found, and runs until told to stop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/state.h"
#include "daemon/daemon.h"
#include "engine/slurm/slurm.h"
#include "sys/state_dir.h"

/* ---- what the parts ask of each other ---- */

static void on_note(void *ctx, stk_job_number number, const char *sentence)
{
    struct stk_daemon *d = ctx;

    stk_log(STK_LOG_DEBUG, "job %u: %s", number, sentence);
    if (d->live)
        stk_live_note(d->live, number, sentence);
}

bool stk_daemon_array(void *ctx, stk_job_number number, stk_job_number *ret_array,
                      uint32_t *ret_index)
{
    struct stk_daemon *d = ctx;
    const struct stk_entry *e = d->live ? stk_live_entry(d->live, number) : NULL;

    if (!e || e->rec.array == 0)
        return false;
    *ret_array = e->rec.array;
    *ret_index = e->rec.array_index;
    return true;
}

static int32_t on_item_next(void *ctx, stk_job_number number)
{
    struct stk_daemon *d = ctx;
    struct stk_err err = {""};
    const char *text;
    uint32_t index;
    int rc;

    if (!d->live) /* still opening */
        return STK_LOCAL_ITEM_LATER;
    rc = stk_live_item_next(d->live, number, &index, &text, &err);
    if (rc == 0 || rc == -ENOENT)
        return rc == 0 ? (int32_t)index : STK_LOCAL_NO_ITEMS;
    stk_daemon_try_later(d, &err);
    return STK_LOCAL_ITEM_LATER;
}

static void on_item_done(void *ctx, stk_job_number number, uint32_t item, int code, int sig)
{
    struct stk_daemon *d = ctx;
    struct stk_early_item *more;

    code = sig ? 128 + sig : code;
    if (d->live) {
        stk_live_item_done(d->live, number, item, code);
        return;
    }
    more = reallocarray(d->early, d->n_early + 1, sizeof(*more));
    if (!more)
        return; /* it is done once more */
    d->early = more;
    d->early[d->n_early++] = (struct stk_early_item){number, item, code};
}

static int on_signal_job(void *ctx, stk_job_number number, int sig, struct stk_err *err)
{
    struct stk_daemon *d = ctx;
    int rc = d->slurm ? stk_slurm_signal(d->engine, number, sig)
                      : stk_local_signal(d->engine, number, sig, false);

    return rc < 0 ? stk_err_set(err, -EPROTO, "its processes cannot be reached: %s", strerror(-rc))
                  : 0;
}

static void on_log(void *ctx, const char *line)
{
    (void)ctx;
    stk_log(STK_LOG_INFO, "%s", line);
}

static void on_http_log(void *ctx, const char *line)
{
    (void)ctx;
    stk_log(STK_LOG_DEBUG, "http: %s", line);
}

static void on_http_warn(void *ctx, const char *line)
{
    (void)ctx;
    stk_log(STK_LOG_WARN, "%s", line);
}

static json_t *on_groups(void *ctx)
{
    return stk_daemon_slurm_means(ctx);
}

/* What the engine knows of a job, for its owner. */
static void on_detail(void *ctx, stk_job_number number, json_t *job)
{
    struct stk_daemon *d = ctx;
    struct stk_local_info info;
    json_t *pids;

    if (d->slurm)
        stk_daemon_slurm_detail(d, number, job);
    if (d->slurm || stk_local_info(d->engine, number, &info) < 0)
        return;
    pids = json_array();
    for (uint32_t i = 0; i < info.n_tasks; i++)
        (void)json_array_append_new(pids, json_integer(info.tasks[i].pid));
    (void)json_object_set_new(job, "pids", pids);
    (void)json_object_set_new(job, "supervisor", json_integer(info.shim));
    if (info.attach && *info.attach)
        (void)json_object_set_new(job, "attach", json_string(info.attach));
    if (info.idle_s >= 0)
        (void)json_object_set_new(job, "idle_s", json_integer(info.idle_s));
    if (info.sentence && *info.sentence)
        (void)json_object_set_new(job, "engine_text", json_string(info.sentence));
}

/* ---- opening ---- */

static int open_config(struct stk_daemon *d, struct stk_err *err)
{
    int rc = stk_daemon_read_config(d, &d->config, err);

    if (rc < 0)
        return rc;
    d->state = d->config.state ? strdup(d->config.state) : stk_state_dir();
    if (!d->state)
        return stk_err_set(err, -ENOMEM, "out of memory");
    d->socket = d->config.socket ? strdup(d->config.socket) : stk_daemon_socket_path(d->state);
    return d->socket ? 0 : stk_err_set(err, -ENOMEM, "out of memory");
}

/* Whether it is the job's turn on a GPU that it shares. */
static json_t *on_turn(void *ctx, stk_job_number number)
{
    struct stk_daemon *d = ctx;
    struct stk_local_turn t;

    if (d->slurm || !stk_local_turn(d->engine, number, &t))
        return NULL;
    return json_pack("{s:b,s:s,s:o,s:o,s:I,s:f,s:f}", "has", (int)t.has, "text", t.text, "left_s",
                     t.has ? json_integer(t.left_s) : json_null(), "place",
                     t.has ? json_null() : json_integer(t.place), "turns", (json_int_t)t.turns,
                     "suspend_s", (double)t.sleep_ms / 1000, "resume_s", (double)t.wake_ms / 1000);
}

static void on_turned(void *ctx, stk_job_number number, const char *sentence, bool trouble)
{
    const struct stk_daemon *d = ctx;

    stk_log(trouble ? STK_LOG_WARN : STK_LOG_DEBUG, "job %u: %s", number, sentence);
    if (d->api)
        stk_api_tell(d->api, number, "turn", sentence);
}

static void on_turns(void *ctx, uint64_t *ret_turns, double *ret_switch_s)
{
    const struct stk_daemon *d = ctx;

    if (!d->slurm)
        stk_local_turns_total(d->engine, ret_turns, ret_switch_s);
}

static const char *node_name(void *ctx, uint32_t node)
{
    const struct stk_daemon *d = ctx;

    return d->machine.live_nodes[node].name;
}

static int open_engine(struct stk_daemon *d, struct stk_err *err)
{
    char shim[4096];
    struct stk_local_config cfg = {.loop = &d->loop,
                                   .nofile = d->nofile,
                                   .state_dir = d->state,
                                   .shim_path = shim,
                                   .gpu_helper = d->machine.helper[0] ? d->machine.helper : NULL,
                                   .mps = d->machine.mps[0] ? d->machine.mps : NULL,
                                   .node = d->machine.name,
                                   .gpus = d->machine.table,
                                   .n_gpus = d->machine.n_table,
                                   .per_node = d->machine.is_virtual ? 0 : d->machine.n_gpus,
                                   .nodes = d->machine.names ? node_name : NULL,
                                   .now = stk_daemon_now,
                                   .ctx = d,
                                   .note = on_note,
                                   .turned = on_turned,
                                   .array = stk_daemon_array,
                                   .item_next = on_item_next,
                                   .item_done = on_item_done};
    const char *const env[] = {"STOKER_SOCKET", d->socket, NULL};
    const struct stk_config *c = &d->config;
    int rc = stk_daemon_program("stoker-shim", shim, sizeof(shim), err);

    cfg.env = env;
    stk_daemon_turns(c, &cfg.quantum_ms, &cfg.switch_pct);
    return rc < 0 ? rc : stk_engine_local_new(&cfg, &d->engine, err);
}

static int can_run(void *ctx, const json_t *job, struct stk_err *err)
{
    (void)ctx;
    return stk_slurm_check(job, err);
}

/* An account of Slurm's. */
static const char *tenant_of(void *ctx, const char *account)
{
    const struct stk_daemon *d = ctx;

    return stk_daemon_slurm_mapped(d->config.slurm.accounts, account);
}

static enum stk_role role_of(void *ctx, uint32_t uid)
{
    const struct stk_daemon *d = ctx;

    return d->api ? stk_api_role(d->api, uid) : STK_ROLE_USER;
}

static int open_live(struct stk_daemon *d, struct stk_err *err)
{
    struct stk_live_config cfg = {.store = d->store,
                                  .engine = d->engine,
                                  .nodes = d->machine.live_nodes,
                                  .pools = d->machine.pools,
                                  .pool_of = d->machine.pool_of,
                                  .gpu_types = d->machine.gpu_types,
                                  .n_gpu_types = d->machine.n_gpu_types,
                                  .can_run = d->slurm ? can_run : NULL,
                                  .tenant_of = d->slurm ? tenant_of : NULL,
                                  .may_last = d->slurm ? stk_daemon_slurm_may_last : NULL,
                                  .role_of = role_of,
                                  .clock = stk_daemon_now,
                                  .ahead = stk_daemon_ahead,
                                  .elapsed = stk_daemon_elapsed,
                                  .behind = stk_daemon_behind,
                                  .skip = stk_daemon_skip,
                                  .clock_raise = stk_daemon_clock_raise,
                                  .signal = on_signal_job,
                                  .log = on_log,
                                  .gpu_fault = stk_gpuwatch_fault,
                                  .gpus_resumed = stk_gpuwatch_resumed,
                                  .ctx = d};
    struct stk_err why = {""};
    int rc;

    d->policy_words = stk_daemon_policy(&d->config);
    stk_daemon_live_config(d, &d->setup, &d->config, &cfg);
    rc = stk_live_open(&cfg, &d->live, err);
    if (rc == 0 && stk_live_note_config(d->live, &why) < 0) /* not worth stopping for */
        stk_log(STK_LOG_WARN, "what was changed is not written down: %s", why.text);
    for (uint32_t i = 0; i < d->n_early && rc == 0; i++)
        stk_live_item_done(d->live, d->early[i].number, d->early[i].item, d->early[i].code);
    free(d->early);
    d->early = NULL;
    d->n_early = 0;
    return rc;
}

static int open_doors(struct stk_daemon *d, struct stk_err *err)
{
    struct stk_http *http = stk_api_http(d->api);
    const struct stk_http_tcp tcp = stk_daemon_tcp(&d->config);
    struct stk_err why;
    int rc = stk_http_listen_unix(http, d->socket, err);

    if (rc < 0 || strcmp(tcp.address, "off") == 0)
        return rc;
    rc = stk_http_listen_tcp(http, &tcp, &why);
    if (rc == -EADDRINUSE && !d->config.listen) { /* nobody asked for this very port */
        stk_log(STK_LOG_WARN, "%s; only the socket is served", why.text);
        return 0;
    }
    return rc < 0 ? stk_err_set(err, rc, "%s", why.text) : 0;
}

static int open_api(struct stk_daemon *d, struct stk_err *err)
{
    bool can = stk_daemon_program("stoker-whatif", d->whatif, sizeof(d->whatif), NULL) == 0;
    const struct stk_api_config cfg = {.loop = &d->loop,
                                       .live = d->live,
                                       .version = STK_DAEMON_VERSION,
                                       .state_dir = d->state,
                                       .virtual_gpus = d->machine.is_virtual,
                                       .own_user_only = !d->slurm && geteuid() != 0,
                                       .slurm = d->slurm,
                                       .admins = (const char *const *)d->config.admins,
                                       .operators = (const char *const *)d->config.operators,
                                       .hosts = (const char *const *)d->config.hosts,
                                       .gpus = d->machine.shown,
                                       .topology = d->machine.topo.shown,
                                       .detail = on_detail,
                                       .groups = on_groups,
                                       .theirs = stk_daemon_slurm_name,
                                       .by_theirs = stk_daemon_slurm_number,
                                       .turn = on_turn,
                                       .turns = on_turns,
                                       .adopt = stk_daemon_adopt,
                                       .usage = stk_sampler_usage,
                                       .log = on_http_log,
                                       .warn = on_http_warn,
                                       .whatif = can ? d->whatif : NULL,
                                       .ctx = d};
    int rc = stk_api_new(&cfg, &d->api, err);

    rc = rc < 0 ? rc : open_doors(d, err);
    rc = rc < 0 ? rc : stk_gpuwatch_new(d, &d->watch, err);
    if (rc == 0 && !d->slurm)
        rc = stk_idlers_new(d, &d->idlers, err);
    rc = rc < 0 ? rc : stk_watchman_new(d, &d->watchman, err);
    rc = rc < 0 ? rc : stk_sampler_new(d, &d->sampler, err);
    if (rc == 0)
        stk_api_set_series(d->api, stk_sampler_series(d->sampler));
    if (rc == 0)
        stk_daemon_cost(d);
    if (rc == 0)
        stk_daemon_logins(d);
    return rc;
}

/* The folder of the state; a refusal names the line that it comes from. */
static int make_state(struct stk_daemon *d, struct stk_err *err)
{
    struct stk_err why;
    int rc = stk_daemon_make_folder(d->state, 0711, &why);

    return rc < 0 ? stk_config_refuse(&d->config, "state", why.text, err) : 0;
}

static int open_all(struct stk_daemon *d, struct stk_err *err)
{
    struct stk_settled settled;
    int rc = stk_http_raise_files(err);

    rc = rc < 0 ? rc : open_config(d, err);
    d->slurm = d->config.engine == 1;
    if (rc == 0 && d->slurm) /* Slurm's engine writes there */
        rc = stk_daemon_check_places(&d->config, err);
    if (rc == 0 && d->slurm)
        rc = make_state(d, err);
    if (rc == 0)
        rc = d->slurm ? stk_daemon_slurm_open(d, err)
                      : stk_machine_look(&d->machine, &d->config, err);
    rc = rc < 0 ? rc : stk_daemon_settle(d, &d->config, &settled, err);
    if (rc < 0)
        return rc;
    d->setup = settled.setup;
    d->rules = settled.rules;
    d->rules_every_s = settled.rules_every_s;
    stk_daemon_log_warnings(&d->config);
    rc = make_state(d, err);
    rc = rc < 0 ? rc : stk_store_open(d->state, 0, &d->store, err);
    if (rc == 0 && !d->slurm)
        rc = open_engine(d, err);
    rc = rc < 0 ? rc : open_live(d, err);
    if (rc == 0 && d->slurm)
        rc = stk_daemon_slurm_check_left_out(d, err);
    if (rc == 0 && d->slurm)
        stk_daemon_slurm_ready(d);
    return rc < 0 ? rc : open_api(d, err);
}

static void close_all(struct stk_daemon *d)
{
    stk_gpuwatch_free(d->watch);
    stk_idlers_free(d->idlers);
    stk_sampler_free(d->sampler);
    stk_watchman_free(d->watchman);
    stk_api_free(d->api);
    stk_live_close(d->live);
    json_decref(d->rules);
    json_decref(d->policy_words);
    if (d->engine)
        d->engine->ops->close(d->engine);
    stk_store_close(d->store);
    for (int i = 0; i < 100 && uv_run(&d->loop, UV_RUN_NOWAIT) != 0; i++)
        (void)usleep(10000);
    (void)uv_loop_close(&d->loop);
    stk_machine_done(&d->machine);
    stk_config_done(&d->config);
    free(d->state);
    free(d->socket);
    free(d->found);
}

/* ---- saying hello ---- */

static void say_slurm(const struct stk_machine *m)
{
    (void)printf("  Slurm    %u GPUs on %u nodes, partition%s %s", m->n_gpus, m->n_nodes,
                 m->n_pools == 1 ? "" : "s", m->pools[0]);
    for (uint32_t i = 1; i < m->n_pools; i++)
        (void)printf("%s%s", *m->pools[i] ? ", " : "", m->pools[i]);
    (void)printf("\n");
}

static void say_gpus(const struct stk_daemon *d)
{
    const struct stk_machine *m = &d->machine;

    if (d->slurm) {
        say_slurm(m);
        return;
    }
    if (!m->is_virtual)
        (void)printf("  GPUs     %u x %s\n", m->n_table, m->gpu_type);
    else if (d->config.virtual_gpus == STK_CONFIG_NO_GPUS && m->n_nodes == 1)
        (void)printf(
            "  GPUs     no NVIDIA GPU found: %u virtual GPUs, processes are real, only the "
            "devices are pretended\n",
            m->n_gpus);
    else if (m->n_nodes == 1)
        (void)printf("  GPUs     %u virtual: processes are real, only the devices are pretended\n",
                     m->n_gpus);
    if (m->n_nodes > 1)
        (void)printf("  nodes    %u are pretended, with %u %sGPUs each; all processes run here\n",
                     m->n_nodes, m->n_gpus, m->is_virtual ? "virtual " : "");
}

/* A secret goes to a terminal only: a file or a service's log has other readers. */
static void say_page(const struct stk_daemon *d)
{
    char link[256];

    (void)printf("  page     %s/\n", stk_http_url(stk_api_http(d->api)));
    if (!isatty(STDOUT_FILENO)) {
        (void)printf("  log in   \"stoker login\" prints a link\n");
        return;
    }
    stk_api_login_link(d->api, link, sizeof(link));
    (void)printf("  log in   %s\n"
                 "           (works once, within 10 minutes; \"stoker login\" prints another)\n",
                 link);
    explicit_bzero(link, sizeof(link));
}

static void banner(const struct stk_daemon *d)
{
    const struct stk_state *s = stk_core_state(stk_live_core(d->live));
    const char *note = stk_store_note(d->store);
    uint32_t running = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++)
        running += s->jobs[i].lease != 0 || s->jobs[i].slept != 0;
    (void)printf("stoker %s\n", STK_DAEMON_VERSION);
    say_gpus(d);
    (void)printf("  policy   %s\n", d->setup.name);
    if (d->opt.config)
        (void)printf("  config   %s\n", d->opt.config);
    (void)printf("  state    %s\n", d->state);
    (void)printf("  socket   %s\n", d->socket);
    if (*stk_http_url(stk_api_http(d->api)))
        say_page(d);
    if (s->n_live > 0)
        (void)printf("  jobs     %u taken over: %u with processes, %u in the queue\n", s->n_live,
                     running, s->n_live - running);
    if (note[0])
        (void)printf("  note     %s\n", note);
    (void)printf("ready\n");
    (void)fflush(stdout);
}

static void prepare_process(struct stk_daemon *d)
{
    struct rlimit r;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(022);
    d->nofile = getrlimit(RLIMIT_NOFILE, &r) == 0 ? r.rlim_cur : 0;
    stk_log_set_level(d->opt.verbose ? STK_LOG_DEBUG : STK_LOG_INFO);
}

int main(int argc, char **argv)
{
    struct stk_daemon *d = calloc(1, sizeof(*d));
    struct stk_err err = {""};
    int rc = d ? stk_daemon_options(argc, argv, &d->opt) : -ENOMEM;

    if (rc != 0) {
        free(d);
        return rc < 0 ? 2 : 0;
    }
    prepare_process(d);
    stk_config_init(&d->config);
    (void)uv_loop_init(&d->loop);
    rc = d->opt.check ? stk_daemon_check(d, &err) : open_all(d, &err);
    if (rc == 0 && !d->opt.check) {
        stk_daemon_prepare(d);
        banner(d);
        rc = stk_daemon_run(d, &err);
    }
    if (rc < 0)
        (void)fprintf(stderr, "stokerd: %s\n", err.text);
    close_all(d);
    free(d);
    return rc == 0 ? 0 : rc == -EINVAL ? 2 : 1;
}
