/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/shim.h"
#include "sys/procs.h"

/* A connection that does not take a whole record is of no use: it is closed, and whoever was at
 * the other end connects again or reads the run file. */
static void to_conn(struct stk_shim *s, const char *line, size_t n)
{
    if (s->conn < 0 || send(s->conn, line, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n)
        return;
    stk_shim_hang_up(s);
}

int stk_shim_say(struct stk_shim *s, json_t *take_rec, int where)
{
    char *line = json_dumps(take_rec, JSON_COMPACT);
    size_t n = line ? strlen(line) : 0;
    int rc = 0;

    json_decref(take_rec);
    if (!line)
        return -ENOMEM;
    line[n++] = '\n'; /* in place of the final zero */
    if (where & STK_SAY_FILE) {
        ssize_t k = write(STK_SHIM_FD_RUN, line, n);

        rc = k < 0 ? -errno : k < (ssize_t)n ? -ENOSPC : 0;
    }
    if (where & STK_SAY_CONN)
        to_conn(s, line, n);
    free(line);
    return rc;
}

json_t *stk_shim_pids(const struct stk_shim *s)
{
    json_t *pids = json_array();
    struct stk_proc *list;
    size_t n;

    if (stk_shim_members(s, &list, &n) < 0)
        return pids;
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(pids, json_integer(list[i].pid));
    free(list);
    return pids;
}

static const char *state_word(const struct stk_shim *s)
{
    if (s->asleep)
        return "asleep";
    if (s->step != STK_STEP_NONE)
        return "stopping";
    return s->started ? "running" : "starting";
}

/* Task pids with start times, exit codes of those that have ended, and the log files. */
static void add_tasks(const struct stk_shim *s, json_t *o)
{
    json_t *tasks = json_array();

    for (uint32_t i = 0; i < s->n_tasks; i++) {
        const struct stk_task *t = &s->tasks[i];
        json_t *j = json_pack("{s:i,s:I}", "pid", (int)t->pid, "start", (json_int_t)t->start);

        if (t->ended)
            (void)json_object_set_new(j, "status", json_integer(t->status));
        (void)json_array_append_new(tasks, j);
    }
    (void)json_object_set_new(o, "tasks", tasks);
}

static void add_paths(const struct stk_shim *s, json_t *o)
{
    char path[4096];

    if (s->pty) {
        (void)json_object_set_new(o, "attach", json_string(stk_pty_path(s->pty)));
        (void)json_object_set_new(o, "idle_s", json_integer(stk_pty_idle_ms(s->pty) / 1000));
        return;
    }
    stk_launch_log_path(&s->l, 0, false, path, sizeof(path));
    (void)json_object_set_new(o, "stdout", json_string(path));
    stk_launch_log_path(&s->l, 0, true, path, sizeof(path));
    (void)json_object_set_new(o, "stderr", json_string(path));
}

void stk_shim_say_state(struct stk_shim *s, const char *ev, int where)
{
    json_t *o = stk_shim_state(s);

    (void)json_object_set_new(o, "ev", json_string(ev));
    (void)stk_shim_say(s, o, where);
}

json_t *stk_shim_state(const struct stk_shim *s)
{
    json_t *o =
        json_pack("{s:s,s:i,s:I,s:s,s:I,s:I}", "ev", "hello", "pid", (int)getpid(), "lease",
                  (json_int_t)s->l.lease, "state", state_word(s), "at",
                  (json_int_t)stk_shim_unix_us(), "boot_us", (json_int_t)stk_shim_boot_us());

    if (s->started)
        (void)json_object_set_new(o, "started", json_integer(s->started_us));
    if (s->limit_at != STK_SHIM_NEVER)
        (void)json_object_set_new(
            o, "left_ms",
            json_integer(s->limit_at - (s->asleep ? s->asleep_since : stk_shim_ms())));
    if (s->started)
        (void)json_object_set_new(o, "ran_ms", json_integer(stk_shim_ran(s)));
    if (s->memo)
        (void)json_object_set(o, "memo", s->memo);
    add_tasks(s, o);
    add_paths(s, o);
    return o;
}
