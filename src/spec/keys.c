/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - the table; see keys.h. */
#include "spec/keys.h"

#include <stddef.h>
#include <string.h>

#include "base/near.h"
#include "model/job.h"
#include "model/mig.h"
#include "model/queue.h"
#include "spec/words.h"
#include "sys/rlimits.h"
#include "when/cron.h"

#define MAX_UNIX_S INT64_C(253402300799) /* the end of the year 9999 */
#define DAY_S 86400

static const struct stk_key depend_keys[] = {
    {"type", STK_KEY_WORD, 0, 0, 0, "afterok|afterany|afternotok|aftercorr", NULL, "needed",
     "which end of the other job is waited for; aftercorr: element k of this array waits for "
     "element k of the other to end well"},
    {"job", STK_KEY_INT, 1, UINT32_MAX - 1, 0, NULL, NULL, "needed",
     "the other job's number; an array's number means all its elements"},
    {"index", STK_KEY_INT, 0, STK_MAX_ARRAY_INDEX, 0, NULL, NULL, "all",
     "only this element of the array"},
    {0},
};

static const struct stk_key array_keys[] = {
    {"indices", STK_KEY_INTS, 0, STK_MAX_ARRAY_INDEX, STK_MAX_ARRAY, NULL, NULL, "none",
     "the elements, each once"},
    {"first", STK_KEY_INT, 0, STK_MAX_ARRAY_INDEX, 0, NULL, NULL, "0",
     "instead of indices: the first element,"},
    {"last", STK_KEY_INT, 0, STK_MAX_ARRAY_INDEX, 0, NULL, NULL, "none", "the last,"},
    {"step", STK_KEY_INT, 1, STK_MAX_ARRAY_INDEX, 0, NULL, NULL, "1", "and the step between"},
    {"limit", STK_KEY_INT, 1, STK_MAX_ARRAY, 0, NULL, NULL, "none",
     "at most so many run at a time"},
    {0},
};

#define BUDGET(name, help)                                                                         \
    {                                                                                              \
        name, STK_KEY_BUDGET, 0, STK_RETRY_ALWAYS - 1, 0, NULL, NULL, "0", help                    \
    }

static const struct stk_key retry_keys[] = {
    BUDGET("error", "restarts after it failed, was killed, or could not be started"),
    BUDGET("oom", "restarts after it ran out of memory"),
    BUDGET("timeout", "restarts after its time limit"),
    BUDGET("node", "restarts after its node or a GPU was lost"),
    {"exit_codes", STK_KEY_INTS, 0, 255, 256, NULL, NULL, "all",
     "only these exit codes count as an error worth a restart"},
    {0},
};

static const struct stk_key signal_keys[] = {
    {"signal", STK_KEY_SIGNAL, 1, 16, 0, NULL, NULL, "needed", "such as USR1"},
    {"seconds", STK_KEY_INT, 0, 65535, 0, NULL, NULL, "60",
     "so long before its time limit, or before it is stopped to make room"},
    {"who", STK_KEY_WORD, 0, 0, 0, "all|batch", NULL, "all",
     "all its processes, or only the first"},
    {0},
};

#define RLIMIT(name, help)                                                                         \
    {                                                                                              \
        name, STK_KEY_INTS, -1, STK_RLIMIT_MAX, 2, NULL, NULL, "the daemon's", help                \
    }

static const struct stk_key rlimit_keys[] = {
    RLIMIT("as", "bytes of address space"),
    RLIMIT("core", "bytes of a core file"),
    RLIMIT("cpu", "seconds of CPU time"),
    RLIMIT("fsize", "bytes of a file it writes"),
    RLIMIT("memlock", "bytes of memory it may lock"),
    RLIMIT("nofile", "open files"),
    RLIMIT("nproc", "processes of the user"),
    RLIMIT("stack", "bytes of stack"),
    {0},
};

static const struct stk_key schedule_keys[] = {
    {"cron", STK_KEY_LINE, 1, STK_MAX_CRON, 0, NULL, NULL, "needed",
     "minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, "
     "@monthly, @yearly"},
    {0},
};

#define LEVELS "link|node|rack|zone|region"

static const struct stk_key group_keys[] = {
    {"tasks", STK_KEY_INT, 1, STK_MAX_TASKS, 0, NULL, NULL, "needed",
     "tasks of each subgroup; a divisor of tasks"},
    {"level", STK_KEY_WORD, 0, 0, 0, LEVELS, NULL, "needed", "each subgroup lies inside one such"},
    {0},
};

static const struct stk_key idle_keys[] = {
    {"warn_s", STK_KEY_INT, 0, STK_MAX_SECONDS, 0, NULL, NULL, "none",
     "say so after its GPUs were idle this long"},
    {"suspend_s", STK_KEY_INT, 0, STK_MAX_SECONDS, 0, NULL, NULL, "none",
     "suspend it and lend its GPUs after this long"},
    {"end_s", STK_KEY_INT, 0, STK_MAX_SECONDS, 0, NULL, NULL, "none", "end it after this long"},
    {"below_pct", STK_KEY_INT, 0, 100, 0, NULL, NULL, "0",
     "a GPU at or below this utilization counts as idle"},
    {0},
};

static const struct stk_key keep_up_keys[] = {
    {"group", STK_KEY_NAME, 1, 128, 0, NULL, NULL, "needed",
     "the user's jobs that name the same are a group"},
    {"min", STK_KEY_INT, 0, 1000000, 0, NULL, NULL, "0",
     "so many of them stay up, whoever needs room; the most that one says counts"},
    {0},
};

/* clang-format off */
static const struct stk_key job_keys[] = {
    {"name", STK_KEY_NAME, 1, 128, 0, NULL, NULL, "the command's name", "what lists show"},
    {"kind", STK_KEY_WORD, 0, 0, 0, "train|batch|shell", NULL, "train; batch with items; shell when interactive", "what sort of work it is"},
    {"command", STK_KEY_STRINGS, 1, STK_MAX_ARGS, STK_MAX_ARG, NULL, NULL, "needed, or script", "program and arguments, run without a shell"},
    {"script", STK_KEY_TEXT, 1, STK_MAX_TEXT, 0, NULL, NULL, "needed, or command", "text run by its own #! line, else by /bin/sh"},
    {"args", STK_KEY_STRINGS, 0, STK_MAX_ARGS, STK_MAX_ARG, NULL, NULL, "none", "arguments of the script"},
    {"workdir", STK_KEY_PATH, 1, STK_MAX_PATH, 0, NULL, NULL, "the user's home", "folder it runs in"},
    {"envs", STK_KEY_ENVS, 0, STK_MAX_ENVS, STK_MAX_ARG, NULL, NULL, "none", "environment variables"},
    {"secrets", STK_KEY_SECRETS, 0, 64, STK_MAX_PATH, NULL, NULL, "none", "environment variables whose values are read from the user's own files at the start and never stored"},
    {"umask", STK_KEY_INT, 0, 511, 0, NULL, NULL, "18 (022)", "file mode mask"},
    {"rlimits", STK_KEY_OBJECT, 0, 0, 0, NULL, rlimit_keys, "the daemon's", "limits of its processes, soft and hard each; -1: none"},
    {"gpus", STK_KEY_NUMBER, 0, STK_MAX_GPUS, 0, NULL, NULL, "0", "GPUs per task: whole ones, or part of one, 0.001 to 0.999"},
    {"gpu_mem_mib", STK_KEY_INT, 0, STK_MAX_GPU_MEM_MIB, 0, NULL, NULL, "0: does not matter", "memory on each of its GPUs, MiB; without gpus: part of one GPU, as large as its share of the memory"},
    {"share", STK_KEY_WORD, 0, 0, 0, "none|mps|mig|time", NULL, "the site's", "how those who share a GPU are kept apart, for part of one"},
    {"share_max", STK_KEY_INT, 1, UINT8_MAX, 0, NULL, NULL, "as many as fit", "at most so many jobs on the GPU that it has part of"},
    {"mig", STK_KEY_NAME, 1, STK_MIG_NAME_LEN - 1, 0, NULL, NULL, "none", "a MIG instance of this profile, such as 1g.10gb, per task"},
    {"gpu_types", STK_KEY_TYPES, 1, STK_MAX_GPU_TYPES, 64, NULL, NULL, "any", "kinds of GPU it can use; as an object, each with its speed there (0.001 to 65.535): the fastest that has room is taken, and estimate_s is for speed 1"},
    {"tasks", STK_KEY_INT, 1, STK_MAX_TASKS, 0, NULL, NULL, "1", "equal tasks, started together or not at all"},
    {"tasks_per_node", STK_KEY_INT, 1, STK_MAX_TASKS, 0, NULL, NULL, "as they fit", "tasks on each node that is used; heeded when it divides tasks"},
    {"topology", STK_KEY_WORD, 0, 0, 0, LEVELS, NULL, "none", "all its GPUs inside one such; link: joined by NVLink or the like"},
    {"prefer", STK_KEY_WORD, 0, 0, 0, LEVELS, NULL, "none", "nearer than topology: tried first, then one level wider after the other"},
    {"group", STK_KEY_OBJECT, 0, 0, 0, NULL, group_keys, "none", "tasks come in subgroups that lie closer together"},
    {"nodelist", STK_KEY_NAMES, 1, 256, 255, NULL, NULL, "any", "nodes it may run on, by name: n7, or n[1-4,7]; a job of as many nodes has them all"},
    {"exclude", STK_KEY_NAMES, 1, 256, 255, NULL, NULL, "none", "nodes it does not run on"},
    {"constraint", STK_KEY_LINE, 1, 255, 0, NULL, NULL, "none", "features that its nodes must have: names with & (all of them) or a bar (one of them) between them, and parentheses where both are used"},
    {"exclusive", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "false", "nobody else on its nodes"},
    {"cpus", STK_KEY_NUMBER, 0, 1 << 20, 0, NULL, NULL, "with GPUs: no limit; without: defaults.cpus", "CPU cores per task, 0.1 at least without GPUs"},
    {"mem_mib", STK_KEY_INT, 0, 1 << 30, 0, NULL, NULL, "0: does not matter", "memory per task, MiB"},
    {"resources", STK_KEY_AMOUNTS, 0, STK_MAX_RESOURCES, UINT32_MAX, NULL, NULL, "none", "named things of the site, per task, such as {\"licence\": 1}"},
    {"pids", STK_KEY_INT, 0, 1 << 22, 0, NULL, NULL, "0: no limit", "processes and threads it may have at once, all tasks together"},
    {"time_limit_s", STK_KEY_INT, 0, STK_MAX_SECONDS, 0, NULL, NULL, "0: none", "it is stopped after so many seconds of running"},
    {"estimate_s", STK_KEY_INT, 0, STK_MAX_SECONDS, 0, NULL, NULL, "time_limit_s", "how long it will probably run"},
    {"priority", STK_KEY_INT, -STK_MAX_PRIORITY, STK_MAX_PRIORITY, 0, NULL, NULL, "the queue's", "larger first"},
    {"tier", STK_KEY_WORD, 0, 0, 0, "best-effort|standard|critical", NULL, "the queue's", "who may be stopped for whom"},
    {"queue", STK_KEY_NAME, 1, STK_MAX_QUEUE_NAME - 1, 0, NULL, NULL, "standard, or the site's", "where it waits: express, standard, batch, preemptible, reserved, or what the site has; gives it priority and tier"},
    {"class", STK_KEY_NAME, 1, STK_MAX_QUEUE_NAME - 1, 0, NULL, NULL, "the queue's", "its priority by name: inference, training, batch, or what the site has"},
    {"nice", STK_KEY_INT, -1000000, 1000000, 0, NULL, NULL, "0", "so much less priority"},
    {"tenant", STK_KEY_NAME, 1, 255, 0, NULL, NULL, "the user's first", "for whom it runs, where its user is a member of several"},
    {"pool", STK_KEY_NAME, 1, 64, 0, NULL, NULL, "the default pool", "which nodes; the name of a queue means that queue"},
    {"hold", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "false", "wait until it is released"},
    {"begin", STK_KEY_INT, 0, MAX_UNIX_S, 0, NULL, NULL, "at once", "not before, Unix seconds"},
    {"reservation", STK_KEY_NAME, 1, 60, 0, NULL, NULL, "none", "a reservation it may use, by its name (stoker reserve list)"},
    {"deadline", STK_KEY_INT, 0, MAX_UNIX_S, 0, NULL, NULL, "none", "it should have ended by then, Unix seconds; said at once and shown: feasible, at risk, infeasible, late"},
    {"deadline_required", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "false", "refuse it when it would not keep its deadline"},
    {"schedule", STK_KEY_OBJECT, 0, 0, 0, NULL, schedule_keys, "none", "submit it again and again, by the clock"},
    {"depends", STK_KEY_OBJECTS, 0, STK_MAX_DEPS, 0, NULL, depend_keys, "none", "other jobs that must end first, all of them"},
    {"singleton", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "false", "wait for the user's earlier jobs of the same name"},
    {"array", STK_KEY_OBJECT, 0, 0, 0, NULL, array_keys, "none", "submit it once per element"},
    {"items", STK_KEY_STRINGS, 1, STK_MAX_ARRAY, 65536, NULL, NULL, "none", "kind batch: one run of the command for each"},
    {"workers", STK_KEY_INT, 1, STK_MAX_TASKS, 0, NULL, NULL, "1", "kind batch: how many run at a time"},
    {"retry", STK_KEY_OBJECT, 0, 0, 0, NULL, retry_keys, "none", "restarts by reason; being stopped to make room always queues it again"},
    {"requeue", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "true", "false: never start it a second time"},
    {"signal", STK_KEY_OBJECT, 0, 0, 0, NULL, signal_keys, "none", "sent ahead, so that it can save its work"},
    {"grace_s", STK_KEY_INT, 0, DAY_S, 0, NULL, NULL, "30", "from SIGTERM to SIGKILL"},
    {"suspend", STK_KEY_WORD, 0, 0, 0, "auto|never", NULL, "auto", "whether it may be suspended instead of stopped"},
    {"min_run_s", STK_KEY_INT, 0, STK_MAX_SECONDS, 0, NULL, NULL, "the policy's", "after each start it gives way to nobody for so long, but for what is guaranteed to others"},
    {"keep_up", STK_KEY_OBJECT, 0, 0, 0, NULL, keep_up_keys, "none", "it is of a group of which some must stay up"},
    {"movable", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "false", "it may be stopped and started elsewhere when that makes room for others (stoker defrag)"},
    {"stdout", STK_KEY_PATTERN, 1, STK_MAX_PATH, 0, NULL, NULL, "stoker-%j.out", "file for its output, from workdir; knows %j %A %a %x %t %N %u %%"},
    {"stderr", STK_KEY_PATTERN, 1, STK_MAX_PATH, 0, NULL, NULL, "stdout's file", "file for its errors"},
    {"stdin", STK_KEY_PATTERN, 1, STK_MAX_PATH, 0, NULL, NULL, "/dev/null", "file it reads"},
    {"stdin_held", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "false", "set by stoker run: stdin is a named pipe that it holds open; do not set it yourself"},
    {"open_mode", STK_KEY_WORD, 0, 0, 0, "append|truncate", NULL, "an old default file is kept under another name, one that is named is appended to", "what happens to an old output file; a restart always appends"},
    {"log_max_mib", STK_KEY_INT, 1, 1 << 20, 0, NULL, NULL, "1024", "an output file beyond this loses its middle"},
    {"setup", STK_KEY_TEXT, 0, STK_MAX_TEXT, 0, NULL, NULL, "none", "shell lines run before the command, in its environment"},
    {"venv", STK_KEY_PATH, 1, STK_MAX_PATH, 0, NULL, NULL, "none", "Python environment to activate"},
    {"image", STK_KEY_IMAGE, 1, 1024, 0, NULL, NULL, "none", "container image to run in, or the path of a folder that holds a root file system"},
    {"image_runtime", STK_KEY_WORD, 0, 0, 0, "auto|podman|docker|apptainer", NULL, "auto", "what runs the image"},
    {"idle", STK_KEY_OBJECT, 0, 0, 0, NULL, idle_keys, "the site's", "what happens when its GPUs are idle"},
    {"interactive", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "false", "wants a terminal; without a command: the user's shell"},
    {"term", STK_KEY_NAME, 1, 64, 0, NULL, NULL, "xterm", "the terminal's type"},
    {"rows", STK_KEY_INT, 0, 65535, 0, NULL, NULL, "24", "the terminal's height"},
    {"cols", STK_KEY_INT, 0, 65535, 0, NULL, NULL, "80", "the terminal's width"},
    {"comment", STK_KEY_LINE, 0, 1024, 0, NULL, NULL, "none", "a label"},
    {"account", STK_KEY_LINE, 0, 128, 0, NULL, NULL, "none", "a label; the name of a tenant means that tenant"},
    {"wckey", STK_KEY_LINE, 0, 128, 0, NULL, NULL, "none", "a label"},
    {"qos", STK_KEY_LINE, 0, 128, 0, NULL, NULL, "none", "a label; the name of a queue means that queue"},
    {"launch", STK_KEY_WORD, 0, 0, 0, "tasks|once", NULL, "tasks", "one process per task, or one in all"},
    {"slurm", STK_KEY_BOOL, 0, 1, 0, NULL, NULL, "false", "give it the SLURM_* variables even with one task"},
    {0},
};
/* clang-format on */

const struct stk_key *stk_spec_keys(void)
{
    return job_keys;
}

const struct stk_key *stk_key_find(const struct stk_key *keys, const char *name)
{
    for (; keys->name; keys++)
        if (strcmp(keys->name, name) == 0)
            return keys;
    return NULL;
}

const char *stk_key_nearest(const struct stk_key *keys, const char *word, unsigned *best)
{
    const char *near = NULL;

    for (; keys->name; keys++)
        if (stk_near(word, keys->name, best))
            near = keys->name;
    return near;
}

const char *stk_key_type_name(enum stk_key_type type)
{
    static const char *const names[STK_KEY_TYPE_MAX] = {
        [STK_KEY_NAME] = "name",
        [STK_KEY_LINE] = "string",
        [STK_KEY_TEXT] = "string",
        [STK_KEY_PATH] = "absolute path",
        [STK_KEY_PATTERN] = "path pattern",
        [STK_KEY_WORD] = "word",
        [STK_KEY_SIGNAL] = "signal",
        [STK_KEY_IMAGE] = "image name or absolute path",
        [STK_KEY_INT] = "whole number",
        [STK_KEY_NUMBER] = "number",
        [STK_KEY_BOOL] = "true or false",
        [STK_KEY_BUDGET] = "whole number or \"always\"",
        [STK_KEY_INTS] = "list of whole numbers",
        [STK_KEY_STRINGS] = "list of strings",
        [STK_KEY_NAMES] = "list of names",
        [STK_KEY_TYPES] = "list of names, or object of numbers",
        [STK_KEY_AMOUNTS] = "object of whole numbers",
        [STK_KEY_ENVS] = "object of strings",
        [STK_KEY_SECRETS] = "object of paths",
        [STK_KEY_OBJECT] = "object",
        [STK_KEY_OBJECTS] = "list of objects",
    };

    return names[type];
}
