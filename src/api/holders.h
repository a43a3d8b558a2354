/* SPDX-License-Identifier: Apache-2.0 */
/* holders.h - who has what a waiting job needs, and what it is entitled to. */
#ifndef STK_API_HOLDERS_H
#define STK_API_HOLDERS_H

#include "api/handlers.h"
#include "api/say.h"

/* The jobs that have some of it, a list; say->why is known, and when enough is expected to be free
 * is noted in 'say'. *ret_claim: what the job is entitled to, who borrowed it, and when it comes
 * back; null: it has no claim. */
json_t *stk_show_holders(struct stk_api *a, uint32_t job, struct stk_say *say, char first[32],
                         json_t **ret_claim);

#endif
