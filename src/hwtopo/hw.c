/* SPDX-License-Identifier: Apache-2.0 */
/* hw.c - what hwloc says about the machine. Only packages, cores, NUMA nodes and, where there are
 * GPUs, PCI bridges and devices are looked for: that takes a millisecond or ten. Plugins of hwloc's
 * are not loaded: some of them bring the GPU driver's libraries into the process. */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwtopo/hwtopo.h"

struct stk_hw {
    hwloc_topology_t t;
};

static int load(hwloc_topology_t t, bool pci)
{
    enum hwloc_type_filter_e io = pci ? HWLOC_TYPE_FILTER_KEEP_ALL : HWLOC_TYPE_FILTER_KEEP_NONE;

    if (hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE) < 0 ||
        hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) < 0 ||
        hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) < 0 ||
        hwloc_topology_set_type_filter(t, HWLOC_OBJ_BRIDGE, io) < 0 ||
        hwloc_topology_set_type_filter(t, HWLOC_OBJ_PCI_DEVICE, io) < 0)
        return -1;
    return hwloc_topology_load(t);
}

struct stk_hw *stk_hw_open(bool pci, struct stk_err *err)
{
    const char *plugins = getenv("HWLOC_PLUGINS_PATH");
    struct stk_hw *hw = calloc(1, sizeof(*hw));
    bool ok = false;

    if (!plugins)
        (void)setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    if (hw && hwloc_topology_init(&hw->t) == 0) {
        ok = load(hw->t, pci) == 0;
        if (!ok)
            hwloc_topology_destroy(hw->t);
    }
    if (!plugins)
        (void)unsetenv("HWLOC_PLUGINS_PATH");
    if (ok)
        return hw;
    (void)stk_err_set(err, -EIO, "hwloc cannot read this machine's topology");
    free(hw);
    return NULL;
}

void stk_hw_close(struct stk_hw *hw)
{
    if (!hw)
        return;
    hwloc_topology_destroy(hw->t);
    free(hw);
}

static json_t *cpu_list(hwloc_const_cpuset_t set)
{
    char text[STK_GPUVIEW_CPUS];
    int n = hwloc_bitmap_list_snprintf(text, sizeof(text), set);

    return n > 0 && (size_t)n < sizeof(text) ? json_string(text) : NULL;
}

static json_t *show_numa(const struct stk_hw *hw, hwloc_obj_t o)
{
    hwloc_obj_t p = hwloc_get_ancestor_obj_by_type(hw->t, HWLOC_OBJ_PACKAGE, o);
    json_t *numa = json_pack(
        "{s:i,s:i,s:i,s:I}", "index", (int)o->os_index, "n_cpus", hwloc_bitmap_weight(o->cpuset),
        "cores", hwloc_get_nbobjs_inside_cpuset_by_type(hw->t, o->cpuset, HWLOC_OBJ_CORE),
        "mem_mib", (json_int_t)(o->attr->numanode.local_memory >> 20));
    json_t *cpus = cpu_list(o->cpuset);

    if (cpus)
        (void)json_object_set_new(numa, "cpus", cpus);
    if (p)
        (void)json_object_set_new(numa, "package", json_integer((json_int_t)p->os_index));
    return numa;
}

static json_t *show_package(hwloc_obj_t o)
{
    const char *model = hwloc_obj_get_info_by_name(o, "CPUModel");
    json_t *p = json_pack("{s:i}", "index", (int)o->os_index);

    if (model)
        (void)json_object_set_new(p, "model", json_string(model));
    return p;
}

void stk_hw_show(const struct stk_hw *hw, json_t *o)
{
    json_t *packages = json_array(), *numa = json_array();
    hwloc_obj_t root = hwloc_get_root_obj(hw->t), at = NULL;

    while ((at = hwloc_get_next_obj_by_type(hw->t, HWLOC_OBJ_PACKAGE, at)))
        (void)json_array_append_new(packages, show_package(at));
    while ((at = hwloc_get_next_obj_by_type(hw->t, HWLOC_OBJ_NUMANODE, at)))
        (void)json_array_append_new(numa, show_numa(hw, at));
    (void)json_object_set_new(o, "packages", packages);
    (void)json_object_set_new(o, "numa", numa);
    (void)json_object_set_new(o, "n_cpus", json_integer(hwloc_bitmap_weight(root->cpuset)));
    (void)json_object_set_new(o, "mem_mib", json_integer((json_int_t)(root->total_memory >> 20)));
}

static hwloc_obj_t device(const struct stk_hw *hw, const char *pci)
{
    return *pci ? hwloc_get_pcidev_by_busidstring(hw->t, pci) : NULL;
}

/* CPUs that are all there are say nothing, and half a list would be a wrong one. */
static void put_cpus(const struct stk_hw *hw, hwloc_const_cpuset_t set, struct stk_hwtopo_gpu *ret)
{
    json_t *text =
        hwloc_bitmap_isequal(set, hwloc_get_root_obj(hw->t)->cpuset) ? NULL : cpu_list(set);

    ret->cpus[0] = '\0';
    if (text && json_string_length(text) < sizeof(ret->cpus))
        (void)snprintf(ret->cpus, sizeof(ret->cpus), "%s", json_string_value(text));
    json_decref(text);
}

static void place_at(const struct stk_hw *hw, hwloc_obj_t near, struct stk_hwtopo_gpu *ret)
{
    put_cpus(hw, near->cpuset, ret);
    if (hwloc_bitmap_weight(near->nodeset) == 1)
        ret->numa = hwloc_bitmap_first(near->nodeset);
}

void stk_hw_place(const struct stk_hw *hw, const struct stk_gpu *g, struct stk_hwtopo_gpu *ret)
{
    hwloc_obj_t o = device(hw, g->pci);
    hwloc_bitmap_t said;

    ret->numa = g->numa;
    if (o && (o = hwloc_get_non_io_ancestor_obj(hw->t, o)) != NULL) {
        place_at(hw, o, ret);
        return;
    }
    o = g->numa >= 0 ? hwloc_get_numanode_obj_by_os_index(hw->t, (unsigned)g->numa) : NULL;
    if (o) {
        put_cpus(hw, o->cpuset, ret);
        return;
    }
    said = g->cpus[0] ? hwloc_bitmap_alloc() : NULL;
    if (said && hwloc_bitmap_list_sscanf(said, g->cpus) == 0 && hwloc_bitmap_weight(said) > 0)
        put_cpus(hw, said, ret);
    hwloc_bitmap_free(said);
}

static json_t *bridge_name(hwloc_obj_t b)
{
    const struct hwloc_bridge_attr_s *a = &b->attr->bridge;
    char text[32];

    if (a->upstream_type == HWLOC_OBJ_BRIDGE_HOST)
        (void)snprintf(text, sizeof(text), "%04x:%02x", a->downstream.pci.domain,
                       a->downstream.pci.secondary_bus);
    else
        (void)snprintf(text, sizeof(text), "%04x:%02x:%02x.%01x", a->upstream.pci.domain,
                       a->upstream.pci.bus, a->upstream.pci.dev, a->upstream.pci.func);
    return json_string(text);
}

json_t *stk_hw_bridges(const struct stk_hw *hw, const char *pci)
{
    hwloc_obj_t o = device(hw, pci);
    json_t *list = json_array();

    for (o = o ? o->parent : NULL; o && o->type == HWLOC_OBJ_BRIDGE; o = o->parent)
        (void)json_array_insert_new(list, 0, bridge_name(o));
    return list;
}

/* Bridges between a device and one of those above it. */
static int depth_below(hwloc_obj_t o, hwloc_obj_t above)
{
    int n = 0;

    for (o = o->parent; o && o != above; o = o->parent)
        n++;
    return n;
}

static hwloc_obj_t meet(hwloc_obj_t a, hwloc_obj_t b)
{
    for (; a; a = a->parent)
        for (hwloc_obj_t o = b; o; o = o->parent)
            if (o == a)
                return a;
    return NULL;
}

/* A switch is a bridge upwards and one downwards for each of its ports. */
enum stk_gpu_path stk_hw_path(const struct stk_hw *hw, const char *pci, const char *other)
{
    hwloc_obj_t a = device(hw, pci), b = device(hw, other), at = a && b ? meet(a, b) : NULL;

    if (!at)
        return STK_PATH_UNKNOWN;
    if (at->type != HWLOC_OBJ_BRIDGE) {
        hwloc_obj_t p = hwloc_get_non_io_ancestor_obj(hw->t, a);
        hwloc_obj_t q = hwloc_get_non_io_ancestor_obj(hw->t, b);

        return p && q && hwloc_bitmap_isequal(p->nodeset, q->nodeset) ? STK_PATH_NODE
                                                                      : STK_PATH_SYS;
    }
    if (at->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
        return STK_PATH_PHB;
    return depth_below(a, at) <= 1 && depth_below(b, at) <= 1 ? STK_PATH_PIX : STK_PATH_PXB;
}
