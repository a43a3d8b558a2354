/* SPDX-License-Identifier: Apache-2.0 */
/* describe_context.c - what goes along with a job from where it is submitted: the environment, the
 * folder, the umask; and files that options name. A file named relative to here is made absolute:
 * the daemon does not know where here is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/describe.h"
#include "spec/spec.h"

#define MAX_ENVS 4096
#define MAX_ENV_BYTES (1U << 20)
#define MAX_ITEMS 100000

static bool is_name(const char *s, size_t n)
{
    if (n == 0 || n > 255 || (s[0] >= '0' && s[0] <= '9'))
        return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] != '_' && !(s[i] >= '0' && s[i] <= '9') &&
            !((s[i] | 32) >= 'a' && (s[i] | 32) <= 'z'))
            return false;
    return true;
}

/* What may go along: shells keep functions under names that are no identifiers. */
static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] <= 0x20 || s[i] > 0x7e)
            return false;
    return n > 0 && n <= 255;
}

/* Ours, about a job this process may be part of: the new job gets its own. */
static bool is_of_a_job(const char *entry)
{
    return strncmp(entry, "STOKER_JOB", 10) == 0 || strncmp(entry, "SLURM_", 6) == 0 ||
           strncmp(entry, "CUDA_VISIBLE_DEVICES=", 21) == 0;
}

static void pass_all(json_t *envs)
{
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");
        char name[256];
        json_t *value;

        if ((*e)[n] != '=' || !is_plain(*e, n) || is_of_a_job(*e))
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, *e);
        value = json_string(*e + n + 1); /* NULL: not UTF-8, cannot go along */
        if (value)
            (void)json_object_set_new(envs, name, value);
    }
}

static int set_one(const char *text, json_t *envs, struct stk_err *err)
{
    size_t n = strcspn(text, "=");
    char name[256];
    const char *value;

    if (!is_name(text, n))
        return stk_err_set(err, -EINVAL, "--env takes NAME=VALUE or NAME, got \"%.40s\"", text);
    (void)snprintf(name, sizeof(name), "%.*s", (int)n, text);
    value = text[n] == '=' ? text + n + 1 : getenv(name);
    if (!value)
        return stk_err_set(err, -EINVAL, "--env %.60s: there is no such variable here", name);
    if (json_object_set_new(envs, name, json_string(value)) < 0)
        return stk_err_set(err, -EINVAL, "--env %.60s: its value is not UTF-8", name);
    return 0;
}

static int check_size(json_t *envs, struct stk_err *err)
{
    size_t bytes = 0;
    const char *name;
    json_t *value;

    json_object_foreach(envs, name, value)
    {
        bytes += strlen(name) + json_string_length(value) + 2;
    }
    if (json_object_size(envs) > MAX_ENVS || bytes > MAX_ENV_BYTES)
        return stk_err_set(
            err, -EINVAL,
            "the environment has %zu variables with %zu bytes; at most %d with %u go "
            "along: use --no-env and --env NAME",
            json_object_size(envs), bytes, MAX_ENVS, MAX_ENV_BYTES);
    return 0;
}

static int environment(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    json_t *envs = json_object();
    const char *text;
    int at = 0, rc = 0;

    if (!stk_arg_is(a, "no-env"))
        pass_all(envs);
    (void)json_object_update(envs, json_object_get(spec, "envs"));
    (void)json_object_set_new(spec, "envs", envs);
    while (rc == 0 && (text = stk_arg_next(a, "env", &at)) != NULL)
        rc = set_one(text, envs, err);
    return rc < 0 ? rc : check_size(envs, err);
}

/* The absolute path of something that is there. */
static int set_path(json_t *spec, const char *key, const char *option, const char *path,
                    struct stk_err *err)
{
    char *full = realpath(path, NULL);
    int rc = 0;

    if (!full)
        return stk_err_set(err, -EINVAL, "--%s %.100s: %s", option, path, strerror(errno));
    if (json_object_set_new(spec, key, json_string(full)) < 0)
        rc = stk_err_set(err, -EINVAL, "--%s: the path is not UTF-8", option);
    free(full);
    return rc;
}

static int secrets(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    json_t *all = json_object_get(spec, "secrets");
    const char *text;
    int at = 0, rc = 0;

    while (rc == 0 && (text = stk_arg_next(a, "secret", &at)) != NULL) {
        size_t n = strcspn(text, "=");
        char name[256];

        if (!is_name(text, n) || text[n] != '=')
            return stk_err_set(err, -EINVAL, "--secret takes NAME=FILE, got \"%.40s\"", text);
        if (!all)
            (void)json_object_set_new(spec, "secrets", all = json_object());
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, text);
        rc = set_path(all, name, "secret", text + n + 1, err);
    }
    return rc;
}

static int items(const char *path, json_t *spec, struct stk_err *err)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    json_t *list = json_array();
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;

    if (!f)
        rc = stk_err_set(err, -EINVAL, "--items %.100s: %s", path, strerror(errno));
    while (rc == 0 && (n = getline(&line, &cap, f)) >= 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            n--;
        if (n == 0)
            continue;
        if (json_array_append_new(list, json_stringn(line, (size_t)n)) < 0)
            rc = stk_err_set(err, -EINVAL, "--items %.100s: item %zu is not UTF-8", path,
                             json_array_size(list) + 1);
        else if (json_array_size(list) > MAX_ITEMS)
            rc = stk_err_set(err, -EINVAL, "--items %.100s: more than %d items", path, MAX_ITEMS);
    }
    if (rc == 0 && json_array_size(list) == 0)
        rc = stk_err_set(err, -EINVAL, "--items %.100s: no items in it", path);
    free(line);
    if (f && f != stdin)
        (void)fclose(f);
    if (rc == 0) {
        (void)json_object_set(spec, "items", list);
        (void)json_object_set_new(spec, "kind", json_string("batch"));
    }
    json_decref(list);
    return rc;
}

static void set_name(const struct stk_args *a, json_t *spec)
{
    const char *word = a->n_words > 0 && strcmp(a->words[0], "-") != 0 ? a->words[0] : "job";
    const char *slash = strrchr(word, '/');
    char name[129];
    json_t *v;

    if (json_object_get(spec, "name"))
        return;
    (void)snprintf(name, sizeof(name), "%s", slash && slash[1] != '\0' ? slash + 1 : word);
    for (char *p = name; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '/')
            *p = '_';
    v = json_string(name);
    (void)json_object_set_new(spec, "name", v ? v : json_string("job"));
}

static int folder(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    const char *option = stk_arg(a, "workdir"), *set = stk_arg(a, "venv");
    char here[4096];
    mode_t mask = umask(077);
    int rc = 0;

    (void)umask(mask);
    if (!json_object_get(spec, "umask"))
        (void)json_object_set_new(spec, "umask", json_integer((json_int_t)mask));
    stk_spec_add_rlimits(spec);
    if (option)
        rc = set_path(spec, "workdir", "workdir", option, err);
    else if (!json_object_get(spec, "workdir") && !getcwd(here, sizeof(here)))
        rc = stk_err_set(err, -EINVAL, "no current folder: %s", strerror(errno));
    else if (!json_object_get(spec, "workdir") &&
             json_object_set_new(spec, "workdir", json_string(here)) < 0)
        rc = stk_err_set(err, -EINVAL, "the current folder's name is not UTF-8: use --workdir");
    if (rc == 0 && set)
        rc = set_path(spec, "venv", "venv", set, err);
    return rc;
}

int stk_describe_context(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    const char *list = stk_arg(a, "items");
    int rc = environment(a, spec, err);

    rc = rc < 0 ? rc : folder(a, spec, err);
    rc = rc < 0 ? rc : secrets(a, spec, err);
    if (rc == 0 && list)
        rc = items(list, spec, err);
    set_name(a, spec);
    return rc;
}
