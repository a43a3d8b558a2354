/* SPDX-License-Identifier: Apache-2.0 */
/* test_logcap.c - when a log is looked at next, by a clock that the test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/shim.h"

#define CAP ((uint64_t)1 << 20)
#define BURST ((off_t)4 << 20)
#define QUICK_MS 50
#define SLOW_MS 10000

static int open_log(void)
{
    char path[] = "/tmp/stk-logcap-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    return fd;
}

static void grow(int fd, off_t bytes)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(ftruncate(fd, st.st_size + bytes), 0);
}

/* Looks when the last look asked for it; returns after how many ms it asks for the next. */
static int64_t next_look(struct stk_shim *s, int64_t *now)
{
    *now = s->log_at;
    stk_shim_logs_check(s, *now);
    return s->log_at - *now;
}

static void a_burst_after_a_pause_is_met_within_twice_the_pause(void **state)
{
    struct stk_log log = {.fd = open_log()};
    struct stk_shim s = {.l.log_max = CAP, .logs = &log, .n_logs = 1, .log_at = QUICK_MS};
    int64_t now = 0;

    (void)state;
    for (int round = 0; round < 5; round++) {
        int64_t quiet = 0, wait;

        grow(log.fd, BURST);
        assert_int_equal(next_look(&s, &now), QUICK_MS);
        for (wait = QUICK_MS; quiet < 500; quiet += wait) {
            const int64_t next = next_look(&s, &now);

            assert_true(next > wait && next <= 2 * wait);
            wait = next;
        }
        assert_true(wait <= 1000);
    }
    (void)close(log.fd);
}

static void a_quiet_log_and_one_that_grows_slowly_are_looked_at_ever_less(void **state)
{
    for (int slow = 0; slow < 2; slow++) {
        struct stk_log log = {.fd = open_log()};
        struct stk_shim s = {.l.log_max = CAP, .logs = &log, .n_logs = 1, .log_at = QUICK_MS};
        int64_t now = 0, wait = QUICK_MS;

        for (int i = 0; i < 20; i++) {
            int64_t next;

            grow(log.fd, slow);
            next = next_look(&s, &now);
            assert_true(next <= 2 * wait);
            assert_true(next > wait || next == SLOW_MS);
            wait = next;
        }
        assert_int_equal(wait, SLOW_MS);
        (void)close(log.fd);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_after_a_pause_is_met_within_twice_the_pause),
        cmocka_unit_test(a_quiet_log_and_one_that_grows_slowly_are_looked_at_ever_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
