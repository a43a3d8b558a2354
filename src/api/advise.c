/* SPDX-License-Identifier: Apache-2.0 */
/* advise.c - what could be better, each with the numbers it follows from. Nothing is said that was
 * not measured, and nothing about less than a GPU-hour. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/spent.h"

#define MOST 12u       /* recommendations */
#define WORTH 1.0      /* GPU-hours */
#define NIGHT_END 7    /* o'clock; night begins at midnight */
#define NIGHT_FREE 0.5 /* share of GPUs that nobody has, at night */
#define SERVICE_AT 0.6 /* how busy the GPUs of a service may be in the mean: there are peaks */

struct out {
    const struct stk_api *a;
    json_t *list;
};

static void say(struct out *o, const char *kind, const char *text, const char *evidence,
                double gpu_h, stk_job_number job)
{
    json_t *jobs = json_array();

    if (json_array_size(o->list) >= MOST || gpu_h < WORTH) {
        json_decref(jobs);
        return;
    }
    if (job)
        (void)json_array_append_new(jobs, json_integer(job));
    (void)json_array_append_new(
        o->list, json_pack("{s:s,s:s,s:s,s:o,s:o,s:o}", "kind", kind, "text", text, "evidence",
                           evidence, "gpu_hours", stk_spent_number(gpu_h), "money",
                           stk_spent_number(stk_spent_money(o->a, gpu_h, 0)), "jobs", jobs));
}

static void look_nights(struct out *o, const struct stk_spent_heat *h)
{
    struct stk_spent_cell night = {0}, day = {0};
    char text[240], evidence[240];

    for (int d = 0; d < 7; d++)
        for (int t = 0; t < 24; t++) {
            struct stk_spent_cell *to = t < NIGHT_END ? &night : &day;

            to->gpus += h->cell[d][t].gpus;
            to->allocated += h->cell[d][t].allocated;
            to->hours += h->cell[d][t].hours;
        }
    if (night.hours < NIGHT_END || day.hours <= 0 ||
        night.allocated > (1 - NIGHT_FREE) * night.gpus ||
        night.allocated / night.gpus > day.allocated / day.gpus)
        return;
    (void)snprintf(text, sizeof(text),
                   "GPUs are idle at night: work that can wait would have them from midnight to %d "
                   "(stoker submit --begin, a queue that opens at night, a rule)",
                   NIGHT_END);
    (void)snprintf(evidence, sizeof(evidence),
                   "%.0f%% of the GPUs were not allocated then, %.0f%% by day, over %.0f nights",
                   100 * (1 - night.allocated / night.gpus), 100 * (1 - day.allocated / day.gpus),
                   night.hours / NIGHT_END);
    say(o, "idle_nights", text, evidence, night.gpus - night.allocated, 0);
}

static double hours_of(const struct stk_spent_kind *k)
{
    return stk_figures_hours(k->measured);
}

static const char *name_of(const struct stk_spent_kind *k)
{
    return k->name[0] ? k->name : "(no name)";
}

/* Something that answers whoever asks, and has no end: of that kind, or of the class of such. */
static bool is_service(const struct out *o, const struct stk_spent_kind *k)
{
    json_t *spec;
    const char *class;
    bool is;

    if (k->kind == STK_KIND_SERVICE)
        return true;
    spec = stk_live_spec(o->a->cfg.live, k->spec);
    class = json_string_value(json_object_get(spec, "class"));
    is = class && strcmp(class, "inference") == 0;
    json_decref(spec);
    return is;
}

static void shrink(struct out *o, const struct stk_spent_kind *k, double util, const char *evidence)
{
    const double need = ceil(k->gpus * util / SERVICE_AT), to = need < 1 ? 1 : need;
    char text[320];

    if (to >= k->gpus)
        return;
    (void)snprintf(text, sizeof(text),
                   "service \"%.60s\" of %.40s could shrink from %g GPUs to %g: they would be at "
                   "work %.0f%% of the time",
                   name_of(k), k->user, k->gpus, to, 100 * util * k->gpus / to);
    say(o, "service_shrink", text, evidence, hours_of(k) * (1 - to / k->gpus), k->last);
}

static void show_evidence(const struct stk_spent_kind *k, double util, char *buf, size_t size)
{
    char memory[64] = "";

    if (k->mem_mib > 0)
        (void)snprintf(memory, sizeof(memory), ", at most %.1f GiB of GPU memory",
                       k->mem_mib / 1024);
    (void)snprintf(buf, size, "%u job%s, %.1f GPU-hours, GPUs at work %.0f%% of the time%s",
                   k->jobs, k->jobs == 1 ? "" : "s", hours_of(k), util * 100, memory);
}

static void look_kind(struct out *o, const struct stk_spent_kind *k)
{
    double util = k->measured > 0 ? stk_figures_ratio(k->active, k->measured) : 1;
    double idle_h = stk_figures_hours(k->measured - k->active);
    char text[320], evidence[240];

    if (hours_of(k) < WORTH || (util >= STK_POOR_BELOW && k->idle_gpus <= 0))
        return;
    show_evidence(k, util, evidence, sizeof(evidence));
    if (util < STK_IDLE_BELOW) {
        (void)snprintf(text, sizeof(text), "\"%.60s\" of %.40s has GPUs and does not use them",
                       name_of(k), k->user);
        say(o, "idle_jobs", text, evidence, idle_h, k->last);
    } else if (k->idle_gpus > 0 && k->idle_gpus < k->gpus) {
        (void)snprintf(text, sizeof(text),
                       "\"%.60s\" of %.40s asks for %g GPUs and uses %g: ask for %g", name_of(k),
                       k->user, k->gpus, k->gpus - k->idle_gpus, k->gpus - k->idle_gpus);
        say(o, "fewer_gpus", text, evidence, hours_of(k) * k->idle_gpus / k->gpus, k->last);
    } else if (k->gpus > 1 && is_service(o, k)) {
        shrink(o, k, util, evidence);
    } else if (k->gpus <= 1) {
        (void)snprintf(text, sizeof(text),
                       "\"%.60s\" of %.40s could share a GPU with others (--gpus %g)", name_of(k),
                       k->user, util < 0.12 ? 0.25 : 0.5);
        say(o, "share_gpu", text, evidence, hours_of(k) / 2, k->last);
    }
}

/* The best first. */
static void sort(json_t *list)
{
    for (size_t i = 1; i < json_array_size(list); i++)
        for (size_t j = i; j > 0; j--) {
            json_t *x = json_array_get(list, j - 1), *y = json_array_get(list, j);

            if (json_number_value(json_object_get(x, "gpu_hours")) >=
                json_number_value(json_object_get(y, "gpu_hours")))
                break;
            json_incref(x);
            (void)json_array_set(list, j - 1, y);
            (void)json_array_set_new(list, j, x);
        }
}

json_t *stk_spent_advise(const struct stk_api *a, const struct stk_spent *s,
                         const struct stk_spent_heat *h)
{
    struct out o = {a, json_array()};

    look_nights(&o, h);
    for (uint32_t i = 0; i < s->n_kinds; i++)
        look_kind(&o, &s->kind[i]);
    sort(o.list);
    return o.list;
}
