/* SPDX-License-Identifier: Apache-2.0 */
/* Where our plugins and stoker-libslurm meet. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slurmctld/where.h"

static void the_socket_is_in_slurms_own_folder(void **state)
{
    struct sockaddr_un a;

    (void)state;
    assert_int_equal(stk_slurmctld_address("defer,bf_max=3", "/var/spool/slurm", &a), 0);
    assert_string_equal(a.sun_path, "/var/spool/slurm/stoker.sock");
    assert_int_equal(stk_slurmctld_address(NULL, "/s", &a), 0);
    assert_string_equal(a.sun_path, "/s/stoker.sock");
    assert_int_equal(stk_slurmctld_address(NULL, NULL, &a), -ENOENT);
}

static void or_where_it_is_said(void **state)
{
    struct sockaddr_un a;

    (void)state;
    assert_int_equal(stk_slurmctld_address("defer,stoker_socket=/run/x.sock,a=b", "/s", &a), 0);
    assert_string_equal(a.sun_path, "/run/x.sock");
    assert_int_equal(stk_slurmctld_address("stoker_socket=/y", "/s", &a), 0);
    assert_string_equal(a.sun_path, "/y");
    assert_int_equal(stk_slurmctld_address("stoker_socket=", "/s", &a), -ENAMETOOLONG);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    struct sockaddr_un a;
    char path[200];

    (void)state;
    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(stk_slurmctld_address(NULL, path, &a), -ENAMETOOLONG);
}

static void words_are_whole(void **state)
{
    (void)state;
    assert_true(stk_slurmctld_param("a,stoker_no_backfill,b", "stoker_no_backfill"));
    assert_true(stk_slurmctld_param("stoker_no_backfill", "stoker_no_backfill"));
    assert_false(stk_slurmctld_param("stoker_no_backfill=0", "stoker_no_backfill"));
    assert_true(
        stk_slurmctld_param("stoker_no_backfill=0,stoker_no_backfill", "stoker_no_backfill"));
    assert_false(stk_slurmctld_param(NULL, "x"));
}

static void the_number_of_a_job_is_read(void **state)
{
    (void)state;
    assert_int_equal(stk_slurmctld_job("JobId=12"), 12);
    assert_int_equal(stk_slurmctld_job("JobId=12_3(15)"), 15);
    assert_int_equal(stk_slurmctld_job("JobId=12+1(13)"), 13);
    assert_int_equal(stk_slurmctld_job("JobId=12_*"), 0);
    assert_int_equal(stk_slurmctld_job("JobId=CORRUPT"), 0);
    assert_int_equal(stk_slurmctld_job("JobId=99999999999"), 0);
    assert_int_equal(stk_slurmctld_job("JobId="), 0);
    assert_int_equal(stk_slurmctld_job("%pJ"), 0);
    assert_int_equal(stk_slurmctld_job(NULL), 0);
}

static void values_are_whole_or_nothing(void **state)
{
    char v[5];

    (void)state;
    assert_true(stk_slurmctld_value("a=1,then=abcd,b", "then=", v, sizeof(v)));
    assert_string_equal(v, "abcd");
    assert_false(stk_slurmctld_value("then=abcde", "then=", v, sizeof(v)));
    assert_false(stk_slurmctld_value("then=", "then=", v, sizeof(v)));
    assert_false(stk_slurmctld_value(NULL, "then=", v, sizeof(v)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_socket_is_in_slurms_own_folder),
        cmocka_unit_test(or_where_it_is_said),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
        cmocka_unit_test(words_are_whole),
        cmocka_unit_test(the_number_of_a_job_is_read),
        cmocka_unit_test(values_are_whole_or_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
