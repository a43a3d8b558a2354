/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - "stoker report": the answer of /v1/report in words. */
#ifndef STK_CLI_REPORT_H
#define STK_CLI_REPORT_H

#include <jansson.h>
#include <stdio.h>

/* "12.50 EUR"; "" where it is not known. */
const char *stk_report_money(const json_t *report, const json_t *o, const char *key, char *buf,
                             size_t size);
/* "37%"; "-" where it is not known. */
const char *stk_report_share(const json_t *o, const char *key, char *buf, size_t size);
/* "1,234" or "12.3"; "-" where it is not known. */
const char *stk_report_number(const json_t *o, const char *key, char *buf, size_t size);

/* One page that loads nothing from elsewhere and can be printed and mailed. */
void stk_report_page(FILE *f, const json_t *report);

#endif
