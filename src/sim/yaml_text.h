/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_text.h - what all YAML files of the simulator have in common: only plain values are read,
 * and what libfyaml should not see is refused before it does. */
#ifndef STK_SIM_YAML_TEXT_H
#define STK_SIM_YAML_TEXT_H

#include "sim/trace_lines.h"
#include "yaml/yaml.h"

/* Refuses directives, lines that are too long, and bytes that are not text. '*io_name' is the one
 * to use in messages from here on: a long path is cut. */
int stk_yaml_text_check(const char **io_name, const char *data, size_t len, struct stk_err *err);

/* The text of a plain value; "" when it is none. */
struct stk_field stk_yaml_scalar(struct fy_node *n);

#endif
