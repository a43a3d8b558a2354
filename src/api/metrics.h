/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - what the files behind /metrics share. */
#ifndef STK_API_METRICS_H
#define STK_API_METRICS_H

#include "api/handlers.h"
#include "api/prom.h"

/* metrics_gpus.c */
void stk_metrics_gpus(struct stk_prom *p, struct stk_api *a);
/* metrics_teams.c */
void stk_metrics_teams(struct stk_prom *p, struct stk_api *a);

#endif
