/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - "stoker wait": until jobs have ended; the highest of their exit codes. */
#include <string.h>
#include <unistd.h>

#include "cli/follow.h"
#include "cli/ids.h"
#include "cli/view.h"
#include "spec/words.h"
#include "sys/signals.h"

static void report(const struct stk_ask *k, const json_t *job)
{
    const char *state = stk_view_state(job), *how = stk_view_sentence(job);
    char id[40], text[1024];

    if (k->json)
        return;
    (void)printf("job %s %s\n", stk_view_id(job, id, sizeof(id)),
                 stk_text_clean(text, sizeof(text), *how != '\0' ? how : state, false));
}

static int wait_for(struct stk_ask *k, const struct stk_ids *ids, double until, json_t *all)
{
    int signals = stk_signals(), highest = 0;
    bool quiet = stk_arg_is(k->a, "quiet");

    for (size_t i = 0; i < ids->n; i++) {
        struct stk_err err = {""};
        json_t *job = NULL;
        int rc, code;

        rc = stk_await(k, &ids->list[i], signals, until, &job, &err);
        if (rc == -EINTR)
            return 128 + stk_signal_read(signals);
        if (rc == -ETIME) {
            (void)stk_ask_fail(k, rc, &err);
            return 124;
        }
        if (rc < 0) {
            code = stk_ask_fail(k, rc, &err);
            if (code == STK_EXIT_UNREACHABLE)
                return code;
            code = STK_EXIT_OURS;
        } else {
            code = stk_view_code(job);
            if (!quiet)
                report(k, job);
            (void)json_array_append_new(all, job);
        }
        highest = code > highest ? code : highest;
    }
    (void)close(signals);
    return highest;
}

static int run_wait(const struct stk_args *a)
{
    const char *timeout = stk_arg(a, "timeout");
    json_t *all = json_array();
    struct stk_ids ids = {0};
    struct stk_ask k;
    int64_t limit = 0;
    int rc = stk_ids_take(a, false, &ids);

    if (rc == STK_EXIT_OK && timeout && (stk_words_duration(timeout, 1, &limit) < 0 || limit == 0))
        rc = stk_misused(a, "--timeout takes a time such as 90s or 2h, got \"%.40s\"", timeout);
    if (rc == STK_EXIT_OK && (rc = stk_ask_open(&k, a)) == STK_EXIT_OK) {
        rc = stk_ids_resolve(&k, &ids, true);
        if (rc == STK_EXIT_OK)
            rc = wait_for(&k, &ids, timeout ? stk_now() + (double)limit : 0, all);
        if (k.json && json_array_size(all) > 0) {
            json_t *out = json_pack("{s:O, s:i}", "jobs", all, "code", rc);

            stk_print_json(out);
            json_decref(out);
        }
        stk_ask_close(&k);
    }
    json_decref(all);
    stk_ids_done(&ids);
    return rc;
}

static const struct stk_option own[] = {
    {"timeout", 0, "TIME", "give up after this; the exit code is 124", NULL},
    {"quiet", 'q', NULL, "print nothing", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_wait = {
    .name = "wait",
    .synopsis = "[options] JOB...",
    .help = "wait for jobs to end; exit with the highest of their codes",
    .complete = "@jobs",
    .options = groups,
    .section = STK_SECTION_JOBS,
    .run = run_wait,
};
