/* SPDX-License-Identifier: Apache-2.0 */
/* opts.c - see opts.h. */
#include "spec/opts.h"

#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "spec/words.h"

static int unknown(struct stk_opts *o, struct stk_err *err)
{
    const char *near = NULL, *word = o->shown + 2;
    unsigned best = stk_near_limit(word);

    for (const struct stk_opt *t = o->table; t->name && o->shown[1] == '-'; t++)
        if (*t->name != '\0' && stk_near(word, t->name, &best))
            near = t->name;
    if (near)
        return stk_err_set(err, -EINVAL, "unknown flag %s; did you mean --%s?", o->shown, near);
    return stk_err_set(err, -EINVAL, "unknown flag %s", o->shown);
}

/* The value of an option that needs one: what follows in the word, or the next word. */
static int take_value(struct stk_opts *o, const char *rest, struct stk_err *err)
{
    if (rest) {
        o->value = rest;
        return 1;
    }
    if (o->at >= o->argc)
        return stk_err_set(err, -EINVAL, "%s needs a value", o->shown);
    o->value = o->argv[o->at++];
    return 1;
}

static int next_long(struct stk_opts *o, const char *word, struct stk_err *err)
{
    size_t len = strcspn(word + 2, "=");
    const char *value = word[2 + len] == '=' ? word + 3 + len : NULL;

    (void)snprintf(o->shown, sizeof(o->shown), "%.*s", (int)(len < 36 ? len + 2 : 38),
                   len < 36 ? word : stk_words_show(word).text);
    for (o->opt = o->table; o->opt->name; o->opt++)
        if (len > 0 && strlen(o->opt->name) == len && strncmp(o->opt->name, word + 2, len) == 0)
            break;
    if (!o->opt->name)
        return unknown(o, err);
    if (o->opt->arg == STK_OPT_NEEDS)
        return take_value(o, value, err);
    if (o->opt->arg == STK_OPT_NONE && value)
        return stk_err_set(err, -EINVAL, "%s takes no value, got \"%s\"", o->shown,
                           stk_words_show(value).text);
    o->value = value;
    return 1;
}

static int next_letter(struct stk_opts *o, struct stk_err *err)
{
    char letter = *o->more++;
    const char *rest = *o->more != '\0' ? o->more : NULL;

    (void)snprintf(o->shown, sizeof(o->shown), "-%c", letter > ' ' && letter < 127 ? letter : '?');
    for (o->opt = o->table; o->opt->name; o->opt++)
        if (o->opt->letter == letter)
            break;
    if (!o->opt->name)
        return unknown(o, err);
    o->value = NULL;
    if (o->opt->arg == STK_OPT_NONE) {
        o->more = rest;
        return 1;
    }
    o->more = NULL;
    if (rest && *rest == '=' && rest[1] != '\0') /* -n=4, as some write it */
        rest++;
    if (o->opt->arg == STK_OPT_NEEDS)
        return take_value(o, rest, err);
    o->value = rest;
    return 1;
}

int stk_opts_next(struct stk_opts *o, struct stk_err *err)
{
    const char *word;

    if (o->more)
        return next_letter(o, err);
    if (o->at >= o->argc)
        return 0;
    word = o->argv[o->at];
    if (!o->only && strcmp(word, "--") == 0) {
        o->at++;
        o->only = true;
        return stk_opts_next(o, err);
    }
    if (o->only || word[0] != '-' || word[1] == '\0') {
        if (!o->permute)
            return 0;
        o->at++;
        o->value = word;
        return 2;
    }
    o->at++;
    if (word[1] == '-')
        return next_long(o, word, err);
    o->more = word + 1;
    return next_letter(o, err);
}
