/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_scenario.c - any bytes as a file of scenarios: each is read or refused with its line, and
 * what was read can be played. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "fuzz/fyaml_leaks.h"
#include "fuzz/require.h"
#include "scenario/scenario.h"

#define MOST_JOBS 20
#define MOST_DIGITS 2 /* of a number of nodes or GPUs */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool small(const struct scenario *s)
{
    uint32_t digits = 0;

    for (const char *c = s->cluster.s; *c; c++) {
        digits = isdigit((unsigned char)*c) ? digits + 1 : 0;
        if (digits > MOST_DIGITS)
            return false;
    }
    return s->n_jobs <= MOST_JOBS && s->n_params == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size;
    FILE *out = fopen("/dev/null", "w");
    uint32_t line = 0;
    int rc = 1;

    for (int i = 0; i < 4 && rc > 0 && out; i++) {
        struct stk_err err = {""};
        struct scenario s;

        rc = scn_parse(&at, end, &line, &s, &err);
        require(rc >= 0 || strncmp(err.text, "line ", 5) == 0, "a refusal names the line");
        if (rc > 0 && small(&s))
            require(scn_play(&s, "fuzz", out, &err) >= 0 || err.text[0], "a refusal says why");
        scn_free(&s);
    }
    if (out)
        (void)fclose(out);
    return 0;
}
