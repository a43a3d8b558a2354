/* SPDX-License-Identifier: Apache-2.0 */
/* hwtopo.c - puts together what hwloc and the driver say. The driver's word on how two GPUs are
 * connected goes first; hwloc's is for drivers that do not tell. */
#include "hwtopo/hwtopo.h"

#include <stdlib.h>
#include <string.h>

/* GPUs that NVLinks lead between, also over others, get the lowest one's number. */
static void find_islands(struct stk_hwtopo *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        t->gpu[i].island = i;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < t->n * t->n; i++) {
            struct stk_hwtopo_gpu *a = &t->gpu[i / t->n], *b = &t->gpu[i % t->n];

            if (t->link[i].nvlinks > 0 && a->island > b->island) {
                a->island = b->island;
                again = true;
            }
        }
    }
}

static void find_places(struct stk_hwtopo *t, const struct stk_gpus *gpus, const struct stk_hw *hw)
{
    for (uint32_t i = 0; i < t->n; i++) {
        t->gpu[i].numa = gpus->gpu[i].numa;
        if (hw)
            stk_hw_place(hw, &gpus->gpu[i], &t->gpu[i]);
        for (uint32_t j = 0; hw && j < t->n; j++)
            if (j != i && t->link[i * t->n + j].path == STK_PATH_UNKNOWN)
                t->link[i * t->n + j].path = stk_hw_path(hw, gpus->gpu[i].pci, gpus->gpu[j].pci);
    }
}

static json_t *show_gpu(const struct stk_hwtopo *t, const struct stk_gpus *gpus,
                        const struct stk_hw *hw, uint32_t i)
{
    const struct stk_gpu *g = &gpus->gpu[i];
    json_t *o = json_pack("{s:i,s:i}", "index", (int)i, "island", (int)t->gpu[i].island);

    if (g->name[0])
        (void)json_object_set_new(o, "name", json_string(g->name));
    if (g->uuid[0])
        (void)json_object_set_new(o, "uuid", json_string(g->uuid));
    if (g->pci[0])
        (void)json_object_set_new(o, "pci", json_string(g->pci));
    if (t->gpu[i].numa >= 0)
        (void)json_object_set_new(o, "numa", json_integer(t->gpu[i].numa));
    if (t->gpu[i].cpus[0])
        (void)json_object_set_new(o, "cpus", json_string(t->gpu[i].cpus));
    if (g->nvlinks >= 0)
        (void)json_object_set_new(o, "nvlinks", json_integer(g->nvlinks));
    if (g->switch_links > 0)
        (void)json_object_set_new(o, "switch_links", json_integer(g->switch_links));
    (void)json_object_set_new(o, "bridges", hw ? stk_hw_bridges(hw, g->pci) : json_array());
    return o;
}

static json_t *show_links(const struct stk_hwtopo *t)
{
    json_t *list = json_array();

    for (uint32_t a = 0; a < t->n; a++)
        for (uint32_t b = a + 1; b < t->n; b++) {
            const struct stk_gpu_link *l = &t->link[a * t->n + b];
            json_t *o = json_pack("{s:i,s:i,s:i,s:b}", "a", (int)a, "b", (int)b, "nvlinks",
                                  (int)l->nvlinks, "switch", (int)l->through_switch);

            if (l->path != STK_PATH_UNKNOWN)
                (void)json_object_set_new(o, "path", json_string(stk_gpu_path_name(l->path)));
            (void)json_array_append_new(list, o);
        }
    return list;
}

static json_t *show(const struct stk_hwtopo *t, const struct stk_gpus *gpus,
                    const struct stk_hw *hw)
{
    json_t *o = json_object(), *list = json_array();

    if (hw)
        stk_hw_show(hw, o);
    for (uint32_t i = 0; i < t->n; i++)
        (void)json_array_append_new(list, show_gpu(t, gpus, hw, i));
    (void)json_object_set_new(o, "gpus", list);
    (void)json_object_set_new(o, "links", show_links(t));
    return o;
}

int stk_hwtopo_look(struct stk_hwtopo *t, const struct stk_gpus *gpus, struct stk_err *ret_why)
{
    struct stk_hw *hw;

    *t = (struct stk_hwtopo){.n = gpus->n < STK_GPUVIEW_MAX ? gpus->n : STK_GPUVIEW_MAX};
    t->link = calloc((size_t)t->n * t->n + 1, sizeof(*t->link));
    if (!t->link)
        return -ENOMEM;
    if (t->n > 0)
        memcpy(t->link, gpus->link, (size_t)t->n * t->n * sizeof(*t->link));
    hw = stk_hw_open(t->n > 0, ret_why);
    find_places(t, gpus, hw);
    find_islands(t);
    t->shown = show(t, gpus, hw);
    stk_hw_close(hw);
    return 0;
}

void stk_hwtopo_done(struct stk_hwtopo *t)
{
    free(t->link);
    json_decref(t->shown);
    *t = (struct stk_hwtopo){.n = 0};
}
