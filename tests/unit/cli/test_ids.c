/* SPDX-License-Identifier: Apache-2.0 */
/* test_ids.c - jobs as people name them; frames and detach keys of the attach socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/attach.h"
#include "cli/ids.h"

static void ids_ranges_and_elements(void **state)
{
    struct stk_ids ids = {0};
    char buf[40];

    (void)state;
    assert_int_equal(stk_ids_add(&ids, "12,3-5,20_7", NULL), 0);
    assert_int_equal(stk_ids_add(&ids, "30_[0-4%2]", NULL), 0);
    assert_int_equal(ids.n, 6);
    assert_int_equal(ids.list[0].job, 12);
    assert_false(ids.list[0].range);
    assert_true(ids.list[1].job == 3 && ids.list[3].job == 5 && ids.list[1].range);
    assert_string_equal(stk_id_text(&ids.list[4], buf, sizeof(buf)), "20_7");
    assert_true(ids.list[5].job == 30 && ids.list[5].index == -1);
    stk_ids_done(&ids);
}

static void slurms_numbers_are_told_apart(void **state)
{
    struct stk_ids ids = {0};
    char buf[40];

    (void)state;
    assert_int_equal(stk_ids_add(&ids, "slurm:1234_5,slurm:7-8,12", NULL), 0);
    assert_int_equal(ids.n, 4);
    assert_string_equal(stk_id_text(&ids.list[0], buf, sizeof(buf)), "slurm:1234_5");
    assert_true(ids.list[1].slurm && ids.list[2].slurm && ids.list[2].job == 8);
    assert_false(ids.list[3].slurm);
    stk_ids_done(&ids);
}

static void what_names_no_job_is_refused(void **state)
{
    const char *const bad[] = {"",        "0",     "x",      "-3",  "5-3",    "3-",
                               "3_",      "3_x",   "1,,",    "1 2", "1.5",    "4294967296",
                               "12_3-4",  "1-",    "3_[",    "+4",  "slurm:", "slurm:x",
                               "slurm:0", "slurm", "Slurm:3"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stk_ids ids = {0};
        struct stk_err err = {""};

        assert_int_equal(stk_ids_add(&ids, bad[i], &err), -EINVAL);
        assert_non_null(strstr(err.text, "names no job"));
        stk_ids_done(&ids);
    }
}

static void ranges_are_bounded(void **state)
{
    struct stk_ids ids = {0};
    struct stk_err err = {""};

    (void)state;
    assert_int_equal(stk_ids_add(&ids, "1-4294967295", &err), -E2BIG);
    assert_int_equal(ids.n, 0);
    assert_int_equal(stk_ids_add(&ids, "1-100000", &err), 0);
    assert_int_equal(stk_ids_add(&ids, "100001", &err), -E2BIG);
    stk_ids_done(&ids);
}

struct seen {
    char text[64];
};

static int on_frame(void *ctx, char type, const unsigned char *data, size_t n)
{
    struct seen *s = ctx;
    size_t k = strlen(s->text);

    s->text[k++] = type;
    memcpy(s->text + k, data, n);
    s->text[k + n] = '|';
    return 0;
}

static void frames_come_whole_however_they_are_cut(void **state)
{
    static const char in[] = "d\0\0\0\5hello"
                             "w\0\0\0\0"
                             "e\0\0\0\1x";

    (void)state;
    for (size_t step = 1; step < sizeof(in); step++) {
        struct stk_frames f = {0};
        struct seen s = {""};

        for (size_t at = 0; at < sizeof(in) - 1; at += step)
            assert_int_equal(
                stk_frames_feed(&f, in + at,
                                sizeof(in) - 1 - at < step ? sizeof(in) - 1 - at : step, on_frame,
                                &s),
                0);
        assert_string_equal(s.text, "dhello|w|ex|");
        stk_frames_done(&f);
    }
}

static void frames_are_bounded(void **state)
{
    unsigned char head[5];
    struct stk_frames f = {0};
    struct seen s = {""};

    (void)state;
    stk_frame_head(head, 'd', STK_ATTACH_MAX_FRAME + 1);
    assert_int_equal(stk_frames_feed(&f, head, sizeof(head), on_frame, &s), -E2BIG);
    stk_frames_done(&f);
    stk_frame_head(head, 'w', 0x01020304);
    assert_memory_equal(head, "w\1\2\3\4", 5);
}

static void detach_keys_are_found_across_reads(void **state)
{
    char out[16];
    bool held = false;
    size_t n;

    (void)state;
    assert_false(stk_detach_keys(&held, "ab\020", 3, out, &n));
    assert_int_equal(n, 2);
    assert_true(held);
    assert_true(stk_detach_keys(&held, "\021", 1, out, &n));
    held = false;
    assert_false(stk_detach_keys(&held, "\020x\020\020", 4, out, &n));
    assert_int_equal(n, 3);
    assert_memory_equal(out, "\020x\020", 3);
    assert_true(stk_detach_keys(&held, "\021z", 2, out, &n));
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_ranges_and_elements),
        cmocka_unit_test(slurms_numbers_are_told_apart),
        cmocka_unit_test(what_names_no_job_is_refused),
        cmocka_unit_test(ranges_are_bounded),
        cmocka_unit_test(frames_come_whole_however_they_are_cut),
        cmocka_unit_test(frames_are_bounded),
        cmocka_unit_test(detach_keys_are_found_across_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
