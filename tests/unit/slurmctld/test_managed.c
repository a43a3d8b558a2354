/* SPDX-License-Identifier: Apache-2.0 */
/* stoker.conf beside slurm.conf: which partitions are stoker's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "slurmctld/managed.h"

static bool reads(const char *text, struct stk_managed *m)
{
    return stk_managed_read(text, strlen(text), m);
}

static void partitions_are_listed_with_commas_over_lines(void **state)
{
    struct stk_managed m;

    (void)state;
    assert_true(reads("# ours\n\nPartitions = gpu, gpu-long # two\npartitions=h200", &m));
    assert_true(stk_managed_any(&m, "gpu"));
    assert_true(stk_managed_any(&m, "gpu-long"));
    assert_true(stk_managed_any(&m, "h200"));
    assert_false(stk_managed_any(&m, "gp"));
    assert_false(stk_managed_any(&m, "gpu-longer"));
    assert_false(stk_managed_any(&m, ""));
    assert_false(stk_managed_any(&m, NULL));
}

static void one_of_a_jobs_partitions_is_enough(void **state)
{
    struct stk_managed m;

    (void)state;
    assert_true(reads("Partitions=gpu", &m));
    assert_true(stk_managed_any(&m, "cpu,gpu"));
    assert_true(stk_managed_any(&m, "gpu,cpu"));
    assert_false(stk_managed_any(&m, "cpu,,io"));
}

static void of_several_those_that_are_stokers_are_kept_once(void **state)
{
    struct stk_managed m;
    char kept[STK_MANAGED_SIZE];

    (void)state;
    assert_true(reads("Partitions=gpu,gpu-long", &m));
    stk_managed_only(&m, "cpu,gpu-long,io,gpu,gpu,gpu-long", kept);
    assert_string_equal(kept, "gpu-long,gpu");
    stk_managed_only(&m, "gpu", kept);
    assert_string_equal(kept, "gpu");
    stk_managed_only(&m, "cpu,,gp", kept);
    assert_string_equal(kept, "");
    stk_managed_only(&m, NULL, kept);
    assert_string_equal(kept, "");
}

static void what_is_not_understood_is_said_and_the_rest_counts(void **state)
{
    struct stk_managed m;
    char many[8192];

    (void)state;
    assert_false(reads("Partition=gpu\nPartitions=a", &m));
    assert_true(stk_managed_any(&m, "a"));
    assert_false(reads("gpu\n", &m));
    assert_false(stk_managed_any(&m, "gpu"));
    memset(many, 'x', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    memcpy(many, "Partitions=a,", 13);
    assert_false(reads(many, &m));
    assert_true(stk_managed_any(&m, "a"));
    assert_false(stk_managed_read("Partitions=a\0b", 14, &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_are_listed_with_commas_over_lines),
        cmocka_unit_test(one_of_a_jobs_partitions_is_enough),
        cmocka_unit_test(of_several_those_that_are_stokers_are_kept_once),
        cmocka_unit_test(what_is_not_understood_is_said_and_the_rest_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
