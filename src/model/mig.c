/* SPDX-License-Identifier: Apache-2.0 */
/* mig.c - two geometries, and the models that have them. Models of one geometry differ in what
 * their profiles are called, which follows from their memory. */
#include "model/mig.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST_PROFILES 6

struct shape { /* of a profile: bits of 'starts' are memory slices */
    uint8_t compute, memory, starts;
};

struct geometry {
    uint8_t memory; /* slices */
    uint8_t n;
    struct shape profile[MOST_PROFILES];
};

static const struct geometry eighths = {8,
                                        6,
                                        {{1, 1, 0x7f}, /* 0 to 6: the last slice has no compute */
                                         {1, 2, 0x55}, /* one compute slice with twice the memory */
                                         {2, 2, 0x15},
                                         {3, 4, 0x11},
                                         {4, 4, 0x01},
                                         {7, 8, 0x01}}};
static const struct geometry quarters = {4, 3, {{1, 1, 0x0f}, {2, 2, 0x05}, {4, 4, 0x01}}};

struct model {
    const char *name;  /* for people */
    const char *words; /* in the names of GPUs, with blanks around each */
    const struct geometry *geometry;
    uint16_t gb;                /* of memory */
    uint16_t of[MOST_PROFILES]; /* GB in the names of its profiles */
};

static const struct model models[] = {
    {"A30-24GB", " A30 ", &quarters, 24, {6, 12, 24}},
    {"A100-40GB", " A100 A800 ", &eighths, 40, {5, 10, 10, 20, 20, 40}},
    {"A100-80GB", " A100 A800 ", &eighths, 80, {10, 20, 20, 40, 40, 80}},
    {"H100-80GB", " H100 H800 ", &eighths, 80, {10, 20, 20, 40, 40, 80}},
    {"H100-94GB", " H100 ", &eighths, 94, {12, 24, 24, 47, 47, 94}},
    {"H100-96GB", " H100 GH200 H20 ", &eighths, 96, {12, 24, 24, 48, 48, 96}},
    {"H200-141GB", " H200 H20 ", &eighths, 141, {18, 35, 35, 71, 71, 141}},
    {"GH200-144GB", " GH200 ", &eighths, 144, {18, 36, 36, 72, 72, 144}},
    {"B200-180GB", " B200 ", &eighths, 180, {23, 45, 45, 90, 90, 180}},
    {"GB200-186GB", " GB200 ", &eighths, 186, {23, 47, 47, 93, 93, 186}},
    {"B300-269GB", " B300 ", &eighths, 269, {34, 67, 67, 135, 135, 269}},
    {"GB300-278GB", " GB300 ", &eighths, 278, {35, 70, 70, 139, 139, 278}},
};
#define N_MODELS (sizeof(models) / sizeof(*models))

static const struct model *model_of(uint8_t model)
{
    return model >= 1 && model <= N_MODELS ? &models[model - 1] : NULL;
}

/* ---- names ---- */

/* Digits at *p; moves past them. 0: there are none, or the number is too large for a name. */
static uint32_t number_at(const char **p, const char *end)
{
    uint32_t n = 0;

    for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
        n = n > 4095 ? n : n * 10 + (uint32_t)(**p - '0');
    return n > 4095 ? 0 : n;
}

uint16_t stk_mig_parse(const char *name, size_t len)
{
    const char *p = name, *end = name + len;
    uint32_t compute = number_at(&p, end), gb;

    if (name == p || *name == '0' || compute == 0 || compute > 7 || end - p < 2 || p[0] != 'g' ||
        p[1] != '.')
        return 0;
    p += 2;
    if (p < end && *p == '0')
        return 0;
    gb = number_at(&p, end);
    return gb > 0 && end - p == 2 && p[0] == 'g' && p[1] == 'b' ? STK_MIG(compute, gb) : 0;
}

const char *stk_mig_name(uint16_t profile, char buf[STK_MIG_NAME_LEN])
{
    (void)snprintf(buf, STK_MIG_NAME_LEN, "%ug.%ugb", profile >> 12 & 15U, profile & 4095U);
    return buf;
}

const char *stk_mig_model_name(uint8_t model)
{
    return model_of(model) ? model_of(model)->name : NULL;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static char upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

/* Whether the word, in any case, is one of 'words'. */
static bool among(const char *word, size_t len, const char *words)
{
    for (; words[1]; words = strchr(words + 1, ' ')) {
        size_t i = 0;

        while (i < len && words[1 + i] == upper(word[i]))
            i++;
        if (i == len && words[1 + i] == ' ')
            return true;
    }
    return false;
}

struct word {
    const char *s;
    size_t len;
};

/* The next word of a name, from *io on; its length is 0 when there is none. */
static struct word next_word(const char *name, size_t len, size_t *io)
{
    struct word w;

    while (*io < len && !is_word(name[*io]))
        ++*io;
    w.s = name + *io;
    while (*io < len && is_word(name[*io]))
        ++*io;
    w.len = (size_t)(name + *io - w.s);
    return w;
}

/* GB of memory in the name, as in A100-SXM4-80GB; 0: it does not say. */
static uint32_t memory_in(const char *name, size_t len)
{
    size_t at = 0;

    for (struct word w = next_word(name, len, &at); w.len; w = next_word(name, len, &at)) {
        const char *p = w.s, *end = w.s + w.len;
        uint32_t gb = number_at(&p, end);

        if (gb > 0 && end - p == 2 && upper(p[0]) == 'G' && upper(p[1]) == 'B')
            return gb;
    }
    return 0;
}

static bool named(const struct model *m, const char *name, size_t len)
{
    size_t at = 0;

    for (struct word w = next_word(name, len, &at); w.len; w = next_word(name, len, &at))
        if (among(w.s, w.len, m->words))
            return true;
    return false;
}

uint8_t stk_mig_model(const char *name, size_t len, uint32_t mem_mib)
{
    uint32_t gb = mem_mib ? (mem_mib + 512) / 1024 : memory_in(name, len), n = 0, best_off = 0;
    uint8_t best = 0;

    for (uint32_t i = 0; i < N_MODELS; i++) {
        const struct model *m = &models[i];
        uint32_t off = gb > m->gb ? gb - m->gb : m->gb - gb;

        if (!named(m, name, len) || (gb && off * 20 > m->gb)) /* more than 5 percent off */
            continue;
        n++;
        if (best == 0 || off < best_off) {
            best = (uint8_t)(i + 1);
            best_off = off;
        }
    }
    return gb || n == 1 ? best : 0;
}

/* ---- geometry ---- */

uint16_t stk_mig_profile(uint8_t model, uint32_t i)
{
    const struct model *m = model_of(model);

    return m && i < m->geometry->n ? STK_MIG(m->geometry->profile[i].compute, m->of[i]) : 0;
}

static const struct shape *shape_of(uint8_t model, uint16_t profile)
{
    for (uint32_t i = 0; stk_mig_profile(model, i); i++)
        if (stk_mig_profile(model, i) == profile)
            return &model_of(model)->geometry->profile[i];
    return NULL;
}

uint8_t stk_mig_slices(uint8_t model, uint16_t profile, uint32_t start)
{
    const struct shape *p = shape_of(model, profile);

    if (!p || start >= STK_MIG_SLICES || !(p->starts >> start & 1))
        return 0;
    return (uint8_t)(((1U << p->memory) - 1) << start);
}

/* Starts of a profile of which all slices are free. */
static uint8_t starts_of(const struct shape *p, uint8_t used)
{
    uint32_t from = 0xffU & ~used;

    for (uint32_t n = 1; n < p->memory; n *= 2)
        from &= from >> n; /* so many free ones in a row from here on */
    return (uint8_t)(from & p->starts);
}

uint8_t stk_mig_starts(uint8_t model, uint16_t profile, uint8_t used)
{
    const struct shape *p = shape_of(model, profile);

    return p ? starts_of(p, used) : 0;
}

uint32_t stk_mig_ways(uint8_t model, uint8_t used)
{
    const struct model *m = model_of(model);
    uint32_t n = 0;

    for (uint32_t i = 0; m && i < m->geometry->n; i++)
        n += (uint32_t)__builtin_popcount(starts_of(&m->geometry->profile[i], used));
    return n;
}

uint32_t stk_mig_choose(uint8_t model, uint16_t profile, uint8_t used)
{
    uint32_t best = STK_MIG_ANY, most = 0;

    for (uint32_t m = stk_mig_starts(model, profile, used); m; m &= m - 1) {
        uint32_t start = (uint32_t)__builtin_ctz(m);
        uint32_t ways = stk_mig_ways(model, used | stk_mig_slices(model, profile, start));

        if (best == STK_MIG_ANY || ways > most) {
            best = start;
            most = ways;
        }
    }
    return best;
}

uint32_t stk_mig_left(uint8_t model, uint8_t used)
{
    const struct model *m = model_of(model);

    return m ? 1000U * (m->geometry->memory - (uint32_t)__builtin_popcount(used)) /
                   m->geometry->memory
             : 0;
}

uint8_t stk_mig_all(uint8_t model)
{
    const struct model *m = model_of(model);

    return m ? (uint8_t)((1U << m->geometry->memory) - 1) : 0;
}

uint32_t stk_mig_milli(uint16_t profile)
{
    return (profile >> 12 & 7U) * 125U;
}
