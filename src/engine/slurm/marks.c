/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/slurm/marks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char word[] = "stoker";
#define WORD_LEN (sizeof(word) - 1)

/* Digits; false: there are none, or too many. */
static bool number(const char **s, uint32_t *ret)
{
    uint64_t n = 0;
    const char *p = *s;

    for (; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (uint64_t)(*p - '0');
        if (n >= UINT32_MAX)
            return false;
    }
    if (p == *s)
        return false;
    *s = p;
    *ret = (uint32_t)n;
    return true;
}

/* ---- elements ---- */

struct range {
    uint32_t from, to, step;
};

/* The next range; 0: there is none; < 0: that is no list. */
static int next_range(const char **s, int64_t after, struct range *r)
{
    if (**s == '\0' || **s == '%')
        return 0;
    if (!number(s, &r->from))
        return -EINVAL;
    r->to = r->from;
    r->step = 1;
    if (**s == '-') {
        (*s)++;
        if (!number(s, &r->to))
            return -EINVAL;
        if (**s == ':') {
            (*s)++;
            if (!number(s, &r->step) || r->step == 0)
                return -EINVAL;
        }
    }
    if (**s == ',')
        (*s)++;
    else if (**s != '\0' && **s != '%')
        return -EINVAL;
    return r->to >= r->from && (int64_t)r->from > after ? 1 : -EINVAL;
}

static uint32_t length(const struct range *r)
{
    return (r->to - r->from) / r->step + 1;
}

static uint32_t last(const struct range *r)
{
    return r->from + (length(r) - 1) * r->step;
}

uint32_t stk_slurm_task_count(const char *list)
{
    struct range r = {0, 0, 1};
    uint64_t n = 0;
    int64_t after = -1;
    int rc;

    while ((rc = next_range(&list, after, &r)) > 0) {
        n += length(&r);
        after = last(&r);
    }
    return rc < 0 || n > UINT32_MAX ? 0 : (uint32_t)n;
}

int stk_slurm_tasks(const char *list, uint32_t max, stk_slurm_task_fn each, void *ctx)
{
    struct range r = {0, 0, 1};
    uint32_t n = stk_slurm_task_count(list);
    int rc = 0;

    if (n == 0)
        return -EINVAL;
    if (n > max)
        return -E2BIG;
    while (rc == 0 && next_range(&list, -1, &r) > 0)
        for (uint32_t i = 0; i < length(&r) && rc == 0; i++)
            rc = each(ctx, r.from + i * r.step);
    return rc;
}

struct stk_slurm_ranks stk_slurm_ranks(const char *list)
{
    return (struct stk_slurm_ranks){.rest = list, .from = 1}; /* an empty range comes first */
}

uint32_t stk_slurm_next_rank(struct stk_slurm_ranks *k, uint32_t task)
{
    while (k->from > k->to || task > k->to) {
        struct range r = {0, 0, 1};

        if (next_range(&k->rest, -1, &r) <= 0) {
            k->rest = "";
            return UINT32_MAX;
        }
        k->before += k->from > k->to ? 0 : length(&(struct range){k->from, k->to, k->step});
        k->from = r.from;
        k->to = last(&r);
        k->step = r.step;
    }
    if (task < k->from || (task - k->from) % k->step)
        return UINT32_MAX;
    return k->before + (task - k->from) / k->step;
}

uint32_t stk_slurm_task_rank(const char *list, uint32_t task)
{
    struct stk_slurm_ranks k = stk_slurm_ranks(list);

    return stk_slurm_next_rank(&k, task);
}

uint32_t stk_slurm_task_at(const char *list, uint32_t rank)
{
    struct range r = {0, 0, 1};

    while (next_range(&list, -1, &r) > 0) {
        if (rank < length(&r))
            return r.from + rank * r.step;
        rank -= length(&r);
    }
    return UINT32_MAX;
}

/* ---- marks ---- */

static bool read_flags(const char **s, struct stk_slurm_mark *m)
{
    for (; **s && strchr("hu-", **s); (*s)++) {
        m->held |= **s == 'h';
        m->by_user |= **s == 'u';
    }
    if (**s == 'p') {
        (*s)++;
        if (!number(s, &m->pinned) || m->pinned == 0)
            return false;
    }
    return **s == '\0' || **s == ' ';
}

/* "stoker MARK 7 "; what follows. NULL: it is none, or another stoker's. */
static const char *read_number(const char *s, const char *mark, uint32_t *ret)
{
    size_t len = strlen(mark);

    if (!s || strncmp(s, word, WORD_LEN) != 0 || s[WORD_LEN] != ' ')
        return NULL;
    s += WORD_LEN + 1;
    if (len == 0 || strncmp(s, mark, len) != 0 || s[len] != ' ')
        return NULL;
    s += len + 1;
    return number(&s, ret) && *ret > 0 && *s == ' ' ? s + 1 : NULL;
}

bool stk_slurm_sent_read(const char *comment, const char *mark, uint32_t *ret_number,
                         uint32_t *ret_lease)
{
    uint32_t n, lease;
    const char *s = read_number(comment, mark, &n);

    if (!s || !number(&s, &lease) || *s)
        return false;
    *ret_number = n;
    *ret_lease = lease;
    return true;
}

bool stk_slurm_mark_read(const char *comment, const char *mark, struct stk_slurm_mark *ret)
{
    struct stk_slurm_mark m = {0};
    const char *s = read_number(comment, mark, &m.first);

    if (!s || !read_flags(&s, &m))
        return false;
    if (*s == ' ') {
        if (strlen(s + 1) >= sizeof(m.tasks))
            return false;
        (void)snprintf(m.tasks, sizeof(m.tasks), "%s", s + 1);
        if (stk_slurm_task_count(m.tasks) == 0)
            return false;
    }
    *ret = m;
    return true;
}

void stk_slurm_mark_write(const struct stk_slurm_mark *m, const char *mark, char *buf, size_t size)
{
    char flags[24] = "-", pin[16] = "";

    if (m->pinned)
        (void)snprintf(pin, sizeof(pin), "p%u", m->pinned);
    if (m->held || m->by_user || m->pinned)
        (void)snprintf(flags, sizeof(flags), "%s%s%s", m->held ? "h" : "", m->by_user ? "u" : "",
                       pin);
    (void)snprintf(buf, size, "%s %s %u %s%s%s", word, mark, m->first, flags,
                   m->tasks[0] ? " " : "", m->tasks);
}

/* ---- claims ---- */

bool stk_slurm_claim_read(const char *comment, struct stk_slurm_claim *ret)
{
    static const char key[] = " signal=";
    struct stk_slurm_claim c = {0};
    const char *s = comment;
    uint32_t sig = 0;

    if (!s || strncmp(s, word, WORD_LEN) != 0)
        return false;
    s += WORD_LEN;
    if (strncmp(s, key, sizeof(key) - 1) == 0) {
        s += sizeof(key) - 1;
        if (!number(&s, &sig) || sig > 64 || *s != '@')
            return false;
        s++;
        if (!number(&s, &c.seconds) || c.seconds > UINT16_MAX)
            return false;
        c.signal = (int)sig;
        c.batch = *s == 'B';
        s += c.batch;
    }
    c.refused = *s == ':';
    if (*s && *s != ':')
        return false;
    *ret = c;
    return true;
}

void stk_slurm_claim_write(const struct stk_slurm_claim *c, const char *sentence, char *buf,
                           size_t size)
{
    char sig[48] = "";

    if (c->signal)
        (void)snprintf(sig, sizeof(sig), " signal=%d@%u%s", c->signal, c->seconds,
                       c->batch ? "B" : "");
    (void)snprintf(buf, size, "%s%s%s%s", word, sig, sentence ? ": " : "",
                   sentence ? sentence : "");
}
