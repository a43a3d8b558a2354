/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c - commands that are programs of their own: serve (stokerd), store
 * (stoker-store); and slurm-shims, which writes links to stoker-slurm. They lie next to this
 * program, or in ../libexec/stoker. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/programs.h"

int stk_find_program(const char *name, char *ret, size_t size)
{
    static const char *const places[] = {"", "../libexec/stoker/"};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    const char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(*places); i++) {
        int k = snprintf(ret, size, "%.*s/%s%s", (int)(slash - self), self, places[i], name);

        if (k > 0 && (size_t)k < size && access(ret, X_OK) == 0)
            return STK_EXIT_OK;
    }
    (void)fprintf(stderr, "stoker: the program %s is missing: it should be in %.*s\n", name,
                  slash ? (int)(slash - self) : 0, self);
    return STK_EXIT_FAILED;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void stk_remove_tree(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int stk_become_program(const char *name, char *const *words)
{
    char path[PATH_MAX];
    char **argv;
    size_t n = 0;
    int rc = stk_find_program(name, path, sizeof(path));

    if (rc != STK_EXIT_OK)
        return rc;
    while (words[n])
        n++;
    argv = calloc(n + 2, sizeof(*argv));
    if (!argv)
        return STK_EXIT_FAILED;
    argv[0] = path;
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = words[i];
    (void)execv(path, argv);
    (void)fprintf(stderr, "stoker: cannot run %s: %s\n", path, strerror(errno));
    free((void *)argv);
    return STK_EXIT_FAILED;
}

/* Becomes the program, with our words behind a verb of its (NULL: none). */
static int become(const struct stk_args *a, const char *name, const char *verb)
{
    char **words = calloc((size_t)a->n_words + 2, sizeof(*words)), word[64] = "";
    int n = 0, rc;

    if (!words)
        return STK_EXIT_FAILED;
    (void)snprintf(word, sizeof(word), "%s", verb ? verb : "");
    if (verb)
        words[n++] = word;
    for (int i = 0; i < a->n_words; i++)
        words[n++] = a->words[i];
    rc = stk_become_program(name, words);
    free((void *)words);
    return rc;
}

static int run_serve(const struct stk_args *a)
{
    return become(a, "stokerd", NULL);
}

const struct stk_command stk_cmd_serve = {
    .name = "serve",
    .synopsis = "[options of stokerd]",
    .help = "start the daemon: it finds the GPUs and runs the jobs",
    .section = STK_SECTION_SITE,
    .passes = true,
    .run = run_serve,
};

static int run_store(const struct stk_args *a)
{
    return become(a, "stoker-store", NULL);
}

const struct stk_command stk_cmd_store = {
    .name = "store",
    .synopsis = "COMMAND ...",
    .help = "back up, check, restore, export or prune the daemon's state, or accept a loss",
    .section = STK_SECTION_SITE,
    .passes = true,
    .run = run_store,
};

static int run_export(const struct stk_args *a)
{
    return become(a, "stoker-whatif", "export");
}

const struct stk_command stk_cmd_export = {
    .name = "export",
    .synopsis = "FOLDER [--since WHEN] [--until WHEN] [--state DIR]",
    .help = "the daemon's past as files for stoker sim",
    .section = STK_SECTION_SITE,
    .passes = true,
    .run = run_export,
};

static const char *const shims[] = {"sbatch",   "srun",  "squeue", "scancel",
                                    "scontrol", "sinfo", "sacct",  "sacctmgr"};
#define N_SHIMS (sizeof(shims) / sizeof(*shims))

/* Writes one link, or takes it away. A file that is not our link is never touched. */
static int do_shim(const struct stk_args *a, const char *dir, const char *name, const char *target)
{
    bool remove = stk_arg_is(a, "remove");
    char path[PATH_MAX], old[PATH_MAX];
    const char *slash;
    struct stat st;
    ssize_t n;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
        return stk_misused(a, "the path is too long");
    if (lstat(path, &st) == 0) {
        n = readlink(path, old, sizeof(old) - 1);
        old[n > 0 ? n : 0] = '\0';
        slash = strrchr(old, '/');
        if (strcmp(slash ? slash + 1 : old, "stoker-slurm") != 0) {
            (void)fprintf(stderr, "stoker slurm-shims: %s is not ours: left alone\n", path);
            return STK_EXIT_FAILED;
        }
        if (unlink(path) < 0)
            goto failed;
    }
    if (remove || symlink(target, path) == 0)
        return STK_EXIT_OK;
failed:
    (void)fprintf(stderr, "stoker slurm-shims: %s: %s\n", path, strerror(errno));
    return STK_EXIT_FAILED;
}

static int run_shims(const struct stk_args *a)
{
    const char *dir = a->n_words == 1 ? a->words[0] : NULL;
    char path[PATH_MAX], target[PATH_MAX];
    int rc = STK_EXIT_OK, worst = STK_EXIT_OK;

    if (!dir)
        return stk_misused(a, "name a folder: stoker slurm-shims ~/slurm-shims");
    if (!stk_arg_is(a, "remove")) {
        rc = stk_find_program("stoker-slurm", path, sizeof(path));
        if (rc != STK_EXIT_OK)
            return rc;
        if (!realpath(path, target))
            return stk_misused(a, "%s: %s", path, strerror(errno));
        if (mkdir(dir, 0777) < 0 && errno != EEXIST)
            return stk_misused(a, "%s: %s", dir, strerror(errno));
    }
    for (size_t i = 0; i < N_SHIMS; i++) {
        rc = do_shim(a, dir, shims[i], target);
        worst = rc > worst ? rc : worst;
    }
    if (worst == STK_EXIT_OK && !stk_arg_is(a, "remove"))
        (void)printf("Put it first: export PATH=%s:$PATH\n", realpath(dir, path) ? path : dir);
    return worst;
}

static const struct stk_option shim_options[] = {
    {"remove", 0, NULL, "take the links away again", NULL},
    {0},
};
static const struct stk_options shim_groups[] = {{"options", shim_options}, {0}};

const struct stk_command stk_cmd_slurm_shims = {
    .name = "slurm-shims",
    .synopsis = "DIR [--remove]",
    .help = "write sbatch, squeue and others that talk to stoker into a folder",
    .about = "For scripts and tools made for Slurm. Only those who put the folder on their PATH "
             "see them.",
    .complete = "@dirs",
    .options = shim_groups,
    .section = STK_SECTION_SITE,
    .offline = true,
    .run = run_shims,
};
