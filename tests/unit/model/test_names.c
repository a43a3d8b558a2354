/* SPDX-License-Identifier: Apache-2.0 */
/* test_names.c - every value of every enum has a name, a different one, fit for a config or a URL.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/event.h"
#include "model/job.h"
#include "model/reason.h"

#define NAME(fn, type)                                                                             \
    static const char *name_##fn(unsigned i)                                                       \
    {                                                                                              \
        return stk_##fn##_name((enum type)i);                                                      \
    }
NAME(job_state, stk_job_state)
NAME(cause, stk_cause)
NAME(tier, stk_tier)
NAME(kind, stk_job_kind)
NAME(dep_type, stk_dep_type)
NAME(event_type, stk_event_type)
NAME(reason, stk_reason_code)

static void check(const char *(*name)(unsigned), unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        assert_non_null(name(i));
        assert_true(strlen(name(i)) > 1);
        assert_int_equal(strspn(name(i), "abcdefghijklmnopqrstuvwxyz_-"), strlen(name(i)));
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(name(i), name(k));
    }
    assert_string_equal(name(n), "?"); /* and no other value has one */
    assert_string_equal(name(n + 1000), "?");
    assert_string_equal(name((unsigned)-1), "?");
}

static void every_value_has_its_own_name(void **state)
{
    (void)state;
    check(name_job_state, STK_JOB_STATE_MAX);
    check(name_cause, STK_CAUSE_MAX);
    check(name_tier, STK_TIER_MAX);
    check(name_kind, STK_KIND_MAX);
    check(name_dep_type, STK_DEP_TYPE_MAX);
    check(name_event_type, STK_EV_TYPE_MAX);
    check(name_reason, STK_WHY_MAX);
}

static void names_are_those_of_the_documents(void **state)
{
    (void)state;
    assert_string_equal(stk_job_state_name(STK_JOB_STOPPING), "stopping");
    assert_string_equal(stk_job_state_name(STK_JOB_DONE), "done");
    assert_string_equal(stk_cause_name(STK_CAUSE_NODE_LOST), "node_lost");
    assert_string_equal(stk_cause_name(STK_CAUSE_DEPENDENCY), "dependency");
    assert_string_equal(stk_tier_name(STK_TIER_CRITICAL), "critical");
    assert_string_equal(stk_kind_name(STK_KIND_SHELL), "shell");
    assert_string_equal(stk_dep_type_name(STK_DEP_AFTERNOTOK), "afternotok");
    assert_string_equal(stk_event_type_name(STK_EV_NODE_DOWN), "node_down");
    assert_string_equal(stk_event_type_name(STK_EV_TICK), "tick");
    assert_string_equal(stk_reason_name(STK_WHY_RANK), "rank");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_its_own_name),
        cmocka_unit_test(names_are_those_of_the_documents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
