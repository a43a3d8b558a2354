/* SPDX-License-Identifier: Apache-2.0 */
/* prom.h - text in Prometheus' format (0.0.4), as it is made. Out of memory is found at the end. */
#ifndef STK_API_PROM_H
#define STK_API_PROM_H

#include "api/http.h"
#include "live/counts.h"

struct stk_prom {
    char *s;
    size_t len, cap;
    bool failed;
};

/* A family: to be called once, before its lines. */
void stk_prom_head(struct stk_prom *p, const char *name, const char *type, const char *help);

#define STK_PROM_LABELS 8u
struct stk_prom_labels {
    const char *name[STK_PROM_LABELS]; /* NULL: no more */
    const char *value[STK_PROM_LABELS];
};

/* A line; 'labels' may be NULL. Values of labels are escaped and cut at 200 bytes. */
void stk_prom_line(struct stk_prom *p, const char *name, const struct stk_prom_labels *labels,
                   double value);
/* With one label, or (NULL) none. */
void stk_prom_put(struct stk_prom *p, const char *name, const char *label, const char *of,
                  double value);
/* A whole family. */
void stk_prom_one(struct stk_prom *p, const char *name, const char *type, const char *help,
                  double value);
void stk_prom_histogram(struct stk_prom *p, const char *name, const char *help,
                        const struct stk_histogram *h);

/* Answers with it. */
void stk_prom_send(struct stk_prom *p, struct stk_request *r);

#endif
