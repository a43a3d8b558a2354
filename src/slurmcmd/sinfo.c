/* SPDX-License-Identifier: Apache-2.0 */
/* sinfo.c - the machines, by pool and state as Slurm shows them, or one per row with -N. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "slurmcmd/fields.h"
#include "spec/words.h"

#define STANDARD "%9P %.5a %.10l %.6D %.6t %N"
#define BY_NODE "%N %.6D %.9P %6t"
#define LONG_NODE "%N %.6D %.9P %11T %4c %.8m %G"

enum { FORMAT, NO_HEADER, BY_NODES, LONG_ROWS, PARTITION, NODES, STATES, NOTHING, VERSION };

static const struct stk_opt options[] = {
    {"format", 'o', STK_OPT_NEEDS, FORMAT},
    {"noheader", 'h', STK_OPT_NONE, NO_HEADER},
    {"Node", 'N', STK_OPT_NONE, BY_NODES},
    {"long", 'l', STK_OPT_NONE, LONG_ROWS},
    {"partition", 'p', STK_OPT_NEEDS, PARTITION},
    {"nodes", 'n', STK_OPT_NEEDS, NODES},
    {"states", 't', STK_OPT_NEEDS, STATES},
    {"all", 'a', STK_OPT_NONE, NOTHING},
    {"exact", 'e', STK_OPT_NONE, NOTHING},
    {"responding", 'r', STK_OPT_NONE, NOTHING},
    {"verbose", 'v', STK_OPT_NONE, NOTHING},
    {"version", 'V', STK_OPT_NONE, VERSION},
    {0},
};

struct asked {
    const char *format, *partition, *nodes, *states;
    bool no_header, by_node, long_rows, version;
};

static int read_options(int argc, char **argv, struct asked *a)
{
    struct stk_opts o = {.table = options, .argc = argc, .argv = argv, .at = 1};
    struct stk_err err;
    int rc;

    while ((rc = stk_opts_next(&o, &err)) > 0) {
        const char **word[] = {[FORMAT] = &a->format,
                               [PARTITION] = &a->partition,
                               [NODES] = &a->nodes,
                               [STATES] = &a->states,
                               [VERSION] = NULL};

        a->no_header |= o.opt->id == NO_HEADER;
        a->by_node |= o.opt->id == BY_NODES;
        a->long_rows |= o.opt->id == LONG_ROWS;
        a->version |= o.opt->id == VERSION;
        if (word[o.opt->id])
            *word[o.opt->id] = o.value;
    }
    return stk_slurm_flags_only(&o, rc, &err);
}

static const char *state_of(const json_t *node)
{
    const char *state = stk_str(node, "state");
    int64_t gpus = stk_int(node, "gpus", 0), busy = stk_int(node, "gpus_busy", 0);

    if (strcmp(state, "down") == 0)
        return "down";
    if (strcmp(state, "drained") == 0)
        return busy > 0 ? "draining" : "drained";
    return busy == 0 ? "idle" : busy >= gpus ? "allocated" : "mixed";
}

static const char *short_state(const char *state)
{
    static const char *const words[][2] = {
        {"allocated", "alloc"}, {"mixed", "mix"}, {"draining", "drng"}, {"drained", "drain"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i][0], state) == 0)
            return words[i][1];
    return state;
}

static const struct {
    char letter;
    const char *header;
} columns[] = {
    {'P', "PARTITION"},      {'R', "PARTITION"},     {'a', "AVAIL"},        {'l', "TIMELIMIT"},
    {'D', "NODES"},          {'t', "STATE"},         {'T', "STATE"},        {'N', "NODELIST"},
    {'n', "HOSTNAMES"},      {'G', "GRES"},          {'c', "CPUS"},         {'m', "MEMORY"},
    {'f', "AVAIL_FEATURES"}, {'C', "CPUS(A/I/O/T)"}, {'E', "REASON"},       {'z', "S:C:T"},
    {'O', "CPU_LOAD"},       {'e', "FREE_MEM"},      {'h', "OVERSUBSCRIBE"}};

/* A row stands for the nodes of one pool in one state, with the first of them for what they share.
 */
struct row {
    const json_t *node;
    int n;
    char names[STK_FIELD_MAX];
};

static void gres(const json_t *node, char *buf, size_t size)
{
    char type[64] = "";
    const char *t = stk_str(node, "gpu_type");

    if (stk_int(node, "gpus", 0) == 0) {
        (void)snprintf(buf, size, "(null)");
        return;
    }
    (void)snprintf(type, sizeof(type), "%s", t);
    for (char *p = type; *p; p++)
        if (*p == ' ' || *p == ':')
            *p = '_';
    (void)snprintf(buf, size, "gpu:%s%s%" PRId64, type, *type ? ":" : "", stk_int(node, "gpus", 0));
}

static void cpus(const json_t *node, char *buf, size_t size)
{
    int64_t all = stk_int(node, "cpus", 0), idle = stk_int(node, "cpus_free", all);

    (void)snprintf(buf, size, "%" PRId64 "/%" PRId64 "/0/%" PRId64, all - idle, idle, all);
}

static void value(const struct row *r, char letter, char *buf, size_t size)
{
    const char *text = "N/A";
    char number[32];

    switch (letter) {
    case 'P':
    case 'R':
        (void)snprintf(buf, size, "%s%s", stk_str(r->node, "pool"), letter == 'P' ? "*" : "");
        return;
    case 'G':
        gres(r->node, buf, size);
        return;
    case 'C':
        cpus(r->node, buf, size);
        return;
    case 'D':
        (void)snprintf(buf, size, "%d", r->n);
        return;
    case 'c':
    case 'm':
        (void)snprintf(number, sizeof(number), "%" PRId64,
                       stk_int(r->node, letter == 'c' ? "cpus" : "mem_mib", 0));
        text = number;
        break;
    case 'e':
        (void)snprintf(number, sizeof(number), "%" PRId64, stk_int(r->node, "mem_free_mib", 0));
        text = number;
        break;
    case 'a':
        text = "up";
        break;
    case 'l':
        text = "infinite";
        break;
    case 't':
        text = short_state(state_of(r->node));
        break;
    case 'T':
        text = state_of(r->node);
        break;
    case 'N':
    case 'n':
        text = r->names;
        break;
    case 'f':
        text = stk_str(r->node, "gpu_type");
        break;
    case 'h':
        text = "NO";
        break;
    case 'E':
        text = "none";
        break;
    default:
        break;
    }
    (void)snprintf(buf, size, "%s", *text ? text : "(null)");
}

/* One row by the format; the header when r is NULL. -EINVAL: a letter that is not known. */
static int print(const char *format, const struct row *r)
{
    for (const char *p = format; *p != '\0'; p++) {
        char text[STK_FIELD_MAX];
        bool right;
        int width = 0;
        size_t i = 0;

        if (*p != '%') {
            (void)putchar(*p);
            continue;
        }
        p++;
        right = *p == '.';
        p += right || *p == '-';
        for (; *p >= '0' && *p <= '9' && width < 1000; p++)
            width = width * 10 + (*p - '0');
        while (i < sizeof(columns) / sizeof(*columns) && columns[i].letter != *p)
            i++;
        if (r)
            value(r, *p, text, sizeof(text));
        else
            (void)snprintf(text, sizeof(text), "%s", columns[i].header);
        stk_slurm_cell(text, width, right);
    }
    (void)putchar('\n');
    return 0;
}

static int check_format(const char *name, const char *format)
{
    for (const char *p = strchr(format, '%'); p; p = strchr(p, '%')) {
        size_t i = 0;

        p += 1 + strspn(p + 1, ".-0123456789");
        while (i < sizeof(columns) / sizeof(*columns) && columns[i].letter != *p)
            i++;
        if (i == sizeof(columns) / sizeof(*columns))
            return stk_slurm_misuse(name, "the format has %%%c, which is not known",
                                    *p > ' ' && *p < 127 ? *p : '?');
    }
    return 0;
}

static bool listed(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = list; p && *p != '\0';) {
        size_t n = strcspn(p, ",");

        if (n == len && strncasecmp(p, word, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return !list;
}

static bool shown(const struct asked *a, const json_t *node)
{
    const char *state = state_of(node);

    return listed(a->partition, stk_str(node, "pool")) && listed(a->nodes, stk_str(node, "name")) &&
           (!a->states || listed(a->states, state) || listed(a->states, short_state(state)));
}

static bool together(const struct asked *a, const json_t *x, const json_t *y)
{
    return !a->by_node && strcmp(stk_str(x, "pool"), stk_str(y, "pool")) == 0 &&
           strcmp(state_of(x), state_of(y)) == 0;
}

static void show(const struct stk_slurm *s, const struct asked *a, const char *format)
{
    size_t n = json_array_size(s->nodes);
    bool *done = calloc(n ? n : 1, sizeof(*done));

    for (size_t i = 0; done && i < n; i++) {
        struct row r = {.node = json_array_get(s->nodes, i)};

        if (done[i] || !shown(a, r.node))
            continue;
        for (size_t k = i; k < n; k++) {
            const json_t *other = json_array_get(s->nodes, k);
            size_t len = strlen(r.names);

            if (done[k] || !shown(a, other) || (k != i && !together(a, r.node, other)))
                continue;
            done[k] = true;
            r.n++;
            (void)snprintf(r.names + len, sizeof(r.names) - len, "%s%s", len ? "," : "",
                           stk_str(other, "name"));
        }
        (void)print(format, &r);
    }
    free(done);
}

int stk_sinfo_main(int argc, char **argv)
{
    const char *standard = getenv("SINFO_FORMAT"); // NOLINT(concurrency-mt-unsafe)
    struct asked a = {0};
    struct stk_slurm s = {.name = argv[0]};
    struct stk_err err = {""};
    const char *format;
    int rc = read_options(argc, argv, &a);

    if (rc)
        return rc;
    if (a.version) {
        (void)puts(STK_SLURM_VERSION);
        return 0;
    }
    format = a.format                   ? a.format
             : a.by_node && a.long_rows ? LONG_NODE
             : a.by_node                ? BY_NODE
             : standard                 ? standard
                                        : STANDARD;
    rc = check_format(argv[0], format);
    if (rc == 0)
        rc = stk_slurm_open(&s, argv[0]);
    if (rc == 0 && stk_slurm_nodes(&s, &err) < 0)
        rc = stk_slurm_fail(&s, &err);
    if (rc == 0 && !a.no_header)
        rc = print(format, NULL);
    if (rc == 0)
        show(&s, &a, format);
    stk_slurm_close(&s);
    return rc;
}
