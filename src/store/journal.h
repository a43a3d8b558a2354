/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - inside the store: how a snapshot's bytes are known to be whole. */
#ifndef STK_STORE_JOURNAL_H
#define STK_STORE_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

int64_t stk_snapshot_hash(const void *bytes, size_t len);

#endif
