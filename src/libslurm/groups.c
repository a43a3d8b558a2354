/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - accounts and QOS, as accounting (slurmdbd) has them. */
#include <slurm/slurmdb.h>
#include <string.h>

#include "libslurm/helper.h"

extern slurm_conf_t slurm_conf; /* exported by libslurm, declared nowhere */

#define MOST 10000 /* of each; more are left out */
/* Bits of AccountingStorageEnforce; Slurm's headers for others do not name them. */
#define ENFORCES_ASSOCIATIONS 1u
#define ENFORCES_LIMITS 2u
#define ENFORCES_QOS 8u

json_t *stk_slurm_enforces(void)
{
    uint32_t bits = stk_slurm_accounts() ? slurm_conf.accounting_storage_enforce : 0;

    return json_pack("{s:b,s:b,s:b}", "associations", (bits & ENFORCES_ASSOCIATIONS) != 0, "limits",
                     (bits & ENFORCES_LIMITS) != 0, "qos", (bits & ENFORCES_QOS) != 0);
}

static json_t *show_accounts(struct xlist *list)
{
    struct listIterator *it = slurm_list_iterator_create(list);
    json_t *out = json_array();
    const slurmdb_account_rec_t *a;

    while ((a = slurm_list_next(it)) && json_array_size(out) < MOST)
        (void)json_array_append_new(out,
                                    json_pack("{s:o,s:o,s:o}", "name", stk_slurm_text(a->name),
                                              "description", stk_slurm_text(a->description),
                                              "organization", stk_slurm_text(a->organization)));
    slurm_list_iterator_destroy(it);
    return out;
}

static json_t *show_qos(struct xlist *list)
{
    struct listIterator *it = slurm_list_iterator_create(list);
    json_t *out = json_array();
    const slurmdb_qos_rec_t *q;

    while ((q = slurm_list_next(it)) && json_array_size(out) < MOST)
        (void)json_array_append_new(
            out, json_pack("{s:o,s:o,s:I}", "name", stk_slurm_text(q->name), "description",
                           stk_slurm_text(q->description), "priority",
                           (json_int_t)(q->priority == NO_VAL ? 0 : q->priority)));
    slurm_list_iterator_destroy(it);
    return out;
}

json_t *stk_slurm_show_groups(json_t *o)
{
    slurmdb_account_cond_t accounts;
    slurmdb_qos_cond_t qos;
    uint16_t flags = 0;
    struct xlist *a, *q;
    json_t *out;
    void *db;

    (void)o;
    if (!stk_slurm_accounts())
        return json_pack("{s:b,s:s}", "ok", 0, "why", "Slurm has no accounting here (slurmdbd)");
    db = slurmdb_connection_get(&flags);
    if (!db)
        return json_pack("{s:b,s:s}", "ok", 0, "why", "slurmdbd cannot be reached");
    memset(&accounts, 0, sizeof(accounts));
    memset(&qos, 0, sizeof(qos));
    a = slurmdb_accounts_get(db, &accounts);
    q = slurmdb_qos_get(db, &qos);
    out = a && q ? json_pack("{s:b,s:o,s:o}", "ok", 1, "accounts", show_accounts(a), "qos",
                             show_qos(q))
                 : json_pack("{s:b,s:s}", "ok", 0, "why", "slurmdbd does not answer");
    if (a)
        slurm_list_destroy(a);
    if (q)
        slurm_list_destroy(q);
    (void)slurmdb_connection_close(&db);
    return out;
}
