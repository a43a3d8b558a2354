/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see value.h. In YAML every value is text, in JSON numbers are numbers too: both are
 * taken as text here, and what it means follows from the key. */
#include "rules/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "model/node.h"

int stk_rules_bad(const struct stk_rules_reader *x, const char *what)
{
    return stk_err_set(x->err, -EINVAL, "rule \"%s\": %s%s%s", x->rule.name, x->where,
                       x->where[0] ? ": " : "", what);
}

const char *stk_rules_text(const json_t *v, char *buf, size_t size)
{
    int n = 0;

    if (json_is_string(v))
        n = snprintf(buf, size, "%s", json_string_value(v));
    else if (json_is_integer(v))
        n = snprintf(buf, size, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        n = snprintf(buf, size, "%.6g", json_real_value(v));
    else if (json_is_boolean(v))
        n = snprintf(buf, size, "%s", json_is_true(v) ? "yes" : "no");
    else
        return NULL;
    return n >= 0 && (size_t)n < size ? buf : NULL;
}

bool stk_rules_known(json_t *o, const char *const *keys, char *what, size_t size)
{
    const char *key;
    json_t *v;

    json_object_foreach(o, key, v)
    {
        unsigned best = stk_near_limit(key);
        const char *near = NULL;
        bool known = false;

        for (size_t i = 0; keys[i]; i++) {
            known |= strcmp(keys[i], key) == 0;
            if (stk_near(key, keys[i], &best))
                near = keys[i];
        }
        if (known)
            continue;
        (void)snprintf(what, size, "\"%.40s\" is not known%s%s%s", key,
                       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        return false;
    }
    return true;
}

int stk_rules_keys(const struct stk_rules_reader *x, json_t *o, const char *const *keys)
{
    char what[160];

    return stk_rules_known(o, keys, what, sizeof(what)) ? 0 : stk_rules_bad(x, what);
}

bool stk_rules_milli(const char *s, int64_t most, int64_t *ret)
{
    char *end = NULL;
    double v;

    if (*s < '0' || *s > '9')
        return false;
    v = strtod(s, &end);
    if (*end != '\0' || v < 0 || v > (double)most)
        return false;
    *ret = (int64_t)(v * 1000 + 0.5);
    return true;
}

int stk_rules_no_such(const struct stk_rules_reader *x, const char *noun, const char *name)
{
    char what[160];

    (void)snprintf(what, sizeof(what), "there is no %s \"%.60s\" here", noun, name);
    return stk_rules_bad(x, what);
}

int stk_rules_named(const struct stk_rules_reader *x, enum stk_rules_noun noun, const json_t *v,
                    uint32_t *ret)
{
    static const char *const nouns[] = {"tenant", "queue", "pool", "node", "GPU type"};
    char b[256];
    const char *name = stk_rules_text(v, b, sizeof(b));

    *ret = name ? x->w->find(x->w->ctx, noun, name) : STK_NONE;
    return *ret == STK_NONE ? stk_rules_no_such(x, nouns[noun], name ? name : "?") : 0;
}
