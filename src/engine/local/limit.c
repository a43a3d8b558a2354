/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - how long a job may run is changed while it does. The shim keeps the time, and writes
 * the new one down; it is told again whenever it is connected to, since an order may be lost with a
 * connection or with the daemon. Of one whose shim is gone the time is ours to keep. */
#include <stdlib.h>

#include "engine/local/inner.h"
#include "sys/json.h"

static int64_t limit_of(const char *spec)
{
    json_t *o = spec ? stk_json_loads(spec) : NULL;
    int64_t s = json_integer_value(json_object_get(o, "time_limit_s"));

    json_decref(o);
    return s * 1000;
}

void stk_local_limit_orphan(struct stk_local_job *j)
{
    if (!j->limit_said || !j->run.at || j->run.asleep)
        return;
    j->limit_at = j->limit_ms > 0 ? j->run.at + j->limit_ms * 1000 - j->run.ran : 0;
}

void stk_local_limit_tell(struct stk_local_job *j)
{
    if (j->limit_said && !j->stray)
        (void)stk_local_send(j,
                             json_pack("{s:s,s:I}", "op", "limit", "ms", (json_int_t)j->limit_ms));
}

void stk_local_limit_keep(struct stk_local_job *j, const struct stk_start *s)
{
    j->limit_ms = limit_of(s->spec);
    j->limit_said = true;
}

void stk_local_update(struct stk_engine *e, stk_time now, const struct stk_start *s)
{
    struct stk_local_job *j = stk_local_find((struct stk_local *)e, s->number);

    (void)now;
    if (!j || j->lease != s->lease || j->where == STK_W_ENDED)
        return;
    stk_local_limit_keep(j, s);
    if (j->spec)
        (void)stk_local_keep_spec(j, s); /* it may be launched only now */
    if (j->where == STK_W_ORPHANED)
        stk_local_limit_orphan(j);
    else if (!j->adopted)
        stk_local_limit_tell(j);
}
