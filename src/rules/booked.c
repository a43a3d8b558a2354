/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/booked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/demand.h"
#include "model/node.h"
#include "rules/read.h"
#include "spec/words.h"
#include "spec/yaml_tree.h"
#include "sys/zones.h"
#include "when/cron.h"

struct one {
    struct stk_booked_row row;
    struct stk_booking_spec spec;  /* but for number and times */
    struct stk_piece *nodes;       /* of it */
    char job[STK_MAX_BOOKED_NAME]; /* for the job of this id; "": not */
    bool repeats, over;
    struct stk_cron cron;
    struct stk_zone *zone; /* of cron */
    stk_time start, lasts;
    uint32_t window; /* 0: it has none now */
    stk_time opens;  /* that window does */
    stk_time next;   /* when one is made */
};

struct stk_booked {
    struct one *of;
    uint32_t n;
    int64_t epoch_us;
};

struct reader {
    const char *file;
    const struct stk_booked_world *w;
    const char *zone; /* of those that name none */
    struct one *one;
    struct stk_err *err;
};

static int bad(const struct reader *r, const char *what)
{
    return stk_err_set(r->err, -EINVAL, "%s: reservation \"%s\": %.170s", r->file, r->one->row.name,
                       what);
}

static const char *text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* ---- reading ---- */

static int check_keys(const struct reader *r, json_t *o)
{
    static const char *const keys[] = {"name", "gpus",  "for",   "start", "cron",     "tz",
                                       "zone", "grace", "pool",  "evict", "gpu_type", "tenant",
                                       "user", "job",   "nodes", NULL};
    const char *key;
    char what[160];
    json_t *v;

    if (!stk_rules_known(o, keys, what, sizeof(what)))
        return bad(r, what);
    json_object_foreach(o, key, v)
    {
        if (strcmp(key, "nodes") != 0 && !json_is_string(v)) {
            (void)snprintf(what, sizeof(what), "%.40s must be a plain value", key);
            return bad(r, what);
        }
    }
    return 0;
}

static int read_time(const struct reader *r, const json_t *o, const char *key, stk_time least,
                     stk_time *ret)
{
    const char *s = text(o, key);
    int64_t seconds = 0;
    char what[80];

    *ret = 0;
    if (!s && least == 0)
        return 0;
    (void)snprintf(what, sizeof(what), "%s must be a time such as 90m, at most 366 days", key);
    if (!s || stk_words_duration(s, 1, &seconds) < 0 || seconds > STK_MAX_WINDOW / STK_SECOND ||
        seconds * STK_SECOND < least)
        return bad(r, what);
    *ret = seconds * STK_SECOND;
    return 0;
}

static int find(const struct reader *r, const json_t *o, const char *key, enum stk_booked_noun noun,
                uint32_t *ret)
{
    static const char *const nouns[] = {"tenant", "user", "pool", "GPU type", "node"};
    char what[160];

    *ret = r->w->find(r->w->ctx, noun, text(o, key));
    (void)snprintf(what, sizeof(what), "there is no %s \"%.60s\" here", nouns[noun], text(o, key));
    return *ret == STK_NONE ? bad(r, what) : 0;
}

static int read_holder(const struct reader *r, const json_t *o, uint32_t id)
{
    struct stk_booking_spec *k = &r->one->spec;
    const char *job = text(o, "job");
    int rc = 0;

    if (!!text(o, "tenant") + !!text(o, "user") + !!job > 1)
        return bad(r, "is for a tenant, a user or a job, not for several");
    k->holder = STK_HOLDER_NAMED;
    k->holder_id = id;
    if (job && (*job == '\0' || strlen(job) >= sizeof(r->one->job)))
        return bad(r, "job must be the id of a job of the trace");
    if (job)
        (void)snprintf(r->one->job, sizeof(r->one->job), "%s", job);
    if (text(o, "tenant")) {
        k->holder = STK_HOLDER_TENANT;
        rc = find(r, o, "tenant", STK_BOOKED_TENANT, &k->holder_id);
    } else if (text(o, "user")) {
        k->holder = STK_HOLDER_USER;
        rc = find(r, o, "user", STK_BOOKED_USER, &k->holder_id);
    }
    return rc;
}

/* "7", or "2-7"; "7:4" is 4 GPUs of it. */
static bool range_of(const char *s, uint32_t *ret_first, uint32_t *ret_last, uint32_t *ret_gpus)
{
    unsigned long first, last, gpus = 0;
    char *end = NULL;

    if (*s < '0' || *s > '9')
        return false;
    first = last = strtoul(s, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        last = strtoul(end + 1, &end, 10);
    if (*end == ':' && end[1] >= '0' && end[1] <= '9')
        gpus = strtoul(end + 1, &end, 10);
    if (*end != '\0' || first > last || last >= STK_MAX_NODES || gpus > STK_MAX_NODE_GPUS)
        return false;
    *ret_first = (uint32_t)first;
    *ret_last = (uint32_t)last;
    *ret_gpus = (uint32_t)gpus;
    return true;
}

static int add_node(const struct reader *r, uint32_t node, uint32_t gpus)
{
    struct stk_booking_spec *k = &r->one->spec;
    struct stk_piece *nodes = r->one->nodes;
    char name[16], what[120];
    uint32_t pool, all;

    (void)snprintf(name, sizeof(name), "%u", node);
    (void)snprintf(what, sizeof(what), "there is no node \"%s\" here", name);
    if (r->w->find(r->w->ctx, STK_BOOKED_NODE, name) == STK_NONE)
        return bad(r, what);
    all = r->w->gpus(r->w->ctx, node, &pool);
    if (k->n_nodes > 0 && (k->pool.i != pool || nodes[k->n_nodes - 1].node.i >= node))
        return bad(r, "nodes must be of one pool, in order, and each once");
    (void)snprintf(what, sizeof(what), "node %u has %u GPUs", node, all);
    if (gpus > all || all == 0)
        return bad(r, what);
    nodes = realloc(nodes, (k->n_nodes + (size_t)1) * sizeof(*nodes));
    if (!nodes)
        return stk_err_set(r->err, -ENOMEM, "out of memory");
    k->nodes = r->one->nodes = nodes;
    k->pool.i = pool;
    gpus = gpus ? gpus : all;
    nodes[k->n_nodes++] = (struct stk_piece){.node = {node}, .gpus = gpus};
    k->gpus += gpus;
    return 0;
}

static int add_nodes(const struct reader *r, const json_t *v)
{
    const char *s = json_string_value(v);
    uint32_t first, last, gpus;
    int rc = 0;

    if (!s || !range_of(s, &first, &last, &gpus))
        return bad(r, "nodes are numbers such as 3 or 2-7, or 3:4 for 4 GPUs of one");
    for (uint32_t i = first; i <= last && rc == 0; i++)
        rc = add_node(r, i, gpus);
    return rc;
}

static int read_nodes(const struct reader *r, const json_t *o, const json_t *v)
{
    int rc = 0;

    if (text(o, "gpus") || text(o, "pool") || text(o, "gpu_type"))
        return bad(r, "has nodes, so gpus, pool and gpu_type are known");
    if (!json_is_array(v))
        return add_nodes(r, v);
    for (size_t i = 0; i < json_array_size(v) && rc == 0; i++)
        rc = add_nodes(r, json_array_get(v, i));
    return rc < 0 || r->one->spec.n_nodes > 0 ? rc : bad(r, "nodes must not be empty");
}

static int read_where(const struct reader *r, const json_t *o)
{
    struct stk_booking_spec *k = &r->one->spec;
    const json_t *nodes = json_object_get(o, "nodes");
    int64_t gpus = 0;
    uint32_t type;
    int rc = 0;

    k->gpu_types = STK_ANY_GPU_TYPE;
    if (nodes)
        return read_nodes(r, o, nodes);
    if (!text(o, "gpus") || stk_words_whole(text(o, "gpus"), STK_MAX_GPUS, &gpus) < 0 || gpus < 1)
        return bad(r, "gpus must be how many, or nodes which");
    k->gpus = (uint32_t)gpus;
    if (text(o, "pool"))
        rc = find(r, o, "pool", STK_BOOKED_POOL, &k->pool.i);
    if (rc == 0 && text(o, "gpu_type")) {
        rc = find(r, o, "gpu_type", STK_BOOKED_GPU_TYPE, &type);
        k->gpu_types = rc < 0 ? 0 : UINT64_C(1) << (type & 63);
    }
    return rc;
}

/* A while after the beginning, or a date. */
static int read_start(const struct reader *r, const char *s, const char *zone)
{
    struct stk_err why = {{0}};
    int64_t seconds = 0;

    if (stk_words_duration(s, 1, &seconds) == 0) {
        r->one->start = seconds * STK_SECOND;
        return r->one->start <= STK_MAX_DURATION ? 0 : bad(r, "start is too late");
    }
    if (r->w->date(s, zone, &seconds, &why) < 0)
        return bad(r, why.text);
    seconds -= r->w->start_s;
    if (seconds < 0 || seconds > STK_MAX_DURATION / STK_SECOND)
        return bad(r, "start is before time begins (--start), or very late");
    r->one->start = seconds * STK_SECOND;
    return 0;
}

static int read_when(const struct reader *r, const json_t *o)
{
    const char *cron = text(o, "cron"), *start = text(o, "start");
    const char *tz = text(o, "tz") ? text(o, "tz") : text(o, "zone") ? text(o, "zone") : r->zone;
    struct stk_err why = {{0}};

    if (cron && start)
        return bad(r, "start or cron, not both");
    if (!cron)
        return start ? read_start(r, start, tz) : 0;
    if (strlen(cron) > STK_MAX_CRON)
        return bad(r, "cron must be five fields");
    r->one->repeats = true;
    r->one->zone = malloc(sizeof(*r->one->zone));
    if (!r->one->zone)
        return stk_err_set(r->err, -ENOMEM, "out of memory");
    if (stk_cron_parse(cron, &r->one->cron, &why) < 0) {
        char what[sizeof(why.text) + 8];

        (void)snprintf(what, sizeof(what), "cron %s", why.text);
        return bad(r, what);
    }
    return stk_zones_load(tz, r->one->zone, &why) < 0 ? bad(r, why.text) : 0;
}

static int read_one(const struct reader *r, json_t *o, uint32_t id)
{
    const char *name = text(o, "name"), *evict = text(o, "evict");
    int rc;

    if (!json_is_object(o) || !name || !*name || strlen(name) >= sizeof(r->one->row.name))
        return stk_err_set(r->err, -EINVAL, "%s: reservation %u needs a name, of at most %d bytes",
                           r->file, id, STK_MAX_BOOKED_NAME - 1);
    (void)snprintf(r->one->row.name, sizeof(r->one->row.name), "%s", name);
    for (uint32_t i = 1; i < id; i++)
        if (strcmp(r->one[-(int64_t)i].row.name, name) == 0)
            return bad(r, "there is another of this name");
    r->one->spec.tag = id;
    rc = check_keys(r, o);
    rc = rc < 0 ? rc : read_holder(r, o, id);
    rc = rc < 0 ? rc : read_where(r, o);
    rc = rc < 0 ? rc : read_time(r, o, "for", STK_SECOND, &r->one->lasts);
    rc = rc < 0 ? rc : read_time(r, o, "grace", 0, &r->one->spec.grace);
    if (rc == 0 && evict && strcmp(evict, "yes") != 0 && strcmp(evict, "true") != 0 &&
        strcmp(evict, "no") != 0 && strcmp(evict, "false") != 0)
        return bad(r, "evict must be yes or no");
    r->one->spec.evict = evict && (evict[0] == 'y' || evict[0] == 't');
    return rc < 0 ? rc : read_when(r, o);
}

static int read_list(struct stk_booked *x, struct reader *r, json_t *root)
{
    json_t *list = json_object_get(root, "reservations");
    const char *key;
    json_t *v;
    int rc = 0;

    json_object_foreach(root, key, v)
    {
        if (strcmp(key, "zone") != 0 && strcmp(key, "reservations") != 0)
            return stk_err_set(r->err, -EINVAL, "%s: \"%.40s\" is not known: zone, reservations",
                               r->file, key);
    }
    if (!json_is_array(list) || json_array_size(list) > STK_MAX_BOOKED)
        return stk_err_set(r->err, -EINVAL, "%s: reservations must be a list, of at most %d",
                           r->file, STK_MAX_BOOKED);
    r->zone = text(root, "zone") ? text(root, "zone") : r->w->zone;
    x->of = calloc(json_array_size(list) + 1, sizeof(*x->of));
    if (!x->of)
        return stk_err_set(r->err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
        r->one = &x->of[x->n++];
        rc = read_one(r, json_array_get(list, i), x->n);
    }
    return rc;
}

int stk_booked_new(const char *name, const char *text, size_t len, const struct stk_booked_world *w,
                   struct stk_booked **ret, struct stk_err *err)
{
    struct stk_booked *x = calloc(1, sizeof(*x));
    struct reader r = {.file = name, .w = w, .err = err};
    struct stk_yaml y = {0};
    int rc = 0;

    if (!x)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (len > STK_MAX_BOOKED_FILE)
        rc = stk_err_set(err, -E2BIG, "%s: larger than %d bytes", name, STK_MAX_BOOKED_FILE);
    rc = rc < 0 ? rc : stk_yaml_read(&y, text, len, name, err);
    if (rc == 0) {
        x->epoch_us = w->start_s * STK_SECOND;
        rc = read_list(x, &r, y.root);
    }
    stk_yaml_done(&y);
    if (rc < 0)
        stk_booked_free(x);
    else
        *ret = x;
    return rc;
}

void stk_booked_free(struct stk_booked *x)
{
    for (uint32_t i = 0; x && i < x->n; i++) {
        free(x->of[i].nodes);
        free(x->of[i].zone);
    }
    if (x)
        free(x->of);
    free(x);
}

/* ---- in a run ---- */

stk_time stk_booked_next(const struct stk_booked *x)
{
    stk_time next = STK_NEVER_TIME;

    for (uint32_t i = 0; i < x->n; i++)
        if (!x->of[i].over && x->of[i].window == 0 && x->of[i].next < next)
            next = x->of[i].next;
    return next;
}

/* When its next window opens; STK_NEVER_TIME. */
static stk_time opens(const struct stk_booked *x, const struct one *o, stk_time now)
{
    int64_t at;

    if (!o->repeats)
        return o->start > now ? o->start : now;
    at = stk_cron_next(&o->cron, o->zone, (x->epoch_us + now - 1) / STK_SECOND);
    if (at > (STK_MAX_DURATION - STK_MAX_WINDOW) / STK_SECOND + x->epoch_us / STK_SECOND)
        return STK_NEVER_TIME;
    return at * STK_SECOND - x->epoch_us;
}

static int make(struct stk_booked *x, struct one *o, uint32_t number, stk_time now,
                const struct stk_booked_to *to, struct stk_err *err)
{
    struct stk_booking_spec k = o->spec;
    const struct stk_event ev = {
        .at = now, .type = STK_EV_RESERVE, .job = {STK_NONE}, .u.booking = &k};
    struct stk_err why = {{0}};
    int rc;

    k.number = number;
    k.start = opens(x, o, now);
    o->over = k.start == STK_NEVER_TIME;
    if (o->over)
        return 0;
    k.end = k.start + o->lasts;
    rc = to->apply(to->ctx, &ev, &why);
    if (rc == -ENOMEM)
        return stk_err_set(err, rc, "%s", why.text);
    if (rc < 0) { /* this one is left out */
        o->row.refused++;
        o->over = !o->repeats;
        o->next = k.start + 1;
        (void)memcpy(o->row.note, why.text, sizeof(o->row.note));
        return 0;
    }
    o->window = number;
    o->opens = k.start;
    return 1;
}

/* Those of exact nodes come first: others can have what these leave. */
int stk_booked_feed(struct stk_booked *x, uint32_t number, stk_time now,
                    const struct stk_booked_to *to, struct stk_err *err)
{
    for (uint32_t exact = 2; exact-- > 0;)
        for (uint32_t i = 0; i < x->n; i++) {
            struct one *o = &x->of[i];
            int rc;

            if (o->over || o->window || o->next > now || exact != (o->spec.n_nodes > 0))
                continue;
            rc = make(x, o, number, now, to, err);
            if (rc < 0)
                return rc;
            number += rc > 0;
        }
    return 0;
}

void stk_booked_over(struct stk_booked *x, const struct stk_event *ev)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct one *o = &x->of[i];
        const stk_time lasted = ev->at - o->opens;

        if (o->window == 0 || o->window != ev->u.unreserve.number)
            continue;
        o->window = 0;
        o->over = !o->repeats;
        o->next = ev->at > o->opens ? ev->at : o->opens + 1;
        o->row.windows++;
        o->row.lapsed += ev->u.unreserve.why == STK_OVER_LAPSED;
        if (lasted > 0)
            o->row.gpu_hours += (double)lasted / 3.6e9 * (double)o->spec.gpus;
    }
}

uint32_t stk_booked_id(const struct stk_booked *x, const char *name, const char *job)
{
    for (uint32_t i = 0; i < x->n; i++) {
        const struct one *o = &x->of[i];

        if (name && strcmp(o->row.name, name) == 0)
            return i + 1;
        if (!name && job && o->job[0] && strcmp(o->job, job) == 0)
            return i + 1;
    }
    return 0;
}

uint32_t stk_booked_n(const struct stk_booked *x)
{
    return x->n;
}

const struct stk_booked_row *stk_booked_row(const struct stk_booked *x, uint32_t i)
{
    return &x->of[i].row;
}
