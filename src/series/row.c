/* SPDX-License-Identifier: Apache-2.0 */
#include "series/row.h"

#include <errno.h>
#include <math.h>
#include <string.h>

size_t stk_row_size(const struct stk_row_shape *r)
{
    return STK_ROW_HEAD + (size_t)r->steps * r->members * r->fields * sizeof(float);
}

static void put16(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static uint32_t get16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

void stk_row_put(const struct stk_row_shape *r, const float *values, unsigned char *bytes)
{
    size_t n = (size_t)r->steps * r->members * r->fields;

    bytes[0] = 1;
    bytes[1] = (unsigned char)r->fields;
    put16(bytes + 2, r->members);
    put16(bytes + 4, r->steps);
    put16(bytes + 6, r->step_s);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof(bits));
        put16(bytes + STK_ROW_HEAD + 4 * i, bits);
        put16(bytes + STK_ROW_HEAD + 4 * i + 2, bits >> 16);
    }
}

int stk_row_get(const void *bytes, size_t len, struct stk_row_shape *ret)
{
    const unsigned char *b = bytes;
    struct stk_row_shape r;

    if (!b || len < STK_ROW_HEAD || b[0] != 1)
        return -EBADMSG;
    r = (struct stk_row_shape){b[1], get16(b + 2), get16(b + 4), get16(b + 6)};
    if (r.fields == 0 || r.members == 0 || r.members > STK_SERIES_MAX_MEMBERS || r.steps == 0 ||
        r.step_s == 0 || len != stk_row_size(&r))
        return -EBADMSG;
    *ret = r;
    return 0;
}

float stk_row_value(const void *bytes, const struct stk_row_shape *r, uint32_t step,
                    uint32_t member, uint32_t field)
{
    size_t at = ((size_t)step * r->members + member) * r->fields + field;
    const unsigned char *p = (const unsigned char *)bytes + STK_ROW_HEAD + 4 * at;
    uint32_t bits;
    float v;

    if (field >= r->fields || member >= r->members)
        return NAN;
    bits = get16(p) | get16(p + 2) << 16;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

void stk_fold_add(struct stk_fold *f, enum stk_series_how how, float v, uint32_t weight)
{
    if (!isfinite(v))
        return;
    if (how == STK_SERIES_MEAN)
        f->sum += v * (float)weight;
    else
        f->sum = how == STK_SERIES_LAST ? v : f->sum + v;
    f->weight += (float)weight;
}

float stk_fold_value(const struct stk_fold *f, enum stk_series_how how)
{
    if (f->weight <= 0)
        return NAN;
    return how == STK_SERIES_MEAN ? f->sum / f->weight : f->sum;
}
