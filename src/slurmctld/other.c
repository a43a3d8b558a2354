/* SPDX-License-Identifier: Apache-2.0 */
#include "slurmctld/other.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void stk_other_find(void *in, const char *name, void *ret_function)
{
    void *f = dlsym(in, name);

    memcpy(ret_function, &f, sizeof(f)); /* C has no cast from an object to a function */
}

static void *open_first(const char *dirs, const char *name)
{
    void *plugin = NULL;
    char path[4096];

    while (dirs && *dirs && !plugin) {
        size_t len = strcspn(dirs, ":");

        if (snprintf(path, sizeof(path), "%.*s/%s.so", (int)len, dirs, name) < (int)sizeof(path) &&
            access(path, R_OK) == 0)
            plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        dirs += len + (dirs[len] == ':');
    }
    return plugin;
}

void *stk_other_start(const char *dirs, const char *name, uint32_t version)
{
    void *plugin = open_first(dirs, name);
    const uint32_t *its = plugin ? dlsym(plugin, "plugin_version") : NULL;
    int (*begin)(void) = NULL;

    if (plugin)
        stk_other_find(plugin, "init", &begin);
    if (its && *its == version && begin && begin() == 0)
        return plugin;
    if (plugin)
        (void)dlclose(plugin);
    return NULL;
}

void stk_other_stop(void *plugin)
{
    void (*end)(void) = NULL;

    if (!plugin)
        return;
    stk_other_find(plugin, "fini", &end);
    if (end)
        end();
    (void)dlclose(plugin);
}
