/* SPDX-License-Identifier: Apache-2.0 */
/* test_mig.c - MIG against what NVIDIA publishes: every layout of instances we allow is one of its
 * own, and wherever one of them has room for a profile we find it. The layouts are written down
 * here whole, one by one, not as rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/mig.h"

/* Full layouts of a GPU with seven compute slices: profile (by compute slices) @ first memory
 * slice. */
static const char *const seven[] = {
    "7@0",
    "4@0 3@4",
    "4@0 2@4 1@6",
    "4@0 1@4 1@5 1@6",
    "3@0 3@4",
    "3@0 2@4 1@6",
    "3@0 1@4 1@5 1@6",
    "2@0 2@2 3@4",
    "2@0 1@2 1@3 3@4",
    "1@0 1@1 2@2 3@4",
    "1@0 1@1 1@2 1@3 3@4",
    "2@0 2@2 2@4 1@6",
    "2@0 1@2 1@3 2@4 1@6",
    "1@0 1@1 2@2 2@4 1@6",
    "1@0 1@1 1@2 1@3 2@4 1@6",
    "2@0 2@2 1@4 1@5 1@6",
    "2@0 1@2 1@3 1@4 1@5 1@6",
    "1@0 1@1 2@2 1@4 1@5 1@6",
    "1@0 1@1 1@2 1@3 1@4 1@5 1@6",
    NULL,
};

/* Of an A30. */
static const char *const four[] = {
    "4@0", "2@0 2@2", "2@0 1@2 1@3", "1@0 1@1 2@2", "1@0 1@1 1@2 1@3", NULL,
};

/* A layout as a set: bit 8 * kind + start. */
enum kind { K1, K1_DOUBLE, K2, K3, K4, K7, N_KINDS };
#define AT(kind, start) (UINT64_C(1) << (8 * (kind) + (start)))

#define MOST 4096
static uint64_t valid[MOST]; /* every full layout */
static uint32_t n_valid;

static enum kind kind_of(char compute)
{
    static const char digits[N_KINDS] = {'1', 0, '2', '3', '4', '7'};

    for (uint32_t k = 0; k < N_KINDS; k++)
        if (digits[k] == compute)
            return (enum kind)k;
    fail();
    return N_KINDS;
}

static void add(uint64_t layout)
{
    for (uint32_t i = 0; i < n_valid; i++)
        if (valid[i] == layout)
            return;
    assert_true(n_valid < MOST);
    valid[n_valid++] = layout;
}

/* One compute slice with twice the memory lies on an even slice and the next one: in place of what
 * could be there. With the last slice of all it is in place of the 1g before that. */
static void add_doubles(uint64_t layout, uint32_t from)
{
    add(layout);
    for (uint32_t x = from; x < 8; x += 2) {
        uint64_t pair = AT(K1, x) | AT(K1, x + 1), here = 0;

        if (layout & AT(K2, x))
            here = AT(K2, x);
        else if (x < 6 && (layout & pair) == pair)
            here = pair;
        else if (x == 6 && (layout & AT(K1, 6)))
            here = AT(K1, 6);
        if (here)
            add_doubles((layout & ~here) | AT(K1_DOUBLE, x), x + 2);
    }
}

static void publish(const char *const *layouts, int doubles)
{
    n_valid = 0;
    for (; *layouts; layouts++) {
        uint64_t layout = 0;

        for (const char *p = *layouts; *p; p += 3 + (p[3] == ' '))
            layout |= AT(kind_of(p[0]), (uint32_t)(p[2] - '0'));
        if (doubles)
            add_doubles(layout, 0);
        else
            add(layout);
    }
}

static int published(uint64_t layout)
{
    for (uint32_t i = 0; i < n_valid; i++)
        if ((valid[i] & layout) == layout)
            return 1;
    return 0;
}

/* ---- all we allow, from an empty GPU on ---- */

struct walk {
    uint8_t model;
    uint32_t n_profiles;
    enum kind kind[N_KINDS]; /* of each profile of the model */
    uint64_t seen[MOST];
    uint32_t n_seen, most[N_KINDS];
};

static void check_counts(struct walk *w, uint64_t layout)
{
    static const uint32_t compute[N_KINDS] = {1, 1, 2, 3, 4, 7};
    uint32_t sum = 0, all = 0;

    for (uint32_t k = 0; k < N_KINDS; k++) {
        uint32_t n = (uint32_t)__builtin_popcountll(layout >> (8 * k) & 0xff);

        sum += n * compute[k];
        all += n;
        w->most[k] = n > w->most[k] ? n : w->most[k];
    }
    assert_true(sum <= 7 && all <= 7);
}

static void visit(struct walk *w, uint64_t layout, uint8_t used)
{
    for (uint32_t i = 0; i < w->n_seen; i++)
        if (w->seen[i] == layout)
            return;
    assert_true(w->n_seen < MOST);
    w->seen[w->n_seen++] = layout;
    assert_true(published(layout));
    check_counts(w, layout);
    for (uint32_t i = 0; i < w->n_profiles; i++) {
        uint16_t profile = stk_mig_profile(w->model, i);
        uint32_t want = 0, starts = stk_mig_starts(w->model, profile, used);
        uint32_t chosen = stk_mig_choose(w->model, profile, used);

        for (uint32_t x = 0; x < 8; x++)
            if (!(layout & AT(w->kind[i], x)) && published(layout | AT(w->kind[i], x)))
                want |= 1U << x;
        assert_int_equal(starts, want); /* no more, and no fewer */
        assert_true(want ? want >> chosen & 1 : chosen == STK_MIG_ANY);
        for (uint32_t x = 0; x < 8; x++)
            if (want >> x & 1) {
                uint8_t slices = stk_mig_slices(w->model, profile, x);

                assert_true(slices && !(slices & used));
                visit(w, layout | AT(w->kind[i], x), used | slices);
            } else {
                assert_true(!stk_mig_slices(w->model, profile, x) ||
                            (stk_mig_slices(w->model, profile, x) & used));
            }
    }
}

static int is_small(uint8_t model)
{
    return !strcmp(stk_mig_model_name(model), "A30-24GB");
}

static void walk(uint8_t model)
{
    static const uint32_t most_seven[N_KINDS] = {7, 4, 3, 2, 1, 1};
    static const uint32_t most_four[N_KINDS] = {4, 0, 2, 0, 1, 0};
    static struct walk w;
    int small = is_small(model);

    w = (struct walk){.model = model};
    publish(small ? four : seven, !small);
    for (uint16_t p; (p = stk_mig_profile(model, w.n_profiles)); w.n_profiles++) {
        char name[STK_MIG_NAME_LEN];
        enum kind k = kind_of(stk_mig_name(p, name)[0]);

        /* the second of one compute slice has twice the memory */
        w.kind[w.n_profiles] = k == K1 && w.n_profiles > 0 ? K1_DOUBLE : k;
    }
    visit(&w, 0, 0);
    assert_int_equal(w.n_seen, small ? 26 : 723);
    for (uint32_t k = 0; k < N_KINDS; k++)
        assert_int_equal(w.most[k], small ? most_four[k] : most_seven[k]);
}

static void every_layout_is_one_of_nvidias_and_all_of_those_are_found(void **state)
{
    uint8_t model;

    (void)state;
    for (model = 1; stk_mig_model_name(model); model++)
        walk(model);
    assert_int_equal(model - 1, 12);
    assert_int_equal(stk_mig_starts(0, STK_MIG(1, 10), 0), 0);
    assert_int_equal(stk_mig_starts(1, STK_MIG(1, 10), 0), 0); /* no such profile */
    assert_int_equal(stk_mig_choose(200, STK_MIG(1, 10), 0), STK_MIG_ANY);
}

/* As nvidia-smi mig -cgi puts them on an empty H100, one after the other. */
static void instances_go_where_the_driver_puts_them(void **state)
{
    static const uint32_t ones[] = {6, 4, 5, 0, 1, 2, 3}, threes[] = {4, 0};
    uint8_t h100 = stk_mig_model("NVIDIA H100 80GB HBM3", 21, 81559), used = 0;

    (void)state;
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(stk_mig_choose(h100, STK_MIG(1, 10), used), ones[i]);
        used |= stk_mig_slices(h100, STK_MIG(1, 10), ones[i]);
    }
    assert_int_equal(stk_mig_choose(h100, STK_MIG(1, 10), used), STK_MIG_ANY);
    used = 0;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(stk_mig_choose(h100, STK_MIG(3, 40), used), threes[i]);
        used |= stk_mig_slices(h100, STK_MIG(3, 40), threes[i]);
    }
}

static void a_profile_counts_as_no_more_than_it_takes(void **state)
{
    (void)state;
    for (uint8_t model = 1; stk_mig_model_name(model); model++) {
        assert_int_equal(stk_mig_left(model, 0), 1000);
        for (uint32_t used = 0; used < (is_small(model) ? 16 : 256); used++)
            for (uint32_t i = 0; stk_mig_profile(model, i); i++) {
                uint16_t p = stk_mig_profile(model, i);

                assert_in_range(stk_mig_milli(p), 1, 999);
                if (stk_mig_starts(model, p, (uint8_t)used))
                    assert_true(stk_mig_milli(p) <= stk_mig_left(model, (uint8_t)used));
            }
    }
}

static void profiles_are_called_as_nvidia_calls_them(void **state)
{
    static const struct {
        const char *model, *profiles;
    } known[] = {
        {"A30-24GB", "1g.6gb 2g.12gb 4g.24gb "},
        {"A100-40GB", "1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb "},
        {"A100-80GB", "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb "},
        {"H100-80GB", "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb "},
        {"H100-94GB", "1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb "},
        {"H100-96GB", "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb "},
        {"H200-141GB", "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb "},
        {"GH200-144GB", "1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb "},
        {"B200-180GB", "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb "},
        {"GB200-186GB", "1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb "},
        {"B300-269GB", "1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb "},
        {"GB300-278GB", "1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb "},
    };

    (void)state;
    for (uint8_t m = 1; stk_mig_model_name(m); m++) {
        char all[160] = "", name[STK_MIG_NAME_LEN];
        uint32_t i = 0;

        for (uint16_t p; (p = stk_mig_profile(m, i)); i++) {
            size_t len = strlen(all);

            (void)snprintf(all + len, sizeof(all) - len, "%s ", stk_mig_name(p, name));
            assert_int_equal(stk_mig_parse(name, strlen(name)), p);
        }
        assert_string_equal(stk_mig_model_name(m), known[m - 1].model);
        assert_string_equal(all, known[m - 1].profiles);
    }
}

static void other_words_are_no_profiles(void **state)
{
    static const char *const not [] = {"",           "1",
                                       "1g",         "1g.",
                                       "1g.gb",      "1g.10",
                                       "1g.10g",     "1g.10gb ",
                                       "0g.10gb",    "8g.80gb",
                                       "1g.10gb+me", "1g10gb",
                                       "g.10gb",     "01g.5gb",
                                       "1g.05gb",    "1g.4096gb",
                                       "1g.0gb",     "1G.10GB",
                                       "-1g.5gb",    "11g.5gb",
                                       "1c.1g.5gb",  "1g.99999999999999999999gb"};

    (void)state;
    for (size_t i = 0; i < sizeof(not ) / sizeof(*not ); i++)
        assert_int_equal(stk_mig_parse(not [i], strlen(not [i])), 0);
    assert_int_equal(stk_mig_parse("1g.10gbx", 7), STK_MIG(1, 10));
}

static void models_are_known_by_name_and_memory(void **state)
{
    static const struct {
        const char *name;
        uint32_t mem_mib;
        const char *model;
    } of[] = {
        {"NVIDIA A100-SXM4-40GB", 40960, "A100-40GB"},
        {"NVIDIA A100-SXM4-40GB", 0, "A100-40GB"},
        {"NVIDIA A100-SXM4-80GB", 81920, "A100-80GB"},
        {"NVIDIA A100 80GB PCIe", 0, "A100-80GB"},
        {"a100", 81920, "A100-80GB"},
        {"A100", 0, NULL}, /* which? */
        {"NVIDIA A800-SXM4-80GB", 81920, "A100-80GB"},
        {"NVIDIA A30", 24576, "A30-24GB"},
        {"NVIDIA A30", 0, "A30-24GB"},
        {"NVIDIA H100 80GB HBM3", 81559, "H100-80GB"},
        {"NVIDIA H100 NVL", 95830, "H100-94GB"},
        {"NVIDIA H100", 97871, "H100-96GB"},
        {"NVIDIA H20", 97871, "H100-96GB"},
        {"NVIDIA H20", 143771, "H200-141GB"},
        {"NVIDIA H200", 143771, "H200-141GB"},
        {"NVIDIA H200", 0, "H200-141GB"},
        {"H200", 141 * 1024, "H200-141GB"},
        {"H200", 80 * 1024, NULL}, /* it is not what it says */
        {"NVIDIA GH200 480GB", 97871, "H100-96GB"},
        {"NVIDIA GH200 480GB", 0, NULL},
        {"NVIDIA B200", 183359, "B200-180GB"},
        {"NVIDIA GB200", 189471, "GB200-186GB"},
        {"NVIDIA B300 SXM6 AC", 275040, "B300-269GB"},
        {"NVIDIA GB300", 284208, "GB300-278GB"},
        {"NVIDIA A10", 24576, NULL},
        {"NVIDIA A3000", 0, NULL},
        {"Tesla V100-SXM2-32GB", 32768, NULL},
        {"NVIDIA L40S", 46068, NULL},
        {"gpu", 0, NULL},
        {"", 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        const char *m =
            stk_mig_model_name(stk_mig_model(of[i].name, strlen(of[i].name), of[i].mem_mib));

        if (of[i].model)
            assert_string_equal(m ? m : "none", of[i].model);
        else
            assert_null(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_is_one_of_nvidias_and_all_of_those_are_found),
        cmocka_unit_test(instances_go_where_the_driver_puts_them),
        cmocka_unit_test(a_profile_counts_as_no_more_than_it_takes),
        cmocka_unit_test(profiles_are_called_as_nvidia_calls_them),
        cmocka_unit_test(other_words_are_no_profiles),
        cmocka_unit_test(models_are_known_by_name_and_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
