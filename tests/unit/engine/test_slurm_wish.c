/* SPDX-License-Identifier: Apache-2.0 */
/* What users ask Slurm for, as descriptions of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/slurm/wish.h"
#include "spec/spec.h"

static const struct stk_slurm_room room = {8, 64};

static json_t *wish(const char *job, struct stk_err *err)
{
    const struct stk_slurm_claim none = {0};
    json_t *o = json_loads(job, 0, NULL), *w;

    assert_non_null(o);
    w = stk_slurm_wish(o, &room, &none, err);
    json_decref(o);
    return w;
}

/* Units, GPUs of each, and units per node (0: as they fit). It is a description that is taken. */
static void is(const char *job, int units, int gpus, int per_node)
{
    struct stk_err err = {""};
    json_t *w = wish(job, &err);

    assert_non_null(w);
    assert_int_equal(stk_spec_check(w, &err), 0);
    assert_int_equal(json_integer_value(json_object_get(w, "tasks")), units);
    assert_int_equal(json_integer_value(json_object_get(w, "gpus")), gpus);
    assert_int_equal(json_integer_value(json_object_get(w, "tasks_per_node")), per_node);
    json_decref(w);
}

static void refuses(const char *job, const char *words)
{
    struct stk_err err = {""};

    assert_null(wish(job, &err));
    assert_non_null(strstr(err.text, words));
}

#define GPUS(how, n) "\"gpus_per_" how "\":[{\"type\":\"\",\"count\":" n "}]"
#define MORE ",\"requeue\":true,\"batch\":true,\"job\":7}"

static void gpus_are_counted_per_node_per_task_and_in_all(void **state)
{
    (void)state;
    is("{" GPUS("node", "2") ",\"tasks\":1" MORE, 1, 2, 0);
    is("{" GPUS("node", "8") ",\"nodes_wanted\":3,\"max_nodes\":3,\"tasks\":3" MORE, 3, 8, 1);
    is("{" GPUS("node", "8") ",\"nodes_wanted\":5,\"max_nodes\":4,\"tasks\":8" MORE, 4, 8, 1);
    is("{" GPUS("task", "1") ",\"tasks\":4" MORE, 1, 4, 0);
    is("{" GPUS("task", "2") ",\"tasks\":4,\"nodes_wanted\":2,\"max_nodes\":2" MORE, 2, 4, 1);
    is("{" GPUS("task", "1") ",\"tasks\":5,\"nodes_wanted\":2,\"max_nodes\":2" MORE, 5, 1, 0);
    is("{" GPUS("task", "1") ",\"tasks\":16,\"tasks_per_node\":4" MORE, 4, 4, 1);
    is("{" GPUS("job", "6") ",\"tasks\":1" MORE, 1, 6, 0);
    is("{" GPUS("job", "12") ",\"tasks\":1" MORE, 2, 6, 0);
    is("{" GPUS("job", "16") ",\"nodes_wanted\":4,\"max_nodes\":4,\"tasks\":4" MORE, 4, 4, 1);
    is("{\"tasks\":8,\"tasks_per_gpu\":2" MORE, 1, 4, 0);
    is("{" GPUS("job", "2") ",\"tasks\":4,\"tasks_per_gpu\":2" MORE, 1, 2, 0);
    is("{\"tasks\":2,\"cpus\":6" MORE, 1, 0, 0);
    is("{\"tasks\":200,\"cpus\":200" MORE, 200, 0, 0);
}

static void what_cannot_be_has_a_sentence(void **state)
{
    (void)state;
    refuses("{" GPUS("job", "3") ",\"nodes_wanted\":2,\"max_nodes\":2" MORE, "--gpus-per-node");
    refuses("{\"gpus_per_node\":[{\"type\":\"a\",\"count\":1},{\"type\":\"b\",\"count\":1}]" MORE,
            "several types");
    refuses("{\"het\":true" MORE, "heterogeneous");
    refuses("{\"gpus_per_node\":null" MORE, "digits alone");
    refuses("{\"gpus_per_socket\":null" MORE, "socket");
    refuses("{\"tres_per_node\":\"gres:mps:50\"" MORE, "parts of GPUs");
    refuses("{" GPUS("node", "1") ",\"tres_per_job\":\"gres:gpu:1,gres/shard:2\"" MORE, "parts");
    refuses("{" GPUS("socket", "1") MORE, "socket");
    refuses("{\"array_tasks\":\"1-\"" MORE, "not understood");
    refuses("{\"array_tasks\":\"0-999999\"" MORE, "too many");
}

static void names_files_and_arrays_are_ours(void **state)
{
    struct stk_err err = {""};
    json_t *w = wish("{\"array_tasks\":\"0-6:3%2\",\"array_limit\":2,\"array_job\":7,\"job\":7,"
                     "\"workdir\":\"/home/x\",\"name\":\"a\\u0001b\",\"begin\":500,"
                     "\"submitted\":100,\"time_limit_s\":60,\"nice\":5}",
                     &err);

    (void)state;
    assert_non_null(w);
    assert_int_equal(stk_spec_check(w, &err), 0);
    assert_string_equal(json_string_value(json_object_get(w, "stdout")), "/home/x/slurm-7_%a.out");
    assert_string_equal(json_string_value(json_object_get(w, "name")), "a_b");
    assert_int_equal(json_array_size(json_object_get(json_object_get(w, "array"), "indices")), 3);
    assert_int_equal(json_integer_value(json_object_get(w, "begin")), 500);
    assert_true(json_is_false(json_object_get(w, "requeue")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(w, "keep_up"), "min")), 3);
    json_decref(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_counted_per_node_per_task_and_in_all),
        cmocka_unit_test(what_cannot_be_has_a_sentence),
        cmocka_unit_test(names_files_and_arrays_are_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
