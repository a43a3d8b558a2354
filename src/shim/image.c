/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - a container around the command, by whatever the user has: podman, docker or apptainer.
 * The program is the user's and runs as the user; stoker adds the job's GPUs, its working directory
 * and its environment (by name only: values do not belong on a command line). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/env.h"
#include "shim/shim.h"
#include "shim/words.h"

static const char *const names[] = {
    [STK_PODMAN] = "podman", [STK_DOCKER] = "docker", [STK_APPTAINER] = "apptainer"};

static bool in_path(const char *path, const char *program)
{
    while (*path) {
        size_t len = strcspn(path, ":");
        char buf[4096];

        if (len > 0 && len + strlen(program) + 2 < sizeof(buf)) {
            (void)snprintf(buf, sizeof(buf), "%.*s/%s", (int)len, path, program);
            if (access(buf, X_OK) == 0)
                return true;
        }
        path += len + (path[len] == ':');
    }
    return false;
}

void stk_image_choose(struct stk_shim *s)
{
    const json_t *spec = s->l.spec;
    const char *want = stk_str_or(spec, "image_runtime", "auto");
    const char *path = stk_str_or(json_object_get(spec, "envs"), "PATH", STK_ENV_PATH);

    if (!stk_str_or(spec, "image", NULL))
        return;
    for (int r = STK_PODMAN; r <= STK_APPTAINER && s->runtime == STK_RUNTIME_NONE; r++)
        if (strcmp(want, "auto") == 0 ? in_path(path, names[r]) : strcmp(want, names[r]) == 0)
            s->runtime = (enum stk_runtime)r;
}

static const char *value_of(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

/* The task's own GPUs. Inside there are no others, so they are counted from 0. */
static void add_gpus(enum stk_runtime r, const char *uuids, struct stk_words *w)
{
    char inside[STK_SHIM_MAX_GPUS * 4] = "", *p = inside;
    unsigned n = 0;

    if (r == STK_DOCKER) {
        stk_words_add(w, "--gpus");
        stk_words_add(w, "\"device=%s\"", uuids);
    }
    for (size_t len; *uuids && n < STK_SHIM_MAX_GPUS; uuids += len + (uuids[len] == ',')) {
        len = strcspn(uuids, ",");
        if (r == STK_PODMAN) {
            stk_words_add(w, "--device=nvidia.com/gpu=%.*s", (int)len, uuids);
        }
        p += sprintf(p, "%s%u", n ? "," : "", n);
        n++;
    }
    stk_words_add(w, "--env=CUDA_VISIBLE_DEVICES=%s", inside);
}

static void add_env(char *const *env, bool gpus, struct stk_words *w)
{
    static const char *const host_only[] = {"PATH", "HOME", "SHELL", "PWD", "LD_LIBRARY_PATH"};

    for (; *env; env++) {
        size_t len = strcspn(*env, "=");
        bool skip = gpus && strncmp(*env, "CUDA_VISIBLE_DEVICES=", 21) == 0;

        for (size_t i = 0; i < sizeof(host_only) / sizeof(host_only[0]); i++)
            skip = skip || (strlen(host_only[i]) == len && memcmp(*env, host_only[i], len) == 0);
        if (!skip) {
            stk_words_add(w, "--env=%.*s", (int)len, *env);
        }
    }
}

static void apptainer(const struct stk_shim *s, const char *image, const char *mps,
                      struct stk_words *w)
{
    stk_words_add(w, "apptainer");
    stk_words_add(w, "exec");
    if (s->l.n_gpus > 0 && !s->l.virtual_gpus)
        stk_words_add(w, "--nv");
    stk_words_add(w, "--bind=%s", s->l.workdir);
    if (s->script[0]) {
        stk_words_add(w, "--bind=%s", s->script);
    }
    if (mps) {
        stk_words_add(w, "--bind=%s", mps);
    }
    stk_words_add(w, "--pwd=%s", s->l.workdir);
    stk_words_add(w, "--");
    stk_words_add(w, "%s", image);
}

static void add_name(const struct stk_launch *l, uint32_t task, struct stk_words *w)
{
    stk_words_add(w, "stoker-%u-%u-%u", l->number, l->launch, task);
}

static void bind_mount(struct stk_words *w, const char *path)
{
    stk_words_add(w, "--volume=%s:%s", path, path);
}

/* The daemon's socket, so that a program inside can report. Its folder, because a daemon that
 * starts again makes another socket. */
static void add_socket(const char *path, struct stk_words *w)
{
    const char *end = path && *path == '/' ? strrchr(path, '/') : NULL;

    if (!end || end == path || strpbrk(path, ":,"))
        return;
    stk_words_add(w, "--volume=%.*s:%.*s", (int)(end - path), path, (int)(end - path), path);
}

/* Podman has limits of its own for what runs inside; the job's are wanted. It lowers its own
 * number of processes to the kernel's greatest pid, and cannot give more than it has. */
static void add_limits(struct stk_words *w)
{
    unsigned long long most = 32768;
    struct rlimit files, procs;
    FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
    char text[32];

    if (f && fgets(text, sizeof(text), f))
        most = strtoull(text, NULL, 10);
    if (f)
        (void)fclose(f);
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || getrlimit(RLIMIT_NPROC, &procs) < 0)
        return;
    procs.rlim_max = procs.rlim_max < most ? procs.rlim_max : (rlim_t)most;
    procs.rlim_cur = procs.rlim_cur < procs.rlim_max ? procs.rlim_cur : procs.rlim_max;
    stk_words_add(w, "--ulimit");
    stk_words_add(w, "nofile=%llu:%llu", (unsigned long long)files.rlim_cur,
                  (unsigned long long)files.rlim_max);
    stk_words_add(w, "--ulimit");
    stk_words_add(w, "nproc=%llu:%llu", (unsigned long long)procs.rlim_cur,
                  (unsigned long long)procs.rlim_max);
}

/* Without a cgroup of its own a container is in the job's, limits included; and its output goes
 * straight to the job's log, whatever happens to podman. */
static void podman(const struct stk_shim *s, struct stk_words *w)
{
    stk_words_add(w, "--replace");
    stk_words_add(w, "--cgroups=disabled");
    add_limits(w);
    if (!s->l.interactive)
        stk_words_add(w, "--log-driver=passthrough");
}

/* Docker's containers are not our children: CPUs that a task is bound to are to be said. */
static void docker(const struct stk_shim *s, const char *cpus, struct stk_words *w)
{
    stk_words_add(w, "--init");
    if (cpus)
        stk_words_add(w, "--cpuset-cpus=%s", cpus);
    stk_words_add(w, "--user=%u:%u", (unsigned)s->l.uid, (unsigned)s->l.gid);
}

/* A root file system in a folder is left as it is: what the job writes to it is thrown away. What
 * follows "--" is no option, whatever its name begins with. */
static int add_image(const struct stk_shim *s, struct stk_words *w, struct stk_err *err)
{
    const char *image = stk_str(s->l.spec, "image");
    struct stat st;

    if (image[0] != '/' || stat(image, &st) < 0 || !S_ISDIR(st.st_mode)) {
        stk_words_add(w, "--");
        stk_words_add(w, "%s", image);
        return 0;
    }
    if (s->runtime != STK_PODMAN)
        return stk_err_set(err, -EINVAL, "only podman and apptainer run an image that is a folder");
    stk_words_add(w, "--rootfs");
    stk_words_add(w, "--");
    stk_words_add(w, "%s:O", image);
    return 0;
}

/* The folder of the MPS that serves the task, NULL: none does. */
static const char *mps_of(const struct stk_shim *s, uint32_t task)
{
    uint32_t first, n;

    stk_launch_slice(&s->l, task, &first, &n);
    return n == 1 && s->l.gpus[first].mps[0] ? s->l.gpus[first].mps : NULL;
}

int stk_image_words(const struct stk_shim *s, uint32_t task, char *const *env, struct stk_words *w,
                    struct stk_err *err)
{
    const char *uuids = value_of(env, "STOKER_GPU_UUIDS"); /* NULL: none, or virtual ones */
    const char *mps = mps_of(s, task);

    if (s->runtime == STK_RUNTIME_NONE)
        return stk_err_set(
            err, -ENOENT,
            "it wants an image, but there is no podman, docker or apptainer in its PATH");
    if (strpbrk(s->l.workdir, ":,"))
        return stk_err_set(err, -EINVAL,
                           "a job with an image cannot have a working directory with \":\" or "
                           "\",\" in its name: programs that run images would mount another");
    if (s->runtime == STK_APPTAINER) {
        apptainer(s, stk_str(s->l.spec, "image"), mps, w);
        return 0;
    }
    stk_words_add(w, "%s", names[s->runtime]);
    stk_words_add(w, "run");
    stk_words_add(w, "--rm");
    stk_words_add(w, "--name");
    add_name(&s->l, task, w);
    stk_words_add(w, "--network=host");
    stk_words_add(w, "--ipc=host");
    if (s->runtime == STK_PODMAN)
        podman(s, w);
    else
        docker(s, value_of(env, "STOKER_CPUS"), w);
    if (s->l.interactive)
        stk_words_add(w, "-it");
    else if (json_object_get(s->l.spec, "stdin"))
        stk_words_add(w, "-i");
    if (uuids)
        add_gpus(s->runtime, uuids, w);
    add_env(env, uuids != NULL, w);
    add_socket(value_of(env, "STOKER_SOCKET"), w);
    bind_mount(w, s->l.workdir);
    if (s->script[0])
        bind_mount(w, s->script);
    if (mps)
        bind_mount(w, mps);
    stk_words_add(w, "--workdir=%s", s->l.workdir);
    return add_image(s, w, err);
}

void stk_image_remove(struct stk_shim *s)
{
    struct stk_words w = {0};
    sigset_t none;
    char **env;

    s->helper = fork();
    if (s->helper != 0)
        return;
    stk_words_add(&w, "%s", names[s->runtime]);
    stk_words_add(&w, "rm");
    stk_words_add(&w, "--force");
    if (s->runtime == STK_PODMAN) {
        stk_words_add(&w, "--ignore");
        stk_words_add(&w, "--time=0");
    }
    for (uint32_t i = 0; i < s->l.procs; i++)
        add_name(&s->l, i, &w);
    (void)close_range(3, ~0U, 0);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (stk_child_become(&s->l) == 0 && !w.failed) {
        env = stk_shim_env(&s->l, 0, false, NULL);
        if (env)
            environ = env;
        (void)execvp(w.word[0], w.word);
    }
    _exit(1);
}
