/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine: limits by cgroups. What this machine has (v2, or v1) is tried first; then, for
 * root, a v2 tree in a mount namespace of our own, whatever controllers are left for it. */
#include <errno.h>
#include <glob.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/local.h"

#define ROOT "/sys/fs/cgroup/"
#define NVIDIA 195

static void remove_parents(void)
{
    static const char *const trees[] = {"", "memory/", "cpu/", "pids/", "devices/"};
    char path[128];

    for (size_t i = 0; i < sizeof(trees) / sizeof(*trees); i++) {
        (void)snprintf(path, sizeof(path), ROOT "%sstoker-test", trees[i]);
        (void)rmdir(path);
    }
}

/* Names of cgroups end in a random number. */
static bool gone(const char *name)
{
    char pattern[128];
    glob_t found;
    int rc;

    (void)snprintf(pattern, sizeof(pattern), ROOT "%s-*", name);
    rc = glob(pattern, 0, NULL, &found);
    if (rc == 0)
        globfree(&found);
    return rc == GLOB_NOMATCH;
}

static bool has_controller(const char *name)
{
    char path[128], text[256] = "";
    FILE *f;

    (void)snprintf(path, sizeof(path), ROOT "%s/cgroup.procs", name);
    if (geteuid() != 0)
        return false;
    if (access(path, W_OK) == 0)
        return true;
    f = fopen(ROOT "cgroup.subtree_control", "re"); /* ours to have, not only there */
    if (f) {
        if (!fgets(text, sizeof(text), f))
            text[0] = 0;
        (void)fclose(f);
    }
    return strstr(text, name) != NULL;
}

#define EATS "import sys; x = bytearray(300 << 20); print(len(x))"

static void a_job_over_its_memory_is_told_apart(void **state)
{
    struct stk_event ev;
    struct lw w;

    (void)state;
    if (!has_controller("memory")) {
        skip();
        return;
    }
    lw_open(&w);
    ev = lw_run(
        &w, 1,
        lw_spec(&w, "\"command\":[\"/usr/bin/python3\",\"-c\",\"" EATS "\"],\"mem_mib\":64"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_OOM);
    assert_string_equal(w.note, "out of memory: used 64 MiB, its limit");
    /* also when it is a process below that is killed, and the command only fails */
    ev = lw_run(&w, 2, lw_sh(&w, "/usr/bin/python3 -c '" EATS "'; exit 1", "\"mem_mib\":64"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_OOM);
    ev = lw_run(&w, 3, lw_sh(&w, "kill -KILL $$", "\"mem_mib\":64"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_SIGNAL);
    ev = lw_run(&w, 4, lw_sh(&w, "cat /proc/self/cgroup", "\"mem_mib\":64,\"cpus\":0.5"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_OK);
    {
        char *log = lw_log(&w, 4);

        assert_non_null(strstr(log, "stoker-test/4.4"));
        free(log);
    }
    assert_true(gone("memory/stoker-test/4.4"));
    assert_true(gone("stoker-test/4.4"));
    lw_close(&w);
    remove_parents();
}

static void a_job_has_so_many_processes(void **state)
{
    struct stk_event ev;
    struct lw w;

    (void)state;
    if (!has_controller("pids")) {
        skip();
        return;
    }
    lw_open(&w);
    ev = lw_run(&w, 1, lw_sh(&w, "sleep 0.01 & sleep 0.01 & wait", "\"pids\":4"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_OK);
    ev = lw_run(
        &w, 2, lw_sh(&w, "sleep 1000 & sleep 1000 & sleep 1000 & sleep 1000 & wait", "\"pids\":2"));
    assert_int_equal(ev.u.exit.cause, STK_CAUSE_FAILED);
    lw_close(&w);
    remove_parents();
}

/* A job with GPUs 2 and 3 of 4 tries to open all of them. Nobody answers for these devices here:
 * who may open one hears that, who may not hears that. */
static void fenced(bool expected)
{
    char script[512], path[128], *log;
    struct lw w;

    lw_open(&w);
    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof(path), "%s/home/gpu%u", w.dir, i);
        assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(NVIDIA, i)), 0);
        assert_int_equal(chmod(path, 0666), 0);
    }
    w.real_gpus = true;
    lw_engine_close(&w);
    lw_engine_open(&w);
    (void)snprintf(script, sizeof(script),
                   "echo $CUDA_VISIBLE_DEVICES $STOKER_GPUS $STOKER_GPU_UUIDS; cd %s/home; "
                   "for i in 0 1 2 3; do if { head -c0 gpu$i; } 2>&1 | grep -q permitted; "
                   "then echo $i no; else echo $i yes; fi; done; head -c1 /dev/zero | wc -c",
                   w.dir);
    lw_start_on(&w, 1, 5, lw_sh(&w, script, ""), 0xc, 1, 0);
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    log = lw_log(&w, 1);
    assert_string_equal(log, expected ? "0,1 2,3 GPU-2,GPU-3\n0 no\n1 no\n2 yes\n3 yes\n1\n"
                                      : "2,3 2,3 GPU-2,GPU-3\n0 yes\n1 yes\n2 yes\n3 yes\n1\n");
    free(log);
    lw_settle(&w, 1, 5);
    lw_close(&w);
    remove_parents();
}

static void only_its_own_gpus_can_be_opened(void **state)
{
    (void)state;
    if (geteuid() != 0 ||
        (!has_controller("devices") && access(ROOT "cgroup.controllers", F_OK) < 0)) {
        skip();
        return;
    }
    fenced(true);
}

/* From here on this process and its jobs see a v2 tree. */
static bool enter_v2(void)
{
    if (access(ROOT "cgroup.controllers", F_OK) == 0)
        return true;
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("stoker-test", "/sys/fs/cgroup", "cgroup2", 0, NULL) == 0;
}

static void the_same_in_a_v2_tree(void **state)
{
    struct lw w;
    char *log;

    (void)state;
    if (geteuid() != 0 || !enter_v2()) {
        skip();
        return;
    }
    lw_open(&w);
    assert_int_equal(lw_run(&w, 4, lw_sh(&w, "cat /proc/self/cgroup", "\"cpus\":0.5")).u.exit.cause,
                     STK_CAUSE_OK);
    log = lw_log(&w, 4);
    assert_non_null(strstr(log, "0::/stoker-test/4.4"));
    free(log);
    assert_true(gone("stoker-test/4.4"));
    lw_close(&w);
    fenced(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_over_its_memory_is_told_apart),
        cmocka_unit_test(a_job_has_so_many_processes),
        cmocka_unit_test(only_its_own_gpus_can_be_opened),
        cmocka_unit_test(the_same_in_a_v2_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
