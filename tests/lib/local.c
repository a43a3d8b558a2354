/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define HANG_MS 100000 /* a wait that takes longer has failed */

static void take(void *ctx, const struct stk_event *ev)
{
    struct lw *w = ctx;

    assert_true(w->n_ev < LW_MAX_EVENTS);
    w->ev[w->n_ev++] = *ev;
}

static stk_time now(void *ctx)
{
    struct timespec t;

    (void)ctx;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (stk_time)t.tv_sec * STK_SECOND + t.tv_nsec / 1000;
}

static void note(void *ctx, stk_job_number number, const char *sentence)
{
    struct lw *w = ctx;
    size_t used = strlen(w->notes);

    (void)number;
    (void)snprintf(w->note, sizeof(w->note), "%s", sentence);
    (void)snprintf(w->notes + used, sizeof(w->notes) - used, "%s\n", sentence);
}

static bool array_of(void *ctx, stk_job_number number, stk_job_number *ret_array,
                     uint32_t *ret_index)
{
    (void)ctx;
    if (number < 900 || number >= 1000) /* 900... are elements of an array */
        return false;
    *ret_array = 900;
    *ret_index = number - 900 + 3;
    return true;
}

static uint64_t used(void *ctx, uint64_t mask)
{
    const struct lw *w = ctx;

    (void)mask;
    return w->gpu_used_mib;
}

static int32_t item_next(void *ctx, stk_job_number number)
{
    struct lw *w = ctx;

    (void)number;
    return w->next_item < w->n_items ? w->next_item++ : STK_LOCAL_NO_ITEMS;
}

static void item_done(void *ctx, stk_job_number number, uint32_t item, int code, int sig)
{
    struct lw *w = ctx;

    (void)number;
    assert_true(item < 64);
    w->item_code[item] = sig ? 128 + sig : code;
    w->items_done++;
}

bool lw_two_cpus(char cpu[2][8])
{
    cpu_set_t ours;
    int n = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(ours), &ours), 0);
    for (size_t i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &ours))
            (void)snprintf(cpu[n++], 8, "%zu", i);
    return n == 2;
}

void lw_engine_open(struct lw *w)
{
    struct stk_local_gpu gpus[LW_GPUS];
    const char *env[] = {"STOKER_SOCKET", "/run/test.sock", NULL};
    struct stk_local_config cfg = {.loop = &w->loop,
                                   .state_dir = w->dir,
                                   .shim_path = getenv("STOKER_SHIM"),
                                   .gpu_helper = w->gpu_helper,
                                   .mps = w->mps,
                                   .mps_ms = w->mps_ms,
                                   .node = "n1",
                                   .gpus = gpus,
                                   .n_gpus = LW_GPUS,
                                   .cgroup = "stoker-test",
                                   .cgroup_mode = w->cgroup_mode,
                                   .env = env,
                                   .quantum_ms = w->quantum_ms,
                                   .switch_pct = w->switch_pct,
                                   .now = now,
                                   .ctx = w,
                                   .note = note,
                                   .array = array_of,
                                   .gpu_used_mib = used,
                                   .item_next = item_next,
                                   .item_done = item_done};
    struct stk_err err = {0};
    char uuid[LW_GPUS][16];

    for (uint32_t i = 0; i < LW_GPUS; i++) {
        (void)snprintf(uuid[i], sizeof(uuid[i]), "GPU-%u", i);
        gpus[i] = (struct stk_local_gpu){
            .index = i, .minor = i, .mem_mib = 16, .uuid = uuid[i], .is_virtual = !w->real_gpus};
        gpus[i].cpus = w->cpus[i / (LW_GPUS / 2)];
        gpus[i].numa = (int32_t)(i / (LW_GPUS / 2));
    }
    assert_non_null(cfg.shim_path);
    if (stk_engine_local_new(&cfg, &w->e, &err) < 0)
        fail_msg("%s", err.text);
    w->e->emit = take;
    w->e->emit_ctx = w;
}

void lw_engine_close(struct lw *w)
{
    w->e->ops->close(w->e);
    w->e = NULL;
    w->n_ev = 0;
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
}

void lw_gpu_helper(struct lw *w, const char *body)
{
    static char path[128];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/gpu-helper", w->dir);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fprintf(f, "#!/bin/sh\necho \"$@\" >>%s/helper.log\n%s\n", w->home, body);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
    w->gpu_helper = path;
    w->real_gpus = true;
    w->cgroup_mode = "never";
    w->gpu_used_mib = 1;
    lw_engine_close(w);
    lw_engine_open(w);
}

void lw_open(struct lw *w)
{
    *w = (struct lw){.uid = geteuid() == 0 ? 65534 : geteuid()};
    (void)signal(SIGPIPE, SIG_IGN); /* as the daemon does: supervisors may be gone when told */
    assert_int_equal(uv_loop_init(&w->loop), 0);
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/stoker-test-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    assert_int_equal(chmod(w->dir, 0711), 0);
    (void)snprintf(w->home, sizeof(w->home), "%s/home", w->dir);
    assert_int_equal(mkdir(w->home, 0755), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(w->home, w->uid, (gid_t)w->uid), 0);
    lw_engine_open(w);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    return remove(path);
}

static bool no_run_files(void *ctx)
{
    return lw_run_files(ctx) == 0;
}

void lw_close(struct lw *w)
{
    struct stk_err err = {0};

    if (w->e)
        lw_engine_close(w);
    lw_engine_open(w); /* with nothing to adopt: whatever still runs is a stray */
    assert_int_equal(w->e->ops->adopt(w->e, 0, NULL, 0, &err), 0);
    assert_true(lw_until(w, no_run_files, w));
    lw_engine_close(w);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    (void)nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *lw_spec(const struct lw *w, const char *fmt, ...)
{
    static char text[1 << 16];
    char body[1 << 15];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(body, sizeof(body), fmt, ap);
    va_end(ap);
    (void)snprintf(
        text, sizeof(text),
        "{\"name\":\"test job\",\"uid\":%u,\"gid\":%u,\"groups\":[%u],\"user\":\"tester\","
        "\"home\":\"%s\",\"shell\":\"/bin/sh\",\"workdir\":\"%s\"%s%s}",
        (unsigned)w->uid, (unsigned)(geteuid() == 0 ? w->uid : getegid()),
        (unsigned)(geteuid() == 0 ? w->uid : getegid()), w->home, w->home, *body ? "," : "", body);
    return text;
}

const char *lw_sh(const struct lw *w, const char *script, const char *more)
{
    json_t *s = json_string(script);
    char *quoted = json_dumps(s, JSON_ENCODE_ANY);
    const char *text;

    text = lw_spec(w, "\"command\":[\"/bin/sh\",\"-c\",%s]%s%s", quoted, *more ? "," : "", more);
    free(quoted);
    json_decref(s);
    return text;
}

void lw_start_on(struct lw *w, uint32_t number, uint32_t lease, const char *spec, uint64_t mask,
                 uint32_t tasks, uint32_t restarts)
{
    const struct stk_piece piece = {
        .gpus = (uint32_t)__builtin_popcountll(mask), .tasks = tasks, .mask = mask};
    const struct stk_start s = {.job = {number},
                                .number = number,
                                .lease = lease,
                                .gpus = piece.gpus,
                                .pieces = &piece,
                                .n_pieces = 1,
                                .restarts = restarts,
                                .spec = spec};

    assert_int_equal(w->e->ops->start(w->e, 0, &s), 0);
}

void lw_start(struct lw *w, uint32_t number, uint32_t lease, const char *spec)
{
    lw_start_on(w, number, lease, spec, 0, 1, 0);
}

static void wake(struct lw *w, uint32_t number, uint32_t lease, uint64_t mask, uint8_t share)
{
    const struct stk_piece piece = {.tasks = 1, .mask = mask};
    const struct stk_start s = {.job = {number},
                                .number = number,
                                .lease = lease,
                                .pieces = &piece,
                                .n_pieces = 1,
                                .share = share,
                                .resume = true};

    assert_int_equal(w->e->ops->start(w->e, 0, &s), 0);
}

void lw_resume(struct lw *w, uint32_t number, uint32_t lease, uint64_t mask)
{
    wake(w, number, lease, mask, STK_SHARE_NONE);
}

void lw_resume_seat(struct lw *w, uint32_t number, uint32_t lease, uint64_t mask)
{
    wake(w, number, lease, mask, STK_SHARE_TIME);
}

void lw_stop(struct lw *w, uint32_t number, uint32_t lease, enum stk_cause cause, bool suspend)
{
    const struct stk_stop s = {{number}, lease, cause, suspend, false};

    w->e->ops->stop(w->e, 0, &s);
}

void lw_settle(struct lw *w, uint32_t number, uint32_t lease)
{
    w->e->ops->settle(w->e, number, lease);
}

void lw_adopt(struct lw *w, uint32_t number, uint32_t lease, enum stk_job_state state, bool resume,
              bool asleep, const struct stk_stop *stop, const char *spec)
{
    const struct stk_piece piece = {.tasks = 1, .mask = w->adopt_mask};
    struct stk_adopt a = {.start = {.job = {number},
                                    .number = number,
                                    .lease = lease,
                                    .pieces = &piece,
                                    .n_pieces = w->adopt_mask != 0,
                                    .resume = resume,
                                    .spec = spec},
                          .state = state,
                          .asleep = asleep,
                          .stop = {{number}, lease, STK_CAUSE_EVICTED, false, false}};
    struct stk_err err = {0};

    if (stop)
        a.stop = *stop;
    if (w->e->ops->adopt(w->e, 0, &a, 1, &err) < 0)
        fail_msg("%s", err.text);
}

static uint32_t find(const struct lw *w, uint32_t number, enum stk_event_type type)
{
    uint32_t i = 0;

    while (i < w->n_ev && (w->ev[i].job.i != number || w->ev[i].type != type))
        i++;
    return i;
}

bool lw_has(const struct lw *w, uint32_t number, enum stk_event_type type)
{
    return find(w, number, type) < w->n_ev;
}

static void timed_out(uv_timer_t *t)
{
    *(bool *)t->data = true;
}

bool lw_until(struct lw *w, bool (*fn)(void *ctx), void *ctx)
{
    uv_timer_t hang, poll;
    bool over = false, beat = false;

    (void)uv_timer_init(&w->loop, &hang);
    (void)uv_timer_init(&w->loop, &poll);
    hang.data = &over;
    poll.data = &beat;
    (void)uv_timer_start(&hang, timed_out, HANG_MS, 0);
    (void)uv_timer_start(&poll, timed_out, 5, 5);
    while (!over && !fn(ctx))
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&hang, NULL);
    uv_close((uv_handle_t *)&poll, NULL);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    return fn(ctx);
}

struct wanted {
    const struct lw *w;
    uint32_t number;
    enum stk_event_type type;
    const char *path, *text;
};

static bool has_event(void *ctx)
{
    const struct wanted *x = ctx;

    return lw_has(x->w, x->number, x->type);
}

struct stk_event lw_wait(struct lw *w, uint32_t number, enum stk_event_type type)
{
    struct wanted x = {.w = w, .number = number, .type = type};
    struct stk_event ev;
    uint32_t i;

    if (!lw_until(w, has_event, &x))
        fail_msg("job %u: no event %s; last words: %s", number, stk_event_type_name(type), w->note);
    i = find(w, number, type);
    ev = w->ev[i];
    memmove(&w->ev[i], &w->ev[i + 1], (w->n_ev - i - 1) * sizeof(ev));
    w->n_ev--;
    return ev;
}

static bool never(void *ctx)
{
    return *(bool *)ctx;
}

void lw_spin(struct lw *w, int ms)
{
    uv_timer_t t;
    bool over = false;

    (void)uv_timer_init(&w->loop, &t);
    t.data = &over;
    (void)uv_timer_start(&t, timed_out, (uint64_t)ms, 0);
    (void)lw_until(w, never, &over);
    uv_close((uv_handle_t *)&t, NULL);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
}

char *lw_read(const struct lw *w, const char *name)
{
    char path[512], *text;
    FILE *f;
    size_t n;

    if (name[0] == '/')
        (void)snprintf(path, sizeof(path), "%s", name);
    else
        (void)snprintf(path, sizeof(path), "%s/%s", w->home, name);
    f = fopen(path, "re");
    if (!f)
        return NULL;
    text = calloc(1, 1 << 20);
    n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = 0;
    (void)fclose(f);
    return text;
}

static bool has_text(void *ctx)
{
    const struct wanted *x = ctx;
    char *text = lw_read(x->w, x->path);
    bool found = text && strstr(text, x->text);

    free(text);
    return found;
}

void lw_until_text(struct lw *w, const char *path, const char *text)
{
    struct wanted x = {.w = w, .path = path, .text = text};

    if (!lw_until(w, has_text, &x))
        fail_msg("%s never held '%s'; last words: %s", path, text, w->note);
}

void lw_say_go(const struct lw *w)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/go", w->home);
    assert_int_equal(mkdir(path, 0755), 0);
}

struct stk_event lw_run(struct lw *w, uint32_t number, const char *spec)
{
    struct stk_event ev;

    lw_start(w, number, number, spec);
    ev = lw_wait(w, number, STK_EV_EXITED);
    if (ev.u.exit.cause != STK_CAUSE_NOT_STARTED)
        (void)lw_wait(w, number, STK_EV_STARTED);
    lw_settle(w, number, number);
    return ev;
}

char *lw_log(const struct lw *w, uint32_t number)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "stoker-%u.out", number);
    return lw_read(w, name);
}

uint32_t lw_run_files(const struct lw *w)
{
    char path[96];
    const struct dirent *de;
    uint32_t n = 0;
    DIR *d;

    (void)snprintf(path, sizeof(path), "%s/run", w->dir);
    d = opendir(path);
    assert_non_null(d);
    while ((de = readdir(d)))
        n += de->d_name[0] != '.';
    (void)closedir(d);
    return n;
}
