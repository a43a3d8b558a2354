/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.c - "stoker reserve": GPUs set aside for a tenant, a user, or those who name it. */
#include <string.h>
#include <time.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "cli/view.h"
#include "spec/words.h"

/* A time span that the option has, into the body. */
static int put_span(struct stk_ask *k, json_t *body, const char *option, const char *key)
{
    const char *text = stk_arg(k->a, option);
    int64_t s = 0;

    if (!text)
        return STK_EXIT_OK;
    if (stk_words_duration(text, 60, &s) < 0)
        return stk_misused(k->a, "--%s takes a time such as 2h or 90m, got \"%.40s\"", option,
                           text);
    (void)json_object_set_new(body, key, json_integer(s));
    return STK_EXIT_OK;
}

static void put_text(struct stk_ask *k, json_t *body, const char *option, const char *key)
{
    if (stk_arg(k->a, option))
        (void)json_object_set_new(body, key, json_string(stk_arg(k->a, option)));
}

/* "n1,n2:4" */
static json_t *nodes_of(const char *text)
{
    json_t *list = json_array();

    for (size_t n; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        (void)json_array_append_new(list, json_stringn(text, n));
    }
    return list;
}

/* How many GPUs, or which nodes, and for which job. */
static int read_what(struct stk_ask *k, json_t *body)
{
    const char *gpus = stk_arg(k->a, "gpus"), *nodes = stk_arg(k->a, "nodes");
    const char *job = stk_arg(k->a, "job");
    int64_t n = 0;

    if (!gpus == !nodes || (gpus && (stk_words_whole(gpus, 1000000, &n) < 0 || n < 1)))
        return stk_misused(k->a, "how many GPUs? --gpus N, or of which nodes: --nodes NODE,...");
    if (gpus)
        (void)json_object_set_new(body, "gpus", json_integer(n));
    else
        (void)json_object_set_new(body, "nodes", nodes_of(nodes));
    if (job && (stk_words_whole(job, UINT32_MAX - 1, &n) < 0 || n < 1))
        return stk_misused(k->a, "--job takes the number of a job, got \"%.40s\"", job);
    if (job)
        (void)json_object_set_new(body, "job", json_integer(n));
    return STK_EXIT_OK;
}

static int read_body(struct stk_ask *k, json_t *body)
{
    const char *start = stk_arg(k->a, "start");
    struct stk_err why = {""};
    int64_t at = 0;
    int rc = read_what(k, body);

    if (rc != STK_EXIT_OK)
        return rc;
    if (!stk_arg(k->a, "for"))
        return stk_misused(k->a, "for how long? --for 2h");
    rc = start ? stk_words_time(start, (int64_t)time(NULL), &at, &why) : 0;
    if (rc == -ERANGE)
        return stk_misused(k->a, "--start %s", why.text);
    if (rc < 0)
        return stk_misused(k->a,
                           "--start takes a time such as 14:30 or 2026-12-24T09:00, got "
                           "\"%.40s\"",
                           start);
    (void)json_object_set_new(body, "name", json_string(k->a->words[1]));
    if (start)
        (void)json_object_set_new(body, "start", json_integer(at));
    put_text(k, body, "type", "gpu_type");
    put_text(k, body, "pool", "pool");
    put_text(k, body, "tenant", "tenant");
    put_text(k, body, "user", "user");
    put_text(k, body, "cron", "cron");
    put_text(k, body, "tz", "tz");
    if (stk_arg_is(k->a, "evict"))
        (void)json_object_set_new(body, "evict", json_true());
    rc = put_span(k, body, "for", "for_s");
    return rc != STK_EXIT_OK ? rc : put_span(k, body, "grace", "grace_s");
}

static int add(struct stk_ask *k)
{
    json_t *body = json_object(), *reply = NULL;
    char from[32], to[32];
    int rc = read_body(k, body);

    if (rc == STK_EXIT_OK)
        rc = stk_ask_do(k, "POST", "/v1/reservations", body, &reply);
    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK)
        (void)printf("reservation %lld: %lld GPUs from %s to %s\n",
                     (long long)stk_int(reply, "id", 0), (long long)stk_int(reply, "gpus", 0),
                     stk_text_time(stk_num(reply, "start", 0), from, sizeof(from)),
                     stk_text_time(stk_num(reply, "end", 0), to, sizeof(to)));
    json_decref(body);
    json_decref(reply);
    return rc;
}

static const char *holder(const json_t *o)
{
    if (*stk_str(o, "tenant"))
        return stk_str(o, "tenant");
    if (stk_int(o, "job", 0))
        return stk_yes(o, "drain") ? "(has waited long)" : "(one job)";
    return *stk_str(o, "user") ? stk_str(o, "user") : "(named)";
}

static void row(struct stk_table *t, const json_t *o)
{
    char from[32], to[32];

    stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(o, "id", 0));
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(o, "name"));
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(o, "state"));
    stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(o, "gpus", 0));
    stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(o, "gpus_used", 0));
    stk_table_cell(t, STK_PLAIN, "%s", holder(o));
    stk_table_cell(t, STK_PLAIN, "%s", stk_text_time(stk_num(o, "start", 0), from, sizeof(from)));
    stk_table_cell(t, STK_PLAIN, "%s", stk_text_time(stk_num(o, "end", 0), to, sizeof(to)));
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(o, "cron"));
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(json_object_get(o, "last"), "why"));
}

/* Whether the word is its number or its name. */
static bool is_called(const json_t *o, const char *word)
{
    char id[32];

    (void)snprintf(id, sizeof(id), "%lld", (long long)stk_int(o, "id", 0));
    return strcmp(id, word) == 0 || strcmp(stk_str(o, "name"), word) == 0;
}

static int list(struct stk_ask *k)
{
    static const struct stk_column columns[] = {
        {"ID", true, 0},    {"NAME", false, 8}, {"STATE", false, 0}, {"GPUS", true, 0},
        {"USED", true, 0},  {"FOR", false, 6},  {"FROM", false, 0},  {"TO", false, 0},
        {"CRON", false, 0}, {"LAST", false, 0}};
    struct stk_table *t = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    json_t *reply = NULL;
    int rc = stk_ask_get(k, &reply, "/v1/reservations");

    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    for (size_t i = 0; i < json_array_size(json_object_get(reply, "reservations")); i++)
        row(t, json_array_get(json_object_get(reply, "reservations"), i));
    if (rc == STK_EXIT_OK && !k->json && stk_table_rows(t) == 0)
        (void)printf("there are no reservations\n");
    else if (rc == STK_EXIT_OK && !k->json)
        (void)stk_table_print(t, &k->out, 0);
    stk_table_free(t);
    json_decref(reply);
    return rc;
}

/* The one that is not over, or else the latest, of this number or name. */
static const json_t *find(const json_t *reply, const char *word)
{
    const json_t *all = json_object_get(reply, "reservations"), *found = NULL;

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *o = json_array_get(all, i);

        if (is_called(o, word) && (!found || !json_object_get(o, "over")))
            found = o;
    }
    return found;
}

static int one(struct stk_ask *k, bool removes)
{
    json_t *reply = NULL;
    int rc = stk_ask_get(k, &reply, "/v1/reservations");
    const json_t *o = rc == STK_EXIT_OK ? find(reply, k->a->words[1]) : NULL;
    char path[64];

    if (rc == STK_EXIT_OK && !o) {
        (void)fprintf(stderr, "stoker reserve: there is no reservation \"%.60s\"\n",
                      k->a->words[1]);
        rc = STK_EXIT_FAILED;
    } else if (rc == STK_EXIT_OK && removes) {
        (void)snprintf(path, sizeof(path), "/v1/reservations/%lld", (long long)stk_int(o, "id", 0));
        rc = stk_ask_do(k, "DELETE", path, NULL, NULL);
        if (rc == STK_EXIT_OK && !k->json)
            (void)printf("reservation %lld removed\n", (long long)stk_int(o, "id", 0));
    } else if (rc == STK_EXIT_OK) {
        stk_print_json(o);
    }
    json_decref(reply);
    return rc;
}

static int run_reserve(const struct stk_args *a)
{
    const char *verb = a->n_words > 0 ? a->words[0] : "list";
    bool is_list = strcmp(verb, "list") == 0, is_rm = strcmp(verb, "rm") == 0;
    bool is_add = strcmp(verb, "add") == 0;
    struct stk_ask k;
    int rc;

    if (!is_list && !is_rm && !is_add && strcmp(verb, "show") != 0)
        return stk_misused(a, "add NAME, list, show NAME or rm NAME");
    if (a->n_words > 2 || (!is_list && a->n_words != 2) || (is_list && a->n_words > 1))
        return stk_misused(a, is_list ? "too many words" : "which reservation? One name");
    rc = stk_ask_open(&k, a);
    if (rc == STK_EXIT_OK)
        rc = is_list ? list(&k) : is_add ? add(&k) : one(&k, is_rm);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"gpus", 'g', "N", "add: so many GPUs", NULL},
    {"for", 0, "TIME", "add: so long (2h, 90m)", NULL},
    {"start", 0, "TIME", "add: from then on (14:30, 2026-12-24T09:00); else from now", NULL},
    {"cron", 0, "CRON", "add: again and again, at these times (\"0 9 * * mon-fri\")", NULL},
    {"tz", 0, "ZONE", "add: the time zone of --cron (Europe/Berlin); else the machine's", NULL},
    {"tenant", 0, "TENANT", "add: for jobs of this tenant and those below it", NULL},
    {"user", 0, "USER", "add: for jobs of this user", NULL},
    {"job", 0, "JOB", "add: for this job; without these three, for jobs that name it", "@jobs"},
    {"nodes", 0, "NODES", "add: all GPUs of these nodes, or some (n1,n2:4); in place of --gpus",
     NULL},
    {"type", 0, "TYPE", "add: GPUs of this type", NULL},
    {"pool", 0, "POOL", "add: of this pool", NULL},
    {"grace", 0, "TIME", "add: it lapses when nobody has used it so long after its start", NULL},
    {"evict", 0, NULL, "add: at its start jobs of others that run on are stopped", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_reserve = {
    .name = "reserve",
    .synopsis =
        "add NAME --gpus N --for TIME [--start TIME] [--tenant TENANT | --user USER]\n"
        "add NAME --gpus N --for TIME --job JOB\nadd NAME --nodes NODES --for TIME [...]\nadd "
        "NAME --gpus N --for TIME --cron CRON [--tz ZONE] [...]\nlist\nshow NAME\nrm NAME",
    .help = "set GPUs aside for somebody for some time",
    .about =
        "In its window only jobs of its holder use the GPUs; before it, jobs that would run into\n"
        "it are not started there. Operators make reservations, everybody sees them.",
    .complete = "add list show rm",
    .options = groups,
    .section = STK_SECTION_SITE,
    .run = run_reserve,
};
