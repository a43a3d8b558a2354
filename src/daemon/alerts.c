/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c - what people should know of. After every look of the sampler the conditions are looked
 * at; what begins or ends is shown by the API, told to those who listen to events, and sent. What
 * was said is kept in the store before it is sent. The same rules for Prometheus are in
 * contrib/prometheus. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alert/alert.h"
#include "api/say.h"
#include "core/share.h"
#include "core/tenant.h"
#include "daemon/notify.h"
#include "daemon/sample.h"
#include "live/counts.h"
#include "sys/json.h"

#define META "alerts"
#define WINDOW 600      /* seconds in which jobs that gave way are counted */
#define SLOTS 60u       /* of it */
#define CALM_STEPS 3    /* looks without it: a condition is over */
#define AGAIN_MS 30000u /* what could not be sent is sent again, later each time */
#define MAX_AGAIN 64u   /* times as late at the most */
#define MAX_KEPT 60000u /* bytes */

struct stk_watchman {
    struct stk_daemon *d;
    struct stk_alerts a;
    struct stk_notifier *notifier;
    uint64_t gave_way[SLOTS]; /* counter, at the beginning of each slot */
    stk_time slot;            /* that is now */
    stk_time trouble;         /* since when nothing can be written; 0: it can */
    uint64_t later_ms;        /* nothing is sent before; 0: at once */
    uint32_t tries;
    double idle_gpus;
};

/* ---- rules ---- */

static uint64_t threshold(const struct stk_config *c, enum stk_alert_kind k)
{
    const uint64_t of[STK_ALERT_MAX] = {
        [STK_ALERT_IDLE] = c->alerts.idle_s,
        [STK_ALERT_WAIT] = c->alerts.wait_s,
        [STK_ALERT_GPU] = c->alerts.gpu,
        [STK_ALERT_FOREIGN] = c->alerts.foreign_s,
        [STK_ALERT_PREEMPTIONS] = c->alerts.preemptions,
        [STK_ALERT_QUOTA] = c->alerts.quota_s,
        [STK_ALERT_STORE] = c->alerts.store_s,
        [STK_ALERT_CLOCK] = c->alerts.clock_s,
    };

    return of[k];
}

static void read_rules(const struct stk_config *c, struct stk_alert_rule rules[STK_ALERT_MAX])
{
    for (int k = 0; k < STK_ALERT_MAX; k++)
        rules[k] = (struct stk_alert_rule){.on = threshold(c, (enum stk_alert_kind)k) > 0};
    rules[STK_ALERT_FOREIGN].hold = (stk_time)c->alerts.foreign_s * STK_SECOND;
    rules[STK_ALERT_QUOTA].hold = (stk_time)c->alerts.quota_s * STK_SECOND;
    rules[STK_ALERT_STORE].hold = (stk_time)c->alerts.store_s * STK_SECOND;
}

static json_t *show_rules(const struct stk_config *c)
{
    json_t *list = json_array();

    for (int k = 0; k < STK_ALERT_MAX; k++) {
        const struct stk_alert_about *t = &stk_alert_table[k];
        uint64_t v = threshold(c, (enum stk_alert_kind)k);

        (void)json_array_append_new(
            list, json_pack("{s:s,s:b,s:o,s:s,s:s,s:s}", "name", t->name, "on", v > 0, "threshold",
                            *t->unit ? json_integer((json_int_t)v) : json_null(), "unit", t->unit,
                            "severity", t->severity, "help", t->help));
    }
    return list;
}

/* ---- conditions ---- */

static void see(struct stk_watchman *w, const struct stk_alert_seen *s, stk_time now)
{
    stk_alerts_see(&w->a, s, now);
}

static void look_idle(struct stk_watchman *w, const struct stk_sampler *m, stk_time now)
{
    stk_time after = (stk_time)w->d->config.alerts.idle_s * STK_SECOND;

    w->idle_gpus = 0;
    for (uint32_t i = 0; after > 0 && i < m->n; i++) {
        const struct stk_sampled *j = &m->list[i];
        const struct stk_entry *e = stk_live_entry(w->d->live, j->number);
        char of[32], text[320], span[40];
        stk_time since = j->idle_since, said;

        if (!j->here || !since || !e)
            continue;
        (void)snprintf(of, sizeof(of), "job %u", j->number);
        /* A restarted daemon measures idle time from its own start. A job that was idle before, and
         * has not been seen to work since, has been idle all the time. */
        said = j->worked ? 0 : stk_alerts_since(&w->a, STK_ALERT_IDLE, of);
        since = said > 0 && said < since ? said : since;
        if (now - since < after)
            continue;
        w->idle_gpus += j->gpus;
        stk_say_span(now - since, span, sizeof(span));
        (void)snprintf(text, sizeof(text),
                       "job %u of %.60s has %g GPU%s and has done nothing for %s", j->number,
                       e->rec.user, j->gpus, j->gpus > 1 ? "s" : "", span);
        see(w,
            &(struct stk_alert_seen){.kind = STK_ALERT_IDLE,
                                     .since = since,
                                     .of = of,
                                     .text = text,
                                     .job = j->number,
                                     .gpu = -1,
                                     .tenant = e->rec.tenant},
            now);
    }
}

static void look_wait(struct stk_watchman *w, const struct stk_sampler *m, stk_time now)
{
    stk_time after = (stk_time)w->d->config.alerts.wait_s * STK_SECOND;
    char text[200], span[40];

    if (after == 0 || m->oldest == 0 || now - m->oldest < after)
        return;
    stk_say_span(now - m->oldest, span, sizeof(span));
    (void)snprintf(text, sizeof(text), "job %u has waited for %s: stoker why %u", m->oldest_job,
                   span, m->oldest_job);
    see(w,
        &(struct stk_alert_seen){.kind = STK_ALERT_WAIT,
                                 .since = m->oldest + after,
                                 .of = "",
                                 .text = text,
                                 .job = m->oldest_job,
                                 .gpu = -1},
        now);
}

static void look_gpus(struct stk_watchman *w, stk_time now)
{
    const struct stk_daemon *d = w->d;

    for (uint32_t i = 0; !d->machine.is_virtual && i < d->machine.n_table && i < STK_GPUVIEW_MAX;
         i++) {
        const struct stk_gpu_note *g = &d->gpu_notes[i];
        uint32_t gpu, node = stk_machine_node_of(&d->machine, i, &gpu);
        const char *name = d->machine.live_nodes[node].name;
        char of[128], text[320];
        struct stk_alert_seen s = {.of = of, .text = text, .node = name, .gpu = (int32_t)gpu};

        (void)snprintf(of, sizeof(of), "%.80s GPU %u", name, gpu);
        (void)snprintf(text, sizeof(text), "GPU %u of %.80s: %.200s", gpu, name, g->text);
        s.kind = STK_ALERT_GPU;
        if (g->state == STK_GPU_FAULTY)
            see(w, &s, now);
        s.kind = STK_ALERT_FOREIGN;
        if (g->n_foreign > 0)
            see(w, &s, now);
    }
}

static void look_preemptions(struct stk_watchman *w, stk_time now)
{
    const struct stk_live_counts *c = stk_live_counts(w->d->live);
    uint64_t total = stk_preemptions(c);
    stk_time slot = now / (WINDOW / (stk_time)SLOTS * STK_SECOND);
    uint64_t most = w->d->config.alerts.preemptions, n;
    char text[160];

    /* the counter began at 0, with us */
    for (uint32_t i = 0; w->slot > 0 && i < SLOTS && w->slot < slot; i++)
        w->gave_way[++w->slot % SLOTS] = total;
    w->slot = slot;
    n = total - w->gave_way[(slot + 1) % SLOTS];
    if (most == 0 || n <= most)
        return;
    (void)snprintf(text, sizeof(text), "%llu jobs had to give way within ten minutes",
                   (unsigned long long)n);
    see(w,
        &(struct stk_alert_seen){.kind = STK_ALERT_PREEMPTIONS, .of = "", .text = text, .gpu = -1},
        now);
}

static void look_quota(struct stk_watchman *w, stk_time now)
{
    const struct stk_state *s = stk_core_state(stk_live_core(w->d->live));

    for (uint32_t i = 0; i < s->n_tenants; i++) {
        uint64_t limit = *stk_tenant_limit(s, i, STK_ALL_TYPES);
        uint64_t used = *stk_tenant_used(s, i, STK_ALL_TYPES), wants = stk_share_waiting(s, i);
        char of[128], text[320];

        if (limit == STK_NO_LIMIT || used < limit || wants == 0)
            continue;
        (void)snprintf(of, sizeof(of), "tenant %.100s", s->tenants[i].name);
        (void)snprintf(text, sizeof(text),
                       "tenant %.100s has the %g GPUs that it may have, and waits for %g more",
                       s->tenants[i].name, (double)limit / 1000, (double)wants / 1000);
        see(w,
            &(struct stk_alert_seen){.kind = STK_ALERT_QUOTA,
                                     .of = of,
                                     .text = text,
                                     .gpu = -1,
                                     .tenant = s->tenants[i].name},
            now);
    }
}

static void look_store(struct stk_watchman *w, stk_time now)
{
    char text[320];

    if (w->d->retry_ms == 0) {
        w->trouble = 0;
        return;
    }
    w->trouble = w->trouble ? w->trouble : now;
    (void)snprintf(text, sizeof(text), "nothing can be written down: %.250s", w->d->trouble.text);
    see(w,
        &(struct stk_alert_seen){
            .kind = STK_ALERT_STORE, .since = w->trouble, .of = "", .text = text, .gpu = -1},
        now);
}

/* The machine's clock was set back. It ends by itself: the time that is ahead is worked off. */
static void look_clock(struct stk_watchman *w, stk_time now)
{
    const stk_time ahead = stk_daemon_ahead(w->d);
    const time_t agree = (time_t)((now - ahead + stk_clock_rest(&w->d->clock)) / STK_SECOND);
    char text[320], span[40], when[40] = "later";
    struct tm tm;

    if (ahead <= (stk_time)w->d->config.alerts.clock_s * STK_SECOND)
        return;
    stk_say_span(ahead, span, sizeof(span));
    if (localtime_r(&agree, &tm))
        (void)strftime(when, sizeof(when), "%F %H:%M", &tm);
    (void)snprintf(text, sizeof(text),
                   "the machine's clock is %s behind stoker's time: it was set back, or was wrong "
                   "before; both agree again by %s. Times that people named follow the clock",
                   span, when);
    see(w, &(struct stk_alert_seen){.kind = STK_ALERT_CLOCK, .of = "", .text = text, .gpu = -1},
        now);
}

/* ---- saying ---- */

static void show(struct stk_watchman *w)
{
    w->a.reworded = false;
    stk_api_set_alerts(w->d->api,
                       json_pack("{s:o,s:o,s:f}", "alerts", stk_alerts_show(&w->a), "rules",
                                 show_rules(&w->d->config), "idle_gpus", w->idle_gpus));
}

/* What does not fit is what was over longest ago. -EAGAIN, or as the store says. */
static int keep(struct stk_watchman *w)
{
    json_t *all = stk_alerts_save(&w->a), *list = json_object_get(all, "alerts");
    char *text = json_dumps(all, JSON_COMPACT);
    int rc;

    while (text && strlen(text) > MAX_KEPT && json_array_size(list) > 0) {
        (void)json_array_remove(list, 0);
        free(text);
        text = json_dumps(all, JSON_COMPACT);
    }
    rc = text ? stk_daemon_keep(w->d, META, text) : -ENOMEM;
    w->a.changed = rc < 0;
    free(text);
    json_decref(all);
    return rc;
}

static char *text_of(const json_t *list)
{
    char *text = NULL;
    size_t len, i;
    FILE *f = open_memstream(&text, &len);
    const json_t *o;

    json_array_foreach(list, i, o)
    {
        if (f)
            (void)fprintf(f, "%s: %s: %s\n", stk_str(o, "state"), stk_str(o, "kind"),
                          stk_str(o, "text"));
    }
    if (f)
        (void)fclose(f);
    return text;
}

static void subject_of(const struct stk_watchman *w, const json_t *list, char *buf, size_t size)
{
    const json_t *first = json_array_get(list, 0);

    if (json_array_size(list) == 1)
        (void)snprintf(buf, size, "stoker on %.80s: %s %s", w->d->machine.name,
                       stk_str(first, "kind"), stk_str(first, "state"));
    else
        (void)snprintf(buf, size, "stoker on %.80s: %zu alerts", w->d->machine.name,
                       json_array_size(list));
}

/* That something is being sent is written down first, so that it is not sent again after a kill;
 * unless nothing can be: that must be said all the same. */
static bool wait_to_send(struct stk_watchman *w)
{
    return keep(w) == -EAGAIN && w->d->retry_ms == 0;
}

static void send_news(struct stk_watchman *w)
{
    const struct stk_config *c = &w->d->config;
    char subject[200], *text;
    struct stk_message m = {
        .command = c->alerts.command, .webhook = c->alerts.webhook, .subject = subject};
    json_t *list, *body;

    if (stk_notifier_busy(w->notifier) || uv_now(&w->d->loop) < w->later_ms ||
        !stk_alerts_untold(&w->a))
        return;
    list = stk_alerts_send(&w->a);
    if (!list || wait_to_send(w) || (!m.command && !m.webhook)) {
        stk_alerts_sent(&w->a, list && !m.command && !m.webhook);
        json_decref(list);
        return;
    }
    text = text_of(list);
    subject_of(w, list, subject, sizeof(subject));
    body = json_pack("{s:s,s:s,s:s,s:o}", "text", text ? text : subject, "subject", subject, "host",
                     w->d->machine.name, "alerts", list);
    m.text = text ? text : subject;
    m.body = body;
    stk_notifier_send(w->notifier, &m);
    json_decref(body);
    free(text);
}

static void on_sent(void *ctx, bool well, const char *why)
{
    struct stk_watchman *w = ctx;

    stk_alerts_sent(&w->a, well);
    w->tries = well ? 0 : w->tries + 1;
    w->later_ms = 0;
    if (well)
        return;
    w->later_ms =
        uv_now(&w->d->loop) + AGAIN_MS * (w->tries < 7 ? UINT64_C(1) << (w->tries - 1) : MAX_AGAIN);
    stk_log(STK_LOG_WARN, "an alert could not be sent: %s", why);
}

/* To those who listen, and into the log. */
static void tell(struct stk_watchman *w, stk_time now)
{
    for (uint32_t i = 0; i < w->a.n; i++) {
        const struct stk_alert *x = &w->a.list[i];

        if (x->fired != now && x->resolved != now)
            continue;
        stk_log(STK_LOG_INFO, "alert %s %s: %s", stk_alert_table[x->kind].name,
                x->resolved ? "resolved" : "firing", x->text);
        stk_api_tell_of(w->d->api, "alert", stk_alert_show(x));
    }
}

void stk_watchman_look(struct stk_watchman *w, const struct stk_sampler *m, stk_time now)
{
    struct stk_alert_rule rules[STK_ALERT_MAX];
    double idle = w->idle_gpus;
    uint32_t changes;

    read_rules(&w->d->config, rules);
    look_idle(w, m, now);
    look_wait(w, m, now);
    look_gpus(w, now);
    look_preemptions(w, now);
    look_quota(w, now);
    look_store(w, now);
    look_clock(w, now);
    changes = stk_alerts_look(&w->a, rules, CALM_STEPS * stk_series_step(m->series), now);
    if (changes > 0)
        tell(w, now);
    if (changes > 0 || w->a.reworded || idle < w->idle_gpus || idle > w->idle_gpus)
        show(w);
    send_news(w);
    if (w->a.changed)
        (void)keep(w);
}

void stk_watchman_skip(struct stk_watchman *w, stk_time by)
{
    stk_alerts_skip(&w->a, by);
    w->trouble += w->trouble ? by : 0;
}

int stk_watchman_new(struct stk_daemon *d, struct stk_watchman **ret, struct stk_err *err)
{
    struct stk_watchman *w = calloc(1, sizeof(*w));
    char *text = NULL;
    size_t len;
    json_t *saved;

    if (!w || stk_notifier_new(&d->loop, on_sent, w, &w->notifier) < 0) {
        free(w);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    w->d = d;
    (void)stk_store_meta_get(d->store, META, &text, &len, NULL);
    saved = text ? json_loads(text, 0, NULL) : NULL;
    stk_alerts_load(&w->a, saved, stk_daemon_now(d));
    json_decref(saved);
    free(text);
    show(w);
    *ret = w;
    return 0;
}

void stk_watchman_reload(struct stk_watchman *w)
{
    show(w);
}

void stk_watchman_free(struct stk_watchman *w)
{
    if (!w)
        return;
    stk_notifier_free(w->notifier);
    stk_alerts_done(&w->a);
    free(w);
}
