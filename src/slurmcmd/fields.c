/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - the columns; see fields.h. */
#include "slurmcmd/fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spec/words.h"

#define FIELD(name)                                                                                \
    static void name(const struct stk_slurm *s, const json_t *job, char *buf, size_t size)
#define UNUSED (void)s, (void)job

static void put(char *buf, size_t size, const char *text)
{
    (void)snprintf(buf, size, "%s", text);
}

static const json_t *spec_of(const json_t *job)
{
    return json_object_get(job, "spec");
}

FIELD(id)
{
    UNUSED;
    (void)stk_slurm_id(job, buf, size);
}

FIELD(number)
{
    UNUSED;
    (void)snprintf(buf, size, "%" PRId64, stk_int(job, "id", 0));
}

FIELD(array_id)
{
    UNUSED;
    (void)snprintf(buf, size, "%" PRId64, stk_int(job, "array_id", stk_int(job, "id", 0)));
}

FIELD(array_index)
{
    int64_t i = stk_int(job, "array_index", -1);

    UNUSED;
    if (i < 0)
        put(buf, size, "N/A");
    else
        (void)snprintf(buf, size, "%" PRId64, i);
}

FIELD(name)
{
    UNUSED;
    put(buf, size, stk_str(job, "name"));
}

FIELD(user)
{
    UNUSED;
    put(buf, size, stk_str(job, "user"));
}

FIELD(uid)
{
    UNUSED;
    (void)snprintf(buf, size, "%" PRId64, stk_int(job, "uid", 0));
}

FIELD(partition)
{
    const char *pool = stk_str(spec_of(job), "pool");

    put(buf, size, *pool ? pool : s->pool);
}

FIELD(state_code)
{
    UNUSED;
    put(buf, size, stk_slurm_state(job)->code);
}

FIELD(state_name)
{
    UNUSED;
    put(buf, size, stk_slurm_state(job)->name);
}

/* A job that sleeps to make room is one that waits: tools take SUSPENDED in sacct for an end. */
FIELD(sacct_state)
{
    const char *n = stk_slurm_state(job)->name;

    UNUSED;
    put(buf, size, strcmp(n, "SUSPENDED") == 0 ? "PENDING" : n);
}

FIELD(time_used)
{
    UNUSED;
    (void)stk_slurm_span((int64_t)stk_num(job, "run_s", 0), false, buf, size);
}

FIELD(elapsed)
{
    UNUSED;
    (void)stk_slurm_span((int64_t)stk_num(job, "run_s", 0), true, buf, size);
}

FIELD(elapsed_raw)
{
    UNUSED;
    (void)snprintf(buf, size, "%" PRId64, (int64_t)stk_num(job, "run_s", 0));
}

FIELD(limit)
{
    int64_t l = stk_int(job, "time_limit_s", 0);

    UNUSED;
    if (l > 0)
        (void)stk_slurm_span(l, false, buf, size);
    else
        put(buf, size, "UNLIMITED");
}

FIELD(limit_raw)
{
    int64_t l = stk_int(job, "time_limit_s", 0);

    UNUSED;
    if (l > 0)
        (void)snprintf(buf, size, "%" PRId64, (l + 59) / 60);
    else
        put(buf, size, "UNLIMITED");
}

FIELD(left)
{
    int64_t l = stk_int(job, "time_limit_s", 0);
    int64_t used = (int64_t)stk_num(job, "run_s", 0);

    UNUSED;
    if (l > 0)
        (void)stk_slurm_span(l > used ? l - used : 0, false, buf, size);
    else
        put(buf, size, "UNLIMITED");
}

FIELD(one)
{
    UNUSED;
    put(buf, size, "1");
}

FIELD(nothing)
{
    UNUSED;
    put(buf, size, "");
}

FIELD(tasks)
{
    UNUSED;
    (void)snprintf(buf, size, "%" PRId64, stk_int(job, "tasks", 1));
}

FIELD(cpus)
{
    double each = stk_num(spec_of(job), "cpus", 1);
    int64_t n = (int64_t)(each + 0.999) * stk_int(job, "tasks", 1);

    UNUSED;
    (void)snprintf(buf, size, "%" PRId64, n > 0 ? n : 1);
}

FIELD(memory)
{
    int64_t mib = stk_int(spec_of(job), "mem_mib", 0) * stk_int(job, "tasks", 1);

    UNUSED;
    if (mib > 0 && mib % 1024 == 0)
        (void)snprintf(buf, size, "%" PRId64 "G", mib / 1024);
    else
        (void)snprintf(buf, size, "%" PRId64 "M", mib);
}

/* Part of a GPU, in Slurm's hundredths of one; 0: whole ones, or none. */
static int64_t mps_of(const json_t *job)
{
    const json_t *v = json_object_get(job, "gpus");

    return json_is_real(v) ? (int64_t)(json_real_value(v) * 100 + 0.5) : 0;
}

FIELD(gres)
{
    int64_t n = stk_int(job, "gpus", 0);

    UNUSED;
    if (mps_of(job) > 0)
        (void)snprintf(buf, size, "gres/mps:%" PRId64, mps_of(job));
    else if (n > 0)
        (void)snprintf(buf, size, "gres/gpu:%" PRId64, n);
    else
        put(buf, size, "N/A");
}

FIELD(tres)
{
    int64_t n = stk_int(job, "gpus", 0);
    char c[32], m[32];

    cpus(s, job, c, sizeof(c));
    memory(s, job, m, sizeof(m));
    (void)snprintf(buf, size, "billing=%s,cpu=%s,mem=%s,node=1", c, c, m);
    if (mps_of(job) > 0)
        (void)snprintf(buf + strlen(buf), size - strlen(buf), ",gres/mps=%" PRId64, mps_of(job));
    else if (n > 0)
        (void)snprintf(buf + strlen(buf), size - strlen(buf), ",gres/gpu=%" PRId64, n);
}

FIELD(alloc_tres)
{
    if (stk_num(job, "started", 0) > 0)
        tres(s, job, buf, size);
    else
        put(buf, size, "");
}

FIELD(reason)
{
    UNUSED;
    stk_slurm_reason(job, buf, size);
}

FIELD(dependency)
{
    UNUSED;
    stk_slurm_dependency(job, buf, size);
}

/* "vm-0001,vm-0002" */
static void put_nodes(const json_t *job, char *buf, size_t size)
{
    const json_t *pieces = json_object_get(job, "pieces");
    size_t n = 0;

    put(buf, size, stk_str(job, "node"));
    for (size_t i = 0; i < json_array_size(pieces) && json_array_size(pieces) > 1 && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? "," : "",
                              stk_str(json_array_get(pieces, i), "node"));
}

FIELD(nodelist)
{
    UNUSED;
    put_nodes(job, buf, size);
}

/* sacct keeps the node of a job that has ended; there is only one to name. */
FIELD(sacct_nodes)
{
    const char *node = stk_str(job, "node");

    if (!*node && stk_num(job, "started", 0) > 0)
        node = stk_str(json_array_get(s->nodes, 0), "name");
    put(buf, size, *node ? node : "None assigned");
}

FIELD(nodes_or_reason)
{
    if (stk_slurm_is_pending(job) || strcmp(stk_str(job, "state"), "suspended") == 0) {
        char r[64];

        reason(s, job, r, sizeof(r));
        (void)snprintf(buf, size, "(%s)", r);
    } else if (strcmp(stk_str(job, "cause"), "dependency_failed") == 0) {
        const char *note = stk_str(job, "note");

        (void)snprintf(buf, size, "(DependencyNeverSatisfied%s%s)", *note ? ", " : "", note);
    } else {
        put_nodes(job, buf, size);
    }
}

FIELD(comment)
{
    UNUSED;
    put(buf, size, stk_str(job, "comment"));
}

FIELD(sq_comment)
{
    const char *c = stk_str(job, "comment");

    UNUSED;
    put(buf, size, *c ? c : "(null)");
}

FIELD(account)
{
    const char *label = stk_str(spec_of(job), "account");

    UNUSED;
    put(buf, size, *label ? label : stk_str(job, "tenant"));
}

FIELD(qos)
{
    const char *label = stk_str(spec_of(job), "qos");

    UNUSED;
    put(buf, size, *label ? label : stk_str(job, "queue"));
}

FIELD(wckey)
{
    UNUSED;
    put(buf, size, stk_str(spec_of(job), "wckey"));
}

FIELD(submit)
{
    UNUSED;
    (void)stk_slurm_when(stk_num(job, "submitted", 0), "Unknown", buf, size);
}

FIELD(start)
{
    UNUSED;
    (void)stk_slurm_when(stk_num(job, "started", 0), "Unknown", buf, size);
}

FIELD(end)
{
    UNUSED;
    (void)stk_slurm_when(stk_num(job, "ended", 0), "Unknown", buf, size);
}

FIELD(sq_start)
{
    UNUSED;
    (void)stk_slurm_when(stk_num(job, "started", stk_num(job, "start_p50", 0)), "N/A", buf, size);
}

FIELD(sq_end)
{
    double at = stk_num(job, "ended", stk_num(job, "expected_end", 0));

    UNUSED;
    (void)stk_slurm_when(at, "N/A", buf, size);
}

FIELD(exit_code)
{
    int64_t code = stk_int(job, "exit_code", 0), signal = stk_int(job, "signal", 0);

    UNUSED;
    (void)snprintf(buf, size, "%" PRId64 ":%" PRId64, code, signal);
}

FIELD(priority)
{
    UNUSED;
    (void)snprintf(buf, size, "%" PRId64, stk_int(job, "priority", 0));
}

FIELD(restarts)
{
    UNUSED;
    (void)snprintf(buf, size, "%" PRId64, stk_int(job, "restarts", 0));
}

FIELD(workdir)
{
    UNUSED;
    put(buf, size, stk_str(job, "workdir"));
}

FIELD(out_path)
{
    UNUSED;
    put(buf, size, stk_str(job, "stdout"));
}

FIELD(err_path)
{
    UNUSED;
    put(buf, size, stk_str(job, "stderr"));
}

FIELD(cluster)
{
    UNUSED;
    put(buf, size, "stoker");
}

/* clang-format off */
const struct stk_slurm_field stk_slurm_fields[] = {
    {"JobID", "JobArrayID", 'i', "JOBID", 12, false, id},
    {"JobIDRaw", NULL, 'A', "JOBID", 12, false, number},
    {"ArrayJobID", NULL, 'F', "ARRAY_JOB_ID", 12, false, array_id},
    {"ArrayTaskID", NULL, 'K', "ARRAY_TASK_ID", 12, false, array_index},
    {"JobName", "Name", 'j', "NAME", 10, false, name},
    {"User", "UserName", 'u', "USER", 9, false, user},
    {"UID", "UserID", 'U', "UID", 6, false, uid},
    {"Partition", NULL, 'P', "PARTITION", 10, false, partition},
    {"StateCompact", NULL, 't', "ST", 2, false, state_code},
    {"State", NULL, 'T', "STATE", 10, false, state_name},
    {"State", NULL, 0, "STATE", 10, false, sacct_state},
    {"TimeUsed", NULL, 'M', "TIME", 10, false, time_used},
    {"Elapsed", NULL, 0, "ELAPSED", 10, false, elapsed},
    {"ElapsedRaw", NULL, 0, "ELAPSED_RAW", 10, false, elapsed_raw},
    {"Timelimit", NULL, 'l', "TIME_LIMIT", 10, true, limit},
    {"TimelimitRaw", NULL, 0, "TIME_LIMIT", 10, true, limit_raw},
    {"TimeLeft", NULL, 'L', "TIME_LEFT", 10, true, left},
    {"NNodes", "NumNodes", 'D', "NODES", 8, false, one},
    {"AllocNodes", NULL, 0, "NODES", 10, false, one},
    {"NCPUS", "NumCPUs", 'C', "CPUS", 10, true, cpus},
    {"AllocCPUS", NULL, 0, "CPUS", 10, true, cpus},
    {"ReqCPUS", NULL, 'c', "MIN_CPUS", 8, true, cpus},
    {"NTasks", "NumTasks", 0, "TASKS", 8, false, tasks},
    {"ReqMem", "MinMemory", 'm', "MIN_MEMORY", 10, true, memory},
    {"TresPerNode", "tres-per-node", 'b', "TRES_PER_NODE", 13, false, gres},
    {"Gres", NULL, 0, "GRES", 13, false, gres},
    {"ReqTRES", NULL, 0, "TRES", 10, true, tres},
    {"AllocTRES", "tres-alloc", 0, "TRES_ALLOC", 10, true, alloc_tres},
    {"Reason", NULL, 'r', "REASON", 19, false, reason},
    {"Dependency", NULL, 'E', "DEPENDENCY", 20, true, dependency},
    {"ReasonList", NULL, 'R', "NODELIST(REASON)", 20, false, nodes_or_reason},
    {"NodeList", NULL, 'N', "NODELIST", 15, false, nodelist},
    {"NodeList", NULL, 0, "NODELIST", 15, false, sacct_nodes},
    {"BatchHost", NULL, 'B', "EXEC_HOST", 15, false, nodelist},
    {"Comment", NULL, 'k', "COMMENT", 14, false, sq_comment},
    {"Comment", NULL, 0, "COMMENT", 14, false, comment},
    {"Account", NULL, 'a', "ACCOUNT", 10, true, account},
    {"QOS", NULL, 'q', "QOS", 10, true, qos},
    {"WCKey", NULL, 'w', "WCKEY", 10, true, wckey},
    {"Submit", "SubmitTime", 'V', "SUBMIT_TIME", 19, false, submit},
    {"Eligible", "EligibleTime", 0, "ELIGIBLE_TIME", 19, false, submit},
    {"Start", NULL, 0, "START_TIME", 19, false, start},
    {"StartTime", NULL, 'S', "START_TIME", 19, false, sq_start},
    {"End", NULL, 0, "END_TIME", 19, false, end},
    {"EndTime", NULL, 'e', "END_TIME", 19, false, sq_end},
    {"ExitCode", "exit_code", 0, "EXIT_CODE", 8, false, exit_code},
    {"DerivedExitCode", NULL, 0, "EXIT_CODE", 15, false, exit_code},
    {"Priority", "PriorityLong", 'Q', "PRIORITY", 10, false, priority},
    {"Restarts", "RestartCnt", 0, "RESTARTS", 8, false, restarts},
    {"WorkDir", NULL, 'Z', "WORK_DIR", 20, true, workdir},
    {"StdOut", NULL, 0, "STDOUT", 20, false, out_path},
    {"StdErr", NULL, 0, "STDERR", 20, false, err_path},
    {"Cluster", NULL, 0, "CLUSTER", 10, false, cluster},
    {"MaxRSS", NULL, 0, "MAX_RSS", 10, false, nothing},
    {"Reservation", NULL, 'v', "RESERVATION", 20, false, nothing},
    {NULL, NULL, 0, NULL, 0, false, NULL},
};
/* clang-format on */
