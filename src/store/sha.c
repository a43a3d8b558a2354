/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sha.h"

#include <nettle/sha2.h>

void stk_sha256(const void *bytes, size_t len, uint8_t ret_hash[32])
{
    struct sha256_ctx c;

    sha256_init(&c);
    sha256_update(&c, len, bytes);
    sha256_digest(&c, 32, ret_hash);
}
