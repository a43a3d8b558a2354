/* SPDX-License-Identifier: Apache-2.0 */
/* config_text.h - texts as YAML on standard output, so that they are read back as they are. */
#ifndef STK_CLI_CONFIG_TEXT_H
#define STK_CLI_CONFIG_TEXT_H

/* As it is where YAML leaves no question, else in quotes. */
void stk_config_print_text(const char *text);
void stk_config_print_quoted(const char *text);

#endif
