/* SPDX-License-Identifier: Apache-2.0 */
/* allow.c - what users who are no operators may ask for: "allow:" of queues and of tenants.
 *
 *     queues:
 *       urgent: {tier: critical, allow: {users: [ann, "@oncall"]}, user: {gpus: 2}}
 *       express: {allow: {preempt: yes}}
 *     tenants:
 *       - {name: students, users: ["@students"], allow: {tiers: [best-effort]}}
 *       - {name: serving, users: [web], allow: {classes: [batch, 2000], preempt: yes}}
 *
 * What a queue says counts before what the tenant says, and that before what holds when nothing is
 * said: tiers best-effort and standard, priorities up to the highest class, no preemption by class.
 * A tenant that says nothing has what the tenant above it has. See docs/spec/rights.md.
 */
#include <stdlib.h>
#include <string.h>

#include "teams/read.h"

#define PLAIN_TIERS (1u << STK_TIER_BEST_EFFORT | 1u << STK_TIER_STANDARD)
#define MAX_ALLOWED_USERS 4096u
#define ROLE "role:"

/* ---- reading ---- */

static int read_tiers(const struct stk_teams_reader *r, struct fy_node *list, uint8_t *ret)
{
    struct fy_node *n;
    void *it = NULL;
    int rc = 0;

    if (!fy_node_is_sequence(list) || fy_node_is_alias(list) || fy_node_sequence_is_empty(list))
        return stk_teams_bad(r, list, "tiers must be a list such as [best-effort, standard]");
    while (rc == 0 && (n = fy_node_sequence_iterate(list, &it))) {
        enum stk_tier tier = STK_TIER_STANDARD;

        rc = stk_teams_tier(r, n, &tier);
        *ret = (uint8_t)(*ret | 1u << tier);
    }
    return rc;
}

static int read_yes(const struct stk_teams_reader *r, struct fy_node *v, bool *ret)
{
    static const char *const words[] = {"yes", "true", "on", "no", "false", "off"};

    for (size_t i = 0; i < 6; i++)
        if (stk_teams_is(v, words[i])) {
            *ret = i < 3;
            return 0;
        }
    return stk_teams_bad(r, v, "preempt is yes or no, got \"%s\"", stk_teams_show(v).text);
}

static int read_user(const struct stk_teams_reader *r, struct fy_node *v, struct stk_allow *ret)
{
    size_t len;
    const char *name = stk_teams_word(v, &len);
    uint32_t *users;
    int64_t user;

    if (len == 0 || len > STK_MAX_NAME_LEN || (len == 1 && name[0] == '@'))
        return stk_teams_bad(r, v,
                             "expected a user, a group such as \"@staff\", or role:user, "
                             "role:operator or role:admin");
    if (len >= strlen(ROLE) && memcmp(name, ROLE, strlen(ROLE)) == 0 &&
        !stk_teams_is(v, ROLE "user") && !stk_teams_is(v, ROLE "operator") &&
        !stk_teams_is(v, ROLE "admin"))
        return stk_teams_bad(r, v, "a role is role:user, role:operator or role:admin, got \"%s\"",
                             stk_teams_show(v).text);
    if (ret->n_users >= MAX_ALLOWED_USERS)
        return stk_teams_bad(r, v, "a queue has more than %u users", MAX_ALLOWED_USERS);
    user = stk_names_add(&r->t->users, name, len, STK_MAX_MEMBERS);
    if (user < 0)
        return stk_teams_no_memory(r);
    users = realloc(ret->users, ((size_t)ret->n_users + 1) * sizeof(*users));
    if (!users)
        return stk_teams_no_memory(r);
    ret->users = users;
    ret->users[ret->n_users++] = (uint32_t)user;
    return 0;
}

static int read_users(const struct stk_teams_reader *r, struct fy_node *list, struct stk_allow *ret)
{
    struct fy_node *n;
    void *it = NULL;
    int rc = 0;

    if (!fy_node_is_sequence(list) || fy_node_is_alias(list))
        return stk_teams_bad(r, list, "users must be a list such as [ann, \"@oncall\"]");
    ret->has_users = true;
    while (rc == 0 && (n = fy_node_sequence_iterate(list, &it)))
        rc = read_user(r, n, ret);
    return rc;
}

int stk_teams_allow(const struct stk_teams_reader *r, struct fy_node *map, bool of_queue,
                    struct stk_allow *ret)
{
    struct stk_teams_field f[] = {
        {"tiers", NULL}, {"preempt", NULL}, {of_queue ? "users" : "classes", NULL}, {NULL, NULL}};
    int rc = stk_teams_fields(r, map, "allow", f);

    stk_teams_allow_done(ret);
    if (rc == 0 && f[0].value)
        rc = read_tiers(r, f[0].value, &ret->tiers);
    if (rc == 0 && f[1].value) {
        ret->has_preempt = true;
        rc = read_yes(r, f[1].value, &ret->preempt);
    }
    if (rc == 0 && f[2].value && of_queue)
        rc = read_users(r, f[2].value, ret);
    if (rc == 0 && f[2].value && !of_queue) {
        ret->has_classes = true;
        rc = stk_teams_range(r, f[2].value, &ret->lowest, &ret->most);
    }
    return rc;
}

void stk_teams_allow_done(struct stk_allow *a)
{
    free(a->users);
    memset(a, 0, sizeof(*a));
    a->users = NULL;
}

/* ---- asking ---- */

/* The highest priority that has a name: of a class or a queue. */
static int32_t highest_named(const struct stk_teams *t)
{
    int32_t most = -STK_MAX_PRIORITY;

    for (uint32_t i = 0; i < t->n_classes; i++)
        most = t->classes[i].priority > most ? t->classes[i].priority : most;
    for (uint32_t i = 0; i < t->n_queues; i++)
        most = t->queues[i].priority > most ? t->queues[i].priority : most;
    return most;
}

static int32_t highest_built_in(void)
{
    int32_t most = -STK_MAX_PRIORITY;

    for (uint32_t i = 0; i < stk_n_default_queues; i++)
        most = stk_default_queues[i].priority > most ? stk_default_queues[i].priority : most;
    return most;
}

/* Each key from the nearest tenant that says it, from this one up. */
static void ask_tenants(const struct stk_teams *t, uint32_t tenant, struct stk_rights *ret)
{
    bool tiers = false, classes = false, preempt = false;

    for (uint32_t at = tenant; at < t->n_tenants; at = t->tenants[at].parent) {
        const struct stk_allow *a = &t->tenant_allow[at];

        if (a->tiers && !tiers) {
            tiers = true;
            ret->tiers = a->tiers;
            ret->tiers_of = "tenant";
            ret->tiers_tenant = at;
        }
        if (a->has_classes && !classes) {
            classes = true;
            ret->lowest = a->lowest;
            ret->most = a->most;
            ret->classes_of = "tenant";
            ret->classes_tenant = at;
        }
        if (a->has_preempt && !preempt) {
            preempt = true;
            ret->preempt = a->preempt;
        }
    }
}

static bool lists_user(const struct stk_teams *t, const struct stk_allow *a,
                       const struct stk_user *u)
{
    for (uint32_t i = 0; i < a->n_users; i++) {
        const char *name = stk_names_get(&t->users, a->users[i]);

        if (strcmp(name, ROLE "user") == 0 || stk_teams_is_user(u, name))
            return true;
    }
    return false;
}

static void ask_queue(const struct stk_teams *t, const struct stk_user *u, uint32_t queue,
                      struct stk_rights *ret)
{
    const struct stk_allow *a = &t->queue_allow[queue];

    if (a->has_users)
        ret->queue = lists_user(t, a, u);
    if (a->tiers || a->has_users) {
        /* Who is listed may have the tier that the queue gives. */
        ret->tiers = a->tiers ? a->tiers : ret->tiers | 1u << t->queues[queue].tier;
        ret->tiers_of = "queue";
    }
    if (a->has_preempt)
        ret->preempt = a->preempt;
}

struct stk_rights stk_teams_rights(const struct stk_teams *t, const struct stk_user *u,
                                   uint32_t tenant, uint32_t queue)
{
    struct stk_rights r = {.queue = true,
                           .tiers = PLAIN_TIERS,
                           .lowest = -STK_MAX_PRIORITY,
                           .most = t && t->n_queues > 0 ? highest_named(t) : highest_built_in(),
                           .tiers_of = "",
                           .classes_of = ""};

    if (t && t->n_tenants > 0)
        ask_tenants(t, tenant, &r);
    if (t && queue < t->n_queues)
        ask_queue(t, u, queue, &r);
    return r;
}
