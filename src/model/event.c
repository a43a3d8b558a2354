/* SPDX-License-Identifier: Apache-2.0 */
#include "model/event.h"

const char *stk_event_type_name(enum stk_event_type t)
{
    static const char *const names[STK_EV_TYPE_MAX] = {
        [STK_EV_SUBMIT] = "submit",     [STK_EV_HOLD] = "hold",
        [STK_EV_RELEASE] = "release",   [STK_EV_CANCEL] = "cancel",
        [STK_EV_PLACE] = "place",       [STK_EV_EVICT] = "evict",
        [STK_EV_STARTED] = "started",   [STK_EV_EXITED] = "exited",
        [STK_EV_NODE_UP] = "node_up",   [STK_EV_NODE_DOWN] = "node_down",
        [STK_EV_TICK] = "tick",         [STK_EV_SUSPENDED] = "suspended",
        [STK_EV_GPUS_OFF] = "gpus_off", [STK_EV_UPDATE] = "update",
        [STK_EV_ADVISE] = "advise",     [STK_EV_NODE_OFF] = "node_off",
        [STK_EV_SET] = "set",           [STK_EV_CHECKPOINT] = "checkpoint",
        [STK_EV_RESERVE] = "reserve",   [STK_EV_UNRESERVE] = "unreserve",
        [STK_EV_SWAPPED] = "swapped",   [STK_EV_NODES] = "nodes",
    };

    return t < STK_EV_TYPE_MAX ? names[t] : "?";
}

bool stk_event_is_of_job(enum stk_event_type t)
{
    switch (t) { /* no default: a new type has to be put into one of the lists */
    case STK_EV_SUBMIT:
    case STK_EV_HOLD:
    case STK_EV_RELEASE:
    case STK_EV_CANCEL:
    case STK_EV_PLACE:
    case STK_EV_EVICT:
    case STK_EV_STARTED:
    case STK_EV_EXITED:
    case STK_EV_SUSPENDED:
    case STK_EV_UPDATE:
    case STK_EV_ADVISE:
    case STK_EV_CHECKPOINT:
    case STK_EV_SWAPPED:
        return true;
    case STK_EV_NODE_DOWN:
    case STK_EV_NODE_UP:
    case STK_EV_GPUS_OFF:
    case STK_EV_TICK:
    case STK_EV_NODE_OFF:
    case STK_EV_SET:
    case STK_EV_RESERVE:
    case STK_EV_UNRESERVE:
    case STK_EV_NODES:
    case STK_EV_TYPE_MAX:
        break;
    }
    return false;
}
