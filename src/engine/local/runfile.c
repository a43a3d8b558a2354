/* SPDX-License-Identifier: Apache-2.0 */
/* runfile.c - what a shim has written down: JSON lines, the last of which may be cut short. The
 * same records come over the connection. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/local/inner.h"

#define MAX_RUN_FILE (256U << 20)

static void copy_text(char *to, size_t size, const json_t *v)
{
    const char *s = json_string_value(v);
    size_t n = s ? strlen(s) : 0;

    if (!s)
        return;
    n = n < size ? n : size - 1;
    memcpy(to, s, n);
    to[n] = 0;
}

static void copy_path(char **to, const json_t *v)
{
    char *c = json_is_string(v) ? strdup(json_string_value(v)) : NULL;

    if (!c)
        return;
    free(*to);
    *to = c;
}

static void apply_tasks(struct stk_run *r, const json_t *list)
{
    size_t n = json_array_size(list), i;
    struct stk_run_task *tasks;
    const json_t *t;

    if (n == 0 || n > UINT16_MAX)
        return;
    tasks = calloc(n, sizeof(*tasks));
    if (!tasks)
        return;
    json_array_foreach(list, i, t)
    {
        const json_t *status = json_object_get(t, "status");

        tasks[i] = (struct stk_run_task){
            .pid = (pid_t)json_integer_value(json_object_get(t, "pid")),
            .start = (uint64_t)json_integer_value(json_object_get(t, "start")),
            .ended = json_is_integer(status),
            .status = (int)json_integer_value(status)};
    }
    free(r->tasks);
    r->tasks = tasks;
    r->n_tasks = (uint32_t)n;
}

static enum stk_cause cause_of(const json_t *v)
{
    const char *s = json_string_value(v);

    for (int c = STK_CAUSE_OK; s && c < STK_CAUSE_MAX; c++)
        if (strcmp(stk_cause_name((enum stk_cause)c), s) == 0)
            return (enum stk_cause)c;
    return STK_CAUSE_UNKNOWN;
}

static void apply_shim(struct stk_run *r, const json_t *rec)
{
    const json_t *uid = json_object_get(rec, "uid");

    r->begun = true;
    copy_text(r->boot, sizeof(r->boot), json_object_get(rec, "boot"));
    copy_text(r->mark, sizeof(r->mark), json_object_get(rec, "mark"));
    copy_text(r->cgroup, sizeof(r->cgroup), json_object_get(rec, "cgroup"));
    r->grace_ms = json_integer_value(json_object_get(rec, "grace_ms"));
    r->uid = json_is_integer(uid) ? (uid_t)json_integer_value(uid) : STK_RUN_NO_UID;
}

/* Of its time; a record that says how long it has run says all there is. */
static void apply_limit(struct stk_run *r, const json_t *rec)
{
    const json_t *left = json_object_get(rec, "left_ms"), *ran = json_object_get(rec, "ran_ms");

    if (!left && !ran)
        return;
    r->limited = left != NULL;
    r->left = json_integer_value(left) * 1000;
    r->ran = json_integer_value(ran) * 1000;
    r->at = json_integer_value(json_object_get(rec, "boot_us"));
}

void stk_run_apply(struct stk_run *r, const json_t *rec)
{
    const char *ev = json_string_value(json_object_get(rec, "ev"));
    const char *state = json_string_value(json_object_get(rec, "state"));
    const json_t *lease = json_object_get(rec, "lease");

    if (!ev)
        return;
    if (json_is_integer(lease))
        r->lease = (stk_lease_id)json_integer_value(lease);
    apply_tasks(r, json_object_get(rec, "tasks"));
    copy_path(&r->out, json_object_get(rec, "stdout"));
    copy_path(&r->err, json_object_get(rec, "stderr"));
    copy_path(&r->attach, json_object_get(rec, "attach"));
    if (json_object_get(rec, "started"))
        r->started = true;
    apply_limit(r, rec);
    if (state)
        r->asleep = strcmp(state, "asleep") == 0;
    if (strcmp(ev, "asleep") == 0)
        r->slept = json_integer_value(json_object_get(rec, "at"));
    if (json_object_get(rec, "memo")) {
        json_decref(r->memo);
        r->memo = json_incref(json_object_get(rec, "memo"));
    }
    if (json_object_get(rec, "pid"))
        r->shim = (pid_t)json_integer_value(json_object_get(rec, "pid"));
    if (strcmp(ev, "shim") == 0)
        apply_shim(r, rec);
    if (strcmp(ev, "exited") == 0) {
        r->exited = true;
        r->cause = cause_of(json_object_get(rec, "cause"));
        r->code = (int32_t)json_integer_value(json_object_get(rec, "code"));
        r->ended = (stk_time)json_integer_value(json_object_get(rec, "ended_us"));
        r->ended_boot = (stk_time)json_integer_value(json_object_get(rec, "boot_us"));
        r->final = json_is_true(json_object_get(rec, "final"));
        copy_text(r->note, sizeof(r->note), json_object_get(rec, "note"));
    }
}

void stk_run_done(struct stk_run *r)
{
    free(r->tasks);
    free(r->out);
    free(r->err);
    free(r->attach);
    json_decref(r->memo);
    *r = (struct stk_run){0};
}

static char *slurp(int fd, size_t *ret_n)
{
    struct stat st;
    size_t have = 0;
    char *text;

    if (fstat(fd, &st) < 0 || st.st_size > MAX_RUN_FILE)
        return NULL;
    text = malloc((size_t)st.st_size + 1);
    while (text && have < (size_t)st.st_size) {
        ssize_t n = pread(fd, text + have, (size_t)st.st_size - have, (off_t)have);

        if (n <= 0)
            break;
        have += (size_t)n;
    }
    *ret_n = have;
    return text;
}

int stk_run_read(int dir, const char *name, struct stk_run *ret_run, bool *ret_locked,
                 void (*each)(void *ctx, const json_t *rec), void *ctx)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stk_run run = {0};
    size_t n = 0, from = 0;
    struct stat st;
    char *text;
    bool locked;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        (void)close(fd);
        return -EPERM; /* nothing we have made */
    }
    /* First the lock, then the words: a shim that ends in between has written all of them. */
    locked = flock(fd, LOCK_SH | LOCK_NB) < 0;
    text = slurp(fd, &n);
    (void)close(fd);
    if (!text)
        return -ENOMEM;
    while (from < n) {
        const char *nl = memchr(text + from, '\n', n - from);
        json_t *rec = nl ? json_loadb(text + from, (size_t)(nl - text) - from, 0, NULL) : NULL;

        if (!nl)
            break;
        from = (size_t)(nl - text) + 1;
        if (rec) {
            stk_run_apply(&run, rec);
            if (each)
                each(ctx, rec);
        }
        json_decref(rec);
    }
    free(text);
    *ret_run = run;
    *ret_locked = locked;
    return 0;
}
