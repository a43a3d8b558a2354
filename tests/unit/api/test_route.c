/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/route.h"

static const struct stk_route routes[] = {
    {"GET", "/", NULL, STK_NEED_NONE, "token", NULL, NULL, NULL, 200, ""},
    {"GET", "/v1/jobs", NULL, STK_NEED_USER, "limit after", NULL, NULL, NULL, 200, ""},
    {"POST", "/v1/jobs", NULL, STK_NEED_USER, "", NULL, NULL, NULL, 201, ""},
    {"POST", "/v1/jobs/act", NULL, STK_NEED_USER, "", NULL, NULL, NULL, 200, ""},
    {"GET", "/v1/jobs/{id}", NULL, STK_NEED_USER, "", NULL, NULL, NULL, 200, ""},
    {"GET", "/v1/jobs/{id}/log", NULL, STK_NEED_USER, "", NULL, NULL, NULL, 200, ""},
    {0},
};

static void patterns_fit_whole_paths(void **state)
{
    char params[2][128];

    (void)state;
    assert_true(stk_route_fits("/", "/", params, 2));
    assert_true(stk_route_fits("/v1/jobs/{id}/log", "/v1/jobs/12/log", params, 2));
    assert_string_equal(params[0], "12");
    assert_false(stk_route_fits("/v1/jobs/{id}/log", "/v1/jobs/12/lo", params, 2));
    assert_false(stk_route_fits("/v1/jobs/{id}/log", "/v1/jobs/12/log/", params, 2));
    assert_false(stk_route_fits("/v1/jobs/{id}/log", "/v1/jobs//log", params, 2));
    assert_false(stk_route_fits("/v1/jobs/{id}", "/v1/jobs", params, 2));
    assert_false(stk_route_fits("/v1/jobs", "v1/jobs", params, 2));
    assert_false(stk_route_fits("/v1/jobs", "", params, 2));
    assert_false(stk_route_fits("/{a}/{b}/{c}", "/1/2/3", params, 2));
}

static void long_segments_do_not_fit(void **state)
{
    char params[2][128], path[300] = "/v1/jobs/";

    (void)state;
    memset(path + strlen(path), 'x', 200);
    assert_false(stk_route_fits("/v1/jobs/{id}", path, params, 2));
}

static void methods_tell_routes_apart(void **state)
{
    const struct stk_route *other;
    char allow[64];

    (void)state;
    assert_ptr_equal(stk_route_find(routes, "POST", "/v1/jobs", &other), &routes[2]);
    assert_ptr_equal(stk_route_find(routes, "HEAD", "/v1/jobs", &other), &routes[1]);
    assert_null(stk_route_find(routes, "DELETE", "/v1/jobs", &other));
    assert_non_null(other);
    stk_route_allow(routes, "/v1/jobs", allow, sizeof(allow));
    assert_string_equal(allow, "GET, POST");
    stk_route_allow(routes, "/v1/jobs/12", allow, sizeof(allow));
    assert_string_equal(allow, "GET");
    stk_route_allow(routes, "/v1/jobs/act", allow, sizeof(allow)); /* "act" is no {id} */
    assert_string_equal(allow, "POST");
    assert_null(stk_route_find(routes, "GET", "/v2", &other));
    assert_null(other);
}

static void the_nearest_path_is_named(void **state)
{
    (void)state;
    assert_string_equal(stk_route_near(routes, "/v1/job"), "/v1/jobs");
    assert_string_equal(stk_route_near(routes, "/v1/jobs/12/logs"), "/v1/jobs/{id}/log");
    assert_null(stk_route_near(routes, "/completely/something/else/entirely"));
}

static void queries_are_lists_of_names(void **state)
{
    (void)state;
    assert_true(stk_route_takes(&routes[1], "limit"));
    assert_true(stk_route_takes(&routes[1], "after"));
    assert_false(stk_route_takes(&routes[1], "lim"));
    assert_false(stk_route_takes(&routes[1], "limit after"));
    assert_false(stk_route_takes(&routes[1], ""));
    assert_false(stk_route_takes(&routes[2], "limit"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_fit_whole_paths),   cmocka_unit_test(long_segments_do_not_fit),
        cmocka_unit_test(methods_tell_routes_apart),  cmocka_unit_test(the_nearest_path_is_named),
        cmocka_unit_test(queries_are_lists_of_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
