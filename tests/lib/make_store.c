/* SPDX-License-Identifier: Apache-2.0 */
/* make_store.c - "make_store DIR JOBS [hold]": a store with that many jobs, odd numbers ended, an
 * event each. With "hold" it then keeps the store open, as a daemon does, until its input ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/wire.h"
#include "store/store.h"

#define T0 ((stk_time)1700000000 * STK_SECOND)

static struct stk_err err;

static void must(int rc)
{
    if (rc < 0) {
        (void)fprintf(stderr, "make_store: %d %s\n", rc, err.text);
        exit(1);
    }
}

static void put(struct stk_store *st, uint32_t number)
{
    static const char spec[] = "{\"name\": \"train\", \"gpus\": 2, \"command\": [\"true\"]}";
    struct stk_event ev = {.at = T0 + number, .type = STK_EV_TICK};
    struct stk_record r = {.number = number,
                           .uid = 1000,
                           .gid = 1000,
                           .user = "ana",
                           .name = "train",
                           .submitted = T0 + number,
                           .gpus = 2,
                           .tasks = 1};
    unsigned char buf[STK_WIRE_SMALL];
    struct stk_row row = {.at = ev.at, .type = (uint32_t)ev.type, .number = number, .bytes = buf};
    uint64_t seq;

    if (number % 2) {
        r.first_started = r.started = r.submitted;
        r.ended = r.submitted + STK_SECOND;
        r.served = STK_SECOND;
        r.cause = STK_CAUSE_OK;
    }
    must(stk_store_spec_put(st, spec, sizeof(spec) - 1, &r.spec, &err));
    must(stk_store_job_put(st, &r, &err));
    must(stk_wire_put(&ev, buf, sizeof(buf), &row.len));
    must(stk_store_append(st, &row, &seq, &err));
}

int main(int argc, char **argv)
{
    struct stk_store *st;
    uint32_t n;

    if (argc < 3) {
        (void)fprintf(stderr, "usage: make_store DIR JOBS [hold]\n");
        return 2;
    }
    n = (uint32_t)strtoul(argv[2], NULL, 10);
    must(stk_store_open(argv[1], 0, &st, &err));
    must(stk_store_begin(st, &err));
    for (uint32_t i = 1; i <= n; i++)
        put(st, i);
    must(stk_store_commit(st, &err));
    (void)printf("ready\n");
    (void)fflush(stdout);
    if (argc > 3)
        while (getchar() != EOF)
            ;
    stk_store_close(st);
    return 0;
}
