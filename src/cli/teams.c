/* SPDX-License-Identifier: Apache-2.0 */
/* teams.c - "stoker tenants": who shares the GPUs; "stoker quota": what I may have, and for
 * operators other numbers for a tenant. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "cli/ask.h"
#include "cli/table.h"
#include "model/job.h"

#define BAR 12
#define MAX_DEPTH 8

static const char *amount(const json_t *o, const char *key, char *buf, size_t size)
{
    const json_t *v = json_object_get(o, key);

    if (json_is_number(v))
        (void)snprintf(buf, size, "%.5g", json_number_value(v));
    else
        (void)snprintf(buf, size, "-");
    return buf;
}

static int unknown_words(const struct stk_args *a)
{
    return stk_misused(a, "takes no words, got \"%.40s\"", a->words[0]);
}

/* "vision: limit 6, set by hand; the configuration has 4" */
static void print_set(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        char name[300], value[32], config[32];

        (void)printf("%s: %s%s%s %s, set by %s; the configuration has %s\n",
                     stk_text_clean(name, sizeof(name), stk_str(e, "tenant"), false),
                     stk_str(e, "what"), *stk_str(e, "gpu_type") ? " of " : "",
                     stk_str(e, "gpu_type"), amount(e, "value", value, sizeof(value)),
                     strcmp(stk_str(e, "by"), "rule") == 0 ? "a rule" : "hand",
                     amount(e, "config", config, sizeof(config)));
    }
}

/* ---- tenants ---- */

/* The last two are for those who have limits on CPUs or memory. */
static const struct stk_column tenant_columns[] = {
    {"TENANT", false, 8}, {"USED", true, 0},    {"GUARANTEE", true, 0}, {"LIMIT", true, 0},
    {"WEIGHT", true, 0},  {"DUE", true, 0},     {"BORROWED", true, 0},  {"LENT", true, 0},
    {"WAITING", true, 0}, {"JOBS", true, 0},    {"KEEP UP", true, 0},   {"", false, 0},
    {"CPUS", true, 0},    {"MEM GIB", true, 0},
};
#define N_TENANT_COLUMNS (sizeof(tenant_columns) / sizeof(*tenant_columns))
#define N_MEANS 2

struct rows {
    const struct stk_ask *k;
    struct stk_table *t;
    const json_t *list;
    bool means;
};

/* Whether the number was set, and is not the configuration's. */
static bool was_set(const json_t *tenant, const char *what)
{
    const json_t *list = json_object_get(tenant, "set");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(stk_str(json_array_get(list, i), "what"), what) == 0 &&
            !*stk_str(json_array_get(list, i), "gpu_type"))
            return true;
    return false;
}

static void means_cell(struct stk_table *t, const json_t *o, const char *limit, const char *used)
{
    char has[32], may[32];

    stk_table_cell(t, STK_PLAIN, "%s/%s%s", amount(o, used, has, sizeof(has)),
                   amount(o, limit, may, sizeof(may)), was_set(o, limit) ? "!" : "");
}

static void tenant_row(const struct rows *r, const json_t *o, int depth)
{
    static const char *const keys[] = {"used", "guarantee", "limit", "weight",
                                       "due",  "borrowed",  "lent",  "waiting"};
    const struct stk_ask *k = r->k;
    struct stk_table *t = r->t;
    double used = stk_num(o, "used", 0), limit = stk_num(o, "limit", 0);
    char text[64], bar[128];

    stk_table_cell(t, stk_yes(o, "mine") ? STK_BOLD : STK_PLAIN, "%*s%s%s", 2 * depth, "",
                   stk_str(o, "name"), stk_yes(o, "mine") ? " *" : "");
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        stk_table_cell(t, STK_PLAIN, "%s%s", amount(o, keys[i], text, sizeof(text)),
                       was_set(o, keys[i]) ? "!" : "");
    stk_table_cell(t, STK_PLAIN, "%lld+%lld", (long long)stk_int(o, "jobs_running", 0),
                   (long long)stk_int(o, "jobs_waiting", 0));
    stk_table_cell(t, STK_PLAIN, "%s%s",
                   stk_int(o, "keep_up", 0) ? amount(o, "keep_up", text, sizeof(text)) : "-",
                   was_set(o, "keep_up") ? "!" : "");
    stk_table_cell(
        t, STK_PLAIN, "%s",
        k->out.tty && limit > 0 ? stk_term_bar(&k->out, used / limit, BAR, bar, sizeof(bar)) : "");
    if (r->means) {
        means_cell(t, o, "cpus", "cpus_used");
        means_cell(t, o, "mem_gib", "mem_gib_used");
    }
}

/* Those below 'parent', each with those below it. */
// NOLINTNEXTLINE(misc-no-recursion): at most MAX_DEPTH deep
static void tenant_rows(const struct rows *r, const char *parent, int depth)
{
    for (size_t i = 0; depth <= MAX_DEPTH && i < json_array_size(r->list); i++) {
        const json_t *o = json_array_get(r->list, i);

        if (strcmp(stk_str(o, "parent"), parent) != 0)
            continue;
        tenant_row(r, o, depth);
        tenant_rows(r, stk_str(o, "name"), depth + 1);
    }
}

static int print_table(const struct stk_ask *k, struct stk_table *t)
{
    int rc = t ? stk_table_print(t, &k->out, 0) : -ENOMEM;

    stk_table_free(t);
    return rc < 0 ? stk_ask_fail(k, rc, &(struct stk_err){"out of memory"}) : STK_EXIT_OK;
}

/* Who lends to whom. */
static int print_lending(const struct stk_ask *k, const json_t *list)
{
    static const struct stk_column columns[] = {
        {"LENDER", false, 8}, {"BORROWER", false, 8}, {"GPUS", true, 0}, {"TYPE", false, 0}};
    struct stk_table *t = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    char text[32];

    for (size_t i = 0; t && i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);

        stk_table_cell(t, STK_PLAIN, "%s", stk_str(e, "from"));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(e, "to"));
        stk_table_cell(t, STK_PLAIN, "%s", amount(e, "gpus", text, sizeof(text)));
        stk_table_cell(t, STK_PLAIN, "%s",
                       *stk_str(e, "gpu_type") ? stk_str(e, "gpu_type") : "all");
    }
    (void)putchar('\n');
    return print_table(k, t);
}

/* "Slurm's account vis-2024: tenant vision". */
static void print_means(const json_t *list, const char *what, const char *key)
{
    char name[256], to[256];

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const bool means = json_is_string(json_object_get(o, key));

        (void)printf("Slurm's %s %s: %s%s%s\n", what,
                     stk_text_clean(name, sizeof(name), stk_str(o, "name"), false),
                     means ? key : "means nothing here", means ? " " : "",
                     means ? stk_text_clean(to, sizeof(to), stk_str(o, key), false) : "");
    }
}

static int print_tenants(const struct stk_ask *k, const json_t *body)
{
    const json_t *lending = json_object_get(body, "lending");
    struct rows r = {.k = k, .list = json_object_get(body, "tenants")};
    int rc;

    if (json_array_size(r.list) == 0) {
        (void)printf("there are no tenants here: everybody shares all GPUs (tenants: in the "
                     "configuration)\n");
        return STK_EXIT_OK;
    }
    r.means = json_is_number(json_object_get(json_array_get(r.list, 0), "cpus_used"));
    r.t = stk_table_new(tenant_columns, N_TENANT_COLUMNS - (r.means ? 0 : N_MEANS));
    if (r.t)
        tenant_rows(&r, "", 0);
    rc = print_table(k, r.t);
    if (rc == STK_EXIT_OK && json_array_size(lending) > 0)
        rc = print_lending(k, lending);
    for (size_t i = 0; rc == STK_EXIT_OK && i < json_array_size(r.list); i++)
        print_set(json_object_get(json_array_get(r.list, i), "set"));
    return rc;
}

static int run_tenants(const struct stk_args *a)
{
    const json_t *slurm;
    json_t *body = NULL;
    struct stk_ask k;
    int rc;

    if (a->n_words > 0)
        return unknown_words(a);
    rc = stk_ask_open(&k, a);
    if (rc != STK_EXIT_OK)
        return rc;
    rc = stk_ask_get(&k, &body, "/v1/tenants");
    if (rc == STK_EXIT_OK && k.json)
        stk_print_json(body);
    else if (rc == STK_EXIT_OK)
        rc = print_tenants(&k, body);
    slurm = json_object_get(body, "slurm");
    if (rc == STK_EXIT_OK && !k.json) {
        print_means(json_object_get(slurm, "accounts"), "account", "tenant");
        print_means(json_object_get(slurm, "qos"), "QOS", "queue");
    }
    json_decref(body);
    stk_ask_close(&k);
    return rc;
}

const struct stk_command stk_cmd_tenants = {
    .name = "tenants",
    .synopsis = "",
    .help = "who shares the GPUs: what each tenant has, may have and waits for",
    .about =
        "GPUs of each tenant and of all below it. A star marks yours. DUE: its share of what "
        "there\n"
        "is, given what all want. BORROWED: above its guarantee. LENT: of its guarantee, what "
        "others\n"
        "use. JOBS: running + waiting. A number with ! was set, and is not the configuration's.\n"
        "Below that: who lends to whom.",
    .section = STK_SECTION_LOOK,
    .run = run_tenants,
};

/* ---- quota ---- */

static const struct stk_column quota_columns[] = {
    {"QUEUE", false, 8},   {"PRIO", true, 0},        {"TIER", false, 0},
    {"JOB", true, 0},      {"TIME", true, 0},        {"MY GPUS", true, 0},
    {"MY JOBS", true, 0},  {"TENANT GPUS", true, 0}, {"TENANT JOBS", true, 0},
    {"ALL GPUS", true, 0}, {"ALL JOBS", true, 0},    {"I MAY USE", false, 0},
};

/* "; needs --priority 100 to 500", "; needs --priority of at most 500": what a job must say because
 * the queue's own is not allowed. */
static void say_needs(const json_t *queue, bool tier, char *buf, size_t size)
{
    const json_t *may = json_object_get(queue, "may");
    const int64_t own = stk_int(queue, "priority", 0), least = stk_int(may, "priority_min", own),
                  most = stk_int(may, "priority_max", own);
    size_t len = 0;

    buf[0] = '\0';
    if (tier)
        len = (size_t)snprintf(buf, size, "; needs --tier");
    if (own < least || own > most) {
        len += (size_t)snprintf(buf + len, size - len, "%s --priority ", tier ? "," : "; needs");
        if (least > -STK_MAX_PRIORITY)
            (void)snprintf(buf + len, size - len, "%lld to %lld", (long long)least,
                           (long long)most);
        else
            (void)snprintf(buf + len, size - len, "of at most %lld", (long long)most);
    }
}

/* "best-effort, standard": the tiers that this user may use in the queue; "nothing". */
static void rights_cell(struct stk_table *t, const json_t *queue)
{
    const json_t *may = json_object_get(queue, "may"), *tiers = json_object_get(may, "tiers");
    char text[120] = "", needs[80];
    bool own = false;
    size_t len = 0;

    for (size_t i = 0; i < json_array_size(tiers) && len < sizeof(text); i++) {
        const char *tier = json_string_value(json_array_get(tiers, i));

        own |= tier && strcmp(tier, stk_str(queue, "tier")) == 0;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.40s", i ? ", " : "",
                                tier ? tier : "");
    }
    say_needs(queue, !own, needs, sizeof(needs));
    stk_table_cell(t, STK_PLAIN, "%s%s%s", len ? text : "nothing",
                   len && stk_yes(may, "preempt") ? "; preempts by class" : "", len ? needs : "");
}

/* "2/4": used of how much; "-": no limit. */
static void use_cell(struct stk_table *t, const json_t *o, const char *of, const char *what)
{
    const json_t *u = json_object_get(o, of);
    char used[32], name[32], limit[32];
    bool none = !json_is_number(json_object_get(u, what));

    (void)snprintf(name, sizeof(name), "%s_used", what);
    (void)amount(u, name, used, sizeof(used));
    (void)amount(u, what, limit, sizeof(limit));
    stk_table_cell(t, STK_PLAIN, "%s%s%s", none ? "-" : used, none ? "" : "/", none ? "" : limit);
}

static void quota_row(struct stk_table *t, const json_t *o)
{
    static const char *const of[] = {"user", "tenant", "all"};
    const json_t *job = json_object_get(o, "job");
    int64_t seconds = stk_int(job, "time_s", 0);
    char text[64];

    stk_table_cell(t, STK_PLAIN, "%s%s", stk_str(o, "name"), stk_yes(o, "default") ? " *" : "");
    stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(o, "priority", 0));
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(o, "tier"));
    stk_table_cell(t, STK_PLAIN, "%s", amount(job, "gpus", text, sizeof(text)));
    stk_table_cell(t, STK_PLAIN, "%s", stk_span(seconds > 0 ? seconds : -1, text, sizeof(text)));
    for (size_t i = 0; i < 3; i++) {
        use_cell(t, o, of[i], "gpus");
        use_cell(t, o, of[i], "jobs");
    }
    rights_cell(t, o);
}

static int print_quota(const struct stk_ask *k, const json_t *body)
{
    const json_t *list = json_object_get(body, "queues"), *teams = json_object_get(body, "tenants");
    struct stk_table *t =
        stk_table_new(quota_columns, sizeof(quota_columns) / sizeof(*quota_columns));
    char name[300];
    int rc;

    if (json_array_size(teams) > 0)
        (void)printf("%s runs for",
                     stk_text_clean(name, sizeof(name), stk_str(body, "user"), false));
    for (size_t i = 0; i < json_array_size(teams); i++)
        (void)printf(
            "%s %s", i ? "," : "",
            stk_text_clean(name, sizeof(name), json_string_value(json_array_get(teams, i)), false));
    if (json_array_size(teams) > 0)
        (void)printf("\n");
    for (size_t i = 0; t && i < json_array_size(list); i++)
        quota_row(t, json_array_get(list, i));
    rc = print_table(k, t);
    if (rc == STK_EXIT_OK)
        print_set(json_object_get(body, "set"));
    return rc;
}

static int show_quota(struct stk_ask *k)
{
    json_t *body = NULL;
    int rc = stk_ask_get(k, &body, "/v1/quota");

    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(body);
    else if (rc == STK_EXIT_OK)
        rc = print_quota(k, body);
    json_decref(body);
    return rc;
}

static bool is_quota(const char *key)
{
    static const char *const keys[] = {"limit",   "guarantee", "weight",
                                       "keep_up", "cpus",      "mem_gib"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* "limit=8", "guarantee=none", "weight=config". */
static int add_number(const struct stk_args *a, json_t *body, const char *word)
{
    size_t n = strcspn(word, "=");
    const char *v = word[n] ? word + n + 1 : "";
    char key[32] = "", *end = NULL;
    double number = strtod(v, &end);
    bool is_number = *v != '\0' && *end == '\0' && isfinite(number);

    if (n < sizeof(key))
        memcpy(key, word, n);
    if (word[n] != '=' || !is_quota(key))
        return stk_misused(a,
                           "takes limit=N, guarantee=N, weight=N, keep_up=N, cpus=N and "
                           "mem_gib=N, got \"%.40s\"",
                           word);
    if (!is_number && strcmp(v, "none") != 0 && strcmp(v, "config") != 0)
        return stk_misused(a, "%s: a number, none, or config, got \"%.40s\"", key, v);
    return json_object_set_new(body, key,
                               is_number && floor(number) == number && fabs(number) < 1e15
                                   ? json_integer((json_int_t)number)
                               : is_number              ? json_real(number)
                               : strcmp(v, "none") == 0 ? json_null()
                                                        : json_string(v)) < 0
               ? STK_EXIT_FAILED
               : STK_EXIT_OK;
}

static int set_quota(struct stk_ask *k)
{
    const struct stk_args *a = k->a;
    json_t *body = json_object(), *reply = NULL;
    char path[1024], name[800];
    int rc = STK_EXIT_OK;

    for (int i = 2; i < a->n_words && rc == STK_EXIT_OK; i++)
        rc = add_number(a, body, a->words[i]);
    if (rc == STK_EXIT_OK && stk_arg(a, "gpu-type"))
        (void)json_object_set_new(body, "gpu_type", json_string(stk_arg(a, "gpu-type")));
    (void)snprintf(path, sizeof(path), "/v1/tenants/%s/quota",
                   stk_client_escape(name, sizeof(name), a->words[1]));
    if (rc == STK_EXIT_OK)
        rc = stk_ask_do(k, "POST", path, body, &reply);
    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK)
        (void)printf("tenant %.100s: set\n", a->words[1]);
    json_decref(reply);
    json_decref(body);
    return rc;
}

static int run_quota(const struct stk_args *a)
{
    bool sets = a->n_words > 0 && strcmp(a->words[0], "set") == 0;
    struct stk_ask k;
    int rc;

    if (a->n_words > 0 && !sets)
        return stk_misused(a, "knows \"set\", got \"%.40s\"", a->words[0]);
    if (sets && a->n_words < 3)
        return stk_misused(
            a,
            "set TENANT limit=N, guarantee=N, weight=N, keep_up=N, cpus=N or mem_gib=N; none, or "
            "config");
    rc = stk_ask_open(&k, a);
    if (rc != STK_EXIT_OK)
        return rc;
    rc = sets ? set_quota(&k) : show_quota(&k);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option quota_options[] = {
    {"gpu-type", 0, "TYPE", "with set: of GPUs of this type", NULL},
    {0},
};
static const struct stk_options quota_groups[] = {{"options", quota_options}, {0}};

const struct stk_command stk_cmd_quota = {
    .name = "quota",
    .synopsis = "\nset TENANT [limit=N] [guarantee=N] [weight=N] [keep_up=N] [cpus=N] [mem_gib=N]",
    .help = "what I may have: my tenants, the queues, their limits and what is used of them",
    .about =
        "Used/limit of each queue: mine, of my tenant, of everybody. A star marks the queue of\n"
        "jobs that name none. With set, operators give a tenant other numbers, which hold over\n"
        "restarts: none is no limit, config is what the configuration says. Of a tenant's jobs\n"
        "keep_up stay up, whoever needs room. What was set is listed below, with what the\n"
        "configuration has in its place.",
    .options = quota_groups,
    .complete = "set",
    .section = STK_SECTION_LOOK,
    .run = run_quota,
};
