/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_config.c - any bytes as a configuration file: refused with a sentence, or policies that can
 * be resolved. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "fuzz/fyaml_leaks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_config c;
    struct stk_setup setup;
    struct stk_err err = {""};
    int rc;

    stk_config_init(&c);
    rc = stk_config_parse("fuzz", (const char *)data, size, &c, &err);
    if ((rc < 0 && !err.text[0]) || (rc == 0 && stk_config_setup(&c, &setup, &err) < 0)) {
        (void)fprintf(stderr, "rc %d: %s\n", rc, err.text);
        abort();
    }
    stk_config_done(&c);
    return 0;
}
