/* SPDX-License-Identifier: Apache-2.0 */
/* sha.h - SHA-256 of some bytes (by nettle, which the HTTP library's TLS needs anyway). */
#ifndef STK_STORE_SHA_H
#define STK_STORE_SHA_H

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

void stk_sha256(const void *bytes, size_t len, uint8_t ret_hash[32]);

struct stk_sha { /* the same, of bytes that come in pieces */
    struct sha256_ctx ctx;
};
void stk_sha_init(struct stk_sha *s);
void stk_sha_add(struct stk_sha *s, const void *bytes, size_t len);
void stk_sha_end(struct stk_sha *s, uint8_t ret_hash[32]);

#endif
