/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - one launch: a run file that is ours alone, a connection, and a shim that gets both. The
 * launch message waits in the connection before the shim has begun, so nothing is waited for here.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/local/inner.h"

#define FIRST_PORT 15000
#define N_PORTS 10000
#define MAX_PORTS 64 /* of one job */
#define RUN_FILE_ROOM 16384

void stk_local_run_name(const struct stk_local_job *j, const char *end, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%u.%u%s", j->number, j->launch, end);
}

void stk_local_unlink(const struct stk_local_job *j)
{
    char name[64], path[4096];

    stk_local_run_name(j, ".sock", name, sizeof(name));
    (void)unlinkat(j->m->run_dir, name, 0);
    stk_local_run_name(j, ".gpu", name, sizeof(name));
    (void)unlinkat(j->m->run_dir, name, 0);
    if (j->run.begun && !j->run.exited) { /* its shim could not clean up */
        (void)snprintf(path, sizeof(path), "%s/script/stoker-%u.%u", j->m->cfg.state_dir, j->number,
                       j->launch);
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/attach/%u.sock", j->m->cfg.state_dir, j->number);
        (void)unlink(path);
    }
    /* last: without it nobody would find the others again */
    stk_local_run_name(j, "", name, sizeof(name));
    (void)unlinkat(j->m->run_dir, name, 0);
}

/* Room for what the shim writes down, or else it is not started: a job whose start is not on record
 * would be started again. And room for its script, which is no longer than its description. */
static int make_room(const struct stk_local_job *j, int fd)
{
    struct statvfs v;

    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, RUN_FILE_ROOM) < 0 && errno != EOPNOTSUPP)
        return -errno;
    if (j->spec && fstatvfs(j->m->run_dir, &v) == 0 && v.f_bfree * v.f_frsize < strlen(j->spec))
        return -ENOSPC;
    return 0;
}

static int make_run_file(const struct stk_local_job *j)
{
    char name[64];
    int fd, e;

    stk_local_run_name(j, "", name, sizeof(name));
    fd = openat(j->m->run_dir, name, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                0600);
    if (fd < 0)
        return -1;
    e = flock(fd, LOCK_EX | LOCK_NB) < 0 ? errno : -make_room(j, fd);
    if (e) {
        (void)unlinkat(j->m->run_dir, name, 0);
        (void)close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

int stk_local_link_connect(struct stk_local_job *j)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;
    char name[64];

    if (fd < 0)
        return -errno;
    /* the path through /proc is short whatever the state folder's is */
    stk_local_run_name(j, ".sock", name, sizeof(name));
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", j->m->run_dir, name);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
        rc = -errno;
        (void)close(fd);
        return rc;
    }
    return stk_local_link_open(j, fd);
}

static bool port_taken(const struct stk_local *m, uint32_t port)
{
    const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd, one = 1;
    bool taken;

    for (const struct stk_local_job *j = m->jobs; j; j = j->next)
        if (j->port && port >= j->port && port < j->port + j->n_ports)
            return true;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    taken = bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0;
    (void)close(fd);
    return taken;
}

/* Where the processes of a job meet: from 15000 and the last four digits of its number upwards. */
static void find_ports(struct stk_local_job *j, uint32_t n)
{
    uint32_t at = j->number % N_PORTS, run = 0;

    for (uint32_t tried = 0; tried < N_PORTS; tried++) {
        uint32_t port = FIRST_PORT + at;

        run = port_taken(j->m, port) ? 0 : run + 1;
        if (run == n) {
            j->port = port - n + 1;
            j->n_ports = n;
            return;
        }
        at++;
        if (at == N_PORTS)
            at = run = 0;
    }
}

static json_t *env_object(const struct stk_local *m)
{
    json_t *o = json_object();

    for (char **p = m->env; *p && p[1]; p += 2)
        (void)json_object_set_new(o, p[0], json_string(p[1]));
    return o;
}

/* A secret of this launch: 128 random bits, known to its processes and its run file. "": none can
 * be had, and its processes are found without it. */
static void make_mark(char ret[STK_MARK_LEN])
{
    unsigned char bytes[(STK_MARK_LEN - 1) / 2];

    ret[0] = '\0';
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return;
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static json_t *header(struct stk_local_job *j)
{
    const struct stk_local *m = j->m;
    stk_job_number array = 0;
    uint32_t index = 0;
    char mark[STK_MARK_LEN], label[20];
    json_t *o;

    make_mark(mark);
    (void)snprintf(label, sizeof(label), "%016llx", (unsigned long long)m->label);
    o = json_pack("{s:s,s:I,s:I,s:I,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:i,s:o,s:o}", "op", "launch",
                  "job", (json_int_t)j->number, "launch", (json_int_t)j->launch, "restarts",
                  (json_int_t)j->restarts, "mark", mark, "label", label, "node", stk_local_node(j),
                  "boot", m->boot, "state", m->cfg.state_dir, "cgroup", m->cfg.cgroup,
                  "cgroup_mode", m->cfg.cgroup_mode, "virtual", !j->real_gpus, "port", (int)j->port,
                  "gpus", stk_local_gpu_list(j), "env", env_object(m));
    if (o && j->nodes)
        (void)json_object_set(o, "nodes", j->nodes);
    if (o && j->milli)
        (void)json_object_set_new(o, "part", stk_local_part(j));
    if (o && m->cfg.array && m->cfg.array(m->cfg.ctx, j->number, &array, &index) && array) {
        (void)json_object_set_new(o, "array", json_integer(array));
        (void)json_object_set_new(o, "array_index", json_integer(index));
    }
    return o;
}

/* The header with the description, as it is, for a last member. */
static char *message(struct stk_local_job *j, size_t *ret_n)
{
    json_t *o = header(j);
    char *head = o ? json_dumps(o, JSON_COMPACT) : NULL, *text = NULL;
    size_t a = head ? strlen(head) : 0, b = j->spec ? strlen(j->spec) : 0;

    json_decref(o);
    if (head && b > 0)
        text = malloc(a + b + 16);
    if (text) {
        static const char key[] = ",\"spec\":";

        memcpy(text, head, a - 1); /* without its closing brace */
        a--;
        memcpy(text + a, key, sizeof(key) - 1);
        a += sizeof(key) - 1;
        for (size_t i = 0; i < b; i++) /* in JSON a newline is only ever white space */
            if ((text[a + i] = j->spec[i]) == '\n')
                text[a + i] = ' ';
        a += b;
        text[a++] = '}';
        text[a++] = '\n';
        *ret_n = a;
    }
    free(head);
    return text;
}

/* How many ports its processes may want to meet at; none for a job of one process and one GPU. */
static uint32_t ports_wanted(const struct stk_local_job *j)
{
    if (j->tasks > 1)
        return j->tasks < MAX_PORTS ? j->tasks : MAX_PORTS;
    return __builtin_popcountll(j->mask) > 1 ? 1 : 0;
}

/* Want of room, or of anything else that others give back, passes; so does a nursery that was
 * killed. */
static bool passes(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE ||
           error == ENOMEM || error == ENOBUFS || error == EAGAIN || error == EPIPE ||
           error == ECONNRESET;
}

static void failed(struct stk_local_job *j, const char *what, int error)
{
    char text[256];

    if (passes(error)) {
        (void)snprintf(j->sentence, sizeof(j->sentence), "waits to be started: %s: %s", what,
                       strerror(error));
        j->where = STK_W_WAITING;
        if (!j->seat) /* its next turn is soon */
            stk_local_timer_need(j->m);
        return;
    }
    (void)snprintf(text, sizeof(text), "not started: %s: %s", what, strerror(error));
    stk_local_emit_exited(j, STK_CAUSE_NOT_STARTED, text);
}

/* Hands the run file and the far end of a new connection to a new shim. */
static int hand_over(struct stk_local_job *j, int run_fd, const char **ret_what)
{
    char name[64];
    int pair[2], rc;

    *ret_what = "cannot make its connection";
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    rc = stk_local_link_open(j, pair[0]);
    if (rc == 0) {
        *ret_what = "cannot run stoker-shim";
        stk_local_run_name(j, "", name, sizeof(name));
        rc = stk_local_nursery_send(j->m, name, pair[1], run_fd);
    }
    (void)close(pair[1]);
    return rc;
}

void stk_local_spawn(struct stk_local_job *j)
{
    int run_fd = -1, rc;
    const char *what = "no description";
    char *text = NULL;
    size_t n = 0;

    if (!stk_local_mps_ready(j))
        return;
    if (ports_wanted(j) > 0)
        find_ports(j, ports_wanted(j));
    text = message(j, &n);
    if (!text) {
        failed(j, what, EINVAL);
        return;
    }
    what = "cannot make its run file";
    run_fd = make_run_file(j);
    rc = run_fd < 0 ? -errno : hand_over(j, run_fd, &what);
    if (run_fd >= 0)
        (void)close(run_fd);
    if (rc < 0) {
        free(text);
        stk_local_link_close(j);
        stk_local_unlink(j);
        failed(j, what, -rc);
        return;
    }
    j->where = STK_W_LAUNCHED;
    j->sentence[0] = 0;
    (void)stk_local_send_text(j, text, n);
}
