/* SPDX-License-Identifier: Apache-2.0 */
/* require.h - a promise that a fuzzer holds the code to. */
#ifndef STK_TESTS_FUZZ_REQUIRE_H
#define STK_TESTS_FUZZ_REQUIRE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void require(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "not true: %s\n", what);
        abort();
    }
}

#endif
