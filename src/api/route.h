/* SPDX-License-Identifier: Apache-2.0 */
/* route.h - which row of the route table a path belongs to. */
#ifndef STK_API_ROUTE_H
#define STK_API_ROUTE_H

#include "api/http.h"

/* Whether 'path' fits the pattern; copies what stands for {names} into params, in order. */
bool stk_route_fits(const char *pattern, const char *path, char (*params)[128], uint32_t max);
/* The row, or NULL: then *ret_other is a row with this path and another method, or NULL. */
const struct stk_route *stk_route_find(const struct stk_route *routes, const char *method,
                                       const char *path, const struct stk_route **ret_other);
/* "GET, POST" */
void stk_route_allow(const struct stk_route *routes, const char *path, char *buf, size_t size);
/* The pattern most like 'path', or NULL when none is. */
const char *stk_route_near(const struct stk_route *routes, const char *path);
/* Whether the route's query may have this name. */
bool stk_route_takes(const struct stk_route *route, const char *name);

#endif
