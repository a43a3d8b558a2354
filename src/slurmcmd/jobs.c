/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - jobs by Slurm's ids, and what Slurm says about them; see slurm.h.
 *
 * The elements of an array have consecutive numbers in the order of their indices, and the array
 * has the number of the first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/span.h"
#include "slurmcmd/slurm.h"
#include "spec/words.h"

static const struct stk_slurm_state states[] = {
    {"PD", "PENDING"},   {"R", "RUNNING"},        {"CG", "COMPLETING"},  {"CD", "COMPLETED"},
    {"F", "FAILED"},     {"CA", "CANCELLED"},     {"TO", "TIMEOUT"},     {"OOM", "OUT_OF_MEMORY"},
    {"PR", "PREEMPTED"}, {"NF", "NODE_FAIL"},     {"S", "SUSPENDED"},    {"CF", "CONFIGURING"},
    {"RQ", "REQUEUED"},  {"DL", "DEADLINE"},      {"BF", "BOOT_FAIL"},   {"SE", "SPECIAL_EXIT"},
    {"ST", "STOPPED"},   {"RD", "RESV_DEL_HOLD"}, {"RF", "REQUEUE_FED"}, {"RH", "REQUEUE_HOLD"},
    {"RS", "RESIZING"},  {"RV", "REVOKED"},       {"SI", "SIGNALING"},   {"SO", "STAGE_OUT"},
};
#define N_STATES (sizeof(states) / sizeof(*states))

static const char *const words[][2] = {
    {"held", "PD"},       {"blocked", "PD"},   {"waiting", "PD"},
    {"starting", "R"},    {"running", "R"},    {"suspended", "S"},
    {"stopping", "CG"},   {"completed", "CD"}, {"failed", "F"},
    {"killed", "F"},      {"timeout", "TO"},   {"out_of_memory", "OOM"},
    {"node_lost", "NF"},  {"gpu_error", "NF"}, {"lost", "NF"},
    {"not_started", "F"}, {"cancelled", "CA"}, {"dependency_failed", "CA"},
    {"evicted", "PR"},
};

const struct stk_slurm_state *stk_slurm_state(const json_t *job)
{
    const char *state = stk_str(job, "state"), *code = "F";

    if (strcmp(state, "done") == 0)
        state = stk_str(job, "cause");
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i][0], state) == 0)
            code = words[i][1];
    for (size_t i = 0; i < N_STATES; i++)
        if (strcmp(states[i].code, code) == 0)
            return &states[i];
    return &states[4];
}

bool stk_slurm_is_pending(const json_t *job)
{
    return strcmp(stk_slurm_state(job)->code, "PD") == 0;
}

int stk_slurm_state_in(const struct stk_slurm_state *state, const char *list, bool *ret)
{
    bool found = false;

    while (*list != '\0') {
        size_t n = strcspn(list, ","), i = 0;
        bool all = n == 3 && strncasecmp(list, "all", 3) == 0;

        while (i < N_STATES &&
               !(strlen(states[i].code) == n && strncasecmp(states[i].code, list, n) == 0) &&
               !(strlen(states[i].name) == n && strncasecmp(states[i].name, list, n) == 0))
            i++;
        if (i == N_STATES && !all)
            return -EINVAL;
        found |= all || &states[i] == state;
        list += n + (list[n] == ',');
    }
    *ret = found;
    return 0;
}

int stk_slurm_exit_code(const json_t *job)
{
    int64_t code = stk_int(job, "exit_code", -1), signal = stk_int(job, "signal", 0);

    if (code >= 0)
        return (int)code;
    return signal > 0 ? 128 + (int)signal : 1;
}

/* Job 'number' in *ret when it is an element of 'array' (0: any job); NULL when it is not. */
static int element(struct stk_slurm *s, uint32_t number, uint32_t array, json_t **ret,
                   struct stk_err *err)
{
    json_t *job = NULL;
    int rc = stk_client_get(s->c, &job, err, "/v1/jobs/%u", number);

    *ret = NULL;
    if (rc == -ENOENT && array)
        return 0;
    if (rc < 0)
        return rc;
    if (array && stk_int(job, "array_id", 0) != (int64_t)array)
        json_decref(job);
    else
        *ret = job;
    return 0;
}

static bool wanted(const json_t *indices, int64_t index)
{
    if (!indices)
        return true;
    for (size_t i = 0; i < json_array_size(indices); i++)
        if (json_integer_value(json_array_get(indices, i)) == index)
            return true;
    return false;
}

static bool has_ended(const json_t *job)
{
    return strcmp(stk_str(job, "state"), "done") == 0;
}

/* The elements of an array whose first element is 'take_first'. */
static int elements(struct stk_slurm *s, json_t *take_first, const json_t *indices, bool ended,
                    json_t *jobs, struct stk_err *err)
{
    uint32_t array = (uint32_t)stk_int(take_first, "id", 0);
    size_t found = 0;
    int rc = 0;

    for (uint32_t n = array; rc == 0 && take_first; n++) {
        if (wanted(indices, stk_int(take_first, "array_index", -1))) {
            found++;
            if (ended || !has_ended(take_first))
                (void)json_array_append(jobs, take_first);
        }
        json_decref(take_first);
        rc = element(s, n + 1, array, &take_first, err);
    }
    if (rc == 0 && indices && found < json_array_size(indices))
        return stk_err_set(err, -ENOENT,
                           "Invalid job id specified: array %u has not all of these "
                           "elements",
                           array);
    return rc;
}

/* The indices of "12_4" and "12_[1-3]" as a list; NULL: all. */
static int read_indices(const char *s, json_t **ret, struct stk_err *err)
{
    const char *bar = strchr(s, '_');
    size_t len = bar ? strlen(bar) : 0;
    char expression[256];
    json_t *array;
    int rc;

    *ret = NULL;
    if (!bar)
        return 0;
    bar += bar[1] == '[' && bar[len - 1] == ']' ? 2 : 1;
    len = strcspn(bar, "]%");
    if (len >= sizeof(expression))
        return stk_err_set(err, -EINVAL, "Invalid job id specified: %.60s", s);
    memcpy(expression, bar, len);
    expression[len] = '\0';
    rc = stk_words_array(expression, &array, err);
    if (rc < 0)
        return rc;
    *ret = json_incref(json_object_get(array, "indices"));
    if (!*ret) {
        int64_t first = stk_int(array, "first", 0), step = stk_int(array, "step", 1);

        *ret = json_array();
        for (int64_t i = first; i <= stk_int(array, "last", first); i += step)
            (void)json_array_append_new(*ret, json_integer(i));
    }
    json_decref(array);
    return 0;
}

static int find_one(struct stk_slurm *s, const char *id, bool ended, json_t *jobs,
                    struct stk_err *err)
{
    struct stk_job_ref ref;
    json_t *job = NULL, *indices = NULL;
    int rc;

    if (stk_words_job(id, &ref) < 0)
        return stk_err_set(err, -EINVAL, "Invalid job id specified: %s", stk_words_show(id).text);
    rc = read_indices(id, &indices, err);
    if (rc == 0)
        rc = element(s, ref.job, 0, &job, err);
    if (rc == -ENOENT)
        rc = stk_err_set(err, -ENOENT, "Invalid job id specified: %s", stk_words_show(id).text);
    if (rc == 0 && stk_int(job, "array_id", 0) == (int64_t)ref.job) {
        rc = elements(s, job, indices, ended, jobs, err);
    } else if (rc == 0 && indices) {
        json_decref(job);
        rc = stk_err_set(err, -ENOENT, "Invalid job id specified: %u is no array", ref.job);
    } else if (rc == 0) {
        (void)json_array_append_new(jobs, job);
    }
    json_decref(indices);
    return rc;
}

int stk_slurm_find(struct stk_slurm *s, const char *ids, bool ended, json_t *jobs,
                   struct stk_err *err)
{
    int rc = 0;

    while (rc == 0 && *ids != '\0') {
        char id[300];
        size_t n = 0;
        bool inside = false;

        for (; ids[n] != '\0' && (inside || ids[n] != ','); n++)
            inside = ids[n] == '[' || (inside && ids[n] != ']');
        if (n >= sizeof(id))
            return stk_err_set(err, -EINVAL, "Invalid job id specified: %.60s", ids);
        memcpy(id, ids, n);
        id[n] = '\0';
        rc = n == 0 ? 0 : find_one(s, id, ended, jobs, err);
        ids += n + (ids[n] == ',');
    }
    return rc;
}

const char *stk_slurm_id(const json_t *job, char *buf, size_t size)
{
    int64_t array = stk_int(job, "array_id", 0);

    if (array > 0)
        (void)snprintf(buf, size, "%lld_%lld", (long long)array,
                       (long long)stk_int(job, "array_index", 0));
    else
        (void)snprintf(buf, size, "%lld", (long long)stk_int(job, "id", 0));
    return buf;
}

const char *stk_slurm_span(int64_t seconds, bool whole, char *buf, size_t size)
{
    if (!whole || seconds < 0 || seconds >= 86400)
        return stk_span(seconds, buf, size);
    (void)snprintf(buf, size, "%02d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60),
                   (int)(seconds % 60));
    return buf;
}

const char *stk_slurm_when(double at, const char *none, char *buf, size_t size)
{
    time_t t = (time_t)at;
    struct tm tm;

    if (!(at > 0) || !localtime_r(&t, &tm) || strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        (void)snprintf(buf, size, "%s", none);
    return buf;
}
