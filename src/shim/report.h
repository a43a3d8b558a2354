/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what a starting task says to the shim: packets over a socket pair that closes at exec.
 */
#ifndef STK_SHIM_REPORT_H
#define STK_SHIM_REPORT_H

#include <stdint.h>

enum { STK_REPORT_FAILED = 1, STK_REPORT_LOG };

struct stk_report {
    uint32_t kind, task;
    char text[248]; /* FAILED: why */
};

#endif
