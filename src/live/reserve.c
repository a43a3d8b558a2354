/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.c - reservations of the daemon: what operators ask for, by name, once or again and again.
 *
 * A list of objects, kept in the store as one JSON document ("reservations"), in the same
 * transaction as the events that follow from it. The core knows single windows: of a reservation
 * that repeats, the next one is made as soon as the last is over. What is over stays in the list
 * for a while, and says why.
 */
#include <stdlib.h>
#include <string.h>

#include "core/booking.h"
#include "core/core.h"
#include "live/state.h"
#include "spec/words.h"
#include "sys/json.h"
#include "sys/zones.h"

#define MAX_LIST 200 /* that are not over */
#define MAX_OVER 100 /* that are, and are still shown */
#define DAY_S INT64_C(86400)

static void set(json_t *o, const char *key, json_t *value)
{
    (void)json_object_set_new(o, key, value);
}

static void say(const struct stk_live *l, const char *line)
{
    if (l->cfg.log)
        l->cfg.log(l->cfg.ctx, line);
}

static bool is_over(const json_t *o)
{
    return json_object_get(o, "over") != NULL;
}

static json_t *find(const struct stk_live *l, const char *key, json_int_t value)
{
    for (size_t i = 0; i < json_array_size(l->reservations); i++)
        if (stk_whole(json_array_get(l->reservations, i), key) == value)
            return json_array_get(l->reservations, i);
    return NULL;
}

const json_t *stk_live_reservations(const struct stk_live *l)
{
    return l->reservations;
}

const char *stk_live_reservation_name(const struct stk_live *l, uint32_t booking)
{
    const json_t *o = booking ? find(l, "window", booking) : NULL;

    return o ? stk_str(o, "name") : NULL;
}

uint32_t stk_live_reservation_id(const struct stk_live *l, const char *name)
{
    for (size_t i = 0; i < json_array_size(l->reservations); i++) {
        const json_t *o = json_array_get(l->reservations, i);

        if (!is_over(o) && strcmp(stk_str(o, "name"), name) == 0)
            return (uint32_t)stk_whole(o, "id");
    }
    return 0;
}

int stk_live_reserve_keep(struct stk_live *l, struct stk_err *err)
{
    return stk_live_keep(l, "reservations", l->reservations, err);
}

void stk_live_reserve_load(struct stk_live *l)
{
    json_decref(l->reservations);
    l->reservations = stk_live_kept(l, "reservations");
    if (!json_is_array(l->reservations)) {
        json_decref(l->reservations);
        l->reservations = json_array();
    }
    l->reserve_look = true;
}

/* ---- windows ---- */

/* Whose, by number. */
static int read_holder(const struct stk_live *l, const json_t *o, struct stk_booking_spec *k,
                       struct stk_err *err)
{
    const char *tenant = stk_str(o, "tenant"), *user = stk_str(o, "user");

    k->holder = STK_HOLDER_NAMED;
    k->holder_id = (uint32_t)stk_whole(o, "id");
    if (stk_whole(o, "job")) {
        k->holder = STK_HOLDER_JOB;
        k->holder_id = (uint32_t)stk_whole(o, "job");
        if (stk_whole(o, "job") < 0 || stk_whole(o, "job") >= UINT32_MAX ||
            stk_core_find(l->core, k->holder_id) == STK_NONE)
            return stk_err_set(err, -EINVAL, "there is no job %lld",
                               (long long)stk_whole(o, "job"));
    }
    if (*user) {
        uint32_t uid;

        if (stk_user_id(user, &uid) < 0)
            return stk_err_set(err, -EINVAL, "there is no user \"%.60s\"", user);
        k->holder = STK_HOLDER_USER;
        k->holder_id = uid + 1;
    }
    if (!*tenant)
        return 0;
    k->holder = STK_HOLDER_TENANT;
    for (uint32_t i = 0; i < l->cfg.core.n_tenants; i++)
        if (strcmp(l->cfg.core.tenants[i].name, tenant) == 0) {
            k->holder_id = i;
            return 0;
        }
    return stk_err_set(err, -EINVAL, "there is no tenant \"%.60s\"", tenant);
}

/* The node of this name, so long; STK_NONE. */
static uint32_t node_named(const struct stk_live *l, const char *name, size_t len)
{
    for (uint32_t i = 0; i < stk_core_state(l->core)->n_nodes; i++)
        if (strlen(l->cfg.nodes[i].name) == len && memcmp(l->cfg.nodes[i].name, name, len) == 0)
            return i;
    return STK_NONE;
}

/* "NAME", or "NAME:GPUS": so many of its GPUs, put into the list where it belongs. */
static int read_node(const struct stk_live *l, const char *word, struct stk_piece *list,
                     uint32_t *io_n, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    const char *colon = strrchr(word, ':');
    const size_t len = colon ? (size_t)(colon - word) : strlen(word);
    const uint32_t node = node_named(l, word, len);
    uint32_t at = *io_n;
    int64_t gpus;

    if (node == STK_NONE)
        return stk_err_set(err, -EINVAL, "nodes: there is no node \"%.*s\"",
                           len < 60 ? (int)len : 60, word);
    gpus = s->nodes[node].gpus;
    for (; at > 0 && list[at - 1].node.i >= node; at--)
        list[at] = list[at - 1];
    if ((at < *io_n && list[at].node.i == node) ||
        (colon && stk_words_whole(colon + 1, gpus, &gpus) < 0) || gpus < 1)
        return stk_err_set(err, -EINVAL, "nodes: %.60s has %u GPUs; NAME or NAME:GPUS, each once",
                           l->cfg.nodes[node].name, s->nodes[node].gpus);
    list[at] = (struct stk_piece){.node = {node}, .gpus = (uint32_t)gpus};
    ++*io_n;
    return 0;
}

/* Which nodes, and how many GPUs of each, into a list with room for all. */
static int read_nodes(const struct stk_live *l, const json_t *words, struct stk_booking_spec *k,
                      struct stk_piece *list, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));

        rc = word ? read_node(l, word, list, &k->n_nodes, err)
                  : stk_err_set(err, -EINVAL, "nodes: a list of names");
    }
    k->gpus = 0;
    for (uint32_t i = 0; rc == 0 && i < k->n_nodes; i++) {
        k->pool.i = s->nodes[list[0].node.i].pool;
        k->gpus += list[i].gpus;
        if (s->nodes[list[i].node.i].pool != k->pool.i)
            rc = stk_err_set(err, -EINVAL, "nodes: %.60s is of another pool",
                             l->cfg.nodes[list[i].node.i].name);
    }
    k->nodes = list;
    k->gpu_types = STK_ANY_GPU_TYPE;
    return rc;
}

/* The pool that was named, as the core's: one of several that share nodes must have all of them,
 * for the core would choose among all. */
static int read_pool(const struct stk_live *l, const char *pool, struct stk_booking_spec *k,
                     struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t row = 0;

    while (*pool && row < s->n_pools && strcmp(l->cfg.pools[row], pool) != 0)
        row++;
    if (row == s->n_pools)
        return stk_err_set(err, -EINVAL, "there is no pool \"%.60s\"", pool);
    k->pool.i = stk_live_pool_of(&l->cfg, row);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        uint64_t in = l->cfg.nodes[i].pools;

        if (s->nodes[i].pool == k->pool.i && in && !(in >> row & 1))
            return stk_err_set(err, -EINVAL,
                               "pool %.60s shares nodes with others, and has not all of theirs: "
                               "name nodes in place of GPUs",
                               l->cfg.pools[row]);
    }
    return 0;
}

static int read_where(const struct stk_live *l, const json_t *o, struct stk_booking_spec *k,
                      struct stk_err *err)
{
    const char *type = stk_str(o, "gpu_type");
    const struct stk_state *s = stk_core_state(l->core);

    k->gpu_types = *type ? 0 : STK_ANY_GPU_TYPE;
    for (uint32_t i = 0; *type && i < s->n_nodes; i++)
        if (strcmp(l->cfg.nodes[i].gpu_type, type) == 0)
            k->gpu_types |= UINT64_C(1) << s->nodes[i].gpu_type;
    if (!k->gpu_types)
        return stk_err_set(err, -EINVAL, "no node has GPUs of type \"%.60s\"", type);
    return read_pool(l, stk_str(o, "pool"), k, err);
}

/* When its next window begins, after that second; INT64_MAX: never. */
static int64_t next_start(const json_t *o, int64_t after_s)
{
    struct stk_zone *z = malloc(sizeof(*z));
    struct stk_cron cron;
    int64_t next = INT64_MAX;

    if (z && stk_cron_parse(stk_str(o, "cron"), &cron, NULL) == 0 &&
        stk_zones_load(*stk_str(o, "tz") ? stk_str(o, "tz") : "local", z, NULL) == 0)
        next = stk_cron_next(&cron, z, after_s);
    free(z);
    return next;
}

static int make_window(struct stk_live *l, json_t *o, int64_t start_s, struct stk_err *err)
{
    struct stk_booking_spec k = {
        .number = stk_core_next_booking(l->core),
        .tag = (uint32_t)stk_whole(o, "id"),
        .gpus = (uint32_t)stk_whole(o, "gpus"),
        .start = stk_live_named(l, start_s * STK_SECOND),
        .end = stk_live_named(l, (start_s + stk_whole(o, "for_s")) * STK_SECOND),
        .grace = stk_whole(o, "grace_s") * STK_SECOND,
        .evict = json_is_true(json_object_get(o, "evict"))};
    const struct stk_event ev = {
        .at = l->now, .type = STK_EV_RESERVE, .job = {STK_NONE}, .u.booking = &k};
    const json_t *nodes = json_object_get(o, "nodes");
    struct stk_piece *at =
        calloc(stk_core_state(l->core)->n_nodes + (size_t)1, sizeof(struct stk_piece));
    int rc;

    if (!at)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = read_holder(l, o, &k, err);
    if (rc == 0)
        rc = nodes ? read_nodes(l, nodes, &k, at, err) : read_where(l, o, &k, err);
    rc = rc < 0 ? rc : stk_loop_apply(l->loop, &ev, err);
    free(at);
    if (rc < 0)
        return rc;
    set(o, "gpus", json_integer(k.gpus));
    set(o, "window", json_integer(k.number));
    set(o, "start", json_integer(start_s));
    set(o, "end", json_integer(start_s + stk_whole(o, "for_s")));
    return 0;
}

/* One that repeats has its next window, or says why not. */
static int go_on(struct stk_live *l, json_t *o, struct stk_err *err)
{
    int64_t now_s = stk_live_wall(l) / STK_SECOND, at = next_start(o, now_s);
    struct stk_err why = {{0}};
    char line[600];
    int rc = at == INT64_MAX ? -ERANGE : make_window(l, o, at, &why);

    if (rc == -ENOMEM)
        return stk_err_set(err, rc, "%s", why.text);
    if (rc < 0) {
        (void)snprintf(line, sizeof(line), "reservation.refused name=%.60s why=\"%.400s\"",
                       stk_str(o, "name"), why.text);
        say(l, line);
        set(o, "note", json_string(why.text));
        set(o, "retry", json_integer(at == INT64_MAX ? INT64_MAX / STK_SECOND : at));
        return 0;
    }
    (void)json_object_del(o, "note");
    (void)json_object_del(o, "retry");
    return 0;
}

static bool waits(const struct stk_live *l, const json_t *o)
{
    return *stk_str(o, "cron") && !is_over(o) && stk_whole(o, "window") == 0 &&
           stk_whole(o, "retry") <= stk_live_wall(l) / STK_SECOND;
}

int stk_live_reserve_go_on(struct stk_live *l, struct stk_err *err)
{
    bool changed = false;
    int rc = 0;

    l->reserve_look = false;
    for (size_t i = 0; i < json_array_size(l->reservations) && rc == 0; i++) {
        json_t *o = json_array_get(l->reservations, i);

        if (!waits(l, o))
            continue;
        rc = go_on(l, o, err);
        changed = true;
    }
    return rc == 0 && changed ? stk_live_reserve_keep(l, err) : rc;
}

/* Whether an earlier window comes before the one that is made. */
static bool comes_earlier(const struct stk_live *l, const json_t *o, int64_t wall_s)
{
    const uint32_t window = (uint32_t)stk_whole(o, "window");
    const struct stk_booking *b = stk_booking_find(stk_core_state(l->core), window);

    return *stk_str(o, "cron") && b && !b->open && next_start(o, wall_s) < stk_whole(o, "start");
}

int stk_live_reserve_set_back(struct stk_live *l, struct stk_err *err)
{
    const int64_t wall_s = stk_live_wall(l) / STK_SECOND;
    int rc = 0;

    l->reserve_look = true;
    for (size_t i = 0; i < json_array_size(l->reservations) && rc == 0; i++) {
        json_t *o = json_array_get(l->reservations, i);
        struct stk_event ev = {.at = l->now, .type = STK_EV_UNRESERVE, .job = {STK_NONE}};

        if (*stk_str(o, "cron"))
            (void)json_object_del(o, "retry");
        if (is_over(o) || !comes_earlier(l, o, wall_s))
            continue;
        ev.u.unreserve.number = (uint32_t)stk_whole(o, "window");
        ev.u.unreserve.why = STK_OVER_REMOVED;
        set(o, "window", json_integer(0));
        rc = stk_loop_apply(l->loop, &ev, err);
    }
    return rc;
}

stk_time stk_live_reserve_wake(const struct stk_live *l)
{
    stk_time wake = STK_NEVER_TIME;

    for (size_t i = 0; i < json_array_size(l->reservations); i++) {
        const json_t *o = json_array_get(l->reservations, i);

        if (*stk_str(o, "cron") && !is_over(o) && stk_whole(o, "window") == 0 &&
            stk_whole(o, "retry") < wake / STK_SECOND)
            wake = stk_whole(o, "retry") * STK_SECOND;
    }
    return wake;
}

/* The oldest of those that are over and too many. */
static void drop_old(struct stk_live *l)
{
    size_t over = 0;

    for (size_t i = json_array_size(l->reservations); i-- > 0;) {
        over += is_over(json_array_get(l->reservations, i));
        if (over > MAX_OVER) {
            (void)json_array_remove(l->reservations, i);
            return;
        }
    }
}

int stk_live_reserve_over(struct stk_live *l, const struct stk_event *ev, struct stk_err *err)
{
    json_t *o = find(l, "window", ev->u.unreserve.number);
    const char *why = stk_over_name(ev->u.unreserve.why);
    char line[400];

    if (!o)
        return 0;
    (void)snprintf(
        line, sizeof(line), "reservation.%s name=%.60s id=%lld gpus=%lld%s", why,
        stk_str(o, "name"), (long long)stk_whole(o, "id"), (long long)stk_whole(o, "gpus"),
        ev->u.unreserve.why == STK_OVER_LAPSED ? " why=\"nobody used it in its grace period\""
                                               : "");
    say(l, line);
    set(o, "last",
        json_pack("{s:I,s:I,s:s}", "start", stk_whole(o, "start"), "end",
                  (json_int_t)(stk_live_unnamed(l, ev->at) / STK_SECOND), "why", why));
    set(o, "window", json_integer(0));
    if (!*stk_str(o, "cron") || ev->u.unreserve.why == STK_OVER_REMOVED)
        set(o, "over", json_string(why));
    drop_old(l);
    l->reserve_look = true;
    return stk_live_reserve_keep(l, err);
}

/* ---- requests ---- */

static int refuse(struct stk_live_request *r, int status, const char *code, const char *message)
{
    r->status = status;
    r->answer = stk_live_error(code, message);
    return 0;
}

/* What the schema says, too. */
static int check_form(const json_t *b, struct stk_err *err)
{
    if (!*stk_str(b, "name"))
        return stk_err_set(err, -EBADMSG, "name: 1 to 60 bytes");
    if (json_object_get(b, "nodes") &&
        (stk_whole(b, "gpus") || *stk_str(b, "pool") || *stk_str(b, "gpu_type") ||
         json_array_size(json_object_get(b, "nodes")) == 0))
        return stk_err_set(err, -EBADMSG,
                           "nodes: at least one, and gpus, pool and gpu_type follow from them");
    if (!json_object_get(b, "nodes") &&
        (stk_whole(b, "gpus") < 1 || stk_whole(b, "gpus") > STK_MAX_GPUS))
        return stk_err_set(err, -EBADMSG, "gpus: 1 to %d", STK_MAX_GPUS);
    if (stk_whole(b, "for_s") < 1 || stk_whole(b, "for_s") > 366 * DAY_S)
        return stk_err_set(err, -EBADMSG, "for_s: 1 second to 366 days");
    if (stk_whole(b, "grace_s") < 0 || stk_whole(b, "grace_s") > 366 * DAY_S)
        return stk_err_set(err, -EBADMSG, "grace_s: 0 to 366 days");
    return 0;
}

/* What a reservation has, in its range; the sentence when it has not. */
static int check(const struct stk_live *l, const json_t *b, struct stk_err *err)
{
    struct stk_zone *z;
    struct stk_cron cron;
    size_t open = 0;
    int rc = 0;

    for (size_t i = 0; i < json_array_size(l->reservations); i++)
        open += !is_over(json_array_get(l->reservations, i));
    if (open >= MAX_LIST)
        return stk_err_set(err, -E2BIG, "at most %d reservations", MAX_LIST);
    if (strlen(stk_str(b, "name")) > 60)
        return stk_err_set(err, -EINVAL, "name: 1 to 60 bytes");
    if (stk_live_reservation_id(l, stk_str(b, "name")) != 0)
        return stk_err_set(err, -EEXIST, "there is a reservation \"%.60s\"", stk_str(b, "name"));
    if ((*stk_str(b, "tenant") != 0) + (*stk_str(b, "user") != 0) + (stk_whole(b, "job") != 0) > 1)
        return stk_err_set(err, -EINVAL, "for a tenant, a user or a job, not for several");
    if (*stk_str(b, "cron") && stk_whole(b, "start"))
        return stk_err_set(err, -EINVAL, "start or cron, not both");
    if (!*stk_str(b, "cron") && *stk_str(b, "tz"))
        return stk_err_set(err, -EINVAL, "tz goes with cron");
    if (!*stk_str(b, "cron"))
        return 0;
    z = malloc(sizeof(*z));
    rc = z ? stk_cron_parse(stk_str(b, "cron"), &cron, err) : -ENOMEM;
    rc = rc < 0 ? rc : stk_zones_load(*stk_str(b, "tz") ? stk_str(b, "tz") : "local", z, err);
    free(z);
    return rc;
}

static json_int_t next_id(const struct stk_live *l)
{
    json_int_t id = 0;

    for (size_t i = 0; i < json_array_size(l->reservations); i++) {
        json_int_t at = stk_whole(json_array_get(l->reservations, i), "id");

        id = at > id ? at : id;
    }
    return id + 1;
}

static int refuse_new(struct stk_live_request *r, int rc, const char *why)
{
    switch (rc) {
    case -EBADMSG:
        return refuse(r, 400, "bad_reservation", why);
    case -EBUSY:
        return refuse(r, 409, "overlaps", why);
    case -EEXIST:
    case -E2BIG:
        return refuse(r, 409, "conflict", why);
    default:
        return refuse(r, 422, "unprocessable", why);
    }
}

static int add(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    json_t *o = r->body;
    int64_t now_s = stk_live_wall(l) / STK_SECOND, start = stk_whole(o, "start");
    struct stk_err why = {{0}};
    int rc = check_form(o, &why);

    rc = rc < 0 ? rc : check(l, o, &why);
    if (rc == 0) {
        set(o, "id", json_integer(next_id(l)));
        set(o, "by", json_string(stk_live_user(l, r->who.uid)->name));
        set(o, "window", json_integer(0));
        start = *stk_str(o, "cron") ? next_start(o, now_s) : start ? start : now_s;
        rc = start == INT64_MAX ? stk_err_set(&why, -EINVAL, "cron: no such time comes")
                                : make_window(l, o, start, &why);
    }
    if (rc < 0)
        return refuse_new(r, rc, why.text);
    (void)json_array_append(l->reservations, o);
    r->status = 201;
    r->answer = json_deep_copy(o);
    return stk_live_reserve_keep(l, err);
}

static int take_away(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    json_t *o = find(l, "id", stk_whole(r->body, "id"));
    const struct stk_event ev = {
        .at = l->now,
        .type = STK_EV_UNRESERVE,
        .job = {STK_NONE},
        .u.unreserve = {o ? (uint32_t)stk_whole(o, "window") : 0, STK_OVER_REMOVED}};
    int rc = 0;

    if (!o || is_over(o))
        return refuse(r, 404, "not_found", "there is no such reservation (stoker reserve list)");
    if (ev.u.unreserve.number)
        rc = stk_loop_apply(l->loop, &ev, err);
    if (rc < 0)
        return rc;
    set(o, "over", json_string("removed"));
    set(o, "window", json_integer(0));
    r->status = 200;
    r->answer = json_pack("{s:I}", "deleted", stk_whole(o, "id"));
    return stk_live_reserve_keep(l, err);
}

int stk_live_do_reserve(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    if (r->who.role < STK_ROLE_OPERATOR)
        return refuse(r, 403, "not_allowed", "reservations need the role operator");
    return r->on ? add(l, r, err) : take_away(l, r, err);
}
