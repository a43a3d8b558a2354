/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_scan.c - any bytes as the body of a request, whole and in odd steps: the verdict and the
 * cuts are the same, no limit is passed, and whatever the parser takes is structure the scanner
 * took, unless it was over a limit. The first byte chooses the steps. */
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "api/scan.h"
#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int scan(struct stk_scan *s, const char *text, size_t len, size_t step)
{
    static const struct stk_scan_limits limits = {
        .bytes = 4000, .values = 200, .depth = 16, .jobs = 20, .who = "users"};
    struct stk_err err = {""};
    int rc = 0;

    stk_scan_init(s, &limits);
    for (size_t at = 0; at < len && rc == 0; at += step)
        rc = stk_scan_feed(s, text + at, len - at < step ? len - at : step, &err);
    rc = rc < 0 ? rc : stk_scan_end(s, &err);
    require(rc == 0 || err.text[0], "a refusal says why");
    require(s->n_jobs <= 20 && s->depth <= 16, "limits hold");
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    struct stk_scan a, b;
    json_t *j;
    int rc, other;

    if (size < 2)
        return 0;
    size--;
    rc = scan(&a, text, size, size);
    other = scan(&b, text, size, 1 + data[0] % 7);
    require(rc == other || (rc < 0 && other < 0), "steps make no difference");
    j = json_loadb(text, size, 0, NULL);
    require(!j || rc == 0 || rc == -EFBIG || a.depth == 16, "what the parser takes is taken");
    if (rc == 0) {
        require(a.n_jobs == b.n_jobs, "the same cuts");
        require(!a.ended || !j || json_array_size(json_object_get(j, "jobs")) >= a.n_jobs ||
                    a.members > 1,
                "no more cuts than descriptions");
        for (uint32_t i = 0; i < a.n_jobs; i++)
            require(a.jobs[i].from + a.jobs[i].len <= size &&
                        memcmp(&a.jobs[i], &b.jobs[i], sizeof(a.jobs[i])) == 0,
                    "cuts are within the text");
    }
    json_decref(j);
    stk_scan_done(&a);
    stk_scan_done(&b);
    return 0;
}
