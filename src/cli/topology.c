/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - "stoker gpus --topology".
 *
 * The tree is made first, as JSON with a text and children, and then drawn: what a line looks like
 * and where it stands are two things. PCIe bridges are drawn where GPUs part, not on the way there.
 * The matrix has how two GPUs are connected, best way only, and explains the words that occur in
 * it.
 */
#include "cli/topology.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/view.h"

#define CELL 6        /* columns of the matrix's cells */
#define MAX_TEXT 1400 /* bytes of a line; lists of CPUs can be long */

/* ---- texts ---- */

/* Adds to a text that may be full. */
static void add(char *text, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t size, const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text + used, size - used, fmt, ap);
    va_end(ap);
}

/* Adds a member that somebody else has written. */
static void add_str(char *text, size_t size, const char *before, const json_t *o, const char *key)
{
    char clean[MAX_TEXT];

    if (*stk_str(o, key))
        add(text, size, "%s%s", before,
            stk_text_clean(clean, sizeof(clean), stk_str(o, key), false));
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* "0-3,6": members of the array with this value, as ranges. Returns how many they are. */
static int members(const json_t *gpus, const char *key, int64_t value, char *text, size_t size)
{
    int64_t begin = -2, end = -2;
    int n = 0;

    text[0] = '\0';
    for (size_t i = 0; i <= json_array_size(gpus); i++) {
        const json_t *gpu = json_array_get(gpus, i);
        int64_t at = gpu ? stk_int(gpu, "index", -1) : -1;
        bool in = gpu && stk_int(gpu, key, -1) == value;

        n += in;
        if (in && at == end + 1) {
            end = at;
        } else if (in || !gpu) {
            if (begin >= 0)
                add(text, size, "%s%" PRId64, *text ? "," : "", begin);
            if (begin >= 0 && end > begin)
                add(text, size, "-%" PRId64, end);
            begin = end = at;
        }
    }
    return n;
}

/* "8 GPUs in 2 NVLink islands (0-3 and 4-7)" */
static void add_gpus(char *text, size_t size, const json_t *node)
{
    const json_t *gpus = json_object_get(node, "gpus");
    int64_t n = (int64_t)json_array_size(gpus), is_virtual = stk_int(node, "virtual_gpus", 0);
    char list[512], all[MAX_TEXT] = "";
    int islands = 0;

    if (n == 0 && is_virtual > 0)
        add(text, size, ", %" PRId64 " virtual GPU%s", is_virtual, plural(is_virtual));
    else
        add(text, size, ", %" PRId64 " GPU%s", n, plural(n));
    for (int64_t i = 0; i < n; i++)
        if (members(gpus, "island", i, list, sizeof(list)) > 1) {
            add(all, sizeof(all), "%s%s", islands > 0 ? " and " : "", list);
            islands++;
        }
    if (islands > 0)
        add(text, size, " in %d NVLink island%s (%s)", islands, plural(islands), all);
    else if (n > 1)
        add(text, size, " without NVLink");
}

/* ---- the tree ---- */

static json_t *grow(json_t *parent, const char *text, enum stk_colour c)
{
    json_t *o = json_pack("{s:s,s:i,s:[]}", "text", text, "colour", (int)c, "children");

    (void)json_array_append_new(json_object_get(parent, "children"), o);
    return o;
}

static void grow_gpu(json_t *parent, const json_t *gpu)
{
    int64_t links = stk_int(gpu, "nvlinks", 0), through = stk_int(gpu, "switch_links", 0);
    char text[MAX_TEXT];

    (void)snprintf(text, sizeof(text), "GPU %" PRId64, stk_int(gpu, "index", 0));
    add_str(text, sizeof(text), "  ", gpu, "name");
    add_str(text, sizeof(text), "  ", gpu, "pci");
    if (links > 0)
        add(text, sizeof(text), "  %" PRId64 " NVLink%s%s", links, plural(links),
            through == links ? " to switches" : "");
    (void)grow(parent, text, STK_GREEN);
}

static const char *bridge(const json_t *gpu, size_t level)
{
    const char *s = json_string_value(json_array_get(json_object_get(gpu, "bridges"), level));

    return s ? s : "";
}

/* GPUs of the list that have the same bridge at this level as the first of them. */
static json_t *alike(const json_t *list, const json_t *first, size_t level)
{
    json_t *group = json_array();

    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(bridge(json_array_get(list, i), level), bridge(first, level)) == 0)
            (void)json_array_append(group, json_array_get(list, i));
    return group;
}

/* The level from which on the GPUs of a group, which share this one, part. */
static size_t parting(const json_t *group, size_t level)
{
    const json_t *first = json_array_get(group, 0);

    for (;; level++)
        for (size_t i = 0; i < json_array_size(group); i++)
            if (!*bridge(first, level) ||
                strcmp(bridge(json_array_get(group, i), level), bridge(first, level)) != 0)
                return level;
}

static void grow_pci(json_t *parent, const json_t *list, size_t level) // NOLINT(misc-no-recursion)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *gpu = json_array_get(list, i);
        json_t *group = alike(list, gpu, level);
        char text[MAX_TEXT], clean[64];
        size_t next;

        if (json_array_get(group, 0) != gpu) {
            /* was drawn with the first of its group */
        } else if (json_array_size(group) == 1 || !*bridge(gpu, level)) {
            for (size_t k = 0; k < json_array_size(group); k++)
                grow_gpu(parent, json_array_get(group, k));
        } else {
            next = parting(group, level);
            (void)snprintf(text, sizeof(text), "PCIe %s %s", next == 1 ? "root" : "switch",
                           stk_text_clean(clean, sizeof(clean), bridge(gpu, next - 1), false));
            grow_pci(grow(parent, text, STK_DIM), group, next);
        }
        json_decref(group);
    }
}

static json_t *having(const json_t *list, const char *key, int64_t value)
{
    json_t *found = json_array();

    for (size_t i = 0; i < json_array_size(list); i++)
        if (stk_int(json_array_get(list, i), key, -1) == value)
            (void)json_array_append(found, json_array_get(list, i));
    return found;
}

/* NUMA nodes of a package (-1: those that are in none), with their GPUs. */
static void grow_numas(json_t *parent, const json_t *node, int64_t package)
{
    json_t *numas = having(json_object_get(node, "numa"), "package", package);

    for (size_t i = 0; i < json_array_size(numas); i++) {
        const json_t *numa = json_array_get(numas, i);
        json_t *gpus = having(json_object_get(node, "gpus"), "numa", stk_int(numa, "index", 0));
        char text[MAX_TEXT], mem[32];

        (void)snprintf(text, sizeof(text), "NUMA node %" PRId64, stk_int(numa, "index", 0));
        add_str(text, sizeof(text), "  CPUs ", numa, "cpus");
        add(text, sizeof(text), "  %s",
            stk_text_mib(stk_num(numa, "mem_mib", 0), mem, sizeof(mem)));
        grow_pci(grow(parent, text, STK_BOLD), gpus, 0);
        json_decref(gpus);
    }
    json_decref(numas);
}

static json_t *make_tree(const json_t *node)
{
    const json_t *packages = json_object_get(node, "packages");
    json_t *root = json_pack("{s:[]}", "children"), *lost;
    char text[MAX_TEXT];

    for (size_t i = 0; i < json_array_size(packages); i++) {
        const json_t *p = json_array_get(packages, i);

        (void)snprintf(text, sizeof(text), "package %" PRId64, stk_int(p, "index", 0));
        add_str(text, sizeof(text), "  ", p, "model");
        grow_numas(grow(root, text, STK_PLAIN), node, stk_int(p, "index", 0));
    }
    grow_numas(root, node, -1);
    lost = having(json_object_get(node, "gpus"), "numa", -1);
    if (json_array_size(lost) > 0)
        grow_pci(grow(root, "near all CPUs, or where is not known", STK_DIM), lost, 0);
    json_decref(lost);
    return root;
}

static void draw(const struct stk_term *t, const json_t *at,
                 const char *before) // NOLINT(misc-no-recursion)
{
    const json_t *list = json_object_get(at, "children");
    size_t n = json_array_size(list);
    char deeper[256];

    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i);
        enum stk_colour c = (enum stk_colour)stk_int(o, "colour", STK_PLAIN);
        const char *mark = t->utf8 ? (i + 1 < n ? "├─ " : "└─ ") : (i + 1 < n ? "|- " : "`- ");

        (void)fprintf(t->f, "%s%s%s%s%s\n", before, mark, stk_term_on(t, c), stk_str(o, "text"),
                      stk_term_off(t, c));
        (void)snprintf(deeper, sizeof(deeper), "%s%s", before,
                       i + 1 == n ? "   "
                       : t->utf8  ? "│  "
                                  : "|  ");
        draw(t, o, deeper);
    }
}

/* ---- the matrix ---- */

static const struct word {
    const char *path, *shown, *means;
    enum stk_colour colour;
} words[] = {
    {"board", "BRD", "on one board", STK_CYAN},
    {"pix", "PIX", "one PCIe switch", STK_CYAN},
    {"pxb", "PXB", "several PCIe switches", STK_CYAN},
    {"phb", "PHB", "the PCIe host bridge of a CPU", STK_YELLOW},
    {"node", "NODE", "between PCIe host bridges of a NUMA node", STK_YELLOW},
    {"sys", "SYS", "between NUMA nodes", STK_RED},
    {"", "?", "not known", STK_DIM},
};
#define N_WORDS (sizeof(words) / sizeof(*words))

static const struct word *word_of(const json_t *link)
{
    const char *path = stk_str(link, "path");
    size_t i = 0;

    while (i + 1 < N_WORDS && strcmp(words[i].path, path) != 0)
        i++;
    return &words[i];
}

static const json_t *link_of(const json_t *links, int64_t a, int64_t b)
{
    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *l = json_array_get(links, i);
        int64_t p = stk_int(l, "a", -1), q = stk_int(l, "b", -1);

        if ((p == a && q == b) || (p == b && q == a))
            return l;
    }
    return NULL;
}

static void put_cell(const struct stk_term *t, const json_t *links, int64_t a, int64_t b)
{
    const json_t *l = link_of(links, a, b);
    const struct word *w = word_of(l);
    int64_t nv = stk_int(l, "nvlinks", 0);
    enum stk_colour c = a == b ? STK_DIM : nv > 0 ? STK_GREEN : w->colour;
    char text[32];

    if (nv > 0)
        (void)snprintf(text, sizeof(text), "NV%" PRId64, nv);
    else
        (void)snprintf(text, sizeof(text), "%s", a == b ? "-" : w->shown);
    (void)fprintf(t->f, "%s%*s%s", stk_term_on(t, c), CELL, text, stk_term_off(t, c));
}

/* What is near a GPU, at the end of its row. */
static void put_near(const struct stk_term *t, const json_t *gpu)
{
    char text[MAX_TEXT] = "";

    if (stk_int(gpu, "numa", -1) >= 0)
        add(text, sizeof(text), "   NUMA node %" PRId64, stk_int(gpu, "numa", -1));
    add_str(text, sizeof(text), *text ? ", CPUs " : "   CPUs ", gpu, "cpus");
    (void)fprintf(t->f, "%s", text);
}

/* The columns from 'from' to 'to' of the matrix. */
static void put_block(const struct stk_term *t, const json_t *node, size_t from, size_t to)
{
    const json_t *gpus = json_object_get(node, "gpus"), *links = json_object_get(node, "links");
    size_t n = json_array_size(gpus);

    (void)fprintf(t->f, "\n%*s", CELL, "");
    for (size_t b = from; b < to; b++)
        (void)fprintf(t->f, "%*" PRId64, CELL, stk_int(json_array_get(gpus, b), "index", 0));
    (void)fputc('\n', t->f);
    for (size_t a = 0; a < n; a++) {
        const json_t *gpu = json_array_get(gpus, a);

        (void)fprintf(t->f, "GPU%*" PRId64, CELL - 3, stk_int(gpu, "index", 0));
        for (size_t b = from; b < to; b++)
            put_cell(t, links, stk_int(gpu, "index", 0),
                     stk_int(json_array_get(gpus, b), "index", 0));
        if (to == n)
            put_near(t, gpu);
        (void)fputc('\n', t->f);
    }
}

static void put_legend(const struct stk_term *t, const json_t *links)
{
    bool seen[N_WORDS] = {false}, nvlink = false, through = false;

    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *l = json_array_get(links, i);

        if (stk_int(l, "nvlinks", 0) > 0)
            nvlink = true;
        else
            seen[word_of(l) - words] = true;
        through |= stk_yes(l, "switch");
    }
    (void)fputc('\n', t->f);
    if (nvlink)
        (void)fprintf(t->f, "%*s  so many NVLinks%s\n", CELL, "NVn",
                      through ? ", through switches" : "");
    for (size_t i = 0; i < N_WORDS; i++)
        if (seen[i])
            (void)fprintf(t->f, "%*s  %s\n", CELL, words[i].shown, words[i].means);
}

static void put_matrix(const struct stk_term *t, const json_t *node)
{
    size_t n = json_array_size(json_object_get(node, "gpus"));
    size_t fit = t->width > 4 * CELL ? (size_t)t->width / CELL - 1 : n;

    for (size_t from = 0; from < n; from += fit)
        put_block(t, node, from, from + fit < n ? from + fit : n);
    put_legend(t, json_object_get(node, "links"));
}

void stk_topology_draw(const json_t *node, const struct stk_term *t)
{
    int64_t cpus = stk_int(node, "n_cpus", 0);
    char text[MAX_TEXT] = "", mem[32];
    json_t *tree = make_tree(node);

    add_str(text, sizeof(text), "", node, "name");
    if (cpus > 0)
        add(text, sizeof(text), ": %" PRId64 " CPU%s, %s", cpus, plural(cpus),
            stk_text_mib(stk_num(node, "mem_mib", 0), mem, sizeof(mem)));
    add_gpus(text, sizeof(text), node);
    (void)fprintf(t->f, "%s%s%s\n", stk_term_on(t, STK_BOLD), text, stk_term_off(t, STK_BOLD));
    draw(t, tree, "");
    json_decref(tree);
    if (json_array_size(json_object_get(node, "gpus")) > 1)
        put_matrix(t, node);
}
