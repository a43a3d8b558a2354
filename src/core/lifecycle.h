/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.h - the legal moves of a job, whole, in one table. docs/spec/job-states.md is the same
 * table in words; a test tries every state against every event. */
#ifndef STK_CORE_LIFECYCLE_H
#define STK_CORE_LIFECYCLE_H

#include "model/event.h"

#define STK_STATE_BIT(s) (1u << (s))

/* The set of states an event may lead to from a state, as bits; 0: the event is refused. */
unsigned stk_lifecycle_next(enum stk_job_state from, enum stk_event_type ev);

#endif
