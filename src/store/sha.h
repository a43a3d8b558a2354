/* SPDX-License-Identifier: Apache-2.0 */
/* sha.h - SHA-256 of some bytes (by nettle, which the HTTP library's TLS needs anyway). */
#ifndef STK_STORE_SHA_H
#define STK_STORE_SHA_H

#include <stddef.h>
#include <stdint.h>

void stk_sha256(const void *bytes, size_t len, uint8_t ret_hash[32]);

#endif
