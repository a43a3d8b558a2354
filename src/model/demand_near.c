/* SPDX-License-Identifier: Apache-2.0 */
/* demand_near.c - wishes of topology that contradict each other, or that nothing can honour. */
#include "model/demand.h"

#include "model/topology.h"

static int check_levels(const struct stk_demand *d, struct stk_err *err)
{
    if (d->level_required >= STK_AT_FAR || d->level_preferred >= STK_AT_FAR ||
        d->group_level >= STK_AT_FAR)
        return stk_err_set(err, -EINVAL, "a level is link, node, rack, zone or region");
    if (d->level_required && d->level_preferred >= d->level_required)
        return stk_err_set(err, -EINVAL,
                           "the level preferred (%s) must be nearer than the one required (%s)",
                           stk_level_name((enum stk_level)d->level_preferred),
                           stk_level_name((enum stk_level)d->level_required));
    return 0;
}

static int check_groups(const struct stk_demand *d, struct stk_err *err)
{
    if (d->per_node && (d->tasks % d->per_node || d->cut))
        return stk_err_set(err, -EINVAL, "%u tasks are not a multiple of %u on each node", d->tasks,
                           d->per_node);
    if ((d->group != 0) != (d->group_level != 0) || (d->group && (d->tasks % d->group || d->cut)))
        return stk_err_set(err, -EINVAL,
                           "%u tasks are not a multiple of subgroups of %u inside one %s", d->tasks,
                           d->group, stk_level_name((enum stk_level)d->group_level));
    if (d->level_required && d->group_level > d->level_required)
        return stk_err_set(err, -EINVAL,
                           "subgroups inside one %s cannot be wider than the job's %s",
                           stk_level_name((enum stk_level)d->group_level),
                           stk_level_name((enum stk_level)d->level_required));
    if (d->group_level == STK_AT_NODE && d->per_node % d->group)
        return stk_err_set(err, -EINVAL, "%u tasks on each node are not whole subgroups of %u",
                           d->per_node, d->group);
    return 0;
}

int stk_demand_near_check(const struct stk_demand *d, struct stk_err *err)
{
    int rc;

    if (!stk_demand_near(d))
        return 0;
    rc = check_levels(d, err);
    rc = rc < 0 ? rc : check_groups(d, err);
    if (rc == 0 && d->gpu_milli &&
        (d->group || d->per_node || d->exclusive || d->level_required == STK_AT_LINK ||
         d->level_preferred == STK_AT_LINK))
        return stk_err_set(err, -EINVAL,
                           "parts of GPUs may ask for one node, rack, zone or region, but not for "
                           "links, subgroups, tasks per node or whole nodes");
    return rc;
}
