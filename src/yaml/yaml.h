/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - a YAML text parsed by libfyaml, which keeps where each value stood.
 *
 * Some versions of libfyaml never return from directives, or from bytes that are not text. Callers
 * refuse those first: what else a text may hold is theirs to say, and the line is known then. */
#ifndef STK_YAML_YAML_H
#define STK_YAML_YAML_H

#include <libfyaml.h>

#include "base/err.h"

struct stk_yaml_doc {
    struct fy_document *doc; /* NULL: nothing but blanks and comments */
    struct fy_diag *diag;
};

/* 0, -EINVAL ("name:line: not valid YAML: ..."), or -ENOMEM. stk_yaml_close() in every case. */
int stk_yaml_open(struct stk_yaml_doc *d, const char *name, const char *text, size_t len,
                  struct stk_err *err);
void stk_yaml_close(struct stk_yaml_doc *d);

/* Line of a scalar, or of the first scalar inside; 1 when there is none. */
int stk_yaml_line_of(struct fy_node *n);

#endif
