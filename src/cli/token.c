/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - "stoker token": secrets that stand for a user over TCP, and browsers that are logged
 * in; "stoker login": a link that logs one in. */
#include <string.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "cli/view.h"
#include "spec/words.h"

static int create(struct stk_ask *k)
{
    const char *name = stk_arg(k->a, "name"), *role = stk_arg(k->a, "role");
    const char *expires = stk_arg(k->a, "expires");
    json_t *body = json_object(), *reply = NULL;
    char clean[512];
    int64_t s = 0;
    int rc = STK_EXIT_OK;

    if (expires && (stk_words_duration(expires, 86400, &s) < 0 || s == 0))
        rc = stk_misused(k->a, "--expires takes a time such as 30d or 12h, got \"%.40s\"", expires);
    if (name)
        (void)json_object_set_new(body, "name", json_string(name));
    if (role)
        (void)json_object_set_new(body, "role", json_string(role));
    if (s > 0)
        (void)json_object_set_new(body, "expires_s", json_integer(s));
    if (rc == STK_EXIT_OK)
        rc = stk_ask_do(k, "POST", "/v1/tokens", body, &reply);
    if (rc == STK_EXIT_OK && k->json) {
        stk_print_json(reply);
    } else if (rc == STK_EXIT_OK) {
        (void)printf("%s\n", stk_text_clean(clean, sizeof(clean), stk_str(reply, "token"), false));
        (void)fprintf(stderr, "This is token %lld, shown once. For a browser: stoker login\n",
                      (long long)stk_int(reply, "id", 0));
    }
    json_decref(body);
    json_decref(reply);
    return rc;
}

static int list(struct stk_ask *k)
{
    static const struct stk_column columns[] = {
        {"ID", true, 0},    {"KIND", false, 0},    {"NAME", false, 8},    {"USER", false, 6},
        {"ROLE", false, 0}, {"CREATED", false, 0}, {"EXPIRES", false, 0}, {"LAST USED", false, 0}};
    static const char *const times[] = {"created", "expires", "used"};
    struct stk_table *t = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    json_t *reply = NULL;
    int rc = stk_ask_get(k, &reply, "/v1/tokens");

    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    for (size_t i = 0; i < json_array_size(json_object_get(reply, "tokens")); i++) {
        const json_t *token = json_array_get(json_object_get(reply, "tokens"), i);
        char buf[32];

        stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(token, "id", 0));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(token, "kind"));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(token, "name"));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(token, "user"));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(token, "role"));
        for (int c = 0; c < 3; c++)
            stk_table_cell(t, STK_PLAIN, "%s",
                           stk_text_time(stk_num(token, times[c], 0), buf, sizeof(buf)));
    }
    if (rc == STK_EXIT_OK && !k->json)
        (void)stk_table_print(t, &k->out, 0);
    stk_table_free(t);
    json_decref(reply);
    return rc;
}

static int revoke(struct stk_ask *k)
{
    int worst = STK_EXIT_OK;

    for (int i = 1; i < k->a->n_words; i++) {
        char path[128], id[64];
        int rc;

        (void)snprintf(path, sizeof(path), "/v1/tokens/%s",
                       stk_client_escape(id, sizeof(id), k->a->words[i]));
        rc = stk_ask_do(k, "DELETE", path, NULL, NULL);
        if (rc == STK_EXIT_OK && !k->json)
            (void)printf("token %.40s revoked\n", k->a->words[i]);
        worst = rc > worst ? rc : worst;
    }
    return worst;
}

static int run_token(const struct stk_args *a)
{
    const char *verb = a->n_words > 0 ? a->words[0] : "";
    bool is_revoke = strcmp(verb, "revoke") == 0;
    struct stk_ask k;
    int rc;

    if (strcmp(verb, "create") != 0 && strcmp(verb, "list") != 0 && !is_revoke)
        return stk_misused(a, "create, list or revoke ID");
    if (is_revoke != (a->n_words > 1))
        return stk_misused(a, is_revoke ? "which token? (stoker token list)" : "too many words");
    rc = stk_ask_open(&k, a);
    if (rc == STK_EXIT_OK)
        rc = is_revoke ? revoke(&k) : strcmp(verb, "list") == 0 ? list(&k) : create(&k);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"name", 'n', "NAME", "create: what it is for", NULL},
    {"role", 0, "ROLE", "create: user, operator or admin; at most one's own",
     "user operator admin"},
    {"expires", 0, "TIME", "create: valid so long (30d, 12h)", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_token = {
    .name = "token",
    .synopsis = "create [--name NAME] [--role ROLE] [--expires TIME]\nlist\nrevoke ID...",
    .help = "tokens for the API; browsers that are logged in",
    .about =
        "A token stands for the user who made it. It is shown once; only its hash is kept. The\n"
        "list has the browsers that are logged in, too (stoker login). Revoking ends at once all\n"
        "that is open with a token or session, and revokes all that was made with it.",
    .complete = "create list revoke",
    .options = groups,
    .section = STK_SECTION_SITE,
    .run = run_token,
};

static int run_login(const struct stk_args *a)
{
    struct stk_ask k;
    json_t *reply = NULL;
    char clean[512];
    int rc = a->n_words > 0 ? stk_misused(a, "too many words") : stk_ask_open(&k, a);

    if (a->n_words > 0)
        return rc;
    if (rc == STK_EXIT_OK)
        rc = stk_ask_do(&k, "POST", "/v1/login/code", NULL, &reply);
    if (rc == STK_EXIT_OK && k.json) {
        stk_print_json(reply);
    } else if (rc == STK_EXIT_OK) {
        (void)printf("%s\n", stk_text_clean(clean, sizeof(clean), stk_str(reply, "url"), false));
        (void)fprintf(stderr, "Open it in a browser. It works once, within 10 minutes.\n");
    }
    json_decref(reply);
    stk_ask_close(&k);
    return rc;
}

const struct stk_command stk_cmd_login = {
    .name = "login",
    .synopsis = "",
    .help = "a link that logs a browser in as you",
    .about =
        "The link works once, within 10 minutes. The browser then stays logged in until it logs\n"
        "out, was not used for a while, or is revoked (stoker token list, stoker token revoke).",
    .section = STK_SECTION_SITE,
    .run = run_login,
};
