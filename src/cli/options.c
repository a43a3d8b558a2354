/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "cli/cli.h"

const struct stk_option stk_daemon_options[] = {
    {"json", 0, NULL, "JSON for programs", NULL},
    {"socket", 0, "PATH", "the daemon's socket (default: $STOKER_SOCKET)", "@files"},
    {0},
};
const struct stk_option stk_common_options[] = {
    {"help", 'h', NULL, "this text", NULL},
    {0},
};

static const struct stk_options daemon_group = {"every command", stk_daemon_options};
static const struct stk_options common_group = {"", stk_common_options};

const struct stk_options *stk_options_of(const struct stk_command *cmd, int i)
{
    int n = 0;

    while (cmd->options && cmd->options[n].list) {
        if (n == i)
            return &cmd->options[n];
        n++;
    }
    if (!cmd->offline && i == n)
        return &daemon_group;
    return i == n + !cmd->offline ? &common_group : NULL;
}

static const struct stk_option *by_name(const struct stk_command *cmd, const char *name, size_t n)
{
    const struct stk_options *g;

    for (int i = 0; (g = stk_options_of(cmd, i)) != NULL; i++)
        for (const struct stk_option *o = g->list; o->name; o++)
            if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
                return o;
    return NULL;
}

static const struct stk_option *by_letter(const struct stk_command *cmd, char letter)
{
    const struct stk_options *g;

    for (int i = 0; (g = stk_options_of(cmd, i)) != NULL; i++)
        for (const struct stk_option *o = g->list; o->name; o++)
            if (o->letter == letter)
                return o;
    return NULL;
}

static int unknown(const struct stk_command *cmd, const char *name, size_t n, struct stk_err *err)
{
    const struct stk_options *g;
    const char *meant = NULL;
    char word[64];
    unsigned best;

    (void)snprintf(word, sizeof(word), "%.*s", (int)(n < 40 ? n : 40), name);
    best = stk_near_limit(word);
    for (int i = 0; (g = stk_options_of(cmd, i)) != NULL; i++)
        for (const struct stk_option *o = g->list; o->name; o++)
            if (stk_near(word, o->name, &best))
                meant = o->name;
    if (meant)
        return stk_err_set(err, -EINVAL, "there is no option --%s; did you mean --%s?", word,
                           meant);
    return stk_err_set(err, -EINVAL, "there is no option --%s (stoker %s --help lists them)", word,
                       cmd->name);
}

static void put(struct stk_args *a, const struct stk_option *o, const char *value)
{
    a->set[a->n_set++] = (struct stk_arg){o, value};
}

/* "--name", "--name=value"; *ret_next is the word after it, and becomes NULL when used. */
static int take_long(struct stk_args *a, const char *text, const char **ret_next,
                     struct stk_err *err)
{
    size_t n = strcspn(text, "=");
    const struct stk_option *o = by_name(a->cmd, text, n);

    if (!o)
        return unknown(a->cmd, text, n, err);
    if (!o->arg && text[n] == '=')
        return stk_err_set(err, -EINVAL, "--%s takes no value", o->name);
    if (o->arg && text[n] != '=') {
        if (!*ret_next)
            return stk_err_set(err, -EINVAL, "--%s needs a value: --%s %s", o->name, o->name,
                               o->arg);
        put(a, o, *ret_next);
        *ret_next = NULL;
        return 0;
    }
    put(a, o, o->arg ? text + n + 1 : "");
    return 0;
}

static int take_short(struct stk_args *a, const char *text, const char **ret_next,
                      struct stk_err *err)
{
    for (; *text != '\0'; text++) {
        const struct stk_option *o = by_letter(a->cmd, *text);

        if (!o)
            return stk_err_set(err, -EINVAL, "there is no option -%c (stoker %s --help lists them)",
                               *text, a->cmd->name);
        if (!o->arg) {
            put(a, o, "");
            continue;
        }
        if (text[1] == '\0' && !*ret_next)
            return stk_err_set(err, -EINVAL, "-%c needs a value: -%c %s", *text, *text, o->arg);
        put(a, o, text[1] != '\0' ? text + 1 : *ret_next);
        if (text[1] == '\0')
            *ret_next = NULL;
        break;
    }
    return 0;
}

static int take_all(struct stk_args *a, int argc, char **argv, struct stk_err *err)
{
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        bool had = next != NULL;
        int rc;

        if (word[0] != '-' || word[1] == '\0') {
            a->words[a->n_words++] = word;
            if (!a->cmd->ends)
                continue;
        }
        if (word[0] != '-' || word[1] == '\0' || strcmp(word, "--") == 0) {
            a->dashes = word[0] == '-' && word[1] == '-' && a->n_words == 0;
            while (++i < argc)
                a->words[a->n_words++] = argv[i];
            break;
        }
        rc = word[1] == '-' ? take_long(a, word + 2, &next, err)
                            : take_short(a, word + 1, &next, err);
        if (rc < 0)
            return rc;
        i += had && !next;
    }
    return 0;
}

int stk_args_parse(const struct stk_command *cmd, int argc, char **argv, struct stk_args *ret,
                   struct stk_err *err)
{
    struct stk_args a = {.cmd = cmd};
    size_t most = 1; /* flags that one word may hold, and words */
    int rc;

    for (int i = 1; i < argc; i++)
        most += strlen(argv[i]) + 1;
    a.set = calloc(most, sizeof(*a.set));
    a.words = calloc((size_t)argc + 1, sizeof(*a.words));
    rc = a.set && a.words ? take_all(&a, argc, argv, err)
                          : stk_err_set(err, -ENOMEM, "out of memory");
    if (rc < 0)
        stk_args_done(&a);
    else
        *ret = a;
    return rc;
}

void stk_args_done(struct stk_args *a)
{
    free(a->set);
    free(a->words);
    a->set = NULL;
    a->words = NULL;
}

const char *stk_arg_next(const struct stk_args *a, const char *name, int *at)
{
    assert(by_name(a->cmd, name, strlen(name)));
    while (*at < a->n_set) {
        const struct stk_arg *s = &a->set[(*at)++];

        if (strcmp(s->option->name, name) == 0)
            return s->value;
    }
    return NULL;
}

bool stk_arg_known(const struct stk_args *a, const char *name)
{
    return by_name(a->cmd, name, strlen(name)) != NULL;
}

const char *stk_arg(const struct stk_args *a, const char *name)
{
    const char *value, *last = NULL;
    int at = 0;

    while ((value = stk_arg_next(a, name, &at)) != NULL)
        last = value;
    return last;
}
