/* SPDX-License-Identifier: Apache-2.0 */
#include "model/booking.h"

#include <stddef.h>

const char *stk_over_name(enum stk_over_why o)
{
    static const char *const name[] = {"removed", "ended", "lapsed", "started", "given_up", "lost"};

    return (unsigned)o < STK_OVER_MAX ? name[o] : "?";
}
