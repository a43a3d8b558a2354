/* SPDX-License-Identifier: Apache-2.0 */
/* drain.c - "stoker drain" and "stoker undrain": nodes and GPUs that take no new jobs; "stoker
 * adopt": a process that was started by hand becomes a job. */
#include <stdlib.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/view.h"

static int drain_one(struct stk_ask *k, const char *word, const char *verb, json_t *all)
{
    bool gpu = stk_arg_is(k->a, "gpu");
    char path[512], name[256];
    json_t *reply = NULL;
    int rc;

    (void)snprintf(path, sizeof(path), "/v1/%s/%s/%s", gpu ? "gpus" : "nodes",
                   stk_client_escape(name, sizeof(name), word), verb);
    rc = stk_ask_do(k, "POST", path, NULL, &reply);
    if (rc == STK_EXIT_FAILED && !gpu && word[strspn(word, "0123456789")] == '\0')
        (void)fprintf(stderr, "stoker %s: for GPU %.20s: stoker %s --gpu %.20s\n", k->name, word,
                      k->name, word);
    if (rc == STK_EXIT_OK && !k->json)
        (void)printf("%s %.100s: %s\n", gpu ? "GPU" : "node", word,
                     strcmp(verb, "drain") == 0 ? "takes no new jobs" : "takes jobs again");
    (void)json_array_append_new(all, reply ? reply : json_null());
    return rc;
}

static int drain(const struct stk_args *a, const char *verb)
{
    json_t *all = json_array();
    int worst = STK_EXIT_OK, rc;
    struct stk_ask k;

    if (a->n_words == 0)
        return stk_misused(a, "which node? (stoker nodes lists them; --gpu for single GPUs)");
    rc = stk_ask_open(&k, a);
    for (int i = 0; rc == STK_EXIT_OK && i < a->n_words; i++) {
        int code = drain_one(&k, a->words[i], verb, all);

        worst = code > worst ? code : worst;
    }
    if (rc == STK_EXIT_OK && k.json)
        stk_print_json(all);
    json_decref(all);
    stk_ask_close(&k);
    return rc != STK_EXIT_OK ? rc : worst;
}

static int run_drain(const struct stk_args *a)
{
    return drain(a, "drain");
}

static int run_undrain(const struct stk_args *a)
{
    return drain(a, "resume");
}

static const struct stk_option drain_options[] = {
    {"gpu", 'g', NULL, "the words are GPUs: INDEX, or NODE:INDEX of several nodes", NULL},
    {0},
};
static const struct stk_options drain_groups[] = {{"options", drain_options}, {0}};

const struct stk_command stk_cmd_drain = {
    .name = "drain",
    .synopsis = "NODE...\n--gpu [NODE:]INDEX...",
    .help = "give no new jobs to a node or a GPU; running ones go on",
    .options = drain_groups,
    .section = STK_SECTION_SITE,
    .run = run_drain,
};

const struct stk_command stk_cmd_undrain = {
    .name = "undrain",
    .synopsis = "NODE...\n--gpu [NODE:]INDEX...",
    .help = "give jobs to a drained node or GPU again",
    .options = drain_groups,
    .section = STK_SECTION_SITE,
    .run = run_undrain,
};

/* "0,2"; what is no number is left for the server to refuse. */
static json_t *read_gpus(const char *text)
{
    json_t *list = json_array();

    while (*text) {
        char *end;
        long v = strtol(text, &end, 10);

        (void)json_array_append_new(list, end > text && (*end == ',' || *end == '\0')
                                              ? json_integer(v)
                                              : json_string(text));
        text += strcspn(text, ",");
        text += *text == ',';
    }
    return list;
}

static int run_adopt(const struct stk_args *a)
{
    json_t *body, *reply = NULL;
    char *end = NULL;
    struct stk_ask k;
    long pid;
    int rc;

    if (a->n_words != 1)
        return stk_misused(a, "which process? One at a time (stoker gpus shows those on GPUs)");
    pid = strtol(a->words[0], &end, 10);
    if (*end != '\0' || pid < 2 || pid > 4194304)
        return stk_misused(a, "\"%.40s\" is not the number of a process", a->words[0]);
    rc = stk_ask_open(&k, a);
    body = json_pack("{s:I}", "pid", (json_int_t)pid);
    if (stk_arg_is(a, "name"))
        (void)json_object_set_new(body, "name", json_string(stk_arg(a, "name")));
    if (stk_arg_is(a, "gpus"))
        (void)json_object_set_new(body, "gpus", read_gpus(stk_arg(a, "gpus")));
    if (rc == STK_EXIT_OK)
        rc = stk_ask_do(&k, "POST", "/v1/adopt", body, &reply);
    if (rc == STK_EXIT_OK && k.json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK)
        (void)printf("Process %ld is job %lld\n", pid, (long long)stk_int(reply, "id", 0));
    json_decref(body);
    json_decref(reply);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option adopt_options[] = {
    {"name", 'n', "NAME", "what to call the job", NULL},
    {"gpus", 'g', "LIST", "GPUs that it has, such as 0,2; those it is seen to use are found", NULL},
    {0},
};
static const struct stk_options adopt_groups[] = {{"options", adopt_options}, {0}};

const struct stk_command stk_cmd_adopt = {
    .name = "adopt",
    .synopsis = "[options] PID",
    .help = "make a job of a process that was started by hand",
    .options = adopt_groups,
    .section = STK_SECTION_CHANGE,
    .run = run_adopt,
};
