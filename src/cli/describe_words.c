/* SPDX-License-Identifier: Apache-2.0 */
/* describe_words.c - what to run: "-- CMD...", a job file in YAML, a script with #SBATCH lines, any
 * other script, a program. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/describe.h"
#include "spec/spec.h"

/* Reads a file (NULL: standard input) whole; the caller frees. */
static int read_file(const char *path, char **ret, size_t *ret_n, struct stk_err *err)
{
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : STDIN_FILENO;
    char *text = malloc(STK_DESCRIBE_MAX_FILE + 2);
    const char *what = path ? path : "standard input";
    size_t n = 0;
    ssize_t k = 0;
    int rc = 0;

    if (fd < 0 || !text) {
        rc = fd < 0 ? stk_err_set(err, -EINVAL, "cannot read %.100s: %s", what, strerror(errno))
                    : stk_err_set(err, -ENOMEM, "out of memory");
        goto out;
    }
    do {
        k = read(fd, text + n, STK_DESCRIBE_MAX_FILE + 1 - n);
        if (k > 0)
            n += (size_t)k;
    } while (k > 0 || (k < 0 && errno == EINTR));
    text[n] = '\0';
    if (k < 0)
        rc = stk_err_set(err, -EINVAL, "cannot read %.100s: %s", what, strerror(errno));
    else if (n > STK_DESCRIBE_MAX_FILE)
        rc = stk_err_set(err, -EINVAL, "%.100s is larger than 1 MiB", what);
out:
    if (path && fd >= 0)
        (void)close(fd);
    if (rc < 0) {
        free(text);
        return rc;
    }
    *ret = text;
    *ret_n = n;
    return 0;
}

static bool ends_in(const char *s, const char *tail)
{
    size_t n = strlen(s), k = strlen(tail);

    return n > k && strcmp(s + n - k, tail) == 0;
}

static bool has_sbatch(const char *text)
{
    return strncmp(text, "#SBATCH", 7) == 0 || strstr(text, "\n#SBATCH");
}

static json_t *words_from(const struct stk_args *a, int first)
{
    json_t *list = json_array();

    for (int i = first; i < a->n_words; i++) {
        json_t *word = json_string(a->words[i]);

        if (!word) {
            json_decref(list);
            return NULL;
        }
        (void)json_array_append_new(list, word);
    }
    return list;
}

static int command(const struct stk_args *a, const char *program, json_t **ret, struct stk_err *err)
{
    json_t *list = words_from(a, 0);

    if (!list)
        return stk_err_set(err, -EINVAL, "the command is not UTF-8");
    if (program)
        (void)json_array_set_new(list, 0, json_string(program));
    *ret = json_pack("{s:o}", "command", list);
    return 0;
}

static void say_notes(const struct stk_args *a, const char *where, const json_t *notes)
{
    for (size_t i = 0; i < json_array_size(notes); i++)
        (void)fprintf(stderr, "stoker %s: %.100s: %s\n", a->cmd->name, where,
                      json_string_value(json_array_get(notes, i)));
}

static int script(const struct stk_args *a, const char *text, size_t n, bool sbatch, json_t **ret,
                  struct stk_err *err)
{
    const char *where = strcmp(a->words[0], "-") == 0 ? "standard input" : a->words[0];
    json_t *args = words_from(a, 1), *body, *spec = NULL, *notes = NULL;

    if (sbatch)
        spec = stk_spec_from_sbatch(text, n, where, &notes, err);
    else if ((body = json_stringn(text, n)) != NULL)
        spec = json_pack("{s:o}", "script", body);
    else
        (void)stk_err_set(err, -EINVAL, "%.100s is not text in UTF-8", where);
    say_notes(a, where, notes);
    json_decref(notes);
    if (!spec || !args) {
        json_decref(args);
        json_decref(spec);
        return args ? -EINVAL : stk_err_set(err, -EINVAL, "the arguments are not UTF-8");
    }
    if (json_array_size(args) > 0)
        (void)json_object_set(spec, "args", args);
    json_decref(args);
    *ret = spec;
    return 0;
}

static int yaml(const struct stk_args *a, const char *text, size_t n, json_t **ret,
                struct stk_err *err)
{
    if (a->n_words > 1)
        return stk_err_set(err, -EINVAL, "a job file takes no arguments: \"%.40s\" is one too many",
                           a->words[1]);
    *ret = stk_spec_from_yaml(text, n, a->words[0], err);
    return *ret ? 0 : -EINVAL;
}

/* A name that is no file here may be a program on the PATH, as a shell would have it. */
static bool on_path(const char *name)
{
    const char *path = getenv("PATH");
    char full[4096];

    if (strchr(name, '/') || !path)
        return false;
    while (*path != '\0') {
        size_t n = strcspn(path, ":");

        if ((size_t)snprintf(full, sizeof(full), "%.*s/%s", (int)n, path, name) < sizeof(full) &&
            access(full, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

static int from_text(const struct stk_args *a, const char *text, size_t n, bool runs, json_t **ret,
                     struct stk_err *err)
{
    const char *file = a->words[0];
    char *program;
    int rc;

    if (ends_in(file, ".yaml") || ends_in(file, ".yml"))
        return yaml(a, text, n, ret, err);
    if (n >= 4 && memcmp(text, "\177ELF", 4) == 0) {
        program = realpath(file, NULL);
        rc = program ? command(a, program, ret, err)
                     : stk_err_set(err, -EINVAL, "cannot find %.100s: %s", file, strerror(errno));
        free(program);
        return rc;
    }
    if (strlen(text) != n)
        return stk_err_set(err, -EINVAL, "%.100s is neither a script nor a job file", file);
    if (has_sbatch(text))
        return script(a, text, n, true, ret, err);
    if (strncmp(text, "#!", 2) == 0 || runs || strcmp(file, "-") == 0)
        return script(a, text, n, false, ret, err);
    return stk_err_set(
        err, -EINVAL,
        "%.100s has no #! line and is not executable; say what runs it: stoker %s -- "
        "python3 %.60s",
        file, a->cmd->name, file);
}

int stk_describe_words(const struct stk_args *a, json_t **ret_spec, struct stk_err *err)
{
    const char *file = a->n_words > 0 ? a->words[0] : NULL;
    char *text = NULL;
    struct stat st;
    size_t n = 0;
    int rc;

    if (!file)
        return stk_err_set(err, -EINVAL, "what shall run? stoker %s FILE, or stoker %s -- CMD...",
                           a->cmd->name, a->cmd->name);
    if (a->dashes)
        return command(a, NULL, ret_spec, err);
    if (strcmp(file, "-") != 0) {
        if (stat(file, &st) < 0 && errno == ENOENT && on_path(file))
            return command(a, NULL, ret_spec, err);
        if (stat(file, &st) == 0 && !S_ISREG(st.st_mode))
            return stk_err_set(err, -EINVAL, "%.100s is not a file", file);
        if (stat(file, &st) == 0 && st.st_size > STK_DESCRIBE_MAX_FILE && (st.st_mode & 0111)) {
            char *program = realpath(file, NULL); /* too large for a script: a program */

            rc = program ? command(a, program, ret_spec, err) : -EINVAL;
            free(program);
            return rc;
        }
    }
    rc = read_file(strcmp(file, "-") == 0 ? NULL : file, &text, &n, err);
    if (rc == 0)
        rc = from_text(a, text, n, access(file, X_OK) == 0, ret_spec, err);
    free(text);
    return rc;
}
