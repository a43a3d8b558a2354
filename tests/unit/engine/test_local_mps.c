/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine: GPUs that jobs share by MPS. A script stands in for nvidia-cuda-mps-control. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/local.h"

#define START                                                                                      \
    "setsid /bin/sh \"$0\" serve-mps-control </dev/null >/dev/null 2>&1 & "                        \
    "echo $! >\"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid\""
#define QUIT "read -r word; kill $(cat \"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid\")"

static char program[128];

#define LONG_MS 100000 /* on any machine it has started or ended by then */
#define SHORT_MS 2000

static void open_mps(struct lw *w, const char *start, const char *quit, uint32_t ms)
{
    FILE *f;

    lw_open(w);
    (void)snprintf(program, sizeof(program), "%s/mps-control", w->dir);
    f = fopen(program, "w");
    assert_non_null(f);
    (void)fprintf(f,
                  "#!/bin/sh\ncase \"$1\" in\n-d) %s;;\nserve*) exec sleep 20;;\n*) %s;;\nesac\n",
                  start, quit);
    (void)fclose(f);
    assert_int_equal(chmod(program, 0755), 0);
    w->mps = program;
    w->mps_ms = ms;
    lw_engine_close(w);
    lw_engine_open(w);
}

static void start_as(struct lw *w, uint32_t number, enum stk_share share, const char *spec)
{
    const struct stk_piece piece = {.gpus = 1, .tasks = 1, .mask = 2};
    const struct stk_start s = {.job = {number},
                                .number = number,
                                .lease = number,
                                .gpus = 1,
                                .pieces = &piece,
                                .n_pieces = 1,
                                .share = (uint8_t)share,
                                .gpu_milli = 500,
                                .spec = spec};

    assert_int_equal(w->e->ops->start(w->e, 0, &s), 0);
}

static void start(struct lw *w, uint32_t number, const char *script)
{
    start_as(w, number, STK_SHARE_MPS, lw_sh(w, script, ""));
}

static void ends_well(struct lw *w, uint32_t number)
{
    assert_int_equal(lw_wait(w, number, STK_EV_EXITED).u.exit.cause, STK_CAUSE_OK);
    lw_settle(w, number, number);
}

static void it_comes_and_goes_with_the_jobs(void **state)
{
    struct lw w;

    (void)state;
    open_mps(&w, START, QUIT, LONG_MS);
    for (uint32_t i = 1; i <= 3; i++) {
        start(&w, i, "test -d \"$CUDA_MPS_LOG_DIRECTORY\"");
        ends_well(&w, i);
    }
    lw_close(&w);
}

/* Of whatever runs images; what the job says of MPS in its environment is not taken for ours. */
static void an_image_has_its_folder(void **state)
{
    static const char *const runtimes[] = {"apptainer", "docker", "podman"};
    char path[256], words[256], *log;
    struct lw w;

    (void)state;
    open_mps(&w, START, QUIT, LONG_MS);
    for (uint32_t i = 1; i <= 4; i++) {
        const char *with = runtimes[i < 4 ? i - 1 : 2];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/%s", w.home, with);
        f = fopen(path, "w");
        assert_non_null(f);
        (void)fputs("#!/bin/sh\necho \"$@\"\n", f);
        (void)fclose(f);
        assert_int_equal(chmod(path, 0755), 0);
        start_as(&w, i, i < 4 ? STK_SHARE_MPS : STK_SHARE_NONE,
                 lw_spec(&w,
                         "\"command\":[\"x\"],\"image\":\"a.sif\",\"image_runtime\":\"%s\","
                         "\"envs\":{\"PATH\":\"%s\",\"CUDA_MPS_PIPE_DIRECTORY\":\"/etc\"}",
                         with, w.home));
        ends_well(&w, i);
        log = lw_log(&w, i);
        (void)snprintf(words, sizeof(words), "/mps/1-%u ", (unsigned)w.uid);
        assert_true((strstr(log, words) != NULL) == (i < 4));
        assert_null(strstr(log, "/etc"));
        free(log);
    }
    lw_close(&w);
}

static void one_that_does_not_heed_a_quit_keeps_nobody_waiting(void **state)
{
    struct lw w;

    (void)state;
    open_mps(&w, START, "exec sleep 600", SHORT_MS);
    start(&w, 1, ":");
    ends_well(&w, 1);
    start(&w, 2, ":");
    ends_well(&w, 2);
    lw_close(&w);
}

static void a_start_that_hangs_is_given_up(void **state)
{
    struct lw w;

    (void)state;
    open_mps(&w, "exec sleep 600", QUIT, SHORT_MS);
    start(&w, 1, ":");
    assert_int_equal(lw_wait(&w, 1, STK_EV_EXITED).u.exit.cause, STK_CAUSE_NOT_STARTED);
    lw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_comes_and_goes_with_the_jobs),
        cmocka_unit_test(an_image_has_its_folder),
        cmocka_unit_test(one_that_does_not_heed_a_quit_keeps_nobody_waiting),
        cmocka_unit_test(a_start_that_hangs_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
