/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "api/say.h"
#include "spec/ending.h"

#define NOW (INT64_C(1700000000) * STK_SECOND) /* 22:13:20 UTC */

static void says(const struct stk_say *s, const char *why, const char *change)
{
    char buf[400];

    stk_say_why(s, buf, sizeof(buf));
    assert_string_equal(buf, why);
    stk_say_change(s, buf, sizeof(buf));
    assert_string_equal(buf, change);
}

static void missing_gpus_are_counted(void **state)
{
    (void)state;
    says(&(struct stk_say){.why = {STK_WHY_GPUS, .need = 4, .have = 2, .missing = 2},
                           .tasks = 1,
                           .now = NOW},
         "needs 4 GPUs and 2 are free", "");
    says(&(struct stk_say){.why = {STK_WHY_NODES, .need = 4, .have = 1, .missing = 3, .nodes = 2}},
         "needs 4 GPUs, and on the 2 nodes it may use 1 is free", "");
    says(&(struct stk_say){.why = {STK_WHY_NODES, .need = 1, .missing = 1, .nodes = 1,
                                   .drained = 1}},
         "needs 1 GPU, and the 1 node it may use is drained", "");
    says(&(struct stk_say){.why = {STK_WHY_NODES, .need = 8, .have = 7, .missing = 1, .nodes = 3,
                                   .drained = 1, .down = 1}},
         "needs 8 GPUs, and on the 3 nodes it may use 7 are free; 2 of these nodes are drained or "
         "down",
         "");
    says(&(struct stk_say){.why = {STK_WHY_CLOSED, .nodes = 2, .down = 2},
                           .demand = &(struct stk_demand){.nodes = 1}},
         "finds no machine that takes new jobs: the 2 nodes it may use are down", "");
    says(&(struct stk_say){.why = {STK_WHY_CLOSED, .nodes = 2, .drained = 2}},
         "finds no machine that takes new jobs: all are drained or down", "");
    says(&(struct stk_say){.why = {STK_WHY_GPUS, .need = 1, .have = 0, .missing = 1, .off = 3},
                           .tasks = 1,
                           .now = NOW,
                           .room_at = NOW + 1500 * STK_SECOND},
         "needs 1 GPU and 0 are free, 3 are not to be used; enough are expected to be free at "
         "22:38 (in "
         "25 min)",
         "");
    says(&(struct stk_say){.why = {STK_WHY_GPUS, .need = 8, .have = 7, .missing = 1},
                           .tasks = 4,
                           .now = NOW,
                           .first_out = "12_3",
                           .first_out_at = NOW + 60 * STK_SECOND},
         "needs 8 GPUs and 7 are free; job 12_3 is expected to end first, at 22:14 (in 60 s)", "");
}

static void of_a_part_it_says_what_is_short(void **state)
{
    const struct stk_demand d = {.tasks = 1, .gpus = 1, .gpu_milli = 500};

    (void)state;
    says(&(struct stk_say){.why = {STK_WHY_GPUS, .need = 1, .missing = 1, .off = 1},
                           .demand = &d,
                           .off = "drained",
                           .tasks = 1,
                           .now = NOW},
         "needs 0.5 of a GPU (share none), and no GPU that it can use has that left, 1 is not to "
         "be used (drained)",
         "");
    says(&(struct stk_say){.why = {STK_WHY_RESOURCE, .need = 2, .have = 1, .missing = 1},
                           .demand = &d,
                           .resource = "licence",
                           .tasks = 1,
                           .now = NOW},
         "needs 2 of licence and 1 is free", "");
    says(&(struct stk_say){.why = {.code = STK_WHY_RUNNING}, .turn = "sleeps until its turn, 1st"},
         "sleeps until its turn, 1st", "");
}

static void cpus_and_memory_are_named_with_where(void **state)
{
    (void)state;
    says(&(struct stk_say){.why = {STK_WHY_CPU_MEM, .unit = STK_UNIT_CPUS, .limit = 1000},
                           .cpus_default = true},
         "needs 1 CPU (default) and 0 are free", "");
    says(&(struct stk_say){.why = {STK_WHY_CPU_MEM, .unit = STK_UNIT_CPUS, .limit = 2000,
                                   .level = STK_AT_NODE}},
         "needs 2 CPUs on one node and 0 are free there", "");
    says(&(struct stk_say){.why = {STK_WHY_CPU_MEM, .unit = STK_UNIT_CPUS, .limit = 2000,
                                   .used = 1000, .level = STK_AT_NODE}},
         "needs 2 CPUs on one node and at most 1 is free there", "");
    says(&(struct stk_say){.why = {STK_WHY_CPU_MEM, .unit = STK_UNIT_MEM, .limit = 12288,
                                   .used = 4096, .level = STK_AT_RACK}},
         "needs 12 GiB of memory in one rack and at most 4 GiB are free there", "");
    says(&(struct stk_say){.why = {STK_WHY_CPU_MEM, .unit = STK_UNIT_CPUS, .limit = 3000,
                                   .used = 3000}},
         "needs 3 CPUs and 3 are free, but not together", "");
    says(&(struct stk_say){.why = {STK_WHY_RESOURCE, .need = 2, .have = 1, .missing = 1,
                                   .level = STK_AT_NODE},
                           .resource = "licence"},
         "needs 2 of licence on one node and at most 1 is free there", "");
}

static void fragments_are_told_with_numbers_of_their_own(void **state)
{
    const struct stk_demand cut = {.tasks = 1, .gpus = 20, .cut = true};

    (void)state;
    says(&(struct stk_say){.why = {STK_WHY_FRAGMENTS, .need = 7, .have = 5, .missing = 2}},
         "finds enough GPUs free, but not together: at most 5 on one node, and 7 are needed there",
         "");
    says(&(struct stk_say){.why = {STK_WHY_FRAGMENTS, .need = 8, .have = 5, .limit = 2, .used = 1}},
         "finds enough GPUs free, but not together: needs 8 for 2 tasks, and there is room for 1 "
         "task; at most 5 are free on one node",
         "");
    says(&(struct stk_say){.why = {STK_WHY_FRAGMENTS, .need = 20, .have = 8, .limit = 2, .used = 1},
                           .demand = &cut},
         "finds enough GPUs free, but not together: needs 20, 8 on each of 2 nodes, and 1 node has "
         "so many free",
         "");
    says(&(struct stk_say){.why = {STK_WHY_TOPOLOGY, .need = 8, .have = 5, .missing = 3,
                                   .level = STK_AT_NODE}},
         "finds enough GPUs free, but not as near as it asks: at most 5 on one node, and 8 are "
         "needed there",
         "");
    says(&(struct stk_say){.why = {STK_WHY_TOPOLOGY, .need = 8, .limit = 2, .used = 1}},
         "finds enough GPUs free, but not so that its tasks lie as they must: needs 2 times 4 on "
         "one node, and there is room for 1",
         "");
}

static void limits_are_named_with_what_is_used(void **state)
{
    (void)state;
    says(&(struct stk_say){.why = {STK_WHY_LIMIT, .need = 2000, .used = 8000, .limit = 8500,
                                   .tenant = "vision"},
                           .now = NOW},
         "is over the limit of vision: uses 8 of 8.5 GPUs", "");
    says(&(struct stk_say){.why = {STK_WHY_LIMIT, .used = 250, .limit = 1000, .tenant = "ann",
                                   .gpu_type = 2},
                           .now = NOW},
         "is over the limit of ann: uses 0.25 of 1 GPUs of one type", "");
    says(&(struct stk_say){.why = {STK_WHY_LIMIT, .used = 64000, .limit = 64000, .tenant = "ann",
                                   .unit = STK_UNIT_CPUS},
                           .now = NOW},
         "is over the limit of ann: uses 64 of 64 CPUs", "");
    says(&(struct stk_say){.why = {STK_WHY_LIMIT, .used = 1536, .limit = 2048, .tenant = "ann",
                                   .unit = STK_UNIT_MEM},
                           .now = NOW},
         "is over the limit of ann: uses 1.5 GiB of 2 GiB of memory", "");
    says(&(struct stk_say){.why = {STK_WHY_LIMIT, .used = 2040, .limit = 2041, .tenant = "ann",
                                   .unit = STK_UNIT_MEM},
                           .now = NOW},
         "is over the limit of ann: uses 2040 MiB of 2041 MiB of memory", "");
}

static void memory_is_rounded_and_has_its_unit(void **state)
{
    static const struct {
        uint64_t need, have;
        const char *said;
    } cases[] = {
        {6144, 3625, "needs 6 GiB of memory and 3.5 GiB are free"},
        {6144, 6143, "needs 6 GiB of memory and 5.9 GiB are free"},
        {3650, 3625, "needs 3650 MiB of memory and 3625 MiB are free"},
        {512, 100, "needs 0.5 GiB of memory and 100 MiB are free"},
        {6144, 0, "needs 6 GiB of memory and 0 GiB are free"},
        {6144, 6144, "needs 6 GiB of memory and 6 GiB are free, but not together"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        says(&(struct stk_say){.why = {STK_WHY_CPU_MEM, .unit = STK_UNIT_MEM,
                                       .limit = cases[i].need, .used = cases[i].have},
                               .tasks = 1,
                               .now = NOW},
             cases[i].said, "");
}

static void turns_name_who_is_first(void **state)
{
    (void)state;
    says(&(struct stk_say){.why = {STK_WHY_RESERVED, .other = 7,
                                   .until = NOW + 3 * 3600 * STK_SECOND},
                           .now = NOW},
         "would fit, but would delay job 7, which is promised to start at 2023-11-15 01:13 (in 3 h "
         "0 "
         "min)",
         "");
    says(&(struct stk_say){.why = {STK_WHY_BEHIND, .other = 9}, .other = "8_1", .now = NOW},
         "would fit, but job 8_1 is first in line and cannot start yet; the queue is strict", "");
    says(&(struct stk_say){.why = {.code = STK_WHY_HELD}, .number = 5, .now = NOW},
         "is on hold until somebody releases it", "release it: stoker release 5");
    says(&(struct stk_say){.why = {.code = STK_WHY_HELD}, .number = 5, .asleep = true, .now = NOW},
         "is suspended and sleeps until somebody resumes it", "resume it: stoker resume 5");
    says(
        &(struct stk_say){
            .why = {.code = STK_WHY_HELD}, .number = 5, .asleep = true, .lent = true, .now = NOW},
        "is suspended, because its GPUs did nothing and others need them; it resumes by itself "
        "when they are free again",
        "resume it now: stoker resume 5");
    says(&(struct stk_say){.why = {STK_WHY_DEPENDENCY, .missing = 1}, .now = NOW},
         "waits for 1 job or array that it depends on", "");
    says(&(struct stk_say){.why = {STK_WHY_DEPENDENCY, .missing = 1}, .at_once = 2, .now = NOW},
         "is kept back: its array runs 2 at a time", "");
}

static void every_reason_has_a_sentence(void **state)
{
    (void)state;
    for (int c = 0; c < STK_WHY_MAX; c++) {
        const struct stk_say s = {.why = {(enum stk_reason_code)c, .other = 3}, .now = NOW};
        char buf[400] = "";

        stk_say_why(&s, buf, sizeof(buf));
        assert_true(strlen(buf) > 5);
        stk_say_change(&s, buf, sizeof(buf));
    }
}

static void every_end_has_a_sentence(void **state)
{
    char buf[100];

    (void)state;
    for (int c = 0; c < STK_CAUSE_MAX; c++) {
        buf[0] = '\0';
        stk_end_words((enum stk_cause)c, 3, buf, sizeof(buf));
        assert_true(strlen(buf) > 5);
    }
    stk_end_words(STK_CAUSE_SIGNAL, 9, buf, sizeof(buf));
    assert_string_equal(buf, "was killed by signal 9 (KILL)");
    stk_end_words(STK_CAUSE_SIGNAL, 200, buf, sizeof(buf));
    assert_string_equal(buf, "was killed by signal 200");
}

static void spans_are_short(void **state)
{
    static const struct {
        int64_t s;
        const char *text;
    } rows[] = {{0, "0 s"},          {119, "119 s"},        {120, "2 min"},    {7199, "119 min"},
                {7200, "2 h 0 min"}, {86400, "24 h 0 min"}, {172800, "2 days"}};
    char buf[40];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        stk_say_span(rows[i].s * STK_SECOND, buf, sizeof(buf));
        assert_string_equal(buf, rows[i].text);
    }
}

static void gpus_that_nobody_has_are_not_said_to_be_a_jobs(void **state)
{
    (void)state;
    says(&(struct stk_say){.why = {STK_WHY_PINNED, .need = 1, .missing = 1, .off = 1},
                           .tasks = 1,
                           .now = NOW},
         "sleeps, and must wake on its own GPUs, which are not to be used", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_that_nobody_has_are_not_said_to_be_a_jobs),
        cmocka_unit_test(missing_gpus_are_counted),
        cmocka_unit_test(of_a_part_it_says_what_is_short),
        cmocka_unit_test(cpus_and_memory_are_named_with_where),
        cmocka_unit_test(fragments_are_told_with_numbers_of_their_own),
        cmocka_unit_test(limits_are_named_with_what_is_used),
        cmocka_unit_test(memory_is_rounded_and_has_its_unit),
        cmocka_unit_test(turns_name_who_is_first),
        cmocka_unit_test(every_reason_has_a_sentence),
        cmocka_unit_test(every_end_has_a_sentence),
        cmocka_unit_test(spans_are_short),
    };

    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
