/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - "stoker gpus": who has which GPU and how busy it is; "stoker nodes". What is not known
 * is not shown: a missing number is not a zero. */
#include "cli/gpus.h"

#include <inttypes.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "cli/topology.h"
#include "cli/view.h"

#define BAR 10

static void put(const struct stk_term *t, enum stk_colour c, const char *fmt, const char *text)
{
    char clean[256];

    (void)fputs(stk_term_on(t, c), t->f);
    (void)fprintf(t->f, fmt, stk_text_clean(clean, sizeof(clean), text, false)); // NOLINT
    (void)fputs(stk_term_off(t, c), t->f);
}

/* "██████░░░░  62%" of utilization, or of nothing known. */
static void put_util(const struct stk_term *t, const json_t *gpu)
{
    double util = stk_num(gpu, "util", -1);
    char bar[BAR * 4 + 1];
    enum stk_colour c = util >= 50 ? STK_GREEN : util >= 10 ? STK_YELLOW : STK_DIM;

    if (util < 0) {
        (void)fprintf(t->f, "%*s     ", BAR, "");
        return;
    }
    put(t, c, "%s", stk_term_bar(t, util / 100, BAR, bar, sizeof(bar)));
    (void)fprintf(t->f, " %3.0f%%", util);
}

/* Columns that are there because something in them is known. */
struct known {
    bool memory, temperature, power;
};

static struct known find_known(const json_t *gpus)
{
    struct known k = {0};

    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *gpu = json_array_get(gpus, i);

        k.memory = k.memory || stk_num(gpu, "mem_mib", -1) > 0;
        k.temperature = k.temperature || stk_num(gpu, "temp_c", -1) >= 0;
        k.power = k.power || stk_num(gpu, "power_w", -1) >= 0;
    }
    return k;
}

static void put_header(const struct stk_term *t, const struct known *k)
{
    (void)fprintf(t->f, "%s%3s  %-*s  %-16s%s%s%s  %s%s\n", stk_term_on(t, STK_BOLD), "GPU",
                  BAR + 5, "BUSY", "MODEL", k->memory ? "  MEMORY       " : "",
                  k->temperature ? "  TEMP" : "", k->power ? "   POWER" : "", "JOB",
                  stk_term_off(t, STK_BOLD));
}

static void put_memory(const struct stk_term *t, const json_t *gpu)
{
    double used = stk_num(gpu, "mem_used_mib", -1), all = stk_num(gpu, "mem_mib", -1);
    char a[32], b[32], both[72] = "";

    if (all > 0 && used >= 0)
        (void)snprintf(both, sizeof(both), "%s/%s", stk_text_mib(used, a, sizeof(a)),
                       stk_text_mib(all, b, sizeof(b)));
    else if (all > 0)
        (void)stk_text_mib(all, both, sizeof(both));
    (void)fprintf(t->f, "  %-13s", both);
}

/* A number with its unit in a column of its own; nothing where it is not known. */
static void put_number(const struct stk_term *t, double v, const char *unit, int width)
{
    char text[32] = "";

    if (v >= 0)
        (void)snprintf(text, sizeof(text), "%.0f %s", v, unit);
    (void)fprintf(t->f, "  %*s", width, text);
}

static void put_owner(const struct stk_term *t, const json_t *gpu)
{
    const char *state = stk_str(gpu, "state"), *off = stk_str(gpu, "off");
    char line[160], id[40];

    if (json_object_get(gpu, "shares")) {
        (void)snprintf(line, sizeof(line), "  shared, %.4g left", stk_num(gpu, "left", 0));
        put(t, STK_GREEN, "%s", line);
    } else if (stk_int(gpu, "job", 0) > 0) {
        if (stk_int(gpu, "array_id", 0) > 0)
            (void)stk_view_id(gpu, id, sizeof(id));
        else
            (void)snprintf(id, sizeof(id), "%" PRId64, stk_int(gpu, "job", 0));
        (void)snprintf(line, sizeof(line), "  job %s %.60s", id, stk_str(gpu, "user"));
        put(t, STK_GREEN, "%s", line);
    }
    if (strcmp(state, "off") == 0 || strcmp(state, "drained") == 0)
        put(t, STK_RED, "  %s", *off != '\0' ? off : state);
    else if (strcmp(state, "free") == 0)
        put(t, STK_DIM, "  %s", "free");
    if (json_is_true(json_object_get(gpu, "draining")))
        put(t, STK_YELLOW, "%s", ", drained");
}

static void put_share(const struct stk_term *t, const json_t *p)
{
    char user[64], mem[32], id[40];

    (void)snprintf(id, sizeof(id), "%" PRId64, stk_int(p, "job", 0));
    (void)fprintf(t->f, "       job %s of %s has %.4g",
                  stk_int(p, "array_id", 0) > 0 ? stk_view_id(p, id, sizeof(id)) : id,
                  stk_text_clean(user, sizeof(user), stk_str(p, "user"), false),
                  stk_num(p, "gpus", 0));
    if (stk_num(p, "mem_mib", 0) > 0)
        (void)fprintf(t->f, ", %s of memory",
                      stk_text_mib(stk_num(p, "mem_mib", 0), mem, sizeof(mem)));
    (void)fprintf(t->f, ", share %s\n",
                  stk_text_clean(user, sizeof(user), stk_str(p, "share"), false));
}

static void put_foreign(const struct stk_term *t, const json_t *p)
{
    char user[64], name[128], mem[32], age[32];

    (void)fprintf(t->f, "       %sprocess %" PRId64 " of %s, %s", stk_term_on(t, STK_YELLOW),
                  stk_int(p, "pid", 0),
                  stk_text_clean(user, sizeof(user), stk_str(p, "user"), false),
                  stk_text_clean(name, sizeof(name), stk_str(p, "name"), false));
    if (stk_num(p, "mem_mib", -1) >= 0)
        (void)fprintf(t->f, ", %s", stk_text_mib(stk_num(p, "mem_mib", 0), mem, sizeof(mem)));
    if (stk_num(p, "age_s", -1) >= 0)
        (void)fprintf(t->f, ", for %s",
                      stk_text_duration(stk_num(p, "age_s", 0), age, sizeof(age)));
    (void)fprintf(t->f, ": not a job%s\n", stk_term_off(t, STK_YELLOW));
}

/* Names the node before the first of its GPUs, where there are several nodes. */
static int put_node(const struct stk_term *t, const json_t *gpus, size_t i)
{
    const json_t *last = json_array_get(gpus, json_array_size(gpus) - 1);
    const char *node = stk_str(json_array_get(gpus, i), "node");
    char clean[80];

    if (strcmp(stk_str(json_array_get(gpus, 0), "node"), stk_str(last, "node")) == 0 ||
        (i > 0 && strcmp(stk_str(json_array_get(gpus, i - 1), "node"), node) == 0))
        return 0;
    (void)fprintf(t->f, "%s%s%s\n", stk_term_on(t, STK_BOLD),
                  stk_text_clean(clean, sizeof(clean), node, false), stk_term_off(t, STK_BOLD));
    return 1;
}

static void put_gpu(const struct stk_term *t, const json_t *gpu, const struct known *k)
{
    char name[40];

    (void)fprintf(t->f, "%3" PRId64 "  ", stk_int(gpu, "index", 0));
    put_util(t, gpu);
    (void)fprintf(t->f, "  %-16s", stk_text_clean(name, sizeof(name), stk_str(gpu, "name"), false));
    if (k->memory)
        put_memory(t, gpu);
    if (k->temperature)
        put_number(t, stk_num(gpu, "temp_c", -1), "C", 4);
    if (k->power)
        put_number(t, stk_num(gpu, "power_w", -1), "W", 6);
    put_owner(t, gpu);
    (void)fputc('\n', t->f);
}

int stk_gpu_lines(const json_t *gpus, const struct stk_term *t, int max)
{
    const struct known k = find_known(gpus);
    int n = json_array_size(gpus) > 0;

    if (n > 0)
        put_header(t, &k);
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *gpu = json_array_get(gpus, i), *foreign = json_object_get(gpu, "foreign");
        const json_t *shares = json_object_get(gpu, "shares");

        if (max > 0 && n >= max - 1)
            break;
        n += put_node(t, gpus, i) + 1;
        put_gpu(t, gpu, &k);
        for (size_t j = 0; j < json_array_size(shares) && (max == 0 || n < max); j++, n++)
            put_share(t, json_array_get(shares, j));
        for (size_t j = 0; j < json_array_size(foreign) && (max == 0 || n < max); j++, n++)
            put_foreign(t, json_array_get(foreign, j));
    }
    return n;
}

static int show_topology(struct stk_ask *k)
{
    json_t *body = NULL, *nodes;
    int rc = stk_ask_get(k, &body, "/v1/topology");

    nodes = json_object_get(body, "nodes");
    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(body);
    for (size_t i = 0; rc == STK_EXIT_OK && !k->json && i < json_array_size(nodes); i++)
        stk_topology_draw(json_array_get(nodes, i), &k->out);
    json_decref(body);
    stk_ask_close(k);
    return rc;
}

/* "licence 1 of 2 free": named things of the machines, under the GPUs. */
static int print_resources(struct stk_ask *k)
{
    json_t *nodes = NULL;
    int rc = stk_ask_pages(k, "/v1/nodes", "nodes", "after", 0, &nodes);

    for (size_t i = 0; i < json_array_size(nodes); i++) {
        json_t *node = json_array_get(nodes, i), *one;
        char clean[80];
        const char *name;

        json_object_foreach(json_object_get(node, "resources"), name, one)
        {
            (void)fprintf(k->out.f, "%s  %" PRId64 " of %" PRId64 " free\n",
                          stk_text_clean(clean, sizeof(clean), name, false),
                          stk_int(one, "free", 0), stk_int(one, "total", 0));
        }
    }
    json_decref(nodes);
    return rc;
}

static int run_gpus(const struct stk_args *a)
{
    json_t *gpus = NULL, *out;
    struct stk_ask k = {0};
    int rc = a->n_words > 0 ? stk_misused(a, "takes no words") : stk_ask_open(&k, a);

    if (rc != STK_EXIT_OK)
        return rc;
    if (stk_arg_is(a, "topology"))
        return show_topology(&k);
    rc = stk_ask_pages(&k, "/v1/gpus", "gpus", "after", 0, &gpus);
    if (rc == STK_EXIT_OK && k.json) {
        out = json_pack("{s:O}", "gpus", gpus);
        stk_print_json(out);
        json_decref(out);
    } else if (rc == STK_EXIT_OK) {
        if (stk_gpu_lines(gpus, &k.out, 0) == 0)
            (void)printf("No GPUs.\n");
        rc = print_resources(&k);
    }
    json_decref(gpus);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option gpus_options[] = {
    {"topology", 't', NULL, "how the machine is built, and how the GPUs are connected", NULL},
    {0},
};
static const struct stk_options gpus_groups[] = {{"options", gpus_options}, {0}};

const struct stk_command stk_cmd_gpus = {
    .name = "gpus",
    .synopsis = "[--topology]",
    .help = "the GPUs: who has them, how busy they are, foreign processes",
    .about = "With --topology: a tree of packages, NUMA nodes with their CPUs and memory, PCIe\n"
             "switches and GPUs; then a table of how any two GPUs are connected. NV18 is 18\n"
             "NVLinks; the other words are explained below the table. A job with several GPUs\n"
             "gets those that are connected best, and runs on the CPUs near them.",
    .options = gpus_groups,
    .section = STK_SECTION_LOOK,
    .run = run_gpus,
};

static void node_row(struct stk_table *t, const json_t *node)
{
    const char *state = stk_str(node, "state");
    char mem[32];

    stk_table_cell(t, STK_PLAIN, "%s", stk_str(node, "name"));
    stk_table_cell(t, strcmp(state, "up") == 0 ? STK_GREEN : STK_RED, "%s", state);
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(node, "pool"));
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(node, "gpu_type"));
    stk_table_cell(t, STK_PLAIN, "%" PRId64, stk_int(node, "gpus", 0));
    stk_table_cell(t, STK_PLAIN, "%" PRId64, stk_int(node, "gpus_busy", 0));
    stk_table_cell(t, STK_PLAIN, "%" PRId64, stk_int(node, "gpus_free", 0));
    if (json_is_number(json_object_get(node, "cpus")))
        stk_table_cell(t, STK_PLAIN, "%g of %g", stk_num(node, "cpus_free", 0),
                       stk_num(node, "cpus", 0));
    else
        stk_table_cell(t, STK_PLAIN, "-");
    stk_table_cell(t, STK_PLAIN, "%s",
                   stk_text_mib(stk_num(node, "mem_free_mib", -1), mem, sizeof(mem)));
}

static int run_nodes(const struct stk_args *a)
{
    static const struct stk_column columns[] = {
        {"NODE", false, 8},     {"STATE", false, 0},    {"POOL", false, 6},
        {"GPU TYPE", false, 8}, {"GPUS", true, 0},      {"BUSY", true, 0},
        {"FREE", true, 0},      {"CPUS FREE", true, 0}, {"MEMORY FREE", true, 0},
    };
    struct stk_table *t = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    json_t *nodes = NULL, *out;
    struct stk_ask k = {0};
    int rc = a->n_words > 0 ? stk_misused(a, "takes no words") : stk_ask_open(&k, a);

    if (rc == STK_EXIT_OK)
        rc = stk_ask_pages(&k, "/v1/nodes", "nodes", "after", 0, &nodes);
    if (rc == STK_EXIT_OK && k.json) {
        out = json_pack("{s:O}", "nodes", nodes);
        stk_print_json(out);
        json_decref(out);
    } else if (rc == STK_EXIT_OK) {
        for (size_t i = 0; i < json_array_size(nodes); i++)
            node_row(t, json_array_get(nodes, i));
        (void)stk_table_print(t, &k.out, 0);
    }
    stk_table_free(t);
    json_decref(nodes);
    stk_ask_close(&k);
    return rc;
}

const struct stk_command stk_cmd_nodes = {
    .name = "nodes",
    .synopsis = "",
    .help = "the machines and what is free on them",
    .section = STK_SECTION_LOOK,
    .run = run_nodes,
};
