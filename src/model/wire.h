/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - events as bytes: what a journal keeps. docs/spec/events.md has the layout.
 *
 *     unsigned char buf[stk_wire_bound(ev)]...; stk_wire_put(ev, buf, sizeof(buf), &len);
 *     struct stk_wire w; stk_wire_init(&w, &mem); stk_wire_get(buf, len, &w, &err); apply(&w.ev)
 *
 * An event has one encoding. What is read back is well formed (enums in range, nothing left over);
 * whether it is legal the core decides.
 */
#ifndef STK_MODEL_WIRE_H
#define STK_MODEL_WIRE_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/mem.h"
#include "model/event.h"

#define STK_WIRE_VERSION 8

/* Bytes that are enough for any event but SUBMIT with dependencies and PLACE. */
#define STK_WIRE_SMALL 512
/* Bytes that are enough for this event. */
size_t stk_wire_bound(const struct stk_event *ev);

/* 0, -ENOSPC (the buffer is too small), or -EINVAL (a type, cause or kind that does not exist, or
 * more dependencies than a job may have). */
int stk_wire_put(const struct stk_event *ev, unsigned char *buf, size_t cap, size_t *ret_len);

/* An event that was read, and what it points to. Used again for the next one. */
struct stk_wire {
    struct stk_event ev;
    struct stk_job_spec spec;
    struct stk_set set;
    struct stk_dep *deps;
    struct stk_piece *pieces;
    struct stk_booking_spec booking;
    struct stk_node_set nodes;
    struct stk_node_range *ranges;
    uint32_t cap_deps, cap_pieces, cap_ranges;
    struct stk_mem mem;
};

void stk_wire_init(struct stk_wire *w, const struct stk_mem *mem);
void stk_wire_done(struct stk_wire *w);

/* 0, -EBADMSG (not an event), -EPROTONOSUPPORT (of a later version), or -ENOMEM. Memory used is
 * bounded by 'len'. On failure ret->ev is of no use. */
int stk_wire_get(const unsigned char *buf, size_t len, struct stk_wire *ret, struct stk_err *err);

/* A demand inside other encodings (core/save.h), whose versions are those of events. */
void stk_wire_put_demand(struct stk_bytes *b, const struct stk_demand *d);
void stk_wire_get_demand(struct stk_reader *r, struct stk_demand *ret, uint64_t version);
/* Likewise the terms of a job; before version 5 there were none. */
void stk_wire_put_terms(struct stk_bytes *b, const struct stk_terms *t);
void stk_wire_get_terms(struct stk_reader *r, struct stk_terms *ret, uint64_t version);
/* Likewise a reservation: -EINVAL, -ENOMEM. Its nodes live in w->pieces. */
int stk_wire_put_booking(struct stk_bytes *b, const struct stk_booking_spec *k);
int stk_wire_get_booking(struct stk_reader *r, struct stk_wire *w);

#endif
