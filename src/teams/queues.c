/* SPDX-License-Identifier: Apache-2.0 */
/* queues.c - queues and classes: mappings by name. What is built in stays as it is but for what the
 * file says of it; a queue that is off is not there. */
#include <stdio.h>
#include <string.h>

#include "teams/read.h"

static bool name_ok(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= 'A' && s[i] <= 'Z') &&
            !(s[i] >= '0' && s[i] <= '9') && s[i] != '_' && s[i] != '-' && s[i] != '.')
            return false;
    return len > 0 && len < STK_MAX_QUEUE_NAME;
}

/* The name, kept. */
static int keep(const struct stk_teams_reader *r, struct fy_node *at, const char **ret)
{
    struct stk_teams *t = r->t;
    size_t len;
    const char *s = stk_teams_word(at, &len);

    if (!name_ok(s, len))
        return stk_teams_bad(r, at, "a name is 1 to %d letters, digits, _ - or ., got \"%s\"",
                             STK_MAX_QUEUE_NAME - 1, stk_teams_show(at).text);
    if (t->n_words == STK_TEAMS_WORDS)
        return stk_teams_bad(r, at, "there are more than %d queues and classes", STK_TEAMS_WORDS);
    t->words[t->n_words] = strndup(s, len);
    if (!t->words[t->n_words])
        return stk_teams_no_memory(r);
    *ret = t->words[t->n_words++];
    return 0;
}

static bool read_whole(const char *s, size_t len, int64_t *ret)
{
    bool minus = len > 0 && s[0] == '-';
    int64_t v = 0;
    size_t i = minus;

    for (; i < len && s[i] >= '0' && s[i] <= '9' && v <= STK_MAX_PRIORITY; i++)
        v = v * 10 + (s[i] - '0');
    *ret = minus ? -v : v;
    return len > minus && i == len && v <= STK_MAX_PRIORITY;
}

/* ---- classes ---- */

static uint32_t find_class(const struct stk_teams *t, const char *s, size_t len)
{
    uint32_t i = 0;

    while (i < t->n_classes &&
           (strlen(t->classes[i].name) != len || memcmp(t->classes[i].name, s, len) != 0))
        i++;
    return i;
}

static int read_class(const struct stk_teams_reader *r, struct fy_node *key, struct fy_node *value)
{
    struct stk_teams *t = r->t;
    size_t len, value_len;
    const char *name = stk_teams_word(key, &len), *s = stk_teams_word(value, &value_len);
    uint32_t at = find_class(t, name, len);
    const char *word = NULL;
    int64_t priority;
    int rc = keep(r, key, &word);

    if (rc < 0)
        return rc;
    if (read_whole(name, len, &priority))
        return stk_teams_bad(r, key, "a class has a name that is no number, got \"%s\"",
                             stk_teams_show(key).text);
    if (!read_whole(s, value_len, &priority))
        return stk_teams_bad(r, value ? value : key,
                             "a class is a priority (-%d to %d), got \"%s\"", STK_MAX_PRIORITY,
                             STK_MAX_PRIORITY, stk_teams_show(value).text);
    if (at == STK_MAX_CLASSES)
        return stk_teams_bad(r, key, "there are more than %d classes", STK_MAX_CLASSES);
    if (at == t->n_classes)
        t->classes[t->n_classes++].name = word;
    t->classes[at].priority = (int32_t)priority;
    return 0;
}

int stk_teams_classes(const struct stk_teams_reader *r, struct fy_node *map)
{
    struct stk_teams *t = r->t;
    struct fy_node_pair *pair;
    void *it = NULL;
    int rc = 0;

    for (t->n_classes = 0; t->n_classes < stk_n_default_classes; t->n_classes++)
        t->classes[t->n_classes] = stk_default_classes[t->n_classes];
    if (!map)
        return 0;
    if (!fy_node_is_mapping(map) || fy_node_is_alias(map))
        return stk_teams_bad(r, map, "classes must be a mapping such as {inference: 1000}");
    while (rc == 0 && (pair = fy_node_mapping_iterate(map, &it)))
        rc = read_class(r, fy_node_pair_key(pair), fy_node_pair_value(pair));
    return rc;
}

/* ---- one queue ---- */

/* A class, or a number. */
static int read_priority(const struct stk_teams_reader *r, struct fy_node *v, int32_t *ret)
{
    struct stk_teams *t = r->t;
    char names[160] = "";
    size_t len, used = 0;
    const char *s = stk_teams_word(v, &len);
    uint32_t at = find_class(t, s, len);
    int64_t number;

    if (at < t->n_classes) {
        *ret = t->classes[at].priority;
        return 0;
    }
    if (read_whole(s, len, &number)) {
        *ret = (int32_t)number;
        return 0;
    }
    for (uint32_t i = 0; i < t->n_classes && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                 t->classes[i].name);
    return stk_teams_bad(r, v, "there is no class \"%s\"; there are: %s; or say a priority",
                         stk_teams_show(v).text, names);
}

int stk_teams_range(const struct stk_teams_reader *r, struct fy_node *list, int32_t *ret_lowest,
                    int32_t *ret_most)
{
    int rc;

    if (!fy_node_is_sequence(list) || fy_node_is_alias(list) ||
        fy_node_sequence_item_count(list) != 2)
        return stk_teams_bad(r, list,
                             "classes must be the lowest and the highest: [batch, "
                             "training]");
    rc = read_priority(r, fy_node_sequence_get_by_index(list, 0), ret_lowest);
    rc = rc < 0 ? rc : read_priority(r, fy_node_sequence_get_by_index(list, 1), ret_most);
    if (rc == 0 && *ret_lowest > *ret_most)
        return stk_teams_bad(r, list, "the lowest class, %d, is above the highest, %d", *ret_lowest,
                             *ret_most);
    return rc;
}

int stk_teams_tier(const struct stk_teams_reader *r, struct fy_node *v, enum stk_tier *ret)
{
    for (int i = 0; i < STK_TIER_MAX; i++)
        if (stk_teams_is(v, stk_tier_name((enum stk_tier)i))) {
            *ret = (enum stk_tier)i;
            return 0;
        }
    return stk_teams_bad(r, v, "a tier is best-effort, standard or critical, got \"%s\"",
                         stk_teams_show(v).text);
}

/* "90", "90s", "30m", "12h", "7d", "2w" */
static int read_time(const struct stk_teams_reader *r, struct fy_node *v, stk_time *ret)
{
    static const char units[] = "smhdw";
    static const int64_t scale[] = {1, 60, 3600, 86400, 604800};
    size_t len;
    const char *s = stk_teams_word(v, &len);
    const char *unit = len > 1 ? strchr(units, s[len - 1]) : NULL;
    int64_t n;

    if (read_whole(s, unit ? len - 1 : len, &n) && n > 0 &&
        n <= STK_MAX_DURATION / STK_SECOND / (unit ? scale[unit - units] : 1)) {
        *ret = n * (unit ? scale[unit - units] : 1) * STK_SECOND;
        return 0;
    }
    return stk_teams_bad(r, v,
                         "a time is a number of seconds, or such as 30m, 12h or 7d, got \"%s\"",
                         stk_teams_show(v).text);
}

static int read_job(const struct stk_teams_reader *r, struct fy_node *map, struct stk_queue_spec *q)
{
    struct stk_teams_field f[] = {{"gpus", NULL}, {"time", NULL}, {NULL, NULL}};
    int rc = stk_teams_fields(r, map, "job", f);

    if (rc == 0 && f[0].value)
        rc = stk_teams_milli(r, "gpus is " STK_TEAMS_GPUS, f[0].value, STK_TEAMS_MAX_GPUS,
                             &q->job_milli);
    if (rc == 0 && f[1].value)
        rc = read_time(r, f[1].value, &q->job_time);
    return rc;
}

static int read_limit(const struct stk_teams_reader *r, struct fy_node *map, const char *of,
                      struct stk_queue_limit *l)
{
    struct stk_teams_field f[] = {{"gpus", NULL}, {"jobs", NULL}, {NULL, NULL}};
    int rc = stk_teams_fields(r, map, of, f);
    size_t len;
    const char *s;
    int64_t jobs;

    if (rc == 0 && f[0].value)
        rc = stk_teams_milli(r, "a limit is " STK_TEAMS_GPUS, f[0].value, STK_TEAMS_MAX_GPUS,
                             &l->milli);
    if (rc < 0 || !f[1].value)
        return rc;
    s = stk_teams_word(f[1].value, &len);
    if (!read_whole(s, len, &jobs) || jobs < 0)
        return stk_teams_bad(r, f[1].value, "jobs is how many may run at a time, got \"%s\"",
                             stk_teams_show(f[1].value).text);
    l->jobs = (uint32_t)jobs;
    return 0;
}

enum { CLASS, CLASSES, TIER, POOL, JOB, USER, TENANT, ALL, WAS, ALLOW, N_FIELDS };

static int read_values(const struct stk_teams_reader *r, const struct stk_teams_field *f,
                       struct stk_queue_spec *q)
{
    static const int of[] = {[USER] = STK_OF_USER, [TENANT] = STK_OF_TENANT, [ALL] = STK_OF_QUEUE};
    uint32_t pool;
    int rc = 0;

    if (f[WAS].value)
        rc = keep(r, f[WAS].value, &q->was);
    if (rc == 0 && f[CLASS].value)
        rc = read_priority(r, f[CLASS].value, &q->priority);
    if (rc == 0 && f[CLASSES].value)
        rc = stk_teams_range(r, f[CLASSES].value, &q->lowest, &q->most);
    if (rc == 0 && f[TIER].value)
        rc = stk_teams_tier(r, f[TIER].value, &q->tier);
    if (rc == 0 && f[JOB].value)
        rc = read_job(r, f[JOB].value, q);
    for (int i = USER; i <= ALL && rc == 0; i++)
        if (f[i].value)
            rc = read_limit(r, f[i].value, f[i].key, &q->limit[of[i]]);
    if (rc == 0 && f[POOL].value) {
        rc = stk_teams_name(r, &r->t->pools, r->t->pool_line, STK_MAX_QUEUES, f[POOL].value, &pool);
        q->pool = rc == 0 ? pool + 1 : 0;
    }
    return rc;
}

/* ---- all queues ---- */

/* The class that a built in queue's priority is that of, at its present value. */
static int32_t present(const struct stk_teams *t, int32_t priority)
{
    for (uint32_t i = 0; i < stk_n_default_classes; i++)
        if (stk_default_classes[i].priority == priority)
            return t->classes[i].priority;
    return priority;
}

/* Takes the queue out of the table. */
static void take_out(struct stk_teams *t, uint32_t at)
{
    const uint32_t behind = t->n_queues - at - 1;

    memmove(&t->queues[at], &t->queues[at + 1], behind * sizeof(t->queues[0]));
    memmove(&t->queue_allow[at], &t->queue_allow[at + 1], behind * sizeof(t->queue_allow[0]));
    t->n_queues--;
    t->queue_allow[t->n_queues] = (struct stk_allow){0};
}

/* The queue with this name; a new one has no limits. */
static int find_queue(const struct stk_teams_reader *r, struct fy_node *key, uint32_t *ret)
{
    struct stk_teams *t = r->t;
    const char *name = NULL;
    uint32_t at;
    int rc = keep(r, key, &name);

    if (rc < 0)
        return rc;
    at = stk_queue_find(t->queues, t->n_queues, name);
    if (at != STK_NONE && strcmp(t->queues[at].name, name) != 0)
        at = STK_NONE; /* one that had this name before */
    if (at == STK_NONE && t->n_queues == STK_MAX_QUEUES)
        return stk_teams_bad(r, key, "there are more than %d queues", STK_MAX_QUEUES);
    if (at == STK_NONE) {
        at = t->n_queues++;
        t->queues[at] = stk_default_queues[0];
        t->queues[at].priority = present(t, stk_default_queues[0].priority);
        t->queues[at].name = name;
    }
    *ret = at;
    return 0;
}

static int read_queue(const struct stk_teams_reader *r, struct fy_node *key, struct fy_node *value)
{
    struct stk_teams_field f[N_FIELDS + 1] = {
        [WAS] = {"was", NULL},    [CLASS] = {"class", NULL},   [CLASSES] = {"classes", NULL},
        [TIER] = {"tier", NULL},  [POOL] = {"pool", NULL},     [JOB] = {"job", NULL},
        [USER] = {"user", NULL},  [TENANT] = {"tenant", NULL}, [ALL] = {"all", NULL},
        [ALLOW] = {"allow", NULL}};
    struct stk_queue_spec *q;
    uint32_t at = 0;
    int rc = find_queue(r, key, &at);

    if (rc < 0)
        return rc;
    if (stk_teams_is(value, "off") || stk_teams_is(value, "no") || stk_teams_is(value, "false")) {
        stk_teams_allow_done(&r->t->queue_allow[at]);
        take_out(r->t, at);
        return 0;
    }
    q = &r->t->queues[at];
    q->line = stk_yaml_line_of(key);
    rc = stk_teams_fields(r, value ? value : key, "a queue", f);
    rc = rc < 0 ? rc : read_values(r, f, q);
    if (rc == 0 && f[ALLOW].value)
        rc = stk_teams_allow(r, f[ALLOW].value, true, &r->t->queue_allow[at]);
    if (rc < 0)
        return rc;
    if (f[CLASSES].value && !f[CLASS].value) /* its usual priority, as near as may be */
        q->priority = q->priority < q->lowest ? q->lowest
                      : q->priority > q->most ? q->most
                                              : q->priority;
    if (q->priority < q->lowest || q->priority > q->most)
        return stk_teams_bad(r, key, "class %d is not within classes %d to %d", q->priority,
                             q->lowest, q->most);
    return 0;
}

/* When all have been read: what a queue was before, no other may be now, or have been. */
static int check_was(const struct stk_teams_reader *r)
{
    const struct stk_teams *t = r->t;

    for (uint32_t i = 0; i < t->n_queues; i++) {
        const struct stk_queue_spec *q = &t->queues[i];
        uint32_t at = q->was ? stk_queue_find(t->queues, t->n_queues, q->was) : i;

        if (at != i)
            return stk_err_set(
                r->err, -EINVAL, "%s:%d: was: queue \"%s\" is %s", r->name, q->line, q->was,
                strcmp(t->queues[at].name, q->was) == 0 ? "still there; turn it off"
                                                        : "said of another queue, too");
    }
    return 0;
}

int stk_teams_queues(const struct stk_teams_reader *r, struct fy_node *map)
{
    struct stk_teams *t = r->t;
    struct fy_node_pair *pair;
    void *it = NULL;
    int rc = 0;

    for (t->n_queues = 0; t->n_queues < stk_n_default_queues; t->n_queues++) {
        t->queues[t->n_queues] = stk_default_queues[t->n_queues];
        t->queues[t->n_queues].priority = present(t, stk_default_queues[t->n_queues].priority);
    }
    if (!map)
        return 0;
    if (!fy_node_is_mapping(map) || fy_node_is_alias(map))
        return stk_teams_bad(r, map,
                             "queues must be a mapping such as {express: {user: {gpus: 2}}}");
    while (rc == 0 && (pair = fy_node_mapping_iterate(map, &it)))
        rc = read_queue(r, fy_node_pair_key(pair), fy_node_pair_value(pair));
    if (rc == 0 && t->n_queues == 0)
        rc = stk_teams_bad(r, map, "all queues are off; jobs need one");
    return rc < 0 ? rc : check_was(r);
}

int stk_teams_default(const struct stk_teams_reader *r, struct fy_node *name)
{
    struct stk_teams *t = r->t;
    struct stk_queue_spec q;
    struct stk_allow allow;
    uint32_t at;

    if (!name)
        return 0;
    for (at = 0; at < t->n_queues && !stk_teams_is(name, t->queues[at].name);)
        at++;
    if (at == t->n_queues)
        return stk_teams_bad(r, name, "default_queue: there is no queue \"%s\"",
                             stk_teams_show(name).text);
    q = t->queues[at];
    allow = t->queue_allow[at];
    take_out(t, at);
    memmove(&t->queues[1], &t->queues[0], t->n_queues * sizeof(q));
    memmove(&t->queue_allow[1], &t->queue_allow[0], t->n_queues * sizeof(allow));
    t->queues[0] = q;
    t->queue_allow[0] = allow;
    t->n_queues++;
    return 0;
}
