/* SPDX-License-Identifier: Apache-2.0 */
/* sacctmgr.c - "sacctmgr show assoc": tenants as accounts, with their limits, and their users;
 * "show qos": queues. Nothing is changed: "stoker quota set" and the configuration do that.
 *
 * A row is made of an object of the API by columns, each a word of Slurm's. What has no meaning
 * here is empty. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "slurmcmd/fields.h"

#define ASSOCS "Cluster,Account,User,ParentName,Share,GrpTRES,MaxTRES,QOS"
#define ACCOUNTS "Account,Descr,Org"
#define QUEUES "Name,Priority,GrpTRES,MaxTRESPU,MaxTRESPA,MaxWall"
#define MOST_COLUMNS 32

enum { NO_HEADER, PARSABLE, PARSABLE2, NOTHING, VERSION };

static const struct stk_opt options[] = {
    {"noheader", 'n', STK_OPT_NONE, NO_HEADER},  {"parsable", 'p', STK_OPT_NONE, PARSABLE},
    {"parsable2", 'P', STK_OPT_NONE, PARSABLE2}, {"immediate", 'i', STK_OPT_NONE, NOTHING},
    {"readonly", 'r', STK_OPT_NONE, NOTHING},    {"quiet", 'Q', STK_OPT_NONE, NOTHING},
    {"version", 'V', STK_OPT_NONE, VERSION},     {0},
};

struct asked {
    bool no_header, parsable, end, version;
    const char *account, *user;
    char columns[MOST_COLUMNS][32];
    size_t n_columns;
};

struct row {          /* what a row is about */
    const json_t *of; /* a tenant, or a queue */
    const char *user; /* of the tenant; "": the tenant itself */
    bool queue;
};

/* ---- what there is to see ---- */

/* "gres/gpu=8,cpu=64,mem=512G" */
static void tres(const json_t *gpus, const json_t *cpus, const json_t *mem_gib, char *buf,
                 size_t size)
{
    const struct {
        const json_t *v;
        const char *name, *unit;
    } of[] = {{cpus, "cpu", ""}, {gpus, "gres/gpu", ""}, {mem_gib, "mem", "G"}};
    size_t n = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof(of) / sizeof(*of) && n < size; i++)
        if (json_is_number(of[i].v))
            n += (size_t)snprintf(buf + n, size - n, "%s%s=%.10g%s", n ? "," : "", of[i].name,
                                  json_number_value(of[i].v), of[i].unit);
}

static void get_tenant(const struct row *r, const char *word, char *buf, size_t size)
{
    const json_t *t = r->of;

    buf[0] = '\0';
    if (strcasecmp(word, "Cluster") == 0)
        (void)snprintf(buf, size, "stoker");
    else if (strcasecmp(word, "Account") == 0 || strcasecmp(word, "Descr") == 0)
        (void)snprintf(buf, size, "%s", stk_str(t, "name"));
    else if (strcasecmp(word, "User") == 0)
        (void)snprintf(buf, size, "%s", r->user);
    else if ((strcasecmp(word, "ParentName") == 0 || strcasecmp(word, "Org") == 0) && !*r->user)
        (void)snprintf(buf, size, "%s", *stk_str(t, "parent") ? stk_str(t, "parent") : "root");
    else if (strcasecmp(word, "Share") == 0 || strcasecmp(word, "Fairshare") == 0)
        (void)snprintf(buf, size, "%.10g", *r->user ? 1 : stk_num(t, "weight", 1));
    else if (strcasecmp(word, "GrpTRES") == 0 && !*r->user)
        tres(json_object_get(t, "limit"), json_object_get(t, "cpus"), json_object_get(t, "mem_gib"),
             buf, size);
}

static void get_queue(const struct row *r, const char *word, char *buf, size_t size)
{
    const json_t *q = r->of, *job = json_object_get(q, "job");
    const struct {
        const char *word, *member;
    } of[] = {{"GrpTRES", "all"}, {"MaxTRESPU", "user"}, {"MaxTRESPA", "tenant"}};

    buf[0] = '\0';
    if (strcasecmp(word, "Name") == 0)
        (void)snprintf(buf, size, "%s", stk_str(q, "name"));
    else if (strcasecmp(word, "Priority") == 0)
        (void)snprintf(buf, size, "%lld", (long long)stk_int(q, "priority", 0));
    else if (strcasecmp(word, "MaxWall") == 0 && stk_int(job, "time_s", 0) > 0)
        (void)stk_slurm_span(stk_int(job, "time_s", 0), true, buf, size);
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        if (strcasecmp(word, of[i].word) == 0)
            tres(json_object_get(json_object_get(q, of[i].member), "gpus"), NULL, NULL, buf, size);
}

/* ---- rows ---- */

static void cell(const struct asked *a, const char *text, size_t i)
{
    if (a->parsable)
        (void)printf("%s%s", text, i + 1 < a->n_columns || a->end ? "|" : "");
    else
        stk_slurm_cell(text, strcasecmp(a->columns[i], "GrpTRES") == 0 ? 24 : 12, true);
    if (!a->parsable)
        (void)putchar(' ');
}

static void header(const struct asked *a)
{
    static const char dashes[] = "------------------------";

    for (size_t i = 0; i < a->n_columns; i++)
        cell(a, a->columns[i], i);
    (void)putchar('\n');
    for (size_t i = 0; !a->parsable && i < a->n_columns; i++)
        cell(a, &dashes[strcasecmp(a->columns[i], "GrpTRES") == 0 ? 0 : 12], i);
    if (!a->parsable)
        (void)putchar('\n');
}

static void print(const struct asked *a, const struct row *r)
{
    if (!r->queue && a->account && strcmp(a->account, stk_str(r->of, "name")) != 0)
        return;
    if (!r->queue && a->user && strcmp(a->user, r->user) != 0)
        return;
    for (size_t i = 0; i < a->n_columns; i++) {
        char text[512];

        (r->queue ? get_queue : get_tenant)(r, a->columns[i], text, sizeof(text));
        cell(a, text, i);
    }
    (void)putchar('\n');
}

static void print_tenants(const struct asked *a, const json_t *list, bool users)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *t = json_array_get(list, i), *of = json_object_get(t, "users");

        print(a, &(struct row){.of = t, .user = ""});
        for (size_t k = 0; users && k < json_array_size(of); k++)
            print(a, &(struct row){.of = t, .user = json_string_value(json_array_get(of, k))});
    }
}

static int show(struct stk_slurm *s, const struct asked *a, const char *what)
{
    const bool queues = strncasecmp(what, "qos", 3) == 0;
    struct stk_err err = {""};
    json_t *body = NULL;
    const json_t *list;

    if (stk_client_get(s->c, &body, &err, queues ? "/v1/quota" : "/v1/tenants") < 0)
        return stk_slurm_fail(s, &err);
    list = json_object_get(body, queues ? "queues" : "tenants");
    if (!a->no_header)
        header(a);
    if (!queues)
        print_tenants(a, list, strncasecmp(what, "acc", 3) != 0);
    for (size_t i = 0; queues && i < json_array_size(list); i++)
        print(a, &(struct row){.of = json_array_get(list, i), .user = "", .queue = true});
    json_decref(body);
    return 0;
}

/* ---- what is asked ---- */

static void set_columns(struct asked *a, const char *list)
{
    a->n_columns = 0;
    while (*list && a->n_columns < MOST_COLUMNS) {
        size_t len = strcspn(list, ","), word = strcspn(list, ",%");

        (void)snprintf(a->columns[a->n_columns++], sizeof(a->columns[0]), "%.*s",
                       (int)(word < 31 ? word : 31), list);
        list += len + (list[len] == ',');
    }
}

/* "format=Account,User", "account=vision", "where", "withassoc". */
static int take_word(struct asked *a, const char *name, const char *word)
{
    const char *v = strchr(word, '=');

    if (v && strncasecmp(word, "format=", 7) == 0)
        set_columns(a, v + 1);
    else if (v && strncasecmp(word, "acc", 3) == 0)
        a->account = v + 1;
    else if (v && strncasecmp(word, "user", 4) == 0)
        a->user = v + 1;
    else if (strcasecmp(word, "where") != 0 && strncasecmp(word, "with", 4) != 0 &&
             strncasecmp(word, "cluster", 7) != 0)
        return stk_slurm_misuse(
            name, "\"%.40s\" is not known; there are format=, account= and user=", word);
    return 0;
}

static int read_options(int argc, char **argv, struct asked *a, int *ret_word)
{
    struct stk_opts o = {.table = options, .argc = argc, .argv = argv, .at = 1};
    struct stk_err err;
    int rc;

    while ((rc = stk_opts_next(&o, &err)) > 0) {
        a->no_header |= o.opt->id == NO_HEADER;
        a->parsable |= o.opt->id == PARSABLE || o.opt->id == PARSABLE2;
        a->end |= o.opt->id == PARSABLE;
        a->version |= o.opt->id == VERSION;
    }
    *ret_word = o.at;
    return rc < 0 ? stk_slurm_misuse(argv[0], "%s", err.text) : 0;
}

int stk_sacctmgr_main(int argc, char **argv)
{
    static const struct {
        const char *word, *columns;
    } things[] = {{"assoc", ASSOCS}, {"acc", ACCOUNTS}, {"user", ASSOCS}, {"qos", QUEUES}};
    struct stk_slurm s = {.name = argv[0]};
    struct asked a = {.no_header = false};
    int at, rc = read_options(argc, argv, &a, &at);
    size_t i = 0;

    if (rc == 0 && a.version) {
        (void)puts(STK_SLURM_VERSION);
        return 0;
    }
    if (rc == 0 && (at + 1 >= argc ||
                    (strcasecmp(argv[at], "show") != 0 && strcasecmp(argv[at], "list") != 0)))
        rc = stk_slurm_misuse(argv[0], "there is only \"show assoc\", \"show account\", \"show "
                                       "user\" and \"show qos\"; stoker quota set changes limits");
    if (rc != 0)
        return rc;
    while (i < 4 && strncasecmp(argv[at + 1], things[i].word, strlen(things[i].word)) != 0)
        i++;
    if (i == 4)
        return stk_slurm_misuse(
            argv[0], "there is no \"%.40s\" here; there are assoc, account, user and qos",
            argv[at + 1]);
    set_columns(&a, things[i].columns);
    for (int k = at + 2; k < argc && rc == 0; k++)
        rc = take_word(&a, argv[0], argv[k]);
    if (rc == 0)
        rc = stk_slurm_open(&s, argv[0]);
    if (rc == 0)
        rc = show(&s, &a, argv[at + 1]);
    stk_slurm_close(&s);
    return rc;
}
