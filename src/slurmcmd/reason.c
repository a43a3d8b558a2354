/* SPDX-License-Identifier: Apache-2.0 */
/* reason.c - why a job does not run, in Slurm's words, and the jobs that it depends on. */
#include <inttypes.h>
#include <string.h>

#include "slurmcmd/fields.h"

void stk_slurm_reason(const json_t *job, char *buf, size_t size)
{
    static const char *const codes[][2] = {
        {"held", "JobHeldUser"},
        {"dependency", "Dependency"},
        {"array_limit", "JobArrayTaskLimit"},
        {"begin", "BeginTime"},
        {"never", "BadConstraints"},
        {"node", "ReqNodeNotAvail"},
        {"drain", "ReqNodeNotAvail"},
        {"behind", "Priority"},
        {"priority", "Priority"},
        {"reserved", "Priority"},
    };
    const char *state = stk_str(job, "state"), *cause = stk_str(job, "cause");
    const char *code = stk_str(json_object_get(job, "reason"), "code"), *say = "Resources";

    if (strcmp(cause, "dependency_failed") == 0)
        say = "DependencyNeverSatisfied";
    else if (strcmp(state, "held") == 0)
        say = "JobHeldUser";
    else if (!stk_slurm_is_pending(job) && strcmp(state, "suspended") != 0)
        say = "None";
    for (size_t i = 0; strcmp(say, "Resources") == 0 && i < sizeof(codes) / sizeof(*codes); i++)
        if (strstr(code, codes[i][0]))
            say = codes[i][1];
    (void)snprintf(buf, size, "%s", say);
}

static bool was_failed_by(const json_t *job, int64_t dep)
{
    char words[32];

    (void)snprintf(words, sizeof(words), "job %" PRId64, dep);
    return strcmp(stk_str(job, "cause"), "dependency_failed") == 0 &&
           strncmp(stk_str(job, "note"), words, strlen(words)) == 0 &&
           strchr(" _", stk_str(job, "note")[strlen(words)]) != NULL;
}

void stk_slurm_dependency(const json_t *job, char *buf, size_t size)
{
    const json_t *list = json_object_get(json_object_get(job, "spec"), "depends"), *dep;
    size_t i, n = 0;

    (void)snprintf(buf, size, "(null)");
    json_array_foreach(list, i, dep)
    {
        char index[24] = "";

        if (json_object_get(dep, "index"))
            (void)snprintf(index, sizeof(index), "_%" PRId64, stk_int(dep, "index", 0));
        if (n < size)
            n += (size_t)snprintf(buf + n, size - n, "%s%s:%" PRId64 "%s%s", i ? "," : "",
                                  stk_str(dep, "type"), stk_int(dep, "job", 0), index,
                                  was_failed_by(job, stk_int(dep, "job", 0)) ? "(failed)" : "");
    }
}
