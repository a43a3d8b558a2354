/* SPDX-License-Identifier: Apache-2.0 */
/* xid.h - the driver's error codes (XID) and what they ask for. Most are a program's own fault, and
 * say nothing about the GPU; a scheduler that fences a GPU for them loses GPUs for nothing. */
#ifndef STK_GPUVIEW_XID_H
#define STK_GPUVIEW_XID_H

#include <stdbool.h>
#include <stdint.h>

enum stk_xid_class {
    STK_XID_APP,       /* a program's doing: the GPU is well */
    STK_XID_TRANSIENT, /* the GPU had trouble and goes on; watch it */
    STK_XID_HARDWARE,  /* no new work until it was reset or looked at */
    STK_XID_CLASS_MAX,
};

struct stk_xid {
    uint32_t code; /* UINT32_MAX: the entry for codes that are not listed, which are transient */
    enum stk_xid_class kind;
    const char *text; /* a sentence without its full stop */
};

/* Never NULL. */
const struct stk_xid *stk_xid_find(uint32_t code);

/* Whether a GPU may be used again by itself once it has been well for a while: not after an error
 * that somebody must look into, or that only a restart of the machine ends. */
bool stk_xid_recovers(uint32_t code);

/* app, transient, hardware; "?" for other values. */
const char *stk_xid_class_name(enum stk_xid_class kind);

#endif
