/* SPDX-License-Identifier: Apache-2.0 */
/* test_cluster.c - clusters from words, YAML and CSV; pools; aggregate nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/mig.h"
#include "sim/cluster.h"

static struct stk_err err;

static int text(struct stk_cluster *c, const char *s)
{
    return stk_cluster_parse_text(c, "c.yaml", s, strlen(s), &err);
}

static void temp_file(char *path, const char *s)
{
    int fd;

    strcpy(path, "/tmp/stk-test-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, s, strlen(s)), (ssize_t)strlen(s));
    assert_int_equal(close(fd), 0);
}

static int split(struct stk_cluster *c, const struct stk_names *groups, const char *csv)
{
    char path[32];
    int rc;

    temp_file(path, csv);
    rc = stk_cluster_split(c, groups, path, &err);
    assert_int_equal(unlink(path), 0);
    return rc;
}

static void nodes_say_where_they_are(void **state)
{
    struct stk_cluster c = {0};

    (void)state;
    assert_int_equal(text(&c,
                          "nodes:\n"
                          "  - {count: 2, gpus: 8, rack: r1, zone: a, region: north, islands: 2}\n"
                          "  - {gpus: 8, rack: r2, zone: a, region: north,\n"
                          "     islands: [[0, 1, 2, 3], [7, 6, 5, 4]], numa: [[0,1],[2,3,4]]}\n"
                          "  - {racks: 3, per_rack: 18, gpus: 4, zone: b, domain: rack}\n"
                          "  - {count: 2, gpus: 4, domain: d, islands: 0}\n"),
                     0);
    assert_int_equal(c.n_nodes, 2 + 1 + 54 + 2);
    assert_int_equal(c.nodes[0].rack, 1);
    assert_int_equal(c.nodes[1].zone, 1);
    assert_int_equal(c.nodes[1].region, 1);
    assert_int_equal(c.nodes[0].layout, 1);
    assert_int_equal(c.layouts[0].n_islands, 2);
    assert_int_equal(c.layouts[0].island[1], 0xf0);
    assert_int_equal(c.nodes[2].rack, 2);
    assert_int_equal(c.nodes[2].layout, 2);
    assert_int_equal(c.layouts[1].island[1], 0xf0);
    assert_int_equal(c.layouts[1].numa[1], 0x1c);
    assert_int_equal(c.nodes[3].rack, 3);
    assert_int_equal(c.nodes[3 + 18].rack, 4);
    assert_int_equal(c.nodes[3 + 53].rack, 5);
    assert_string_equal(stk_names_get(&c.places[STK_PLACE_RACK], 4), "rack5");
    assert_int_equal(c.nodes[3 + 53].domain, 3);
    assert_int_equal(c.nodes[3 + 53].zone, 2);
    assert_int_equal(c.nodes[3 + 53].region, 0);
    assert_int_equal(c.nodes[57].rack, 0);
    assert_int_equal(c.nodes[57].domain, c.nodes[58].domain);
    assert_int_equal(c.nodes[57].layout, 0);
    assert_int_equal(stk_cluster_aggregate(&c, &err), 0);
    assert_int_equal(c.nodes[0].rack + c.nodes[0].layout, 0);
    stk_cluster_done(&c);
}

static void nonsense_about_places_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"nodes:\n - {gpus: 8, rack: r, zone: a}\n - {gpus: 8, rack: r, zone: b}\n",
         "c.yaml:3: rack \"r\" is in zone \"a\" and in zone \"b\""},
        {"nodes:\n - {gpus: 8, zone: a, region: x}\n - {gpus: 8, zone: a}\n",
         "c.yaml:3: zone \"a\" is in region \"x\" and in region \"\""},
        {"nodes:\n - {gpus: 4, islands: [[0, 1], [1, 2]]}\n", "c.yaml:2: GPU 1 is in two islands"},
        {"nodes:\n - {gpus: 4, islands: [[0, 4]]}\n",
         "c.yaml:2: island 0 has GPU 4; the node has GPUs 0 to 3"},
        {"nodes:\n - {gpus: 4, islands: [[]]}\n", "c.yaml:2: island 0 has no GPU"},
        {"nodes:\n - {gpus: 4, islands: [3]}\n",
         "c.yaml:2: islands and numa are a number, or lists of GPUs: [[0, 1], [2, 3]]"},
        {"nodes:\n - {gpus: 4, islands: 3}\n", "c.yaml:2: islands: 4 GPUs are not 3 equal parts"},
        {"nodes:\n - {gpus: 4, numa: [[x]]}\n",
         "c.yaml:2: numa must be a whole number (0 to 63), got \"x\""},
        {"nodes:\n - {gpus: 4, racks: 3}\n",
         "c.yaml:2: racks and per_rack go together, in place of count"},
        {"nodes:\n - {gpus: 4, racks: 3, per_rack: 2, count: 6}\n",
         "c.yaml:2: racks and per_rack go together, in place of count"},
        {"nodes:\n - {gpus: 4, racks: 1000000, per_rack: 1000000}\n",
         "c.yaml:2: more than 1000000 nodes"},
        {"nodes:\n - {gpus: 4, domain: rack}\n", "c.yaml:2: domain: rack needs to know the rack"},
        {"nodes:\n - {gpus: 4, domain: d, islands: 2}\n",
         "c.yaml:2: a link domain joins all GPUs: it goes without islands"},
        {"nodes:\n - {gpus: 4, rack: [a]}\n", "c.yaml:2: rack must have a plain value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stk_cluster c = {0};

        assert_true(text(&c, bad[i].text) < 0);
        assert_string_equal(err.text, bad[i].why);
        assert_int_equal(c.n_nodes, 0);
    }
}

static void words_make_nodes(void **state)
{
    struct stk_cluster c = {0};

    (void)state;
    assert_int_equal(stk_cluster_parse(&c, "3x8:A100+2x4:V100+1x0", &err), 0);
    assert_int_equal(c.n_nodes, 6);
    assert_int_equal(c.nodes[2].gpus, 8);
    assert_string_equal(stk_names_get(&c.gpu_types, c.nodes[2].gpu_type), "A100");
    assert_int_equal(c.nodes[4].gpus, 4);
    assert_string_equal(stk_names_get(&c.gpu_types, c.nodes[4].gpu_type), "V100");
    assert_string_equal(stk_names_get(&c.gpu_types, c.nodes[5].gpu_type), "none");
    assert_string_equal(stk_names_get(&c.pools, c.nodes[4].pool.i), "default");
    assert_int_equal(c.nodes[0].cpu_milli, 0);
    stk_cluster_done(&c);
    assert_int_equal(stk_cluster_parse(&c, "135x8", &err), 0);
    assert_int_equal(c.n_nodes, 135);
    assert_string_equal(stk_names_get(&c.gpu_types, 0), "gpu");
    stk_cluster_done(&c);
}

static void bad_words_are_refused_with_a_sentence(void **state)
{
    static const char *const cases[][2] = {
        {"0x8", "cluster \"0x8\": there must be at least one node"},
        {"1x65", "cluster \"1x65\": a node has 0 to 64 GPUs, got 65"},
        {"1x8:", "expected NODESxGPUS[:TYPE], for example 16x8:A100, got \"1x8:\""},
        {"1x8+", "expected NODESxGPUS[:TYPE], for example 16x8:A100, got \"\""},
        {"1x8+8", "got \"8\""},
        {"1x", "got \"1x\""},
        {"1000000x8+1x8", "more than 1000000 nodes"},
        {"99999999999999999999999x8", "expected NODESxGPUS"},
        {"1x99999999999999999999999", "expected NODESxGPUS"},
        {"4x8.yaml",
         "a cluster is NODESxGPUS[:TYPE] or a YAML or CSV file; 4x8.yaml: No such file"},
        {"/nonexistent", "/nonexistent: No such file or directory"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct stk_cluster c = {0};

        assert_true(stk_cluster_parse(&c, cases[i][0], &err) < 0);
        assert_non_null(strstr(err.text, cases[i][1]));
        assert_int_equal(c.n_nodes, 0);
        assert_null(c.nodes);
    }
}

static void yaml_makes_nodes(void **state)
{
    struct stk_cluster c = {0};

    (void)state;
    assert_int_equal(text(&c, "# ours\nnodes:\n"
                              "  - {count: 2, gpus: 8, gpu_type: A100, gpu_mem_gib: 80, cpus: 128,"
                              " mem_gib: 1024.5}\n"
                              "  - gpus: 4\n"
                              "    pool: old\n"),
                     0);
    assert_int_equal(c.n_nodes, 3);
    assert_int_equal(c.nodes[1].gpus, 8);
    assert_int_equal(c.nodes[1].gpu_mem_mib, 80 * 1024);
    assert_int_equal(c.nodes[1].cpu_milli, 128000);
    assert_int_equal(c.nodes[1].mem_mib, 1024 * 1024 + 512);
    assert_int_equal(c.nodes[2].gpus, 4);
    assert_string_equal(stk_names_get(&c.pools, c.nodes[2].pool.i), "old");
    assert_string_equal(stk_names_get(&c.gpu_types, c.nodes[2].gpu_type), "gpu");
    stk_cluster_done(&c);
}

static void nodes_may_say_what_they_draw(void **state)
{
    struct stk_cluster c = {0};

    (void)state;
    assert_int_equal(
        text(&c, "nodes:\n"
                 "  - {gpus: 8, power: {idle_w: 800, gpu_w: 700, off_w: 20, boot_s: 120}}\n"
                 "  - gpus: 4\n"
                 "    power:\n"
                 "      gpu_w: 300\n"
                 "  - {gpus: 4}\n"),
        0);
    assert_int_equal(c.nodes[0].power.idle_w, 800);
    assert_int_equal(c.nodes[0].power.boot_s, 120);
    assert_int_equal(c.nodes[1].power.gpu_w, 300);
    assert_true(stk_power_known(&c.nodes[1].power) && !stk_power_known(&c.nodes[2].power));
    assert_int_equal(stk_cluster_aggregate(&c, &err), 0);
    assert_int_equal(c.n_nodes, 1);
    assert_int_equal(c.nodes[0].power.idle_w, 800);
    assert_int_equal(c.nodes[0].power.gpu_w, 424); /* on average, rounded down each time */
    stk_cluster_done(&c);
}

static void gpus_in_mig_mode_are_of_a_type_of_their_own(void **state)
{
    struct stk_cluster c = {0};

    (void)state;
    assert_int_equal(text(&c, "nodes:\n"
                              "  - {gpus: 8, gpu_type: A100, gpu_mem_gib: 80}\n"
                              "  - {gpus: 8, gpu_type: A100, gpu_mem_gib: 80, mig: true}\n"
                              "  - {gpus: 8, gpu_type: A100, gpu_mem_gib: 40, mig: true}\n"
                              "  - {gpus: 8, gpu_type: H200, mig: true}\n"
                              "  - {gpus: 8, gpu_type: H200, mig: false}\n"),
                     0);
    assert_int_equal(c.gpu_types.n, 5);
    assert_int_equal(c.nodes[0].mig, 0);
    assert_string_equal(stk_mig_model_name(c.nodes[1].mig), "A100-80GB");
    assert_string_equal(stk_names_get(&c.gpu_types, c.nodes[1].gpu_type), "A100/mig-A100-80GB");
    assert_string_equal(stk_mig_model_name(c.nodes[2].mig), "A100-40GB");
    assert_string_equal(stk_mig_model_name(c.nodes[3].mig), "H200-141GB");
    assert_int_equal(c.nodes[4].mig, 0);
    stk_cluster_done(&c);
}

static void resources_have_names_and_amounts(void **state)
{
    struct stk_cluster c = {0};

    (void)state;
    assert_int_equal(text(&c,
                          "nodes:\n"
                          "  - {gpus: 8, count: 2, resources: {nic_gbps: 400, nvme_gib: 7000}}\n"
                          "  - gpus: 8\n    resources:\n      licence: 2\n"),
                     0);
    assert_int_equal(c.resources.n, 3);
    assert_string_equal(stk_names_get(&c.resources, 2), "licence");
    assert_int_equal(c.nodes[1].resource[0], 400);
    assert_int_equal(c.nodes[1].resource[1], 7000);
    assert_int_equal(c.nodes[2].resource[0], 0);
    assert_int_equal(c.nodes[2].resource[2], 2);
    assert_int_equal(stk_cluster_aggregate(&c, &err), 0);
    assert_int_equal(c.nodes[0].resource[0], 800);
    assert_int_equal(c.nodes[0].resource[2], 2);
    stk_cluster_done(&c);
}

static void csv_makes_nodes(void **state)
{
    struct stk_cluster c = {0};

    (void)state;
    assert_int_equal(text(&c, "name,gpus,gpu_type,cpus,mem_gib,pool\n"
                              "a,8,A100,127.5,1024,x\nb,4,,,,\n"),
                     0);
    assert_int_equal(c.n_nodes, 2);
    assert_int_equal(c.nodes[0].cpu_milli, 127500);
    assert_int_equal(c.nodes[0].mem_mib, 1 << 20);
    assert_string_equal(stk_names_get(&c.pools, c.nodes[0].pool.i), "x");
    assert_string_equal(stk_names_get(&c.pools, c.nodes[1].pool.i), "default");
    assert_int_equal(c.nodes[1].cpu_milli, 0);
    stk_cluster_done(&c);
    assert_int_equal(text(&c, "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n"), 0);
    assert_int_equal(c.nodes[0].cpu_milli, 64000);
    assert_int_equal(c.nodes[0].mem_mib, 262144);
    assert_int_equal(c.nodes[0].gpus, 2);
    assert_string_equal(stk_names_get(&c.gpu_types, 0), "P100");
    stk_cluster_done(&c);
    assert_int_equal(text(&c, "gpus\n8\n8\n"), 0);
    assert_int_equal(c.n_nodes, 2);
    stk_cluster_done(&c);
}

static void malformed_files_are_refused_with_their_line(void **state)
{
    static const char *const cases[][2] = {
        {"", "c.yaml:1: expected \"nodes:\" and a list of nodes"},
        {"nodes: []\n", "c.yaml: there are no nodes in it"},
        {"nodes: 3\n", "c.yaml:1: \"nodes\" must be a list"},
        {"nodes:\n  - 7\n", "c.yaml:2: each of nodes must be a mapping"},
        {"nodes:\n  - {gpus: 8}\n  - {gpus: x}\n",
         "c.yaml:3: gpus must be a whole number (0 to 64), got \"x\""},
        {"nodes:\n  - {gpus: 8}\n  - {gpus: 8.5}\n", "c.yaml:3: gpus must be a whole number"},
        {"nodes:\n  - gpus: 8\n    gups: 3\n", "c.yaml:3: unknown key \"gups\""},
        {"nodes:\n  - count: 8\n", "c.yaml:2: a node must say how many gpus it has"},
        {"nodes:\n  - {gpus: 8, count: 0}\n", "c.yaml:2: there must be at least one node"},
        {"nodes:\n  - {gpus: 8, cpus: [1]}\n", "c.yaml:2: cpus must have a plain value"},
        {"nodes:\n  - {gpus: 8, gpu_type: V100, mig: true}\n",
         "c.yaml:2: mig: no model of GPU with MIG is known as \"V100\" with unknown memory"},
        {"nodes:\n  - {gpus: 8, gpu_type: H200, gpu_mem_gib: 80, mig: true}\n",
         "c.yaml:2: mig: no model of GPU with MIG is known as \"H200\" with that memory"},
        {"nodes:\n  - {gpus: 8, gpu_type: H200, mig: 2}\n",
         "c.yaml:2: mig must be true (its GPUs are in MIG mode) or false"},
        {"nodes:\n  - {gpus: 8, resources: 3}\n", "c.yaml:2: resources must be a mapping"},
        {"nodes:\n  - {gpus: 8, resources: {nic: -1}}\n",
         "c.yaml:2: a resource must be a whole number (0 to 4294967295), got \"-1\""},
        {"nodes:\n  - {gpus: 8, resources: {\"a b\": 1}}\n",
         "c.yaml:2: the name of a resource must be 1 to 63 letters"},
        {"nodes:\n  - {gpus: 8, resources: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, "
         "i: 1}}\n",
         "c.yaml:2: more than 8 resources"},
        {"nodes:\n  - {gpus: 8, power: 3}\n",
         "c.yaml:2: power must be a mapping such as {idle_w: 800, gpu_w: 700}"},
        {"nodes:\n  - {gpus: 8, power: {watts: 3}}\n",
         "c.yaml:2: unknown key \"watts\"; power has idle_w, gpu_w, off_w, boot_s"},
        {"nodes:\n  - {gpus: 1, power: {idle_w: 5, off_w: 20}}\n",
         "c.yaml:2: a node draws no more when it is off (off_w) than when it is idle (idle_w)"},
        {"nodes:\n  - gpus: 8\n    power:\n      idle_w: -1\n",
         "c.yaml:4: idle_w must be a whole number (0 to 1000000), got \"-1\""},
        {"nodes:\n  - {gpus: 8}\npools: 3\n", "c.yaml:3: unknown key; expected only \"nodes\""},
        {"nodes:\n  - {gpus: &a 8}\n  - {gpus: *a}\n", "c.yaml:3: "},
        {"nodes:\n  - {gpus: 8\n", "not valid YAML"},
        {"nodes:\n  - {gpus: 8} # \xff\n", "c.yaml:2: expected text in UTF-8"},
        {"%YAML 1.2\n---\nnodes: []\n", "c.yaml:1: YAML directives are not supported"},
        {"name,gpus\na,8\nb,65\n",
         "c.yaml:3: expected a whole number of GPUs (0 to 64) in field 2, got \"65\""},
        {"name,gpus\na\n", "c.yaml:2: expected 2 fields (as the header has), got 1"},
        {"name,gpus,cpus\na,1,x\n",
         "c.yaml:2: expected a number of CPUs (0 to 4294966) in field 3, got \"x\""},
        {"name,gups\n", "c.yaml:1: unknown column \"gups\""},
        {"name,cpus\n", "c.yaml:1: the header has no column \"gpus\""},
        {"gpus,gpu\n", "c.yaml:1: column \"gpu\" is there twice"},
        {"name,gpus,pool\na,1,\x01\n", "c.yaml:2: the name of a pool must be 1 to 255 printable"},
        {"name,gpus\n", "c.yaml: there are no nodes in it"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct stk_cluster c = {0};

        assert_int_equal(text(&c, cases[i][0]), -EINVAL);
        if (!strstr(err.text, cases[i][1]))
            fail_msg("got: %s; expected: %s", err.text, cases[i][1]);
        assert_int_equal(c.n_nodes, 0);
    }
}

static void more_gpu_types_than_allowed_are_refused(void **state)
{
    struct stk_cluster c = {0};
    char csv[4096] = "gpus,gpu_type\n";

    (void)state;
    for (int i = 0; i <= STK_MAX_GPU_TYPES; i++)
        (void)snprintf(csv + strlen(csv), sizeof(csv) - strlen(csv), "1,t%d\n", i);
    assert_int_equal(text(&c, csv), -EINVAL);
    assert_string_equal(err.text, "c.yaml:66: more than 64 GPU types");
}

static void nodes_are_split_into_pools_in_file_order(void **state)
{
    struct stk_cluster c = {0};
    struct stk_names groups = {0};

    (void)state;
    assert_int_equal(stk_cluster_parse(&c, "5x8", &err), 0);
    assert_int_equal(stk_names_add(&groups, "b", 1, 9), 0);
    assert_int_equal(split(&c, &groups, "vc,nodes\na,2\nb,3\n"), 0);
    assert_int_equal(c.pools.n, 2);
    assert_string_equal(stk_names_get(&c.pools, c.nodes[1].pool.i), "a");
    assert_string_equal(stk_names_get(&c.pools, c.nodes[2].pool.i), "b");
    assert_string_equal(stk_names_get(&c.pools, c.nodes[4].pool.i), "b");
    stk_names_done(&groups);
    stk_cluster_done(&c);
}

static void a_split_that_does_not_add_up_changes_nothing(void **state)
{
    static const char *const cases[][2] = {
        {"vc,nodes\na,2\n", ": gives 2 nodes to pools, but the cluster has 5"},
        {"vc,nodes\na,2\nb,4\n",
         ":3: \"b\" and those before it need 6 nodes, but the cluster has 5"},
        {"vc,nodes\na,2\nb,x\n", ":3: expected a whole number of nodes (0 to 1000000) in field 2"},
        {"vc,nodes\nb,2\nb,3\n", ":3: \"b\" is there twice"},
        {"vc,nodes\na,5\n", ": has no line for \"b\", which the trace uses"},
        {"vc,node\na,5\n", ":1: expected the header \"vc,nodes\", got \"vc,node\""},
        {"b\n", ":1: expected 2 fields (vc,nodes), got 1"},
    };
    struct stk_cluster c = {0};
    struct stk_names groups = {0};

    (void)state;
    assert_int_equal(stk_cluster_parse(&c, "5x8", &err), 0);
    assert_int_equal(stk_names_add(&groups, "b", 1, 9), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(split(&c, &groups, cases[i][0]), -EINVAL);
        if (!strstr(err.text, cases[i][1]))
            fail_msg("got: %s; expected: %s", err.text, cases[i][1]);
        assert_string_equal(stk_names_get(&c.pools, c.nodes[4].pool.i), "default");
    }
    assert_int_equal(stk_cluster_split(&c, NULL, "/nonexistent", &err), -ENOENT);
    stk_names_done(&groups);
    stk_cluster_done(&c);
}

static void aggregates_count_what_their_nodes_have(void **state)
{
    struct stk_cluster c = {0};

    (void)state;
    assert_int_equal(text(&c,
                          "count,gpus,gpu_type,cpus,mem_gib,pool\n"
                          "100,8,A,10,1,x\n1,8,B,10,,x\n1,4,A,5,1,x\n2,8,A,1,1,y\n1,4,B,1,1,x\n"),
                     0);
    assert_int_equal(stk_cluster_aggregate(&c, &err), 0);
    assert_int_equal(c.n_nodes, 3);
    assert_int_equal(c.nodes[0].gpus, 804);
    assert_int_equal(c.nodes[0].cpu_milli, 1005000);
    assert_int_equal(c.nodes[0].mem_mib, 101 * 1024);
    assert_true(c.nodes[0].aggregate);
    assert_int_equal(c.nodes[1].gpus, 12);
    assert_int_equal(c.nodes[1].mem_mib, 0); /* one of them has no limit */
    assert_int_equal(c.nodes[2].gpus, 16);
    assert_string_equal(stk_names_get(&c.pools, c.nodes[2].pool.i), "y");
    stk_cluster_done(&c);
    stk_cluster_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_make_nodes),
        cmocka_unit_test(nodes_say_where_they_are),
        cmocka_unit_test(nonsense_about_places_is_refused),
        cmocka_unit_test(bad_words_are_refused_with_a_sentence),
        cmocka_unit_test(yaml_makes_nodes),
        cmocka_unit_test(nodes_may_say_what_they_draw),
        cmocka_unit_test(gpus_in_mig_mode_are_of_a_type_of_their_own),
        cmocka_unit_test(resources_have_names_and_amounts),
        cmocka_unit_test(csv_makes_nodes),
        cmocka_unit_test(malformed_files_are_refused_with_their_line),
        cmocka_unit_test(more_gpu_types_than_allowed_are_refused),
        cmocka_unit_test(nodes_are_split_into_pools_in_file_order),
        cmocka_unit_test(a_split_that_does_not_add_up_changes_nothing),
        cmocka_unit_test(aggregates_count_what_their_nodes_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
