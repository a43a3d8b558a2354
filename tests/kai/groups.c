/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - a job's subgroups, from the calls that build them, and the units made of them.
 *
 * The file has them as a constructor, {"$new": F, "args": [..]}, or as a few statements,
 * {"$do": [{"set": v, "to": ..}, {"call": "v.AddPodSet", "args": [..]}, {"return": "@v"}]}.
 */
#include "kai.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SETS 256
#define MAX_DEPTH 8

struct reader {
    struct kai_case *c;
    struct kai_set sets[MAX_SETS];
    uint32_t n;
    struct {
        const char *name;
        uint32_t set;
    } vars[MAX_SETS];
    uint32_t n_vars;
};

static int unknown(struct reader *r, const char *what)
{
    return stk_err_set(&r->c->err, KAI_UNSUPPORTED, "subgroups: %.80s", what);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static int constraint(struct reader *r, const json_t *o, struct kai_set *set)
{
    const char *required = kai_text(o, "RequiredLevel"), *preferred = kai_text(o, "PreferredLevel");

    if (required && *required && !(set->level = kai_level(r->c, required)))
        return unknown(r, "a level that no topology has");
    if (preferred && *preferred && !(set->preferred = kai_level(r->c, preferred)))
        return unknown(r, "a level that no topology has");
    return 0;
}

static int add(struct reader *r, const struct kai_set *set, uint32_t *ret)
{
    if (r->n == MAX_SETS)
        return unknown(r, "more than 256");
    r->sets[r->n] = *set;
    *ret = r->n++;
    return 0;
}

static int make(struct reader *r, const json_t *v, uint32_t *ret)
{
    const char *f = kai_text(v, "$new");
    const json_t *args = json_object_get(v, "args"), *first = json_array_get(args, 0);
    struct kai_set set = {.min = KAI_NONE, .parent = KAI_NONE};
    int rc;

    if (!f)
        return unknown(r, "not a constructor");
    if (ends_with(f, "DefaultSubGroup")) {
        if (!json_is_integer(first) || json_integer_value(first) < 0)
            return unknown(r, "DefaultSubGroup without a number");
        set.name = "";
        rc = add(r, &set, ret);
        set = (struct kai_set){.name = "default", .parent = *ret, .tasks = true};
        set.min = (uint32_t)(json_integer_value(first) & 0xffff);
        return rc < 0 ? rc : add(r, &set, &(uint32_t){0});
    }
    set.name = json_is_string(first) ? json_string_value(first) : "";
    if (ends_with(f, "NewSubGroupSet")) {
        rc = constraint(r, json_array_get(args, 1), &set);
    } else if (ends_with(f, "NewPodSet")) {
        const json_t *min = json_array_get(args, 1);

        set.tasks = true;
        set.min = json_is_integer(min) ? (uint32_t)(json_integer_value(min) & 0xffff) : 1;
        rc = constraint(r, json_array_get(args, 2), &set);
    } else {
        return unknown(r, f);
    }
    return rc < 0 ? rc : add(r, &set, ret);
}

static int value(struct reader *r, const json_t *v, uint32_t *ret)
{
    const char *name = json_string_value(v);

    if (!name)
        return make(r, v, ret);
    for (uint32_t i = r->n_vars; i-- > 0;)
        if (strcmp(r->vars[i].name, name + (*name == '@')) == 0) {
            *ret = r->vars[i].set;
            return 0;
        }
    return unknown(r, "a name that was not set");
}

static int call(struct reader *r, const char *f, const json_t *args)
{
    const char *dot = strchr(f, '.');
    uint32_t on = KAI_NONE, what = KAI_NONE;
    int rc;

    for (uint32_t i = 0; dot && i < r->n_vars; i++)
        if (strlen(r->vars[i].name) == (size_t)(dot - f) &&
            memcmp(r->vars[i].name, f, (size_t)(dot - f)) == 0)
            on = r->vars[i].set;
    if (on == KAI_NONE)
        return unknown(r, f);
    if (strcmp(dot, ".SetMinSubGroup") == 0) {
        r->sets[on].min = (uint32_t)(json_integer_value(json_array_get(args, 0)) & 0xffff);
        return 0;
    }
    if (strcmp(dot, ".AddPodSet") != 0 && strcmp(dot, ".AddSubGroup") != 0)
        return unknown(r, f);
    rc = value(r, json_array_get(args, 0), &what);
    if (rc == 0 && (what == on || r->sets[what].parent != KAI_NONE))
        return unknown(r, "one set is in two others");
    if (rc == 0)
        r->sets[what].parent = on;
    return rc;
}

static int statement(struct reader *r, const json_t *s, uint32_t *root)
{
    const char *set = kai_text(s, "set"), *f = kai_text(s, "call");
    uint32_t what = KAI_NONE;
    int rc;

    if (f)
        return call(r, f, json_object_get(s, "args"));
    if (json_object_get(s, "return"))
        return value(r, json_object_get(s, "return"), root);
    if (!set || r->n_vars == MAX_SETS)
        return unknown(r, "a statement that is neither set, call nor return");
    rc = value(r, json_object_get(s, "to"), &what);
    if (rc < 0)
        return rc;
    r->vars[r->n_vars].name = set;
    r->vars[r->n_vars++].set = what;
    return 0;
}

static bool below(const struct reader *r, uint32_t set, uint32_t root)
{
    for (uint32_t depth = 0; depth < MAX_DEPTH && set != KAI_NONE; depth++) {
        if (set == root)
            return true;
        set = r->sets[set].parent;
    }
    return false;
}

static int keep(struct reader *r, struct kai_job *j, uint32_t root)
{
    uint32_t *at = kai_alloc(&r->c->mem, r->n + 1, sizeof(*at));
    uint32_t n = 0;

    j->groups.sets = kai_alloc(&r->c->mem, r->n, sizeof(*r->sets));
    for (uint32_t i = 0; i < r->n; i++)
        at[i] = below(r, i, root) ? n++ : KAI_NONE;
    for (uint32_t i = 0; i < r->n; i++)
        if (at[i] != KAI_NONE) {
            j->groups.sets[at[i]] = r->sets[i];
            if (r->sets[i].parent != KAI_NONE)
                j->groups.sets[at[i]].parent = at[r->sets[i].parent];
        }
    j->groups.n = n;
    return 0;
}

int kai_read_groups(struct kai_case *c, struct kai_job *j, const json_t *spec)
{
    struct reader *r = kai_alloc(&c->mem, 1, sizeof(*r));
    const json_t *program = json_object_get(spec, "$do"), *s;
    uint32_t root = KAI_NONE;
    size_t i;
    int rc = 0;

    r->c = c;
    if (!json_is_object(spec))
        return 0;
    if (!program) {
        rc = make(r, spec, &root);
        return rc < 0 ? rc : keep(r, j, root);
    }
    json_array_foreach(program, i, s)
    {
        rc = statement(r, s, &root);
        if (rc < 0)
            return rc;
    }
    return root == KAI_NONE ? unknown(r, "nothing is returned") : keep(r, j, root);
}

/* ---- units ---- */

struct maker {
    struct kai_case *c;
    struct kai_job *j;
    uint32_t *core, n_core; /* tasks that must run together */
};

static uint32_t unit_of(struct maker *m, const uint32_t *tasks, uint32_t n, uint32_t leader)
{
    struct kai_unit *u = &m->c->units[m->c->n_units];

    *u = (struct kai_unit){.job = (uint32_t)(m->j - m->c->jobs), .n_tasks = n, .leader = leader};
    u->rank = m->c->n_units - m->j->first_unit;
    u->slot = KAI_NONE;
    u->tasks = kai_alloc(&m->c->mem, n, sizeof(*tasks));
    u->runs = n > 0;
    for (uint32_t i = 0; i < n; i++) {
        u->tasks[i] = tasks[i];
        m->j->tasks[tasks[i]].unit = m->c->n_units;
        u->runs &= m->j->tasks[tasks[i]].state == KAI_RUNNING ||
                   (m->j->deleted && m->j->tasks[tasks[i]].state == KAI_RELEASING);
    }
    m->j->n_units++;
    return m->c->n_units++;
}

static bool in_set(const struct kai_task *t, const struct kai_set *set)
{
    return strcmp(t->subgroup ? t->subgroup : "default", set->name) == 0;
}

/* Tasks of a set, those that run first, then by their own order, then as they stand. */
static uint32_t members(const struct kai_job *j, const struct kai_set *set, uint32_t *ret)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < j->n_tasks; i++)
        if (j->tasks[i].unit == KAI_NONE && (!set || in_set(&j->tasks[i], set)))
            ret[n++] = i;
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0; k--) {
            const struct kai_task *a = &j->tasks[ret[k - 1]], *b = &j->tasks[ret[k]];
            bool ra = a->state == KAI_RUNNING, rb = b->state == KAI_RUNNING;

            if (ra != rb ? ra : a->order >= b->order)
                break;
            uint32_t t = ret[k];
            ret[k] = ret[k - 1];
            ret[k - 1] = t;
        }
    return n;
}

static uint32_t children(const struct kai_groups *g, uint32_t of)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n; i++)
        n += g->sets[i].parent == of;
    return n;
}

/* Whether the set must be there: of each set of sets only the first 'min' must. */
static bool must(const struct kai_groups *g, uint32_t set)
{
    for (uint32_t at = set; g->sets[at].parent != KAI_NONE; at = g->sets[at].parent) {
        const struct kai_set *up = &g->sets[g->sets[at].parent];
        uint32_t before = 0;

        for (uint32_t i = 0; i < at; i++)
            before += g->sets[i].parent == g->sets[at].parent;
        if (up->min != KAI_NONE && before >= up->min)
            return false;
    }
    return true;
}

static void followers(struct maker *m, uint32_t leader)
{
    const struct kai_groups *g = &m->j->groups;
    uint32_t *list = kai_alloc(&m->c->mem, m->j->n_tasks + 1, sizeof(*list));

    for (uint32_t i = 0; i < g->n; i++) { /* sets that need not be there come whole */
        uint32_t n = g->sets[i].tasks && !must(g, i) ? members(m->j, &g->sets[i], list) : 0;

        if (n > 0 && g->sets[i].min > 0)
            (void)unit_of(m, list, n < g->sets[i].min ? n : g->sets[i].min, leader);
    }
    while (members(m->j, NULL, list) > 0)
        (void)unit_of(m, list, 1, leader);
}

static void units_of(struct kai_case *c, struct kai_job *j)
{
    struct maker m = {.c = c, .j = j};
    const struct kai_groups *g = &j->groups;
    uint32_t *list = kai_alloc(&c->mem, j->n_tasks + 1, sizeof(*list));
    bool any = false;

    m.core = kai_alloc(&c->mem, j->n_tasks + 1, sizeof(*list));
    j->first_unit = c->n_units;
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t n = g->sets[i].tasks && must(g, i) ? members(j, &g->sets[i], list) : 0;

        any |= g->sets[i].tasks;
        for (uint32_t k = 0; k < n && k < g->sets[i].min; k++)
            m.core[m.n_core++] = list[k];
    }
    if (!any || children(g, 0) == 0)
        m.n_core = members(j, NULL, m.core);
    if (m.n_core == 0 && j->n_tasks > 0)
        m.n_core = members(j, NULL, m.core) > 0; /* nothing must run: the first leads */
    if (m.n_core > 0)
        followers(&m, unit_of(&m, m.core, m.n_core, KAI_NONE));
    for (uint32_t i = j->first_unit + 1; i < c->n_units; i++) /* nobody follows who does not run */
        c->units[i].runs &= c->units[j->first_unit].runs;
}

void kai_make_units(struct kai_case *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_jobs; i++)
        n += c->jobs[i].n_tasks + 1;
    c->units = kai_alloc(&c->mem, n, sizeof(*c->units));
    for (uint32_t i = 0; i < c->n_jobs; i++)
        units_of(c, &c->jobs[i]);
}
