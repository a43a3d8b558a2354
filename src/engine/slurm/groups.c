/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - Slurm's accounts and QOS. Its accounting (slurmdbd) is asked for them at the start and
 * every ten minutes, so that people see what becomes of each; where there is none nobody can be
 * asked, and the names are those that jobs have. */
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "sys/json.h"

#define AGAIN_MS 600000
#define SOON_MS 30000 /* after it was not there */

void stk_slurm_groups_tick(struct stk_slurm *m, int64_t now)
{
    if (now < m->groups_at)
        return;
    m->groups_at = now + AGAIN_MS;
    if (m->accounts) {
        if (stk_slurm_ask(m, json_pack("{s:s}", "op", "groups"), NULL, NULL) == 0)
            m->groups_ask = m->next_id;
    } else if (!m->groups && m->cfg.groups) {
        m->groups = json_null();
        m->cfg.groups(m->cfg.ctx, NULL);
    }
}

void stk_slurm_groups_answer(struct stk_slurm *m, const json_t *answer)
{
    json_t *accounts = json_object_get(answer, "accounts"), *qos = json_object_get(answer, "qos");
    json_t *is;

    m->groups_ask = 0;
    if (!accounts || !qos) { /* slurmdbd may come back */
        m->groups_at = stk_slurm_ms() + SOON_MS;
        return;
    }
    is = json_pack("{s:O,s:O}", "accounts", accounts, "qos", qos);
    if (m->groups && json_equal(m->groups, is)) {
        json_decref(is);
        return;
    }
    json_decref(m->groups);
    m->groups = is;
    if (m->cfg.groups)
        m->cfg.groups(m->cfg.ctx, is);
}

bool stk_slurm_enforces(const struct stk_engine *e, const char *what)
{
    const struct stk_slurm *m = (const struct stk_slurm *)e;

    return stk_yes(m->enforces, what);
}

const json_t *stk_slurm_groups(const struct stk_engine *e)
{
    const struct stk_slurm *m = (const struct stk_slurm *)e;

    return json_is_object(m->groups) ? m->groups : NULL;
}
