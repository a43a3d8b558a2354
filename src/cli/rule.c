/* SPDX-License-Identifier: Apache-2.0 */
/* rule.c - "stoker rule": what changes when, and until when. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "cli/view.h"
#include "rules/read.h"
#include "sim/slurp.h"

/* The rules of a file, each as the daemon takes it. */
static int read_file(const struct stk_ask *k, const char *path, json_t **ret)
{
    char *text = NULL;
    size_t len = 0;
    int64_t every;
    struct stk_err err = {{0}};
    int rc = stk_slurp(path, &text, &len, &err);

    rc = rc < 0 ? rc : stk_rules_tree(path, text, len, ret, &every, &err);
    free(text);
    return rc < 0 ? stk_ask_fail(k, -EINVAL, &err) : STK_EXIT_OK;
}

static const char *clean(char *buf, size_t size, const char *s)
{
    return stk_text_clean(buf, size, s, false);
}

/* "0 8 * * *", or the condition as it was written. */
static const char *when_of(const json_t *rule, const char *key, char *buf, size_t size)
{
    const json_t *v = json_object_get(rule, key);
    char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

    (void)clean(buf, size, json_is_string(v) ? json_string_value(v) : text ? text : "gone");
    free(text);
    return buf;
}

static int list(struct stk_ask *k)
{
    static const struct stk_column columns[] = {
        {"NAME", false, 8}, {"IN FORCE", false, 0}, {"WHEN", false, 10}, {"UNTIL", false, 8},
        {"ZONE", false, 0}, {"NEXT", false, 0},     {"FROM", false, 0}};
    struct stk_table *t = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    json_t *reply = NULL, *rule;
    size_t i;
    int rc = stk_ask_get(k, &reply, "/v1/rules");

    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    json_array_foreach(json_object_get(reply, "rules"), i, rule)
    {
        const char *error = stk_str(rule, "error");
        char buf[128], when[32];

        stk_table_cell(t, STK_PLAIN, "%s", stk_str(rule, "name"));
        stk_table_cell(t, STK_PLAIN, "%s",
                       *error                      ? "error"
                       : stk_yes(rule, "in_force") ? "yes"
                                                   : "no");
        stk_table_cell(t, STK_PLAIN, "%s", when_of(rule, "when", buf, sizeof(buf)));
        stk_table_cell(t, STK_PLAIN, "%s", when_of(rule, "until", buf, sizeof(buf)));
        stk_table_cell(t, STK_PLAIN, "%s",
                       *stk_str(rule, "zone") ? stk_str(rule, "zone") : "local");
        stk_table_cell(t, STK_PLAIN, "%s",
                       stk_text_time(stk_num(rule, "next", 0), when, sizeof(when)));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(rule, "source"));
    }
    if (rc == STK_EXIT_OK && !k->json && stk_table_rows(t) == 0)
        (void)printf("there are no rules\n");
    else if (rc == STK_EXIT_OK && !k->json)
        (void)stk_table_print(t, &k->out, 0);
    stk_table_free(t);
    json_decref(reply);
    return rc;
}

static int add(struct stk_ask *k)
{
    json_t *rules = NULL, *rule;
    char buf[128];
    size_t i;
    int rc = read_file(k, k->a->words[1], &rules);

    json_array_foreach(rules, i, rule)
    {
        if (rc == STK_EXIT_OK)
            rc = stk_ask_do(k, "POST", "/v1/rules", rule, NULL);
        if (rc == STK_EXIT_OK && !k->json)
            (void)printf("rule %s added\n", clean(buf, sizeof(buf), stk_str(rule, "name")));
    }
    json_decref(rules);
    return rc;
}

static int rm(struct stk_ask *k)
{
    int worst = STK_EXIT_OK;

    for (int i = 1; i < k->a->n_words; i++) {
        char path[300], name[256];
        int rc;

        (void)snprintf(path, sizeof(path), "/v1/rules/%s",
                       stk_client_escape(name, sizeof(name), k->a->words[i]));
        rc = stk_ask_do(k, "DELETE", path, NULL, NULL);
        if (rc == STK_EXIT_OK && !k->json)
            (void)printf("rule %.60s removed\n", k->a->words[i]);
        worst = rc > worst ? rc : worst;
    }
    return worst;
}

static void print_test(const json_t *reply)
{
    json_t *v;
    char a[64], b[64], text[300];
    size_t i;

    (void)printf("rule %s", clean(text, sizeof(text), stk_str(reply, "name")));
    (void)printf(" (%s)\n", clean(text, sizeof(text), stk_str(reply, "zone")));
    if (stk_yes(reply, "condition"))
        (void)printf("  begins and ends by its condition\n");
    json_array_foreach(json_object_get(reply, "times"), i, v)
    {
        (void)printf("  from %s", stk_text_time(stk_num(v, "begin", 0), a, sizeof(a)));
        (void)printf("  to %s\n", stk_text_time(stk_num(v, "end", 0), b, sizeof(b)));
    }
    (void)printf("changes\n");
    json_array_foreach(json_object_get(reply, "changes"), i, v)
    {
        (void)printf("  %s\n", clean(text, sizeof(text), json_string_value(v)));
    }
}

static int test_one(struct stk_ask *k, json_t *take_body, int64_t days)
{
    json_t *reply = NULL;
    int rc;

    (void)json_object_set_new(take_body, "days", json_integer(days));
    rc = stk_ask_do(k, "POST", "/v1/rules/test", take_body, &reply);
    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK)
        print_test(reply);
    json_decref(reply);
    json_decref(take_body);
    return rc;
}

/* A rule there is, or those of a file. */
static int test(struct stk_ask *k)
{
    const char *word = k->a->words[1];
    json_t *rules = NULL, *rule;
    int64_t days = 7;
    size_t i;
    int rc = stk_arg_number(k->a, "days", 1, 366, &days);

    if (rc == STK_EXIT_OK && !strchr(word, '/') && !strstr(word, ".y"))
        return test_one(k, json_pack("{s:s}", "name", word), days);
    rc = rc != STK_EXIT_OK ? rc : read_file(k, word, &rules);
    json_array_foreach(rules, i, rule)
    {
        if (rc == STK_EXIT_OK)
            rc = test_one(k, json_pack("{s:O}", "rule", rule), days);
    }
    json_decref(rules);
    return rc;
}

static int show(struct stk_ask *k)
{
    char name[256];
    json_t *reply = NULL;
    char *text;
    int rc = stk_ask_get(k, &reply, "/v1/rules/%s",
                         stk_client_escape(name, sizeof(name), k->a->words[1]));

    if (rc == STK_EXIT_OK && k->json) {
        stk_print_json(reply);
    } else if (rc == STK_EXIT_OK) {
        text = json_dumps(reply, JSON_INDENT(2) | JSON_ENSURE_ASCII);
        (void)printf("%s\n", text ? text : "");
        free(text);
    }
    json_decref(reply);
    return rc;
}

static int run_rule(const struct stk_args *a)
{
    static const struct stk_verb verbs[] = {{"list", NULL, list, false},
                                            {"add", "which file?", add, false},
                                            {"rm", "which rule? (stoker rule list)", rm, true},
                                            {"show", "which rule? (stoker rule list)", show, false},
                                            {"test", "which rule, or which file?", test, false},
                                            {0}};

    return stk_ask_verb(a, verbs, "list, add FILE, rm NAME, show NAME or test NAME|FILE");
}

static const struct stk_option own[] = {
    {"days", 0, "N", "test: over so many days (7)", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_rule = {
    .name = "rule",
    .synopsis = "list\nadd FILE\nrm NAME...\nshow NAME\ntest NAME|FILE [--days N]",
    .help = "what changes when, and until when",
    .about = "A rule changes limits, priorities, parameters and the like by the clock, or while a\n"
             "condition holds. test says when it would begin and end, and changes nothing.",
    .complete = "list add rm show test",
    .options = groups,
    .section = STK_SECTION_SITE,
    .run = run_rule,
};
