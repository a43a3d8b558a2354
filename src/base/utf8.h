/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - one character of UTF-8 (RFC 3629): nothing longer than it need be, no surrogates,
 * nothing beyond the last code point. Which characters a text may have is for those to say who read
 * it. */
#ifndef STK_BASE_UTF8_H
#define STK_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at 's', of which 'left' (>= 1) may be read; 0: there is none. In a string
 * that ends with a zero 'left' may be SIZE_MAX: reading stops there. */
size_t stk_utf8(const char *s, size_t left, uint32_t *ret_code);

#endif
