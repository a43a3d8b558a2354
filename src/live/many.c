/* SPDX-License-Identifier: Apache-2.0 */
#include "live/many.h"

#include <stdlib.h>
#include <string.h>

#include "sys/json.h"

void stk_many_done(struct stk_many *m)
{
    json_decref(m->list);
    free(m->text);
    free(m->cuts);
    *m = (struct stk_many){0};
}

/* Line and column of the text at which the cut begins, so that an error is found in what was sent.
 */
static void find_place(const struct stk_many *m, uint32_t i, const json_error_t *why,
                       uint32_t *line, uint32_t *column)
{
    const char *p = m->text, *end = m->text + m->cuts[i].from, *last = m->text;

    *line = (uint32_t)why->line;
    *column = (uint32_t)why->column;
    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        last = ++p;
        (*line)++;
    }
    if (why->line <= 1)
        *column += (uint32_t)(end - last);
}

json_t *stk_many_get(const struct stk_many *m, uint32_t i, int *ret_rc, struct stk_err *err)
{
    json_error_t why;
    uint32_t line, column;
    json_t *j;

    *ret_rc = 0;
    if (m->list)
        return json_incref(json_array_get(m->list, i));
    j = stk_json_load(m->text + m->cuts[i].from, m->cuts[i].len,
                      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (j) {
        stk_json_make_whole(j);
        return j;
    }
    if (stk_json_starved(&why)) {
        *ret_rc = stk_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    find_place(m, i, &why, &line, &column);
    *ret_rc = stk_err_set(err, -EINVAL, "the body is not valid JSON: line %u, column %u: %s", line,
                          column, why.text);
    return NULL;
}
