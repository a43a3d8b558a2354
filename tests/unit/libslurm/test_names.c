/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts and of resources, as Slurm writes them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "libslurm/names.h"

struct joined {
    char text[512];
    uint32_t n;
};

static int join(void *ctx, const char *name)
{
    struct joined *j = ctx;

    if (j->n++ > 0)
        (void)strncat(j->text, " ", sizeof(j->text) - strlen(j->text) - 1);
    (void)strncat(j->text, name, sizeof(j->text) - strlen(j->text) - 1);
    return 0;
}

static void is(const char *list, const char *want)
{
    struct joined j = {.n = 0};

    assert_int_equal(stk_slurm_hosts(list, join, &j), 0);
    assert_string_equal(j.text, want);
}

static int error_of(const char *list)
{
    struct joined j = {.n = 0};

    return stk_slurm_hosts(list, join, &j);
}

static void lists_of_hosts_are_spelt_out(void **state)
{
    (void)state;
    is(NULL, "");
    is("", "");
    is("n1", "n1");
    is("n1,n2", "n1 n2");
    is("n[1-3]", "n1 n2 n3");
    is("n[1-3,7],login", "n1 n2 n3 n7 login");
    is("gpu[08-11]", "gpu08 gpu09 gpu10 gpu11");
    is("gpu[9-11]", "gpu9 gpu10 gpu11");
    is("r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02");
    is("n[5]-ib", "n5-ib");
    is("a[1],b[2]", "a1 b2");
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    assert_int_equal(error_of("n[1-3"), -EINVAL);
    assert_int_equal(error_of("n[]"), -EINVAL);
    assert_int_equal(error_of("n[3-1]"), -EINVAL);
    assert_int_equal(error_of("n[1-]"), -EINVAL);
    assert_int_equal(error_of("n[1,]"), -EINVAL);
    assert_int_equal(error_of("n[x]"), -EINVAL);
    assert_int_equal(error_of(",n"), -EINVAL);
    assert_int_equal(error_of("n[0-999999999]"), -E2BIG);
    assert_int_equal(error_of("n[1-1000]m[1-1000]"), -E2BIG);
}

/* Slurm finds a number of GPUs in each of these. */
static void gpus_in_odd_words_are_read_or_refused(void **state)
{
    static const char *const odd[] = {"gres:gpu:8k",
                                      "gres:gpu:+8",
                                      "gres:gpu: 8",
                                      "gres:gpu:h100:1kb",
                                      "gres:gpu:",
                                      "gres:gpu::8",
                                      "gres:gpu:a:b:8",
                                      "gres:gpu:-18446744073709551608",
                                      "gres:gpu:10000000000",
                                      "gres:cpu:1,gres:gpu:2G"};
    struct stk_slurm_gres g[4];

    (void)state;
    assert_int_equal(stk_slurm_gpus("gres:gpu:0000000000008", g, 4), 1);
    assert_int_equal(g[0].count, 8);
    assert_int_equal(stk_slurm_gpus("gres:gpu:h100:0000000000", g, 4), 1);
    assert_int_equal(g[0].count, 0);
    assert_int_equal(stk_slurm_gpus("xgres:gpu:8,license:a gres:gpu:3", g, 4), 2);
    assert_true(g[0].count == 8 && g[1].count == 3);
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
        assert_int_equal(stk_slurm_gpus(odd[i], g, 4), -EINVAL);
}

static void gpus_are_read(void **state)
{
    struct stk_slurm_gres g[4];

    (void)state;
    assert_int_equal(stk_slurm_gpus(NULL, g, 4), 0);
    assert_int_equal(stk_slurm_gpus("(null)", g, 4), 0);
    assert_int_equal(stk_slurm_gpus("gpu:8", g, 4), 1);
    assert_string_equal(g[0].type, "");
    assert_int_equal(g[0].count, 8);
    assert_int_equal(stk_slurm_gpus("gpu", g, 4), 1);
    assert_int_equal(g[0].count, 1);
    assert_int_equal(stk_slurm_gpus("gpu:h100:2(IDX:0,3-4),craynetwork:1,gpu:a100:4(S:0-1)", g, 4),
                     2);
    assert_string_equal(g[0].type, "h100");
    assert_int_equal(g[0].count, 2);
    assert_true(g[0].indices == 0x19);
    assert_string_equal(g[1].type, "a100");
    assert_int_equal(g[1].count, 4);
    assert_true(g[1].indices == 0);
    assert_int_equal(stk_slurm_gpus("gpu:h100:0(IDX:N/A)", g, 4), 1);
    assert_int_equal(g[0].count, 0);
    assert_int_equal(stk_slurm_gpus("gres/gpu:h100=3", g, 4), 1);
    assert_string_equal(g[0].type, "h100");
    assert_int_equal(g[0].count, 3);
    assert_int_equal(stk_slurm_gpus("gres/gpu=3", g, 4), 1);
    assert_string_equal(g[0].type, "");
    assert_int_equal(g[0].count, 3);
    assert_int_equal(stk_slurm_gpus("gpu:g0:1,gpu:g1:1", g, 1), 2);
    assert_string_equal(g[0].type, "g0");
    assert_int_equal(stk_slurm_gpus("gpumem:5", g, 4), 0);
    assert_int_equal(stk_slurm_gpus("gpu(CNT:3),gpu:(null):2(IDX:0-1),gpu:1g.5gb", g, 4), 3);
    assert_true(g[0].count == 3 && g[1].count == 2 && g[1].indices == 3 && !g[1].type[0]);
    assert_true(g[2].count == 1 && strcmp(g[2].type, "1g.5gb") == 0);
    assert_int_equal(stk_slurm_gpus("gpu:1(IDX:64)", g, 4), -EINVAL);
    assert_int_equal(stk_slurm_gpus("gpu:1(IDX:", g, 4), -EINVAL);
    assert_int_equal(stk_slurm_gpus("gpu:99999999999", g, 4), -EINVAL);
}

static void says(const char *script, const char *want)
{
    char buf[64] = "";

    assert_true(stk_slurm_script_signal(script, buf, sizeof(buf)) == (*want != '\0'));
    assert_string_equal(buf, want);
}

static void plain(const char *list, const char *want)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "%s", list);
    stk_slurm_plain_gres(text);
    assert_string_equal(text, want);
}

static void what_is_asked_for_is_written_in_one_way(void **state)
{
    (void)state;
    plain("gres:gpu:h100:2,gres:gpu:a100:1", "gres:gpu:h100:2,gres:gpu:a100:1");
    plain("gres/gpu:2", "gres:gpu:2");
    plain("gres/gpu", "gres:gpu");
    plain("cpu=2,gres/gpu:h100=2", "gres:gpu:h100:2");
    plain("gres/gpu=1,license/x=2,gres/mps:5", "gres:gpu:1,gres:mps:5");
    plain("cpu:2", "");
    plain("gres", "");
    plain(",,gres/", "gres:");
    plain("", "");
}

static void a_scripts_own_signal_is_read(void **state)
{
    (void)state;
    says("#!/bin/bash\n#SBATCH --signal=B:USR1@60\nsleep 1\n", "B:USR1@60");
    says("#!/bin/bash\n\n# why\n#SBATCH -t 10 --signal USR2 -N1\n#SBATCH -n 2", "USR2");
    says("#SBATCH --signal=1\n#SBATCH\t--signal=2@5\r\n", "2@5"); /* the last */
    says("#!/bin/bash\necho\n#SBATCH --signal=1\n", "");          /* too late */
    says("#SBATCH --signals=1\n##SBATCH --signal=2\n #SBATCH --signal=3\n#sbatch --signal=4", "");
    says("#SBATCH --signal=\n#SBATCH --signal\n#SBATCH", "");
    says("#SBATCH --comment=--signal=9", "");
    says("#SBATCH --signal=0123456789012345678901234567890123456789012345678901234567890123", "");
    says("", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_hosts_are_spelt_out),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(gpus_are_read),
        cmocka_unit_test(what_is_asked_for_is_written_in_one_way),
        cmocka_unit_test(gpus_in_odd_words_are_read_or_refused),
        cmocka_unit_test(a_scripts_own_signal_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
