/* SPDX-License-Identifier: Apache-2.0 */
#include "alert/alert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct stk_alert_about stk_alert_table[STK_ALERT_MAX] = {
    [STK_ALERT_IDLE] = {"idle_allocation", "warning", "seconds",
                        "a job has GPUs and has done nothing for so long"},
    [STK_ALERT_WAIT] = {"waiting_over_target", "warning", "seconds", "a job has waited for longer"},
    [STK_ALERT_GPU] = {"gpu_unhealthy", "critical", "", "a GPU is out of use for an error"},
    [STK_ALERT_FOREIGN] = {"foreign_process", "warning", "seconds",
                           "a process that is none of our jobs' has been on a GPU for so long"},
    [STK_ALERT_PREEMPTIONS] = {"preemption_spike", "warning", "jobs",
                               "more jobs had to give way within ten minutes"},
    [STK_ALERT_QUOTA] = {"quota_exhausted", "warning", "seconds",
                         "a tenant is at its limit and has waited for more for so long"},
    [STK_ALERT_STORE] = {"store_trouble", "critical", "seconds",
                         "nothing can be written down, for so long"},
    [STK_ALERT_CLOCK] = {"clock_behind", "warning", "seconds",
                         "the machine's clock is behind stoker's time by more"},
};

void stk_alerts_done(struct stk_alerts *a)
{
    free(a->list);
    *a = (struct stk_alerts){0};
}

static struct stk_alert *find(const struct stk_alerts *a, enum stk_alert_kind kind, const char *of)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->list[i].kind == kind && a->list[i].resolved == 0 && strcmp(a->list[i].of, of) == 0)
            return &a->list[i];
    return NULL;
}

stk_time stk_alerts_since(const struct stk_alerts *a, enum stk_alert_kind kind, const char *of)
{
    const struct stk_alert *x = find(a, kind, of);

    return x && x->fired != 0 ? x->since : 0;
}

static struct stk_alert *add(struct stk_alerts *a)
{
    if (a->n == STK_ALERTS_MAX)
        return NULL;
    if (a->n == a->cap) {
        uint32_t cap = a->cap ? 2 * a->cap : 16;
        struct stk_alert *more = realloc(a->list, cap * sizeof(*more));

        if (!more)
            return NULL;
        a->list = more;
        a->cap = cap;
    }
    a->list[a->n] = (struct stk_alert){.id = ++a->next_id, .gpu = -1};
    return &a->list[a->n++];
}

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from ? from : "");
}

void stk_alerts_skip(struct stk_alerts *a, stk_time by)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->list[i].resolved)
            continue;
        a->list[i].since += by;
        a->list[i].seen += by;
        a->list[i].fired += a->list[i].fired ? by : 0;
        a->changed = true;
    }
}

void stk_alerts_see(struct stk_alerts *a, const struct stk_alert_seen *s, stk_time now)
{
    struct stk_alert *x = find(a, s->kind, s->of);

    if (!x) {
        x = add(a);
        if (!x)
            return;
        x->kind = s->kind;
        x->since = s->since && s->since < now ? s->since : now;
        copy(x->of, sizeof(x->of), s->of);
    }
    a->changed = a->changed || (x->fired && x->job != s->job);
    a->reworded = a->reworded || (x->fired && strcmp(x->text, s->text) != 0);
    copy(x->text, sizeof(x->text), s->text);
    copy(x->node, sizeof(x->node), s->node);
    copy(x->tenant, sizeof(x->tenant), s->tenant);
    x->job = s->job;
    x->gpu = s->gpu;
    x->seen = now;
}

static bool step(struct stk_alerts *a, struct stk_alert *x, const struct stk_alert_rule *r,
                 stk_time calm, stk_time now)
{
    bool holds = r->on && now - x->seen < calm;

    (void)a;
    if (x->resolved)
        return false;
    if (!x->fired && x->seen == now && r->on && now - x->since >= r->hold) {
        x->fired = now;
        return true;
    }
    if (x->fired && !holds) {
        x->resolved = now;
        return true;
    }
    return false;
}

/* Nothing more is to be done with it, or shown. */
static bool is_over(const struct stk_alert *x, stk_time calm, stk_time now)
{
    if (!x->fired)
        return now - x->seen >= calm;
    return x->resolved && x->told_end && !x->sending && now - x->resolved > STK_ALERT_SHOWN;
}

uint32_t stk_alerts_look(struct stk_alerts *a, const struct stk_alert_rule rules[STK_ALERT_MAX],
                         stk_time calm, stk_time now)
{
    uint32_t n = 0, changes = 0;

    for (uint32_t i = 0; i < a->n; i++)
        changes += step(a, &a->list[i], &rules[a->list[i].kind], calm, now);
    for (uint32_t i = 0; i < a->n; i++) {
        if (is_over(&a->list[i], calm, now)) {
            changes += a->list[i].fired != 0;
            continue;
        }
        if (n != i)
            a->list[n] = a->list[i];
        n++;
    }
    a->n = n;
    a->changed = a->changed || changes > 0;
    return changes;
}

/* ---- telling ---- */

static bool untold(const struct stk_alert *x)
{
    return x->fired && (!x->told || (x->resolved && !x->told_end));
}

bool stk_alerts_untold(const struct stk_alerts *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (untold(&a->list[i]))
            return true;
    return false;
}

json_t *stk_alerts_send(struct stk_alerts *a)
{
    json_t *list = NULL;

    for (uint32_t i = 0; i < a->n; i++) {
        struct stk_alert *x = &a->list[i];

        if (!untold(x))
            continue;
        if (!list)
            list = json_array();
        (void)json_array_append_new(list, stk_alert_show(x));
        x->sending = true;
        x->told = true;
        x->told_end = x->resolved != 0; /* one that came and went is one message */
        a->changed = true;
    }
    return list;
}

void stk_alerts_sent(struct stk_alerts *a, bool well)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct stk_alert *x = &a->list[i];

        if (x->sending && !well) {
            x->told = x->told && x->resolved && x->told_end ? x->told : false;
            x->told_end = false;
            a->changed = true;
        }
        x->sending = false;
    }
}

/* ---- JSON ---- */

static json_t *time_of(stk_time t)
{
    return t ? json_real((double)t / 1e6) : json_null();
}

json_t *stk_alert_show(const struct stk_alert *x)
{
    const struct stk_alert_about *t = &stk_alert_table[x->kind];

    return json_pack("{s:I,s:s,s:s,s:s,s:s,s:o,s:o,s:s,s:o,s:o,s:o,s:o}", "id", (json_int_t)x->id,
                     "kind", t->name, "of", x->of, "state", x->resolved ? "resolved" : "firing",
                     "severity", t->severity, "since", time_of(x->since), "resolved",
                     time_of(x->resolved), "text", x->text, "job",
                     x->job ? json_integer(x->job) : json_null(), "node",
                     x->node[0] ? json_string(x->node) : json_null(), "gpu",
                     x->gpu >= 0 ? json_integer(x->gpu) : json_null(), "tenant",
                     x->tenant[0] ? json_string(x->tenant) : json_null());
}

json_t *stk_alerts_show(const struct stk_alerts *a)
{
    json_t *list = json_array();

    for (int over = 0; over < 2; over++)
        for (uint32_t i = 0; i < a->n; i++)
            if (a->list[i].fired && (a->list[i].resolved != 0) == over)
                (void)json_array_append_new(list, stk_alert_show(&a->list[i]));
    return list;
}

json_t *stk_alerts_save(const struct stk_alerts *a)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < a->n; i++) {
        const struct stk_alert *x = &a->list[i];

        if (x->fired)
            (void)json_array_append_new(
                list, json_pack("{s:i,s:s,s:s,s:s,s:s,s:I,s:i,s:I,s:I,s:I,s:I,s:b,s:b}", "kind",
                                (int)x->kind, "of", x->of, "text", x->text, "node", x->node,
                                "tenant", x->tenant, "job", (json_int_t)x->job, "gpu", x->gpu, "id",
                                (json_int_t)x->id, "since", (json_int_t)x->since, "fired",
                                (json_int_t)x->fired, "resolved", (json_int_t)x->resolved, "told",
                                (int)x->told, "told_end", (int)x->told_end));
    }
    return json_pack("{s:I,s:o}", "next", (json_int_t)a->next_id, "alerts", list);
}

static void load_one(struct stk_alerts *a, json_t *o, stk_time now)
{
    const char *of, *text, *node, *tenant;
    json_int_t job, id, since, fired, resolved;
    int kind, gpu, told, told_end;
    struct stk_alert *x;

    if (json_unpack(o, "{s:i,s:s,s:s,s:s,s:s,s:I,s:i,s:I,s:I,s:I,s:I,s:b,s:b}", "kind", &kind, "of",
                    &of, "text", &text, "node", &node, "tenant", &tenant, "job", &job, "gpu", &gpu,
                    "id", &id, "since", &since, "fired", &fired, "resolved", &resolved, "told",
                    &told, "told_end", &told_end) < 0 ||
        kind < 0 || kind >= STK_ALERT_MAX || fired <= 0 || fired > now || since > now ||
        resolved < 0 || job < 0 || job > UINT32_MAX || id <= 0)
        return;
    x = add(a);
    if (!x)
        return;
    x->kind = (enum stk_alert_kind)kind;
    copy(x->of, sizeof(x->of), of);
    copy(x->text, sizeof(x->text), text);
    copy(x->node, sizeof(x->node), node);
    copy(x->tenant, sizeof(x->tenant), tenant);
    x->job = (uint32_t)job;
    x->gpu = gpu;
    x->id = (uint64_t)id;
    x->since = since;
    x->seen = now; /* it has a while to be seen again */
    x->fired = fired;
    x->resolved = resolved;
    x->told = told;
    x->told_end = told_end;
}

void stk_alerts_load(struct stk_alerts *a, const json_t *saved, stk_time now)
{
    json_t *list = json_object_get(saved, "alerts"), *o;
    json_int_t next = json_integer_value(json_object_get(saved, "next"));
    size_t i;

    json_array_foreach(list, i, o)
    {
        load_one(a, o, now);
    }
    a->next_id = next > 0 ? (uint64_t)next : 0;
    for (uint32_t k = 0; k < a->n; k++)
        a->next_id = a->list[k].id > a->next_id ? a->list[k].id : a->next_id;
    a->changed = false;
}
