/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - a container around the command, by whatever the user has: podman, docker or apptainer.
 * The program is the user's and runs as the user; stoker adds the job's GPUs, its working directory
 * and its environment (by name only: values do not belong on a command line). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/shim.h"
#include "shim/words.h"

enum runtime { PODMAN, DOCKER, APPTAINER, N_RUNTIMES };
static const char *const names[] = {"podman", "docker", "apptainer"};

static bool in_path(char *const *env, const char *program)
{
    const char *path = NULL;

    for (; *env && !path; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            path = *env + 5;
    while (path && *path) {
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

static int choose(const struct stk_launch *l, char *const *env, enum runtime *ret_runtime,
                  struct stk_err *err)
{
    const char *want = stk_launch_str(l->spec, "image_runtime", "auto");

    for (int i = 0; i < N_RUNTIMES; i++)
        if (strcmp(want, "auto") == 0 ? in_path(env, names[i]) : strcmp(want, names[i]) == 0) {
            *ret_runtime = (enum runtime)i;
            return 0;
        }
    return stk_err_set(
        err, -ENOENT, "it wants an image, but there is no podman, docker or apptainer in its PATH");
}

static void add_gpus(const struct stk_launch *l, enum runtime r, struct stk_words *w)
{
    char list[4096] = "", inside[STK_SHIM_MAX_GPUS * 4] = "", *p = inside;
    size_t used = 0;

    if (l->n_gpus == 0 || l->virtual_gpus)
        return;
    for (uint32_t i = 0; i < l->n_gpus; i++) {
        if (r == PODMAN) {
            stk_words_add(w, "--device");
            stk_words_add(w, "nvidia.com/gpu=%s", l->gpus[i].uuid);
        }
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? "," : "",
                                 l->gpus[i].uuid);
        used = used < sizeof(list) ? used : sizeof(list) - 1;
        p += sprintf(p, "%s%u", i ? "," : "", i);
    }
    if (r == DOCKER) {
        stk_words_add(w, "--gpus");
        stk_words_add(w, "\"device=%s\"", list);
    }
    stk_words_add(w, "--env"); /* inside there are no others: they are counted from 0 */
    stk_words_add(w, "CUDA_VISIBLE_DEVICES=%s", inside);
}

static void add_env(const struct stk_launch *l, char *const *env, struct stk_words *w)
{
    static const char *const host_only[] = {"PATH", "HOME", "SHELL", "PWD", "LD_LIBRARY_PATH"};

    for (; *env; env++) {
        size_t len = strcspn(*env, "=");
        bool skip =
            strncmp(*env, "CUDA_VISIBLE_DEVICES=", 21) == 0 && !l->virtual_gpus && l->n_gpus > 0;

        for (size_t i = 0; i < sizeof(host_only) / sizeof(host_only[0]); i++)
            skip = skip || (strlen(host_only[i]) == len && memcmp(*env, host_only[i], len) == 0);
        if (!skip) {
            stk_words_add(w, "--env");
            stk_words_add(w, "%.*s", (int)len, *env);
        }
    }
}

static void apptainer(const struct stk_shim *s, const char *image, struct stk_words *w)
{
    stk_words_add(w, "apptainer");
    stk_words_add(w, "exec");
    if (s->l.n_gpus > 0 && !s->l.virtual_gpus)
        stk_words_add(w, "--nv");
    stk_words_add(w, "--bind");
    stk_words_add(w, "%s", s->l.workdir);
    if (s->script[0]) {
        stk_words_add(w, "--bind");
        stk_words_add(w, "%s", s->script);
    }
    stk_words_add(w, "--pwd");
    stk_words_add(w, "%s", s->l.workdir);
    stk_words_add(w, "%s", image);
}

static void add_name(const struct stk_launch *l, uint32_t task, struct stk_words *w)
{
    stk_words_add(w, "stoker-%u-%u-%u", l->number, l->launch, task);
}

static void bind_mount(struct stk_words *w, const char *path)
{
    stk_words_add(w, "--volume");
    stk_words_add(w, "%s:%s", path, path);
}

int stk_image_words(const struct stk_shim *s, uint32_t task, char *const *env, struct stk_words *w,
                    struct stk_err *err)
{
    const char *image = stk_launch_str(s->l.spec, "image", "");
    enum runtime r = PODMAN;
    struct stat st;
    int rc = choose(&s->l, env, &r, err);

    if (rc < 0)
        return rc;
    if (r == APPTAINER) {
        apptainer(s, image, w);
        return 0;
    }
    stk_words_add(w, "%s", names[r]);
    stk_words_add(w, "run");
    stk_words_add(w, "--rm");
    stk_words_add(w, "--name");
    add_name(&s->l, task, w);
    stk_words_add(w, "--network=host");
    stk_words_add(w, "--ipc=host");
    if (r == DOCKER) {
        stk_words_add(w, "--init");
        stk_words_add(w, "--user=%u:%u", (unsigned)s->l.uid, (unsigned)s->l.gid);
    }
    if (s->l.interactive)
        stk_words_add(w, "-it");
    add_gpus(&s->l, r, w);
    add_env(&s->l, env, w);
    bind_mount(w, s->l.workdir);
    if (s->script[0])
        bind_mount(w, s->script);
    stk_words_add(w, "--workdir");
    stk_words_add(w, "%s", s->l.workdir);
    if (image[0] == '/' && stat(image, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (r != PODMAN)
            return stk_err_set(err, -EINVAL,
                               "only podman and apptainer run an image that is a folder");
        stk_words_add(w, "--rootfs");
    }
    stk_words_add(w, "%s", image);
    return 0;
}

/* Docker's client can be killed without its container: the daemon that runs it is not below us. */
void stk_image_kill(struct stk_shim *s)
{
    const struct stk_launch *l = &s->l;
    const char *want = stk_launch_str(l->spec, "image_runtime", "auto");
    struct stk_words w = {0};
    sigset_t none;

    if (!stk_launch_str(l->spec, "image", NULL) ||
        (strcmp(want, "docker") != 0 && strcmp(want, "auto") != 0))
        return;
    s->helper = fork();
    if (s->helper != 0)
        return;
    stk_words_add(&w, "docker");
    stk_words_add(&w, "kill");
    for (uint32_t i = 0; i < l->procs; i++)
        add_name(l, i, &w);
    (void)close_range(3, ~0U, 0);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (stk_child_become(l) == 0 && !w.failed)
        (void)execvp(w.word[0], w.word);
    _exit(1);
}
