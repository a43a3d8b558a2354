/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/lib.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the libraries lie when they are not on the search path: images and containers often mount
 * them without telling the linker. */
static const char *const folders[] = {
#if defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
#else
    "/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
#endif
    "/usr/lib64",
    "/usr/lib64/nvidia",
    "/usr/lib/nvidia",
    "/usr/lib/nvidia-current",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/run/nvidia/driver/usr/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
    "/run/opengl-driver/lib",
    "/usr/lib/wsl/lib",
};

static void *open_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);

    return n > 0 && (size_t)n < sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void *find(const char *name, struct stk_err *err)
{
    const char *only = secure_getenv("STOKER_GPU_LIB_DIR");
    const char *why;
    void *lib;

    lib = only && *only ? open_in(only, name) : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    why = lib ? NULL : dlerror();
    (void)stk_err_set(err, 0, "%.200s", why ? why : "no reason given"); /* of the first attempt */
    for (size_t i = 0; !lib && !(only && *only) && i < sizeof(folders) / sizeof(*folders); i++)
        lib = open_in(folders[i], name);
    return lib;
}

int stk_lib_open(const char *name, const struct stk_lib_call *calls, size_t n_calls, void *table,
                 void **ret_lib, struct stk_err *err)
{
    struct stk_err why;
    void *lib = find(name, &why);

    if (!lib)
        return stk_err_set(err, -ENOENT, "%s cannot be opened (%.150s)", name, why.text);
    for (size_t i = 0; i < n_calls; i++) {
        void *call = dlsym(lib, calls[i].name);

        if (!call && calls[i].older)
            call = dlsym(lib, calls[i].older);
        if (!call && calls[i].needed) {
            stk_lib_close(lib);
            return stk_err_set(err, -ENOSYS, "%s has no %s: the driver is too old", name,
                               calls[i].name);
        }
        /* C has no conversion from an object's address to a function's; POSIX says they are alike
         */
        memcpy((char *)table + calls[i].at, &call, sizeof(call));
    }
    *ret_lib = lib;
    return 0;
}

void stk_lib_close(void *lib)
{
    if (lib)
        (void)dlclose(lib);
}
