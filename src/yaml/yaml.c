/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml/yaml.h"

int stk_yaml_line_of(struct fy_node *n)
{
    const struct fy_mark *mark;
    void *it = NULL;

    for (int depth = 0; n && !fy_node_is_scalar(n) && depth < 8; depth++, it = NULL) {
        if (fy_node_is_sequence(n))
            n = fy_node_sequence_iterate(n, &it);
        else
            n = fy_node_pair_key(fy_node_mapping_iterate(n, &it));
    }
    mark = n ? fy_token_start_mark(fy_node_get_scalar_token(n)) : NULL;
    return mark ? mark->line + 1 : 1;
}

int stk_yaml_open(struct stk_yaml_doc *d, const char *name, const char *text, size_t len,
                  struct stk_err *err)
{
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET};
    const struct fy_diag_error *e;
    struct fy_diag_cfg diag_cfg;
    void *it = NULL;

    *d = (struct stk_yaml_doc){0};
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    cfg.diag = d->diag = fy_diag_create(&diag_cfg);
    if (!d->diag)
        return stk_err_set(err, -ENOMEM, "out of memory");
    fy_diag_set_collect_errors(d->diag, true);
    d->doc = fy_document_build_from_string(&cfg, text, len);
    e = d->doc ? NULL : fy_diag_errors_iterate(d->diag, &it);
    if (!e)
        return 0;
    return stk_err_set(err, -EINVAL, "%s:%d: not valid YAML: %.120s", name,
                       e->line > 0 ? e->line : 1, e->msg ? e->msg : "cannot be parsed");
}

void stk_yaml_close(struct stk_yaml_doc *d)
{
    fy_document_destroy(d->doc);
    fy_diag_destroy(d->diag);
}
