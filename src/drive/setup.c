/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/setup.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "engine/sim/sim.h"
#include "policy/registry.h"

static bool has_param(const struct stk_param *t, const struct stk_param *p)
{
    for (; t && t->name; t++)
        if (t == p)
            return true;
    return false;
}

static bool uses(const struct stk_setup *s, const struct stk_param *p)
{
    return has_param(stk_core_params, p) || has_param(stk_sim_params, p) ||
           has_param(s->order->params, p) || has_param(s->order->shared, p) ||
           has_param(s->backfill->params, p) || has_param(s->place->params, p) ||
           has_param(s->preempt->params, p) || has_param(s->preempt->shared, p) ||
           has_param(s->admit->params, p);
}

/* The parameter that "NAME=VALUE" sets; NULL: there is none of that name. */
static const struct stk_param *find_set_param(const char *kv)
{
    char name[64] = "";
    size_t len = strcspn(kv, "=");

    if (len < sizeof(name))
        memcpy(name, kv, len);
    return stk_param_find(name, stk_sim_params);
}

bool stk_setup_uses(const struct stk_setup *s, const char *kv)
{
    const struct stk_param *p = find_set_param(kv);

    return p && uses(s, p);
}

void stk_setup_owner(const char *kv, char *buf, size_t size)
{
    const struct stk_param *p = find_set_param(kv);

    buf[0] = '\0';
    for (uint32_t i = 0; stk_places[i]; i++)
        if (has_param(stk_places[i]->params, p))
            (void)snprintf(buf, size, "place: %s", stk_places[i]->name);
    for (uint32_t i = 0; stk_backfills[i]; i++)
        if (has_param(stk_backfills[i]->params, p))
            (void)snprintf(buf, size, "backfill: %s", stk_backfills[i]->name);
    for (uint32_t i = 0; stk_preempts[i]; i++)
        if (has_param(stk_preempts[i]->params, p) || has_param(stk_preempts[i]->shared, p))
            (void)snprintf(buf, size, "preempt: %s", stk_preempts[i]->name);
    for (uint32_t i = 0; stk_orders[i]; i++)
        if (has_param(stk_orders[i]->params, p) || has_param(stk_orders[i]->shared, p))
            (void)snprintf(buf, size, "order: %s", stk_orders[i]->name);
}

static int set_param(struct stk_setup *s, const char *kv, size_t len, struct stk_err *err)
{
    char text[STK_MAX_PARAM_TEXT + 64];
    const struct stk_param *p;
    char *eq;

    if (len >= sizeof(text))
        return stk_err_set(err, -EINVAL, "parameter longer than %zu characters", sizeof(text) - 1);
    memcpy(text, kv, len);
    text[len] = '\0';
    eq = strchr(text, '=');
    if (!eq)
        return stk_err_set(err, -EINVAL, "parameter \"%.80s\" is not of the form name=value", text);
    *eq = '\0';
    p = stk_param_find(text, stk_sim_params);
    if (!p)
        return stk_err_set(err, -EINVAL,
                           "there is no parameter \"%.80s\" (stoker sim --list shows all)", text);
    if (!uses(s, p)) { /* checked all the same */
        struct stk_params scratch = {0};

        return stk_params_set(&scratch, p, eq + 1, err);
    }
    return stk_params_set(&s->params, p, eq + 1, err);
}

static int set_bundle_params(struct stk_setup *s, const char *text, struct stk_err *err)
{
    while (*text) {
        size_t len = strcspn(text, " ");
        int rc = set_param(s, text, len, err);

        if (rc < 0)
            return rc;
        text += len + (text[len] == ' ');
    }
    return 0;
}

/* The i-th name of each table, NULL past the end. */
static const char *order_name(size_t i)
{
    return stk_orders[i] ? stk_orders[i]->name : NULL;
}

static const char *backfill_name(size_t i)
{
    return stk_backfills[i] ? stk_backfills[i]->name : NULL;
}

static const char *place_name(size_t i)
{
    return stk_places[i] ? stk_places[i]->name : NULL;
}

static const char *preempt_name(size_t i)
{
    return stk_preempts[i] ? stk_preempts[i]->name : NULL;
}

static int no_such(const char *what, const char *name, const char *(*nth)(size_t),
                   struct stk_err *err)
{
    char names[160] = "";
    size_t used = 0;

    for (size_t i = 0; nth(i) && used < sizeof(names) - 32; i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", nth(i));
    return stk_err_set(err, -EINVAL, "there is no %s policy \"%.40s\" (there are: %s)", what, name,
                       names);
}

/* Policies that cannot work together. */
static int check_together(const struct stk_setup *s, struct stk_err *err)
{
    if ((s->order == &stk_order_advised) != (s->preempt == &stk_preempt_advised))
        return stk_err_set(err, -EINVAL, "--order advised and --preempt advised go together");
    if (s->preempt->pass && !s->order->preemptive)
        return stk_err_set(err, -EINVAL,
                           "--preempt %s needs an order that ranks running jobs too (srtf, srsf, "
                           "las), not %s",
                           s->preempt->name, s->order->name);
    if (s->preempt->pass && (s->backfill->reserve_one || s->backfill->reserve_all))
        return stk_err_set(err, -EINVAL,
                           "--preempt %s goes with --backfill skip or none; with --preempt none "
                           "--backfill %s works",
                           s->preempt->name, s->backfill->name);
    if (s->preempt->pass && s->place->mate)
        return stk_err_set(err, -EINVAL,
                           "--place %s does not go with --preempt %s, which counts GPUs; add "
                           "--preempt none",
                           s->place->name, s->preempt->name);
    if (s->preempt->room && s->backfill->reserve_all)
        return stk_err_set(err, -EINVAL,
                           "--preempt %s does not go with --backfill %s; add --preempt none",
                           s->preempt->name, s->backfill->name);
    if (s->preempt->room && !s->preempt->fair && !s->order->levels)
        return stk_err_set(
            err, -EINVAL,
            "--preempt %s goes with --order priority, fairshare, drf, ftf or edf, not "
            "%s; add --preempt none",
            s->preempt->name, s->order->name);
    return 0;
}

static int pick_policies(const struct stk_setup_words *w, const struct stk_bundle *b,
                         struct stk_setup *s, struct stk_err *err)
{
    const char *order = w->order ? w->order : b->order;
    const char *backfill = w->backfill ? w->backfill : b->backfill;
    const char *place = w->place ? w->place : b->place;
    const char *preempt = w->preempt ? w->preempt : b->preempt;

    s->order = stk_order_find(order);
    s->backfill = stk_backfill_find(backfill);
    s->place = stk_place_find(place);
    s->preempt = stk_preempt_find(preempt);
    s->admit = stk_admit_find(b->admit);
    if (!s->order)
        return no_such("order", order, order_name, err);
    if (!s->backfill)
        return no_such("backfill", backfill, backfill_name, err);
    if (!s->place)
        return no_such("place", place, place_name, err);
    if (!s->preempt)
        return no_such("preempt", preempt, preempt_name, err);
    return check_together(s, err);
}

static const struct stk_bundle *base_bundle(const struct stk_setup_words *w)
{
    const struct stk_bundle *b = NULL;

    if (w->bundle && strcmp(w->bundle, "default") != 0)
        return stk_bundle_find(w->bundle);
    if (w->order && !w->bundle)
        b = stk_bundle_find(w->order);
    return b ? b : stk_bundle_find(w->tenants ? "teams" : "default");
}

static void name_it(const struct stk_setup_words *w, struct stk_setup *s)
{
    if (w->bundle || !(w->order || w->backfill || w->place || w->preempt))
        (void)snprintf(s->name, sizeof(s->name), "%s", w->bundle ? w->bundle : "default");
    else
        (void)snprintf(s->name, sizeof(s->name), "%s+%s", s->order->name, s->backfill->name);
}

int stk_setup_resolve(const struct stk_setup_words *w, struct stk_setup *ret_setup,
                      struct stk_err *err)
{
    const struct stk_bundle *b = base_bundle(w);
    struct stk_setup s = {0};
    int rc;

    if (!b)
        return stk_err_set(err, -EINVAL,
                           "there is no bundle \"%.40s\" (stoker sim --list shows all)", w->bundle);
    rc = pick_policies(w, b, &s, err);
    rc = rc < 0 ? rc : set_bundle_params(&s, b->params, err);
    for (uint32_t i = 0; rc == 0 && i < w->n_params; i++)
        rc = set_param(&s, w->params[i], strlen(w->params[i]), err);
    if (rc < 0)
        return rc;
    name_it(w, &s);
    *ret_setup = s;
    return 0;
}

/* Jobs that may not preempt by class are of the class of the default queue. */
static int set_plain(struct stk_setup *s, int32_t priority, struct stk_err *err)
{
    const struct stk_param *plain = stk_param_find("tier.plain", NULL);
    char text[16];

    if (!stk_setup_uses(s, "tier.plain=0") || stk_params_has(&s->params, plain) ||
        s->params.n >= STK_MAX_PARAMS)
        return 0;
    (void)snprintf(text, sizeof(text), "%d", priority);
    return strcmp(text, plain->def) == 0 ? 0 : stk_params_set(&s->params, plain, text, err);
}

int stk_setup_serve(struct stk_setup *s, int32_t usual, struct stk_err *err)
{
    const struct stk_param *after = stk_param_find("drain.after_s", NULL);
    int rc = set_plain(s, usual, err);

    if (rc < 0)
        return rc;

    if (s->preempt->pass || s->preempt->fair || stk_params_has(&s->params, after) ||
        s->params.n >= STK_MAX_PARAMS)
        return 0;
    return stk_params_set(&s->params, after, STK_SETUP_DRAIN_AFTER, err);
}

void stk_setup_describe(const struct stk_setup *s, char *buf, size_t size)
{
    int n = snprintf(buf, size, "order=%s backfill=%s place=%s preempt=%s", s->order->name,
                     s->backfill->name, s->place->name, s->preempt->name);

    for (uint32_t i = 0; i < s->params.n && n > 0 && (size_t)n < size; i++)
        n += snprintf(buf + n, size - (size_t)n, " %s=%s", s->params.set[i].decl->name,
                      s->params.set[i].text);
}
