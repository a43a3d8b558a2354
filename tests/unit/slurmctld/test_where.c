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
    assert_int_equal(stk_slurmctld_address("stoker_socket=", "/s", &a), -ENOENT);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_socket_is_in_slurms_own_folder),
        cmocka_unit_test(or_where_it_is_said),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
        cmocka_unit_test(words_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
