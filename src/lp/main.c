/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - stoker-lp: solves one linear program after the other for the one that started it.
 *
 * A program of its own, since the solver (COIN-OR CLP) is C++ and comes with libraries that
 * "stoker", which is static, should not carry. A solver that crashes takes no scheduler with it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lp/solve.h"
#include "lp/wire.h"

static bool answer(const struct stk_lp_head *h)
{
    size_t m = h->jobs, k = h->types, n_in = k + 3 * m + m * k, n_out = 1 + m * k;
    double *in = calloc(n_in, sizeof(*in)), *out = calloc(n_out, sizeof(*out));
    const struct stk_lp p = {h->jobs,        h->types,      in, in + k, in + k + m,
                             in + k + 2 * m, in + k + 3 * m};
    bool ok = in && out && stk_lp_get(STDIN_FILENO, in, n_in * sizeof(*in));

    if (ok) {
        int32_t status = stk_lp_solve(&p, &out[0], &out[1]);

        ok = stk_lp_put(STDIN_FILENO, &status, sizeof(status)) &&
             (status != 0 || stk_lp_put(STDIN_FILENO, out, n_out * sizeof(*out)));
    }
    free(in);
    free(out);
    return ok;
}

int main(void)
{
    struct stk_lp_head h;

    if (isatty(STDIN_FILENO)) {
        (void)fputs("stoker-lp: solves linear programs for stoker; it is not for people\n", stderr);
        return 2;
    }
    while (stk_lp_get(STDIN_FILENO, &h, sizeof(h)) && h.jobs > 0 && h.jobs <= STK_LP_MAX_JOBS &&
           h.types > 0 && h.types <= STK_LP_MAX_TYPES)
        if (!answer(&h))
            return 1;
    return 0;
}
