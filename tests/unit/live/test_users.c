/* SPDX-License-Identifier: Apache-2.0 */
/* Who a user is is asked again after a minute, and a directory that does not answer is not
 * believed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "live/users.h"

static struct stk_live_users users;
static int answer;     /* of the directory */
static uint32_t group; /* that it says */
static int asked;

static int look_up(uint32_t uid, struct stk_user *ret)
{
    asked++;
    *ret = (struct stk_user){.uid = uid, .gid = uid, .groups = {uid}, .n_groups = 1};
    (void)snprintf(ret->name, sizeof(ret->name), "%u", uid);
    if (answer < 0)
        return answer;
    ret->gid = ret->groups[0] = group;
    (void)snprintf(ret->name, sizeof(ret->name), "name%u", uid);
    return 0;
}

static int make(void **state)
{
    (void)state;
    users = (struct stk_live_users){.look_up = look_up};
    answer = asked = 0;
    group = 50;
    return 0;
}

static void a_group_that_is_taken_away_is_gone_after_a_minute(void **state)
{
    const struct stk_user *u;

    (void)state;
    assert_int_equal(stk_live_users_get(&users, 7, STK_SECOND, &u), 0);
    assert_int_equal(u->gid, 50);
    group = 60;
    assert_int_equal(stk_live_users_get(&users, 7, 60 * STK_SECOND, &u), 0);
    assert_int_equal(u->gid, 50);
    assert_int_equal(stk_live_users_get(&users, 7, 61 * STK_SECOND, &u), 0);
    assert_int_equal(u->gid, 60);
    assert_int_equal(users.n, 1);
    group = 70; /* the clock was set back */
    assert_int_equal(stk_live_users_get(&users, 7, 0, &u), 0);
    assert_int_equal(u->gid, 70);
}

static void that_nobody_could_say_is_not_remembered(void **state)
{
    const struct stk_user *u;

    (void)state;
    answer = -EAGAIN;
    for (int i = 0; i < 3; i++) /* in one turn it is asked once */
        assert_int_equal(stk_live_users_get(&users, 7, STK_SECOND, &u), -EAGAIN);
    assert_int_equal(asked, 1);
    assert_string_equal(u->name, "7");
    answer = 0;
    assert_int_equal(stk_live_users_get(&users, 7, STK_SECOND + 1, &u), 0);
    assert_int_equal(u->gid, 50);
    assert_string_equal(u->name, "name7");
}

static void who_was_known_stays_so_while_nobody_answers_and_not_when_gone(void **state)
{
    const struct stk_user *u;

    (void)state;
    (void)stk_live_users_get(&users, 7, STK_SECOND, &u);
    answer = -EAGAIN;
    assert_int_equal(stk_live_users_get(&users, 7, 100 * STK_SECOND, &u), -EAGAIN);
    assert_string_equal(u->name, "name7");
    answer = -ENOENT;
    assert_int_equal(stk_live_users_get(&users, 7, 101 * STK_SECOND, &u), -ENOENT);
    assert_string_equal(u->name, "7");
}

static void many_users_push_each_other_out(void **state)
{
    const struct stk_user *u;

    (void)state;
    for (uint32_t uid = 1; uid <= 2 * STK_LIVE_USERS; uid++) {
        assert_int_equal(stk_live_users_get(&users, uid, STK_SECOND, &u), 0);
        assert_int_equal(u->uid, uid);
    }
    assert_int_equal(users.n, STK_LIVE_USERS);
    assert_int_equal(stk_live_users_get(&users, 2 * STK_LIVE_USERS, STK_SECOND, &u), 0);
    assert_int_equal(asked, 2 * STK_LIVE_USERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_group_that_is_taken_away_is_gone_after_a_minute, make),
        cmocka_unit_test_setup(that_nobody_could_say_is_not_remembered, make),
        cmocka_unit_test_setup(who_was_known_stays_so_while_nobody_answers_and_not_when_gone, make),
        cmocka_unit_test_setup(many_users_push_each_other_out, make)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
