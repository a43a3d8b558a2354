/* SPDX-License-Identifier: Apache-2.0 */
/* ids_resolve.c - elements of arrays by number. The elements of an array have consecutive numbers
 * in the order of their indices, and the array has the number of the first. */
#include <stdlib.h>

#include "cli/ids.h"
#include "cli/view.h"

/* Is job 'number' an element of 'array'? Its index then is *ret_index. */
static int look(struct stk_ask *k, uint32_t number, uint32_t array, int64_t *ret_index,
                struct stk_err *err)
{
    json_t *job = NULL;
    int rc = stk_client_get(k->c, &job, err, "/v1/jobs/%u", number);

    if (rc == 0 && stk_int(job, "array_id", 0) != (int64_t)array)
        rc = stk_err_set(err, -ENODATA, "job %u is no array", array);
    else if (rc == 0)
        *ret_index = stk_int(job, "array_index", -1);
    json_decref(job);
    return rc;
}

/* The number of element 'index' of an array. Indices rise with the numbers, by at least one: the
 * element lies at most as far from the first as its index does. */
static int find_element(struct stk_ask *k, const struct stk_id *id, uint32_t *ret,
                        struct stk_err *err)
{
    int64_t first = 0, at = 0;
    uint64_t low = id->job, high;
    int rc = look(k, id->job, id->job, &first, err);

    if (rc < 0)
        return rc;
    high = id->index >= first ? low + (uint64_t)(id->index - first) : low;
    for (bool guess = true; low <= high && high < UINT32_MAX; guess = false) {
        uint64_t middle = guess ? high : low + (high - low) / 2; /* no gaps: the first is it */

        rc = look(k, (uint32_t)middle, id->job, &at, err);
        if (rc < 0 && rc != -ENOENT && rc != -ENODATA)
            return rc;
        if (rc == 0 && at == id->index) {
            *ret = (uint32_t)middle;
            return 0;
        }
        if (rc < 0 || at > id->index)
            high = middle - 1; /* behind the last, or too far */
        else
            low = middle + 1;
    }
    return stk_err_set(err, -ENOENT, "array %u has no element %lld", id->job, (long long)id->index);
}

static void add(struct stk_ids *ids, uint32_t number)
{
    if (ids->n == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 64;
        struct stk_id *list = realloc(ids->list, cap * sizeof(*list));

        if (!list)
            abort();
        ids->list = list;
        ids->cap = cap;
    }
    ids->list[ids->n++] = (struct stk_id){number, -1, true, false};
}

/* All elements from the first on; those that have ended only when asked for. */
static int expand(struct stk_ask *k, uint32_t array, bool ended, struct stk_ids *out,
                  struct stk_err *err)
{
    int64_t index = 0;
    json_t *page = NULL;
    bool more = true;
    uint32_t after = array - 1;

    for (uint32_t n = array; ended && out->n < STK_IDS_MAX; n++) {
        int rc = look(k, n, array, &index, err);

        if (rc == -ENOENT || rc == -ENODATA)
            return 0;
        if (rc < 0)
            return rc;
        add(out, n);
    }
    while (more && !ended) {
        int rc = stk_client_get(k->c, &page, err, "/v1/jobs?after=%u&limit=1000", after);

        if (rc < 0)
            return rc;
        more = json_is_integer(json_object_get(page, "next"));
        for (size_t i = 0; i < json_array_size(json_object_get(page, "jobs")); i++) {
            const json_t *job = json_array_get(json_object_get(page, "jobs"), i);

            after = (uint32_t)stk_int(job, "id", 0);
            more = more && stk_int(job, "array_id", 0) == (int64_t)array;
            if (stk_int(job, "array_id", 0) == (int64_t)array)
                add(out, after);
        }
        json_decref(page);
    }
    return 0;
}

/* Slurm's number becomes ours, of an array that of the array. */
static int translate(struct stk_ask *k, struct stk_id *id, struct stk_err *err)
{
    json_t *job = NULL;
    char text[48];
    int rc;

    if (!id->slurm)
        return 0;
    rc = stk_client_get(k->c, &job, err, "/v1/jobs/%s", stk_id_text(id, text, sizeof(text)));
    if (rc == 0)
        *id = (struct stk_id){(uint32_t)stk_int(job, "id", 0), -1, id->range || id->index >= 0,
                              false};
    json_decref(job);
    return rc;
}

static int resolve(struct stk_ask *k, const struct stk_id *id, bool ended, struct stk_ids *out,
                   struct stk_err *err)
{
    uint32_t number = id->job;
    int64_t index = 0;
    size_t had = out->n;
    int rc;

    if (id->index >= 0) {
        rc = find_element(k, id, &number, err);
        if (rc == 0)
            add(out, number);
        return rc;
    }
    if (!id->range) {
        rc = look(k, id->job, id->job, &index, err);
        if (rc == 0)
            rc = expand(k, id->job, ended, out, err);
        if (out->n > had || (rc < 0 && rc != -ENOENT && rc != -ENODATA))
            return rc;
    }
    add(out, id->job); /* whether it is there, the request itself will say */
    return 0;
}

int stk_ids_resolve(struct stk_ask *k, struct stk_ids *ids, bool ended)
{
    struct stk_ids out = {0};
    struct stk_err err = {""};
    int rc = 0;

    for (size_t i = 0; i < ids->n && rc == 0; i++) {
        rc = translate(k, &ids->list[i], &err);
        rc = rc < 0 ? rc : resolve(k, &ids->list[i], ended, &out, &err);
    }
    if (rc < 0) {
        stk_ids_done(&out);
        return stk_ask_fail(k, rc, &err);
    }
    stk_ids_done(ids);
    *ids = out;
    return STK_EXIT_OK;
}

int stk_id_resolve(struct stk_ask *k, const char *word, uint32_t *ret)
{
    struct stk_ids ids = {0};
    struct stk_err err = {""};
    int rc = stk_ids_add(&ids, word, &err);

    if (rc == 0 && ids.n != 1)
        rc = stk_err_set(&err, -EINVAL, "one job at a time");
    rc = rc < 0 ? rc : translate(k, &ids.list[0], &err);
    if (rc == 0 && ids.list[0].index >= 0)
        rc = find_element(k, &ids.list[0], ret, &err);
    else if (rc == 0)
        *ret = ids.list[0].job;
    stk_ids_done(&ids);
    return rc < 0 ? stk_ask_fail(k, rc, &err) : STK_EXIT_OK;
}

int stk_ids_each(const struct stk_args *a, int (*fn)(struct stk_ask *k, uint32_t id, json_t *all))
{
    struct stk_ids ids = {0};
    json_t *all = json_array();
    struct stk_ask k;
    int rc = stk_ids_take(a, false, &ids), worst = STK_EXIT_OK;

    if (rc == STK_EXIT_OK && (rc = stk_ask_open(&k, a)) == STK_EXIT_OK) {
        rc = stk_ids_resolve(&k, &ids, true);
        for (size_t i = 0; rc == STK_EXIT_OK && i < ids.n; i++) {
            int code = fn(&k, ids.list[i].job, all);

            worst = code > worst ? code : worst;
            if (code == STK_EXIT_UNREACHABLE)
                break;
        }
        if (k.json && ids.n == 1 && json_array_size(all) == 1) {
            stk_print_json(json_array_get(all, 0));
        } else if (k.json && rc == STK_EXIT_OK && json_array_size(all) > 0) {
            json_t *out = json_pack("{s:O}", "jobs", all);

            stk_print_json(out);
            json_decref(out);
        }
        stk_ask_close(&k);
    }
    json_decref(all);
    stk_ids_done(&ids);
    return rc != STK_EXIT_OK ? rc : worst;
}
