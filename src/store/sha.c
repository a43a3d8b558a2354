/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sha.h"

void stk_sha256(const void *bytes, size_t len, uint8_t ret_hash[32])
{
    struct sha256_ctx c;

    sha256_init(&c);
    sha256_update(&c, len, bytes);
    sha256_digest(&c, 32, ret_hash);
}

void stk_sha_init(struct stk_sha *s)
{
    sha256_init(&s->ctx);
}

void stk_sha_add(struct stk_sha *s, const void *bytes, size_t len)
{
    sha256_update(&s->ctx, len, bytes);
}

void stk_sha_end(struct stk_sha *s, uint8_t ret_hash[32])
{
    sha256_digest(&s->ctx, 32, ret_hash);
}
