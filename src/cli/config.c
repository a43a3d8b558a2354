/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - "stoker config": checks a configuration file of the daemon, shows what it amounts to,
 * lists the keys. What is shown is a file that says the same, read with the daemon's own code. The
 * check is the daemon's own, too: stokerd --check, which starts nothing. */
#include "config/config.h"

#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/config_teams.h"
#include "cli/config_text.h"
#include "cli/programs.h"
#include "cli/term.h"

static void print_names(char *const *names)
{
    (void)putchar('[');
    for (size_t i = 0; names && names[i]; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        stk_config_print_text(names[i]);
    }
    (void)putchar(']');
}

/* "name=value" of each is a line of its own. */
static void print_pairs(char *const *pairs, size_t n)
{
    (void)fputs(n == 0 ? "{}" : "", stdout);
    for (size_t i = 0; i < n; i++) {
        const char *eq = strchr(pairs[i], '=');
        char name[256];

        (void)snprintf(name, sizeof(name), "%.*s", (int)(eq - pairs[i]), pairs[i]);
        (void)fputs("\n    ", stdout);
        stk_config_print_text(name);
        (void)fputs(": ", stdout);
        stk_config_print_text(eq + 1);
    }
}

static void print_amounts(const struct stk_config_amounts *a)
{
    (void)putchar('{');
    for (uint32_t i = 0; i < a->n; i++)
        (void)printf("%s\"%s\": %" PRIu32, i ? ", " : "", a->names[i], a->amounts[i]);
    (void)putchar('}');
}

/* False: it is neither a list nor a map. */
static bool print_list(const struct stk_config *c, const struct stk_config_key *k, char **names)
{
    size_t n = 0;

    while (names && names[n])
        n++;
    if (k->type == STK_CONFIG_NAMES)
        print_names(names);
    else if (k->type == STK_CONFIG_PAIRS)
        print_pairs(names, n);
    else if (k->type == STK_CONFIG_PARAMS)
        print_pairs(c->policy.params, c->policy.n_params);
    else if (k->type == STK_CONFIG_AMOUNTS)
        print_amounts(&c->resources);
    else
        return false;
    return true;
}

/* The word at a place of "a|b|c". */
static void print_word(const char *words, uint64_t place)
{
    for (; place > 0 && strchr(words, '|'); place--)
        words = strchr(words, '|') + 1;
    (void)printf("%.*s", (int)strcspn(words, "|"), words);
}

/* In the largest unit that leaves no rest. */
static void print_units(uint64_t n, bool bytes)
{
    static const struct {
        uint64_t size;
        char letter;
    } times[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}},
      sizes[] = {{UINT64_C(1) << 40, 'T'}, {1 << 30, 'G'}, {1 << 20, 'M'}, {1, 0}}, *unit;

    unit = bytes ? sizes : times;
    while (n % unit->size != 0)
        unit++;
    if (n == 0 || unit->letter == 0)
        (void)printf("%" PRIu64, n);
    else
        (void)printf("%" PRIu64 "%c", n / unit->size, unit->letter);
}

/* Millionths, without zeros at the end. */
static void print_decimal(uint64_t n)
{
    char rest[8];
    size_t len = 6;

    (void)snprintf(rest, sizeof(rest), "%06u", (unsigned)(n % 1000000));
    while (len > 0 && rest[len - 1] == '0')
        len--;
    (void)printf("%" PRIu64 "%s%.*s", n / 1000000, len ? "." : "", (int)len, rest);
}

static void print_number(const struct stk_config_key *k, uint64_t n)
{
    if (k->type == STK_CONFIG_WORD)
        print_word(k->words, n);
    else if (k->type == STK_CONFIG_BOOL)
        (void)fputs(n ? "yes" : "no", stdout);
    else if (k->type == STK_CONFIG_SECONDS || k->type == STK_CONFIG_BYTES)
        print_units(n, k->type == STK_CONFIG_BYTES);
    else if (k->type == STK_CONFIG_DECIMAL)
        print_decimal(n);
    else
        (void)printf("%" PRIu64, n);
}

static bool is_text(const struct stk_config_key *k)
{
    return k->type == STK_CONFIG_TEXT || k->type == STK_CONFIG_POLICY;
}

static const char *text_of(const struct stk_config *c, const struct stk_config_key *k)
{
    const char *text;

    memcpy(&text, (const char *)c + k->offset, sizeof(text));
    return text;
}

/* Whether there is a value to show. What is built in is shown where it is a value that a file could
 * have; the rest is a comment. */
static bool has_value(const struct stk_config *c, const struct stk_config_key *k)
{
    if (is_text(k))
        return text_of(c, k) != NULL;
    if (strcmp(k->path, "virtual_gpus") == 0)
        return c->virtual_gpus != STK_CONFIG_NO_GPUS;
    return k->type != STK_CONFIG_TEAMS || strcmp(k->path, "tenants") != 0 ||
           c->teams->n_tenants > 0;
}

static void print_value(const struct stk_config *c, const struct stk_config_key *k)
{
    const char *at = (const char *)c + k->offset;
    char **names = NULL;
    uint64_t n = 0;

    if (k->type == STK_CONFIG_NAMES || k->type == STK_CONFIG_PAIRS)
        memcpy(&names, at,
               sizeof(names)); // NOLINT(bugprone-multi-level-implicit-pointer-conversion)
    if (is_text(k)) {
        stk_config_print_text(text_of(c, k));
    } else if (k->type == STK_CONFIG_TEAMS) {
        stk_config_print_teams(c->teams, k->path);
    } else if (!print_list(c, k, names)) {
        memcpy(&n, at, sizeof(n));
        print_number(k, n);
    }
}

/* A key as a line of a file that would say the same; what was not said is a comment. */
static void print_key(const struct stk_config *c, const struct stk_config_key *k)
{
    const char *dot = strchr(k->path, '.'), *indent = dot ? "  " : "",
               *name = dot ? dot + 1 : k->path;

    if (!has_value(c, k)) {
        (void)printf("%s# %s: %s\n", indent, name, *k->def ? k->def : "not set");
        return;
    }
    (void)printf("%s%s: ", indent, name);
    print_value(c, k);
    (void)putchar('\n');
}

/* Whether some key of the group has a value: a group without one would be a key without one. */
static bool group_has_value(const struct stk_config *c, const struct stk_config_key *k, size_t len)
{
    const char *group = k->path;

    for (; k->path && strncmp(k->path, group, len + 1) == 0; k++)
        if (has_value(c, k))
            return true;
    return false;
}

/* Keys of a group come one after the other in the table. */
static void print_all(const struct stk_config *c)
{
    const char *group = "";

    for (const struct stk_config_key *k = stk_config_keys; k->path; k++) {
        size_t n = strcspn(k->path, ".");

        if (k->path[n] == '.' && strncmp(group, k->path, n + 1) != 0) {
            (void)printf("%s%.*s:\n", group_has_value(c, k, n) ? "" : "# ", (int)n, k->path);
            group = k->path;
        }
        print_key(c, k);
    }
}

static int run_check(char *file)
{
    char check[] = "--check", config[] = "--config";
    char *const words[] = {check, config, file, NULL};

    return stk_become_program("stokerd", words);
}

static int run_config(const struct stk_args *a)
{
    const char *verb = a->n_words > 0 ? a->words[0] : "",
               *file = a->n_words > 1 ? a->words[1] : NULL;
    bool check = strcmp(verb, "check") == 0, show = strcmp(verb, "show") == 0;
    struct stk_err err = {""};
    struct stk_config c;
    int rc = 0;

    if (strcmp(verb, "keys") == 0 && !file) {
        stk_config_print_keys(stdout);
        return STK_EXIT_OK;
    }
    if ((!check && !show) || a->n_words > 2)
        return stk_misused(a, "check FILE, show [FILE] or keys");
    if (check && !file)
        return stk_misused(a, "which file? stoker config check FILE");
    if (check)
        return run_check(a->words[1]);
    stk_config_init(&c);
    rc = file ? stk_config_load(file, &c, &err) : 0;
    if (rc < 0)
        rc = stk_misused(a, "%s", err.text);
    else if (!c.teams)
        rc = stk_misused(a, "out of memory");
    else
        print_all(&c);
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
