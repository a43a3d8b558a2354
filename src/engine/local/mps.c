/* SPDX-License-Identifier: Apache-2.0 */
/* mps.c - CUDA MPS for GPUs that jobs share: one control daemon per GPU, for one user.
 *
 *   off -> starting -> up -> quitting -> off
 *
 * The first job that comes to a GPU by MPS waits until "nvidia-cuda-mps-control -d" has returned;
 * when the last one has gone "quit" is said to it. It runs as the jobs' user, whose jobs alone may
 * be on that GPU (stk_demand.share_with), and has a folder of its own below the state folder, so
 * nobody else can talk to it. It outlives us as the jobs do: what its folder says is looked at
 * after a restart. We never kill it; one that dies is said with the jobs that it served, and
 * started again for the next that comes. See docs/guide/sharing.md. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/local/inner.h"
#include "sys/json.h"

#define PID_FILE "nvidia-cuda-mps-control.pid"
#define QUIT "quit -t 10\n" /* clients that are left get so many seconds */
#define FIND_MS 200         /* between two looks for the control daemon */
#define FIND_TRIES 10
#define DEFAULT_ANSWER_MS 60000 /* a control daemon that its user has stopped never answers */

enum state { OFF, STARTING, UP, QUITTING };

struct child { /* starts it, or tells it to quit */
    uv_process_t process;
    uv_pipe_t in;
    struct stk_local_mps *of; /* NULL: nobody wants to know */
    int out, open;            /* what it says; handles */
};

struct death { /* of the control daemon */
    uv_poll_t poll;
    struct stk_local_mps *of;
    int pidfd;
};

struct stk_local_mps {
    uv_timer_t find; /* first: the same address */
    struct stk_local *m;
    uint32_t gpu, uid, gid;
    enum state state;
    char dir[512]; /* pipes of the control daemon; log/ is in it */
    struct child *child;
    struct death *death;
    int tries;
};

static bool uses(const struct stk_local_job *j, uint32_t gpu)
{
    return j->share == STK_SHARE_MPS && j->where != STK_W_ENDED && j->mask >> gpu & 1;
}

static bool wanted(const struct stk_local *m, uint32_t gpu)
{
    for (const struct stk_local_job *j = m->jobs; j; j = j->next)
        if (uses(j, gpu))
            return true;
    return false;
}

/* ---- its folder ---- */

/* Makes a folder of the user's, or opens it. What else may lie there under that name (a link, a
 * file) is not given to anybody. */
static int make_one(int at, const char *path, const struct stk_local_mps *p)
{
    int fd, rc;

    if (mkdirat(at, path, 0700) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (geteuid() == 0 && fchown(fd, p->uid, p->gid) < 0) {
        rc = -errno;
        (void)close(fd);
        return rc;
    }
    return fd;
}

/* Made for the user, who may do there what he likes: it is never looked into with trust. */
static int make_folder(const struct stk_local_mps *p)
{
    int dir = make_one(AT_FDCWD, p->dir, p), log = dir < 0 ? dir : make_one(dir, "log", p);

    if (dir >= 0)
        (void)close(dir);
    if (log >= 0)
        (void)close(log);
    return log < 0 ? log : 0;
}

/* The process that its pid file names; 0: there is no such file; -1: it is no control daemon (any
 * more). */
static pid_t control_pid(const struct stk_local_mps *p)
{
    char path[600], text[256] = "";
    ssize_t n = -1;
    long pid;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/" PID_FILE, p->dir);
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, sizeof(text) - 1);
        (void)close(fd);
    }
    pid = n > 0 ? strtol(text, NULL, 10) : 0;
    if (pid <= 1 || pid > INT32_MAX)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    return n > 0 && memmem(text, (size_t)n, "mps-control", 11) ? (pid_t)pid : -1;
}

/* ---- a control daemon that dies ---- */

static void unwatched(uv_handle_t *h)
{
    struct death *d = h->data;

    (void)close(d->pidfd);
    free(d);
}

static void unwatch(struct stk_local_mps *p)
{
    if (p->death)
        uv_close((uv_handle_t *)&p->death->poll, unwatched);
    p->death = NULL;
}

static void died(struct stk_local_mps *p)
{
    unwatch(p);
    if (p->state != UP)
        return;
    p->state = OFF;
    for (struct stk_local_job *j = p->m->jobs; j; j = j->next)
        if (uses(j, p->gpu) && j->where != STK_W_WAITING)
            stk_local_note(
                j,
                "the MPS control daemon of GPU %u has died: what runs may go on, what it "
                "starts from now on may not reach the GPU; %s/log says more",
                p->m->gpus[p->gpu].index, p->dir);
    stk_local_strays_gone(p->m);
}

static void on_death(uv_poll_t *h, int status, int events)
{
    (void)status;
    (void)events;
    died(((struct death *)h->data)->of);
}

static void watch(struct stk_local_mps *p, pid_t pid)
{
    struct death *d = calloc(1, sizeof(*d));

    if (!d)
        return;
    d->of = p;
    d->poll.data = d;
    d->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (d->pidfd < 0) {
        free(d);
        return;
    }
    if (uv_poll_init(p->m->cfg.loop, &d->poll, d->pidfd) < 0) {
        (void)close(d->pidfd);
        free(d);
        return;
    }
    p->death = d;
    (void)uv_poll_start(&d->poll, UV_READABLE, on_death);
}

/* It has just come up, and its pid file comes a moment later. */
static void look_for(uv_timer_t *t)
{
    struct stk_local_mps *p = t->data;
    pid_t pid;

    if (p->state != UP || p->death)
        return;
    pid = control_pid(p);
    if (pid > 0)
        watch(p, pid);
    else if (p->tries-- > 0)
        (void)uv_timer_start(&p->find, look_for, FIND_MS, 0);
    else if (pid < 0)
        died(p);
}

/* ---- starting and quitting ---- */

/* What it said, in one line. */
static void last_words(const struct child *c, char *buf, size_t size)
{
    ssize_t n = c->out < 0 ? 0 : pread(c->out, buf, size - 1, 0);

    buf[n > 0 ? n : 0] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
    for (char *at = buf; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = '?';
}

static void not_started(struct stk_local_mps *p, const char *why)
{
    char text[256];

    p->state = OFF;
    (void)snprintf(text, sizeof(text), "not started: MPS does not come up on GPU %u: %.150s",
                   p->m->gpus[p->gpu].index, why);
    for (struct stk_local_job *j = p->m->jobs; j; j = j->next)
        if (uses(j, p->gpu) && j->where == STK_W_WAITING)
            stk_local_emit_exited(j, STK_CAUSE_NOT_STARTED, text);
}

static void closed(uv_handle_t *h)
{
    struct child *c = h->data;

    if (--c->open > 0)
        return;
    if (c->out >= 0)
        (void)close(c->out);
    free(c);
}

static void ended(uv_process_t *h, int64_t status, int sig)
{
    struct child *c = h->data;
    struct stk_local_mps *p = c->of;
    char words[160];

    last_words(c, words, sizeof(words));
    uv_close((uv_handle_t *)&c->process, closed);
    if (!p)
        return;
    p->child = NULL;
    (void)uv_timer_stop(&p->find);
    if (p->state == QUITTING) {
        p->state = OFF;
        unwatch(p);
    } else if (status != 0 || sig != 0) {
        not_started(p, sig == SIGKILL ? "nvidia-cuda-mps-control took too long"
                       : words[0]     ? words
                                      : "nvidia-cuda-mps-control failed without a word");
        return;
    } else {
        p->state = UP;
        p->tries = FIND_TRIES;
        look_for(&p->find);
    }
    stk_local_strays_gone(p->m); /* those that wait for it */
    stk_local_mps_release(p->m); /* or nobody does any more */
}

/* Its environment: where programs and libraries lie, and what makes it serve this GPU for this
 * folder alone. The rest of ours is not for the user to see. */
static char **environment(const struct stk_local_mps *p)
{
    static const char *const names[] = {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY",
                                        "CUDA_VISIBLE_DEVICES", STK_MPS_MARK};
    static const char *const ours[] = {"PATH", "LD_LIBRARY_PATH"};
    char **env = calloc(7, sizeof(*env));
    size_t k = 0;

    for (size_t i = 0; env && i < 2; i++)
        if (getenv(ours[i]) && asprintf(&env[k++], "%s=%s", ours[i], getenv(ours[i])) < 0)
            env[--k] = NULL;
    for (size_t i = 0; env && i < 4; i++)
        if (asprintf(&env[k++], "%s=%s%s", names[i], i == 2 ? p->m->gpus[p->gpu].uuid : p->dir,
                     i == 1 ? "/log" : "") < 0)
            env[--k] = NULL;
    return env;
}

static void free_env(char **env)
{
    for (char **e = env; e && *e; e++)
        free(*e);
    free((void *)env);
}

static int spawn(struct stk_local_mps *p, struct child *c, uv_process_options_t *o)
{
    int rc;

    if (geteuid() == 0) {
        o->flags |= UV_PROCESS_SETUID | UV_PROCESS_SETGID;
        o->uid = p->uid;
        o->gid = p->gid;
    }
    o->env = environment(p);
    rc = o->env ? uv_spawn(p->m->cfg.loop, &c->process, o) : UV_ENOMEM;
    free_env(o->env);
    return rc;
}

/* Others wait for the GPU: what we have run is given up, the control daemon itself is not touched.
 */
static void too_long(uv_timer_t *t)
{
    const struct stk_local_mps *p = t->data;

    if (p->child)
        (void)uv_process_kill(&p->child->process, SIGKILL);
}

/* Runs the program: "-d" starts it, words for its input are commands. */
static int run(struct stk_local_mps *p, const char *option, const char *input)
{
    struct child *c = calloc(1, sizeof(*c));
    char name[] = "nvidia-cuda-mps-control", word[16], *args[] = {name, word, NULL};
    uv_stdio_container_t io[3] = {{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE},
                                  {.flags = UV_INHERIT_FD},
                                  {.flags = UV_INHERIT_FD}};
    uv_process_options_t o = {.exit_cb = ended,
                              .file = p->m->cfg.mps,
                              .args = args,
                              .stdio = io,
                              .stdio_count = 3,
                              .cwd = "/",
                              .flags = UV_PROCESS_DETACHED};
    uv_buf_t words;
    int rc;

    if (!c)
        return UV_ENOMEM;
    (void)snprintf(word, sizeof(word), "%s", option ? option : "");
    args[1] = option ? word : NULL;
    c->of = p;
    c->out = memfd_create("mps", MFD_CLOEXEC);
    c->open = 2;
    c->process.data = c->in.data = c;
    (void)uv_pipe_init(p->m->cfg.loop, &c->in, 0);
    io[0].data.stream = (uv_stream_t *)&c->in;
    io[1].data.fd = io[2].data.fd = c->out >= 0 ? c->out : p->m->null_fd;
    rc = spawn(p, c, &o);
    words = uv_buf_init(word, (unsigned)snprintf(word, sizeof(word), "%s", input));
    if (rc == 0 && words.len > 0)
        (void)uv_try_write((uv_stream_t *)&c->in, &words, 1);
    uv_close((uv_handle_t *)&c->in, closed); /* the end of its input */
    if (rc < 0) {
        uv_close((uv_handle_t *)&c->process, closed);
        return rc;
    }
    p->child = c;
    return uv_timer_start(&p->find, too_long,
                          p->m->cfg.mps_ms ? p->m->cfg.mps_ms : DEFAULT_ANSWER_MS, 0);
}

static struct stk_local_mps *find(struct stk_local *m, uint32_t gpu)
{
    struct stk_local_mps *p = m->mps[gpu];

    if (p)
        return p;
    p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->m = m;
    p->gpu = gpu;
    (void)uv_timer_init(m->cfg.loop, &p->find);
    p->find.data = p;
    m->mps[gpu] = p;
    return p;
}

static void set_user(struct stk_local_mps *p, uint32_t uid, uint32_t gid)
{
    p->uid = uid;
    p->gid = gid;
    (void)snprintf(p->dir, sizeof(p->dir), "%s/mps/%u-%u", p->m->cfg.state_dir, p->gpu, uid);
}

struct owner {
    uint32_t uid, gid;
};

/* Of the description, where the server has put them. */
static struct owner owner_of(const struct stk_local_job *j)
{
    json_t *spec = j->spec ? stk_json_loads(j->spec) : NULL;
    const json_t *uid = json_object_get(spec, "uid"), *gid = json_object_get(spec, "gid");
    struct owner o = {uid ? (uint32_t)json_integer_value(uid) : geteuid(),
                      gid ? (uint32_t)json_integer_value(gid) : getegid()};

    json_decref(spec);
    return o;
}

static void begin(struct stk_local_mps *p, const struct owner *o)
{
    int rc;

    if (p->child)
        return; /* what it did before is not over */
    set_user(p, o->uid, o->gid);
    p->state = STARTING;
    rc = make_folder(p);
    rc = rc < 0 ? rc : run(p, "-d", "");
    if (rc < 0)
        not_started(p, strerror(-rc));
}

static void quit(struct stk_local_mps *p)
{
    if (p->state != UP || p->child)
        return;
    p->state = QUITTING;
    if (run(p, NULL, QUIT) < 0)
        p->state = OFF;
}

bool stk_local_mps_ready(struct stk_local_job *j)
{
    struct owner o;
    bool ready = true;

    if (j->share != STK_SHARE_MPS)
        return true;
    o = owner_of(j);
    for (uint64_t left = j->mask; left; left &= left - 1) {
        struct stk_local_mps *p = find(j->m, (uint32_t)__builtin_ctzll(left));

        if (p && p->uid != o.uid)
            quit(p); /* whose jobs have gone, or they would be here */
        if (p && p->state == OFF && j->where == STK_W_WAITING)
            begin(p, &o);
        if (j->where != STK_W_WAITING)
            return false; /* it has failed */
        ready = ready && p && p->state == UP;
    }
    return ready;
}

void stk_local_mps_release(struct stk_local *m)
{
    for (uint32_t g = 0; g < m->cfg.n_gpus; g++)
        if (m->mps[g] && !wanted(m, g))
            quit(m->mps[g]);
}

/* Jobs on the GPU are another's: this one was told to quit before, and has not heeded it. */
static bool is_anothers(const struct stk_local *m, uint32_t gpu, uint32_t uid)
{
    for (const struct stk_local_job *j = m->jobs; j; j = j->next)
        if (uses(j, gpu) && owner_of(j).uid != uid)
            return true;
    return false;
}

/* One that an earlier daemon of ours has started: "GPU-UID". */
static void adopt_folder(struct stk_local *m, const char *name)
{
    char *end;
    unsigned long gpu = strtoul(name, &end, 10), uid;
    struct stk_local_mps *p;
    struct stat st;

    if (name[0] < '0' || name[0] > '9' || *end != '-' || gpu >= m->cfg.n_gpus)
        return;
    uid = strtoul(end + 1, &end, 10);
    p = *end == '\0' && uid < UINT32_MAX ? find(m, (uint32_t)gpu) : NULL;
    if (!p || p->state != OFF || p->child || is_anothers(m, (uint32_t)gpu, (uint32_t)uid))
        return;
    set_user(p, (uint32_t)uid, 0);
    if (control_pid(p) <= 0 || stat(p->dir, &st) < 0)
        return;
    p->gid = st.st_gid;
    p->state = UP;
    p->tries = 1;
    look_for(&p->find);
}

void stk_local_mps_adopt(struct stk_local *m)
{
    char path[512];
    const struct dirent *de;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "%s/mps", m->cfg.state_dir);
    dir = m->cfg.mps ? opendir(path) : NULL;
    /* cppcheck-suppress readdirCalled ; nobody else reads this stream */
    while (dir && (de = readdir(dir)))
        adopt_folder(m, de->d_name);
    if (dir)
        (void)closedir(dir);
    stk_local_mps_release(m);
}

const char *stk_local_mps_dir(const struct stk_local *m, uint32_t gpu)
{
    return m->mps[gpu] ? m->mps[gpu]->dir : "";
}

bool stk_local_mps_is_of(const struct stk_local *m, uint32_t gpu, uint32_t uid)
{
    return m->mps[gpu] && m->mps[gpu]->uid == uid;
}

static void forgotten(uv_handle_t *h)
{
    free(h->data);
}

void stk_local_mps_close(struct stk_local *m)
{
    for (uint32_t g = 0; g < m->cfg.n_gpus; g++) {
        struct stk_local_mps *p = m->mps[g];

        if (!p)
            continue;
        unwatch(p);
        if (p->child) { /* it goes on without us */
            p->child->of = NULL;
            uv_close((uv_handle_t *)&p->child->process, closed);
        }
        uv_close((uv_handle_t *)&p->find, forgotten);
        m->mps[g] = NULL;
    }
}
