/* SPDX-License-Identifier: Apache-2.0 */
/* time.h - time is a number that is handed in, never read: microseconds since an epoch that the
 * caller chooses (the Unix epoch live, the trace's own in the simulator). */
#ifndef STK_MODEL_TIME_H
#define STK_MODEL_TIME_H

#include <stdint.h>

typedef int64_t stk_time; /* also used for durations */

#define STK_SECOND ((stk_time)1000000)
#define STK_NEVER_TIME INT64_MAX

/* No job runs longer and no clock is later than this. Products with a GPU count up to STK_MAX_GPUS
 * fit in 64 bits when time is in milliseconds; in microseconds they need 128. */
#define STK_MAX_DURATION (100 * INT64_C(31557600) * STK_SECOND)

#endif
