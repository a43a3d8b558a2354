/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - "stoker config": checks a configuration file of the daemon, shows what it amounts to,
 * lists the keys. Reads the file with the daemon's own code; no daemon is needed. */
#include "config/config.h"

#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/term.h"

static void print_names(char *const *names)
{
    for (; names && *names; names++) {
        char clean[256];

        (void)printf(" %s", stk_text_clean(clean, sizeof(clean), *names, false));
    }
}

/* The word at a place of "a|b|c". */
static void print_word(const char *words, uint64_t place)
{
    for (; place > 0 && strchr(words, '|'); place--)
        words = strchr(words, '|') + 1;
    (void)printf(" %.*s", (int)strcspn(words, "|"), words);
}

static void print_key(const struct stk_config *c, const struct stk_config_key *k)
{
    const char *at = (const char *)c + k->offset;
    char *text = NULL, **names = NULL, clean[1024];
    uint64_t n = 0;

    (void)printf("%s:", k->path);
    switch (k->type) {
    case STK_CONFIG_TEXT:
    case STK_CONFIG_POLICY:
        memcpy(&text, at, sizeof(text));
        (void)printf(" %s", text ? stk_text_clean(clean, sizeof(clean), text, false) : k->def);
        break;
    case STK_CONFIG_NAMES:
        memcpy(&names, at,
               sizeof(names)); // NOLINT(bugprone-multi-level-implicit-pointer-conversion)
        print_names(names);
        break;
    case STK_CONFIG_PARAMS:
        for (uint32_t i = 0; i < c->policy.n_params; i++)
            (void)printf(" %s", stk_text_clean(clean, sizeof(clean), c->policy.params[i], false));
        break;
    default:
        memcpy(&n, at, sizeof(n));
        if (k->type == STK_CONFIG_WORD)
            print_word(k->words, n);
        else if (n == STK_CONFIG_NO_GPUS)
            (void)printf(" %s", k->def);
        else
            (void)printf(" %" PRIu64 "%s", n, k->type == STK_CONFIG_SECONDS ? "s" : "");
    }
    (void)putchar('\n');
}

static int run_config(const struct stk_args *a)
{
    const char *verb = a->n_words > 0 ? a->words[0] : "",
               *file = a->n_words > 1 ? a->words[1] : NULL;
    bool check = strcmp(verb, "check") == 0, show = strcmp(verb, "show") == 0;
    struct stk_err err = {""};
    struct stk_config c;
    struct stk_setup setup;
    int rc = 0;

    if (strcmp(verb, "keys") == 0 && !file) {
        stk_config_print_keys(stdout);
        return STK_EXIT_OK;
    }
    if ((!check && !show) || a->n_words > 2)
        return stk_misused(a, "check FILE, show [FILE] or keys");
    if (check && !file)
        return stk_misused(a, "which file? stoker config check FILE");
    stk_config_init(&c);
    rc = file ? stk_config_load(file, &c, &err) : 0;
    rc = rc < 0 ? rc : stk_config_setup(&c, &setup, &err);
    if (rc < 0)
        rc = stk_misused(a, "%s", err.text);
    else if (check)
        (void)printf("%s is right\n", file);
    for (const struct stk_config_key *k = stk_config_keys; rc == 0 && show && k->path; k++)
        print_key(&c, k);
    stk_config_done(&c);
    return rc;
}

const struct stk_command stk_cmd_config = {
    .name = "config",
    .synopsis = "check FILE\nshow [FILE]\nkeys",
    .help = "check the daemon's configuration file, or show what it amounts to",
    .complete = "check show keys",
    .section = STK_SECTION_SITE,
    .offline = true,
    .run = run_config,
};
