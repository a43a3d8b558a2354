/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/yaml_text.h"

#include <inttypes.h>

int stk_yaml_text_check(const char **io_name, const char *data, size_t len, struct stk_err *err)
{
    struct stk_trace_lines in;

    stk_lines_init(&in, *io_name, data, len);
    in.comment = 0;
    *io_name = in.name;
    while (stk_lines_next(&in)) {
        const char *what = in.text.len > STK_TRACE_MAX_LINE ? "the line is too long"
                           : !stk_field_is_text(in.text)    ? "expected text in UTF-8"
                           : in.text.s[0] == '%'            ? "YAML directives are not supported"
                                                            : NULL;

        if (what)
            return stk_err_set(err, -EINVAL, "%s:%" PRIu32 ": %s", in.name, in.number, what);
    }
    return 0;
}

struct stk_field stk_yaml_scalar(struct fy_node *n)
{
    size_t len = 0;
    const char *s =
        n && fy_node_is_scalar(n) && !fy_node_is_alias(n) ? fy_node_get_scalar(n, &len) : NULL;

    return (struct stk_field){s ? s : "", s && len <= STK_TRACE_MAX_LINE ? (uint32_t)len : 0};
}
