/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_wire.c - any bytes as an event: refused, or read and then written back as the same bytes. */
#include <string.h>

#include "lib/fixture.h"
#include "model/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char back[1 << 16];
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_err err = {{0}};
    struct stk_wire w;
    size_t len = 0;

    if (size > sizeof(back))
        return 0;
    stk_wire_init(&w, &mem);
    if (stk_wire_get(data, size, &w, &err) == 0) {
        fx_must(stk_wire_put(&w.ev, back, sizeof(back), &len) == 0, "what was read can be written");
        fx_must(data[0] < STK_WIRE_VERSION || (len == size && memcmp(back, data, size) == 0),
                "an event has one encoding");
        fx_must(len <= stk_wire_bound(&w.ev), "the bound holds");
    } else {
        fx_must(err.text[0] != '\0', "a refusal has a sentence");
    }
    stk_wire_done(&w);
    fx_must(heap.live == 0, "nothing leaks");
    return 0;
}
