/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - what the daemon asks of Slurm: send a job, start one that is held on exact nodes,
 * signal, requeue, cancel, change. Each is one call of libslurm and is answered when that returns.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libslurm/helper.h"
#include "libslurm/names.h"

#define MAX_ENV 65536u
#define TRIES 10          /* of a change that Slurm could not do at the moment */
#define FIRST 0xfffffff0u /* priority: before whatever waits in Slurm for other partitions */

static json_t *refuse(const char *why, int code)
{
    return json_pack("{s:b,s:s,s:i,s:b,s:b,s:b}", "ok", 0, "why", why, "code", code, "unanswered",
                     stk_slurm_unanswered(code), "unknown", code == ESLURM_INVALID_JOB_ID, "passes",
                     stk_slurm_passes(code));
}

/* What a call of libslurm came to. */
static json_t *answer(int rc)
{
    int error = rc == SLURM_SUCCESS ? 0 : errno;

    return error ? refuse(stk_slurm_trouble(error), error) : json_pack("{s:b}", "ok", 1);
}

/* libslurm takes it as writable, and does not write. */
static char *text(json_t *o, const char *key)
{
    union {
        const char *in;
        char *out;
    } u = {.in = json_string_value(json_object_get(o, key))};

    return u.in && *u.in ? u.out : NULL;
}

/* -1: not said, or out of range. */
static int64_t number(json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);

    return json_is_integer(v) && n >= 0 && n < INT32_MAX ? n : -1;
}

/* ---- descriptions ---- */

/* Nodes, GPUs per node, tasks: where it is to run. */
static void take_place(json_t *o, job_desc_msg_t *d)
{
    int64_t nodes = number(o, "n_nodes"), tasks = number(o, "tasks");

    d->req_nodes = text(o, "nodes");
    d->tres_per_node = text(o, "tres_per_node");
    d->tres_per_task = text(o, "tres_per_task");
    if (nodes > 0)
        d->min_nodes = d->max_nodes = (uint32_t)nodes;
    if (tasks > 0)
        d->num_tasks = (uint32_t)tasks;
    if (number(o, "tasks_per_node") > 0)
        d->ntasks_per_node = (uint16_t)number(o, "tasks_per_node");
}

static void take_limits(json_t *o, job_desc_msg_t *d)
{
    int64_t limit = number(o, "time_limit_s");

    if (json_is_null(json_object_get(o, "time_limit_s")))
        d->time_limit = INFINITE;
    if (limit > 0)
        d->time_limit = (uint32_t)((limit + 59) / 60);
    if (number(o, "cpus_per_task") > 0)
        d->cpus_per_task = (uint16_t)number(o, "cpus_per_task");
    if (number(o, "mem_mib") > 0)
        d->pn_min_memory = (uint64_t)number(o, "mem_mib");
}

static void take_names(json_t *o, job_desc_msg_t *d)
{
    d->name = text(o, "name");
    d->partition = text(o, "partition");
    d->account = text(o, "account");
    d->qos = text(o, "qos");
    d->wckey = text(o, "wckey");
    d->comment = text(o, "comment");
    d->admin_comment = text(o, "admin_comment");
    d->work_dir = text(o, "workdir");
    d->std_out = text(o, "stdout");
    d->std_err = text(o, "stderr");
    d->std_in = text(o, "stdin");
}

/* Whom a signal is for: "batch" (the script alone, also when nothing is said), "steps" (what srun
 * has started) or "all". */
static uint16_t whom(json_t *o)
{
    const char *to = text(o, "to");

    if (to && strcmp(to, "all") == 0)
        return KILL_FULL_JOB;
    return to && strcmp(to, "steps") == 0 ? KILL_STEPS_ONLY : KILL_JOB_BATCH;
}

/* Slurm warns it before its time limit. */
static void take_warning(json_t *o, job_desc_msg_t *d)
{
    int64_t sig = number(o, "signal"), seconds = number(o, "signal_s");

    if (sig < 1 || sig > 64)
        return;
    d->warn_signal = (uint16_t)sig;
    d->warn_time = (uint16_t)(seconds >= 0 && seconds <= UINT16_MAX ? seconds : 60);
    d->warn_flags = whom(o) == KILL_STEPS_ONLY ? 0 : whom(o); /* as sbatch has it */
}

/* {"NAME": "value"} as a list of NAME=value; NULL: no memory. */
static char **environment(json_t *o, uint32_t *ret_n)
{
    size_t n = json_object_size(o), i = 0;
    char **list = n < MAX_ENV ? calloc(n + 2, sizeof(*list)) : NULL;
    const char *key;
    json_t *v;

    json_object_foreach(o, key, v)
    {
        if (list && json_is_string(v) && asprintf(&list[i], "%s=%s", key, json_string_value(v)) > 0)
            i++;
    }
    if (list && i == 0) /* Slurm refuses a job without any */
        list[i++] = strdup("STOKER=1");
    *ret_n = (uint32_t)i;
    return list;
}

/* The arguments of the script, after its name; NULL: it has none. */
static char **arguments(json_t *list, uint32_t *ret_n)
{
    static char name[] = "script";
    size_t n = json_array_size(list);
    char **argv = n > 0 ? calloc(n + 2, sizeof(*argv)) : NULL;
    union {
        const char *in;
        char *out;
    } u;

    *ret_n = 0;
    if (!argv)
        return NULL;
    argv[(*ret_n)++] = name;
    for (size_t i = 0; i < n; i++) {
        u.in = json_string_value(json_array_get(list, i));
        if (u.in)
            argv[(*ret_n)++] = u.out;
    }
    return argv;
}

static void free_environment(char **list, uint32_t n)
{
    for (uint32_t i = 0; list && i < n; i++)
        free(list[i]);
    free(list);
}

static json_t *submit(json_t *o)
{
    submit_response_msg_t *reply = NULL;
    job_desc_msg_t d;
    json_t *out;
    char **env;
    uint32_t n_env = 0;
    int rc;

    if (!text(o, "script") || number(o, "uid") < 0 || number(o, "gid") < 0)
        return refuse("submit needs script, uid and gid", 0);
    slurm_init_job_desc_msg(&d);
    take_names(o, &d);
    take_place(o, &d);
    take_limits(o, &d);
    take_warning(o, &d);
    if (json_is_true(json_object_get(o, "exclusive")))
        d.shared = 0;
    if (d.num_tasks != NO_VAL) /* else it is one for each node, and the rest get no GPUs */
        d.min_cpus = d.num_tasks * (d.cpus_per_task == NO_VAL16 ? 1u : d.cpus_per_task);
    d.script = text(o, "script");
    d.user_id = (uint32_t)number(o, "uid");
    d.group_id = (uint32_t)number(o, "gid");
    d.requeue = 1;
    d.open_mode = OPEN_MODE_APPEND;
    d.priority = json_is_true(json_object_get(o, "hold")) ? 0 : FIRST;
    env = environment(json_object_get(o, "env"), &n_env);
    if (!env)
        return refuse("out of memory, or too many variables", 0);
    d.argv = arguments(json_object_get(o, "args"), &d.argc);
    d.environment = env;
    d.env_size = n_env;
    rc = slurm_submit_batch_job(&d, &reply);
    out = answer(rc);
    if (rc == SLURM_SUCCESS && reply)
        (void)json_object_set_new(out, "job", json_integer(STK_SLURM_NUMBER(reply)));
    if (reply)
        slurm_free_submit_response_response_msg(reply);
    free_environment(env, n_env);
    free(d.argv);
    return out;
}

/* ---- jobs that Slurm has ---- */

/* A number, or "12_3": an element of an array. */
static bool job_of(json_t *o, job_desc_msg_t *d)
{
    slurm_init_job_desc_msg(d);
    d->job_id_str = text(o, "job");
    if (number(o, "job") >= 0)
        STK_SLURM_NUMBER(d) = (uint32_t)number(o, "job");
    return d->job_id_str || number(o, "job") >= 0;
}

/* What a call about elements came to: one that failed is enough. */
static json_t *answer_elements(int rc, job_array_resp_msg_t *take_resp)
{
    int error = 0;

    for (uint32_t i = 0; take_resp && rc == SLURM_SUCCESS && i < take_resp->job_array_count; i++)
        error = take_resp->error_code[i] ? (int)take_resp->error_code[i] : error;
    if (take_resp)
        slurm_free_job_array_resp(take_resp);
    return error ? refuse(stk_slurm_trouble(error), error) : answer(rc);
}

static json_t *change_once(job_desc_msg_t *d)
{
    job_array_resp_msg_t *resp = NULL;

    if (!d->job_id_str)
        return answer(slurm_update_job(d));
    return answer_elements(slurm_update_job2(d, &resp), resp);
}

/* "Resource temporarily unavailable" is what Slurm 24.11 says to one change of partition in five,
 * and does nothing: the next one is done. */
static json_t *change(job_desc_msg_t *d)
{
    json_t *out = change_once(d);

    for (int i = 1; i < TRIES && json_integer_value(json_object_get(out, "code")) == EAGAIN; i++) {
        json_decref(out);
        out = change_once(d);
    }
    return out;
}

/* GPUs by type are added to those that it asked for before, unless it asks for none in between. */
static int ask_anew(json_t *o)
{
    static char none[] = "";
    job_desc_msg_t d;

    (void)job_of(o, &d);
    d.tres_per_node = d.tres_per_task = d.tres_per_job = d.tres_per_socket = none;
    return slurm_update_job(&d);
}

/* Before whatever waits in Slurm for other partitions: while one of these that ranks before it
 * waits for the same nodes, Slurm's main scheduler passes them over. One that is held cannot be
 * given a rank, so it has been released; one that has started meanwhile needs none. */
static json_t *rank_first(json_t *o, json_t *released)
{
    job_desc_msg_t d;

    if (json_is_true(json_object_get(released, "ok")) && job_of(o, &d)) {
        d.priority = FIRST;
        json_decref(change(&d));
    }
    return released;
}

/* One that is held: where it runs, and that it may, in one call; "anew": in two. Then its rank. */
static json_t *start(json_t *o)
{
    job_desc_msg_t d;

    if (!job_of(o, &d))
        return refuse("start needs job", 0);
    if (json_is_true(json_object_get(o, "anew")) && ask_anew(o) != SLURM_SUCCESS)
        return answer(SLURM_ERROR);
    take_place(o, &d);
    take_limits(o, &d);
    d.partition = text(o, "partition");
    d.comment = text(o, "comment");
    d.admin_comment = text(o, "admin_comment");
    d.begin_time = time(NULL); /* one that was requeued would wait two minutes */
    d.priority = INFINITE;
    return rank_first(o, change(&d));
}

/* It may run anywhere. */
static void take_unpin(json_t *o, job_desc_msg_t *d)
{
    static char none[] = "";

    if (json_is_true(json_object_get(o, "unpin")))
        d->req_nodes = none;
}

/* One that waits may start: Slurm looks for a place for it, now. With other words on it it is
 * stoker's no longer, and has Slurm's own rank. */
static json_t *release(json_t *o)
{
    job_desc_msg_t d;

    if (!job_of(o, &d))
        return refuse("release needs job", 0);
    take_unpin(o, &d);
    d.admin_comment = text(o, "admin_comment");
    if (!json_is_false(json_object_get(o, "begin")))
        d.begin_time = time(NULL);
    d.priority = INFINITE;
    return d.admin_comment ? change(&d) : rank_first(o, change(&d));
}

static json_t *update(json_t *o)
{
    job_desc_msg_t d;

    if (!job_of(o, &d))
        return refuse("update needs job", 0);
    take_limits(o, &d);
    take_unpin(o, &d);
    d.admin_comment = text(o, "admin_comment");
    if (json_is_integer(json_object_get(o, "begin")))
        d.begin_time = json_integer_value(json_object_get(o, "begin"));
    if (json_is_true(json_object_get(o, "hold")) || text(o, "hold"))
        d.priority = 0;
    if (text(o, "hold")) /* "user": who may then release it */
        d.alloc_sid = ALLOC_SID_USER_HOLD;
    return change(&d);
}

/* The call by name does not know elements of arrays by their numbers, the other one does. */
static json_t *send_to(json_t *o, uint16_t sig, uint16_t flags)
{
    if (text(o, "job"))
        return answer(slurm_kill_job2(text(o, "job"), sig, flags, NULL));
    return answer(slurm_kill_job((uint32_t)number(o, "job"), sig, flags));
}

static json_t *cancel(json_t *o)
{
    return text(o, "job") || number(o, "job") >= 0 ? send_to(o, SIGKILL, 0)
                                                   : refuse("cancel needs job", 0);
}

static json_t *send_signal(json_t *o)
{
    int64_t sig = number(o, "signal");

    if ((!text(o, "job") && number(o, "job") < 0) || sig < 1 || sig > 64)
        return refuse("signal needs job and signal", 0);
    return send_to(o, (uint16_t)sig, whom(o));
}

/* One that runs; "ended": also one that does not any more. */
static json_t *requeue(json_t *o)
{
    uint32_t flags =
        (uint32_t)(json_is_true(json_object_get(o, "ended")) ? JOB_REQUEUE_HOLD
                                                             : JOB_REQUEUE_HOLD | JOB_RUNNING);
    job_array_resp_msg_t *resp = NULL;

    if (text(o, "job"))
        return answer_elements(slurm_requeue2(text(o, "job"), flags, &resp), resp);
    return number(o, "job") < 0 ? refuse("requeue needs job", 0)
                                : answer(slurm_requeue((uint32_t)number(o, "job"), flags));
}

/* What Slurm does not tell of a job is in its script, where it is there. */
static json_t *script(json_t *o)
{
    char *text = NULL, found[64] = "";
    size_t size = 0;
    FILE *f = number(o, "job") >= 0 ? open_memstream(&text, &size) : NULL;
    json_t *out;

    if (!f)
        return refuse("script needs job", 0);
    out = answer(slurm_job_batch_script(f, (uint32_t)number(o, "job")));
    if (fclose(f) == 0 && text && stk_slurm_script_signal(text, found, sizeof(found)))
        (void)json_object_set_new(out, "signal", stk_slurm_text(found));
    free(text);
    return out;
}

json_t *stk_slurm_work(json_t *request)
{
    static const struct {
        const char *op;
        json_t *(*work)(json_t *o);
    } works[] = {{"submit", submit},       {"start", start},
                 {"update", update},       {"cancel", cancel},
                 {"signal", send_signal},  {"requeue", requeue},
                 {"release", release},     {"left", stk_slurm_left},
                 {"past", stk_slurm_past}, {"groups", stk_slurm_show_groups},
                 {"script", script}};
    const char *op = json_string_value(json_object_get(request, "op"));

    for (size_t i = 0; op && i < sizeof(works) / sizeof(*works); i++)
        if (strcmp(works[i].op, op) == 0)
            return works[i].work(request);
    return refuse("there are: submit, start, release, update, cancel, signal, requeue, left, past, "
                  "groups, script, every",
                  0);
}
