/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lifecycle.h"

#define HELD STK_STATE_BIT(STK_JOB_HELD)
#define BLOCKED STK_STATE_BIT(STK_JOB_BLOCKED)
#define WAITING STK_STATE_BIT(STK_JOB_WAITING)
#define PLACED STK_STATE_BIT(STK_JOB_PLACED)
#define RUNNING STK_STATE_BIT(STK_JOB_RUNNING)
#define STOPPING STK_STATE_BIT(STK_JOB_STOPPING)
#define DONE STK_STATE_BIT(STK_JOB_DONE)

/* clang-format off */
static const unsigned char table[STK_JOB_STATE_MAX][STK_EV_TYPE_MAX] = {
    [STK_JOB_NONE] = {
        [STK_EV_SUBMIT]  = HELD | BLOCKED | WAITING | DONE, /* DONE: a dependency cannot be met */
    },
    [STK_JOB_HELD] = {
        [STK_EV_RELEASE] = BLOCKED | WAITING,
        [STK_EV_CANCEL]  = STOPPING | DONE, /* STOPPING: it sleeps, and its processes must end */
        [STK_EV_EVICT]   = STOPPING,        /* only when it sleeps */
        [STK_EV_EXITED]  = HELD | DONE,     /* only when it sleeps */
        [STK_EV_UPDATE]  = HELD,
    },
    [STK_JOB_BLOCKED] = {
        [STK_EV_HOLD]    = HELD,
        [STK_EV_CANCEL]  = DONE,
        [STK_EV_UPDATE]  = BLOCKED | WAITING,
    },
    [STK_JOB_WAITING] = {
        [STK_EV_HOLD]    = HELD,
        [STK_EV_CANCEL]  = STOPPING | DONE, /* as when held */
        [STK_EV_PLACE]   = PLACED,
        [STK_EV_EVICT]   = STOPPING,        /* only when it sleeps */
        [STK_EV_EXITED]  = WAITING | DONE,  /* only when it sleeps */
        [STK_EV_UPDATE]  = BLOCKED | WAITING,
        [STK_EV_ADVISE]  = WAITING,
    },
    [STK_JOB_PLACED] = {
        [STK_EV_CANCEL]  = STOPPING,
        [STK_EV_EVICT]   = STOPPING,
        [STK_EV_STARTED] = RUNNING,
        [STK_EV_SWAPPED] = PLACED,
        [STK_EV_EXITED]  = WAITING | DONE,
        [STK_EV_ADVISE]  = PLACED,
        [STK_EV_UPDATE]  = PLACED, /* how long it may run, and no more; likewise below */
    },
    [STK_JOB_RUNNING] = {
        [STK_EV_CANCEL]  = STOPPING,
        [STK_EV_EVICT]   = STOPPING,
        [STK_EV_EXITED]  = WAITING | DONE,
        [STK_EV_ADVISE]  = RUNNING,
        [STK_EV_UPDATE]  = RUNNING,
        [STK_EV_CHECKPOINT] = RUNNING,
        [STK_EV_SWAPPED] = RUNNING,
    },
    [STK_JOB_STOPPING] = {
        [STK_EV_HOLD]    = STOPPING, /* remembered: it is held instead of queued when it is gone */
        [STK_EV_RELEASE] = STOPPING,
        [STK_EV_CANCEL]  = STOPPING, /* remembered: it ends instead of queueing again */
        [STK_EV_UPDATE]  = STOPPING, /* for when it is queued again */
        [STK_EV_STARTED] = STOPPING, /* the news crossed the order to stop */
        [STK_EV_EXITED]  = HELD | WAITING | DONE,
        [STK_EV_SUSPENDED] = HELD | WAITING | STOPPING, /* STOPPING: a cancel came meanwhile */
        [STK_EV_CHECKPOINT] = STOPPING,
        [STK_EV_SWAPPED] = STOPPING,
    },
};
/* clang-format on */

unsigned stk_lifecycle_next(enum stk_job_state from, enum stk_event_type ev)
{
    if ((unsigned)from >= STK_JOB_STATE_MAX || (unsigned)ev >= STK_EV_TYPE_MAX)
        return 0;
    return table[from][ev];
}
