/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch_script.c - the #SBATCH lines of a script, and what --export does to the environment.
 *
 * Lines count until the first that is neither blank nor a comment. Their words are cut at blanks;
 * quotes and backslashes protect, '#' ends the line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spec/keys.h"
#include "spec/sbatch.h"
#include "spec/sbatch_flags.h"
#include "spec/spec.h"
#include "spec/words.h"

#define MAX_WORDS 64
#define MAX_LINE 65536

/* Copies one word from *in to *out, without its quotes; false: a quote is open. */
static bool take_word(const char **in, char **out)
{
    const char *p = *in;
    char quote = '\0', *to = *out;

    for (; *p != '\0' && (quote != '\0' || !strchr(" \t", *p)); p++) {
        if (quote != '\0' && *p == quote)
            quote = '\0';
        else if (quote == '\0' && (*p == '"' || *p == '\''))
            quote = *p;
        else if (*p == '\\' && quote != '\'' && p[1] != '\0')
            *to++ = *++p;
        else
            *to++ = *p;
    }
    *in = *p != '\0' ? p + 1 : p;
    *to++ = '\0'; /* never ahead of *in: a blank or the end was passed over */
    *out = to;
    return quote == '\0';
}

/* Cuts 'line' in place. Returns the number of words, or -1 when a quote is open or there are too
 * many. */
static int cut(char *line, char **word)
{
    const char *in = line;
    char *out = line;

    for (int n = 0;; n++) {
        in += strspn(in, " \t");
        if (*in == '\0' || *in == '#')
            return n;
        if (n == MAX_WORDS)
            return -1;
        word[n] = out;
        if (!take_word(&in, &out))
            return -1;
    }
}

static int read_line(struct stk_sbatch *s, const char *line, size_t len, const char *origin,
                     struct stk_err *err)
{
    char program[] = "sbatch", *word[MAX_WORDS + 1] = {program}, *copy;
    int n, rest = 0, rc;

    if (len > MAX_LINE)
        return stk_err_set(err, -EINVAL, "%sthe line is too long", origin);
    copy = strndup(line, len);
    if (!copy)
        return stk_err_set(err, -ENOMEM, "out of memory");
    n = cut(copy, word + 1);
    if (n < 0)
        rc = stk_err_set(err, -EINVAL, "%sa quote is not closed, or there are too many words",
                         origin);
    else
        rc = stk_sbatch_words(s, n + 1, word, origin, &rest, err);
    if (rc == 0 && rest <= n)
        rc = stk_err_set(err, -EINVAL, "%sexpected flags, got \"%s\"", origin,
                         stk_words_show(word[rest]).text);
    free(copy);
    return rc;
}

static bool is_sbatch(const char *line, size_t len)
{
    return len >= 7 && memcmp(line, "#SBATCH", 7) == 0 && (len == 7 || strchr(" \t", line[7]));
}

static bool is_blank(const char *line, size_t len)
{
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    return len == 0;
}

static int check_script(const char *text, size_t len, const char *where, struct stk_err *err)
{
    if (len > STK_MAX_TEXT)
        return stk_err_set(err, -E2BIG, "%s: a script has at most %d bytes", where, STK_MAX_TEXT);
    if (len < 2 || memcmp(text, "#!", 2) != 0)
        return stk_err_set(err, -EINVAL,
                           "%s:1: a batch script must begin with #! and the path of an "
                           "interpreter, such as #!/bin/bash",
                           where);
    if (memchr(text, '\0', len))
        return stk_err_set(err, -EINVAL, "%s: a script must be text", where);
    if (memmem(text, len, "\r\n", 2))
        return stk_err_set(err, -EINVAL,
                           "%s:1: the script has DOS line ends (\\r\\n); convert it first", where);
    return 0;
}

static void note_late(struct stk_sbatch *s, uint32_t line)
{
    (void)json_array_append_new(
        s->notes, json_sprintf("%s:%" PRIu32 ": #SBATCH after the first command is not read",
                               s->where, line));
}

int stk_sbatch_script(struct stk_sbatch *s, const char *text, size_t len, const char *where,
                      struct stk_err *err)
{
    const char *p = text, *end = text + len;
    uint32_t number = 0;
    bool header = true;
    int rc;

    (void)snprintf(s->where, sizeof(s->where), "%s", stk_words_show(where).text);
    rc = check_script(text, len, s->where, err);
    for (; rc == 0 && p < end; number++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl : end) - p);
        char origin[96];

        (void)snprintf(origin, sizeof(origin), "%s:%" PRIu32 ": ", s->where, number + 1);
        if (is_sbatch(p, n) && header)
            rc = read_line(s, p + 7, n - 7, origin, err);
        else if (is_sbatch(p, n))
            note_late(s, number + 1);
        else if (*p != '#' && !is_blank(p, n))
            header = false;
        p = nl ? nl + 1 : end;
    }
    if (rc < 0)
        return rc;
    free(s->script);
    s->script = malloc(len + 1);
    if (!s->script)
        return stk_err_set(err, -ENOMEM, "out of memory");
    memcpy(s->script, text, len);
    s->script[len] = '\0';
    s->script_len = len;
    return 0;
}

/* A variable of the job we are in must not reach the one we submit. */
static bool is_ours(const char *entry, bool in_job)
{
    static const char gang[] =
        "MASTER_ADDR|MASTER_PORT|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|GROUP_RANK|NODE_RANK|"
        "NODE_IPS|NUM_NODES|GPUS_PER_NODE|PET_MASTER_PORT|TF_CONFIG|JAX_COORDINATOR_ADDRESS|"
        "JAX_NUM_PROCESSES|JAX_PROCESS_ID|CUDA_VISIBLE_DEVICES";
    char name[64];

    if (strncmp(entry, "SLURM_", 6) == 0 || strncmp(entry, "SBATCH_", 7) == 0)
        return true;
    if (strncmp(entry, "STOKER_", 7) == 0)
        return strncmp(entry, "STOKER_SOCKET=", 14) != 0;
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(entry, "="), entry);
    return in_job && stk_words_among(name, gang);
}

static bool is_in_job(char *const *environment)
{
    for (; *environment; environment++)
        if (strncmp(*environment, "SLURM_JOB_ID=", 13) == 0 ||
            strncmp(*environment, "STOKER_LEASE=", 13) == 0)
            return true;
    return false;
}

/* What sbatch tells the script about tasks it was asked for: how many, and that the script itself
 * is the first. Without such a wish it says nothing, and libraries take the script for what it is:
 * one process. */
void stk_sbatch_tell(const struct stk_sbatch *s, json_t *envs)
{
    long long tasks = (long long)stk_sbatch_tasks(s);
    bool asked = s->ntasks > 0 || s->per_node > 0;
    const struct {
        const char *name;
        long long n;
        bool given;
    } vars[] = {{"SLURM_NTASKS", tasks, asked},
                {"SLURM_NPROCS", tasks, asked},
                {"SLURM_PROCID", 0, asked},
                {"SLURM_LOCALID", 0, asked},
                {"SLURM_NODEID", 0, asked},
                {"SLURM_NTASKS_PER_NODE", s->per_node, s->per_node > 0},
                {"SLURM_TASKS_PER_NODE", tasks, s->nodes <= 1},
                {"SLURM_GPUS", s->gpus, s->gpus >= 0},
                {"SLURM_GPUS_PER_NODE", s->gpus_per_node, s->gpus_per_node >= 0},
                {"SLURM_GPUS_PER_TASK", s->gpus_per_task, s->gpus_per_task >= 0}};

    for (size_t i = 0; i < sizeof(vars) / sizeof(*vars); i++)
        if (vars[i].given)
            (void)json_object_set_new(envs, vars[i].name, json_sprintf("%lld", vars[i].n));
    if (json_object_get(s->job, "open_mode"))
        (void)json_object_set(envs, "SLURM_OPEN_MODE", json_object_get(s->job, "open_mode"));
}

static void put_env(json_t *envs, const char *entry)
{
    size_t n = strcspn(entry, "=");
    char name[256];

    if (entry[n] != '=' || n == 0 || n >= sizeof(name))
        return;
    memcpy(name, entry, n);
    name[n] = '\0';
    /* a name or value that is not UTF-8 cannot be sent and is left out */
    (void)json_object_set_new(envs, name, json_string(entry + n + 1));
}

static void put_all(json_t *envs, char *const *environment)
{
    bool in_job = is_in_job(environment);

    for (; *environment; environment++)
        if (!is_ours(*environment, in_job))
            put_env(envs, *environment);
}

/* "NAME" takes the value from our own environment. */
static void put_named(json_t *envs, const char *name, char *const *environment)
{
    size_t n = strlen(name);

    for (; *environment; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
            put_env(envs, *environment);
}

int stk_sbatch_export(const struct stk_sbatch *s, json_t *job, char *const *environment,
                      struct stk_err *err)
{
    char *list = strdup(s->export ? s->export : "ALL"), *save = NULL;
    json_t *envs = json_object();

    if (!list || !envs) {
        free(list);
        json_decref(envs);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    for (char *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (strcmp(w, "ALL") == 0)
            put_all(envs, environment);
        else if (strcmp(w, "NONE") == 0 || strcmp(w, "NIL") == 0)
            continue;
        else if (strchr(w, '='))
            put_env(envs, w);
        else
            put_named(envs, w, environment);
    }
    free(list);
    (void)json_object_update(envs, json_object_get(job, "envs")); /* what the job has already */
    return json_object_set_new(job, "envs", envs) < 0 ? stk_err_set(err, -ENOMEM, "out of memory")
                                                      : 0;
}

/* The script's own wishes about submitting, where only the script is read. */
static int script_only(const struct stk_sbatch *s, struct stk_err *err)
{
    if (s->wait || s->test_only)
        return stk_err_set(err, -EINVAL, "--%s belongs on a command line",
                           s->wait ? "wait" : "test-only");
    if (s->export && strncmp(s->export, "ALL", 3) != 0)
        return stk_err_set(err, -EINVAL,
                           "--export: only sbatch can leave the environment behind; here "
                           "it is ALL or ALL,NAME=value");
    return 0;
}

/* NAME=value of --export=ALL,NAME=value */
static void put_exported(const struct stk_sbatch *s, json_t *envs)
{
    char *list = s->export ? strdup(s->export) : NULL, *save = NULL;

    for (char *w = list ? strtok_r(list, ",", &save) : NULL; w; w = strtok_r(NULL, ",", &save))
        put_env(envs, w);
    free(list);
}

json_t *stk_spec_from_sbatch(const char *text, size_t len, const char *where, json_t **ret_notes,
                             struct stk_err *err)
{
    struct stk_sbatch s;
    struct stk_err why = {""};
    json_t *job = NULL;

    stk_sbatch_init(&s, STK_TOOL_SBATCH, (int64_t)time(NULL));
    if (stk_sbatch_script(&s, text, len, where, err) == 0) {
        if (script_only(&s, &why) == 0)
            job = stk_sbatch_job(&s, &why);
        if (job)
            put_exported(&s, json_object_get(job, "envs"));
        if (!job)
            (void)stk_err_set(err, -EINVAL, "%s: %.180s", s.where, why.text);
    }
    if (job && ret_notes)
        *ret_notes = json_incref(s.notes);
    stk_sbatch_done(&s);
    return job;
}
