/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Characters that YAML does not take as they are, or that end a line. */
static bool needs_escape(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || code == 0xfffe || code == 0xffff;
}

void stk_config_print_quoted(const char *text)
{
    (void)putchar('"');
    while (*text) {
        uint32_t code = 0;
        size_t n = stk_utf8(text, strlen(text), &code);

        if (n > 0 && needs_escape(code))
            (void)printf("\\u%04x", (unsigned)code);
        else
            (void)printf("%s%.*s", *text == '"' || *text == '\\' ? "\\" : "", n ? (int)n : 1, text);
        text += n ? n : 1;
    }
    (void)putchar('"');
}

void stk_config_print_text(const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-";
    size_t n = strspn(text, plain);

    if (n == 0 || text[n] != '\0' || text[0] == '-' || text[0] == ':' || text[n - 1] == ':')
        stk_config_print_quoted(text);
    else
        (void)printf("%s", text);
}
