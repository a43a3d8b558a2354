/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_tree.h - YAML text as a plain tree: mappings are objects, sequences are arrays, every scalar
 * is a string (an empty one, "null" and "~" are null), and the line of each key is kept. What a
 * scalar means is decided by whoever knows its key, so nothing is a number or a boolean by
 * accident. */
#ifndef STK_SPEC_YAML_TREE_H
#define STK_SPEC_YAML_TREE_H

#include <jansson.h>

#include "base/err.h"

struct stk_yaml {
    json_t *root;   /* an object */
    json_t *lines;  /* "resources.gpus": 7 */
    char where[64]; /* for messages */
};

/* One document, whose root is a mapping. */
int stk_yaml_read(struct stk_yaml *y, const char *text, size_t len, const char *where,
                  struct stk_err *err);
void stk_yaml_done(struct stk_yaml *y);

/* The line of "a.b.c", or of the nearest key above it; 1 when there is none. */
int stk_yaml_line(const struct stk_yaml *y, const char *path);

#endif
