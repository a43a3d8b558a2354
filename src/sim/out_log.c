/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/out_log.h"

#include <string.h>

#include "core/state.h"

static void head(struct stk_out_log *log, const struct stk_event *ev, const char *what,
                 uint32_t tag)
{
    const uint64_t id = log->t->jobs[tag].id;

    stk_emit_us(&log->e, ev->at);
    stk_emit_text(&log->e, what);
    if (id & STK_TRACE_ID_NAME)
        stk_emit_csv(&log->e, stk_names_get(&log->t->ids, (uint32_t)(id & ~STK_TRACE_ID_NAME)));
    else
        stk_emit_u64(&log->e, id);
    stk_emit_bytes(&log->e, ",", 1);
}

static void event(void *ctx, const struct stk_event *ev, const struct stk_core *core)
{
    struct stk_out_log *log = ctx;
    const struct stk_state *s = stk_core_state(core);
    bool back;

    if (ev->type == STK_EV_PLACE) {
        head(log, ev, ",start,", s->jobs[ev->job.i].tag);
        for (uint32_t i = 0; i < ev->u.place.n; i++) {
            if (i > 0)
                stk_emit_bytes(&log->e, " ", 1);
            stk_emit_u64(&log->e, ev->u.place.pieces[i].node.i);
            stk_emit_bytes(&log->e, ":", 1);
            stk_emit_u64(&log->e, ev->u.place.pieces[i].gpus);
        }
        stk_emit_bytes(&log->e, "\n", 1);
    } else if (ev->type == STK_EV_EXITED || ev->type == STK_EV_SUSPENDED) {
        back = ev->type == STK_EV_SUSPENDED || ev->u.exit.cause == STK_CAUSE_EVICTED;
        head(log, ev, back ? ",preempt," : ",end,", s->jobs[ev->job.i].tag);
        stk_emit_bytes(&log->e, "\n", 1);
    }
}

int stk_out_log_open(struct stk_out_log *log, const char *path, const struct stk_trace *t,
                     struct stk_err *err)
{
    log->t = t;
    log->path = path;
    log->f = fopen(path, "we");
    if (!log->f)
        return stk_err_set(err, -errno, "%s: %s", path, strerror(errno));
    stk_emit_init(&log->e, log->f);
    stk_emit_text(&log->e, "at_s,event,id,places\n");
    log->guest = (struct stk_run_guest){.ctx = log, .event = event};
    return 0;
}

int stk_out_log_close(struct stk_out_log *log, struct stk_err *err)
{
    int rc;

    if (!log->f)
        return 0;
    rc = stk_emit_end(&log->e);
    if (fclose(log->f) && !rc)
        rc = -errno;
    log->f = NULL;
    return rc ? stk_err_set(err, rc, "%s: %s", log->path, strerror(-rc)) : 0;
}
