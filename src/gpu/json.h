/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - members of an answer. What is not a value (NaN, text that is not UTF-8) is left out. */
#ifndef STK_GPU_JSON_H
#define STK_GPU_JSON_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

static inline void stk_json_int(json_t *o, const char *key, int64_t v)
{
    (void)json_object_set_new(o, key, json_integer(v));
}

static inline void stk_json_text(json_t *o, const char *key, const char *text)
{
    (void)json_object_set_new(o, key, json_string(text));
}

/* Three decimals: readings are not better than that, and lines stay short. */
static inline void stk_json_real(json_t *o, const char *key, double v)
{
    if (isfinite(v))
        (void)json_object_set_new(o, key, json_real(round(v * 1000) / 1000));
}

#endif
