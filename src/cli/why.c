/* SPDX-License-Identifier: Apache-2.0 */
/* why.c - "stoker why": why a job waits, what would start it now, and who has what it needs. */
#include <inttypes.h>
#include <string.h>

#include "cli/ids.h"
#include "cli/view.h"

/* Whether it was lent, and what keeps it. */
static void print_hold(const json_t *h)
{
    static const struct {
        const char *by, *text;
    } words[] = {{"own", ""},
                 {"critical", ", critical"},
                 {"reservation", ", has reserved them"},
                 {"group", ", so many of its group must stay up"},
                 {"min_run", ", not to be stopped"},
                 {"per_day", ", has given way often enough"},
                 {"deadline", ", would miss its deadline"}};
    const json_t *shield = json_object_get(h, "protected");
    double until = stk_num(shield, "until", 0);
    char text[32];

    if (stk_yes(h, "stopping"))
        (void)printf(", is being stopped");
    else if (stk_yes(h, "borrowed"))
        (void)printf(", borrowed");
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(stk_str(shield, "by"), words[i].by) == 0)
            (void)printf("%s", words[i].text);
    if (until > 0)
        (void)printf(" until %s", stk_text_time(until, text, sizeof(text)));
}

/* What it is entitled to, and who borrowed it. */
static void print_claim(const json_t *why)
{
    const json_t *claim = json_object_get(why, "claim");
    const json_t *list = json_object_get(claim, "borrowers");
    char text[512], name[128];

    if (!json_is_object(claim))
        return;
    (void)printf("It %s.\n", stk_text_clean(text, sizeof(text), stk_str(claim, "sentence"), false));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *b = json_array_get(list, i);

        (void)printf("  %s has borrowed %.5g: uses %.5g, is guaranteed %.5g, is due %.5g\n",
                     stk_text_clean(name, sizeof(name), stk_str(b, "tenant"), false),
                     stk_num(b, "borrowed", 0), stk_num(b, "used", 0), stk_num(b, "guarantee", 0),
                     stk_num(b, "due", 0));
    }
}

static void print_holders(const json_t *why)
{
    const json_t *list = json_object_get(why, "holders");
    const char *resource = stk_str(why, "resource");
    char id[40], name[128], user[64], end[32];

    if (json_array_size(list) == 0)
        return;
    (void)printf("Who has %s:\n", *resource ? resource : "the GPUs");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *h = json_array_get(list, i);
        double at = stk_num(h, "expected_end", 0);

        (void)printf("  job %s  %s  %s  ", stk_view_id(h, id, sizeof(id)),
                     stk_text_clean(name, sizeof(name), stk_str(h, "name"), false),
                     stk_text_clean(user, sizeof(user), stk_str(h, "user"), false));
        if (*resource)
            (void)printf("%" PRId64, stk_int(h, "amount", 0));
        else
            (void)printf("%.4g GPU%s", stk_num(h, "gpus", 0),
                         stk_num(h, "gpus", 0) == 1 ? "" : "s");
        if (at > 0)
            (void)printf(", until about %s", stk_text_time(at, end, sizeof(end)));
        else if (stk_num(h, "estimate_s", 0) > 0)
            (void)printf(", longer than it was expected to");
        else
            (void)printf(", no time limit");
        print_hold(h);
        (void)putchar('\n');
    }
}

/* What else holds it back: all reasons but the first. */
static void print_reasons(const json_t *why)
{
    const json_t *list = json_object_get(why, "reasons");
    char text[2048];

    for (size_t i = 1; i < json_array_size(list); i++)
        (void)printf("besides, it %s.\n",
                     stk_text_clean(text, sizeof(text),
                                    stk_str(json_array_get(list, i), "sentence"), false));
}

static void print_changes(const json_t *why)
{
    const json_t *list = json_object_get(why, "changes");
    char text[1024], command[512];

    if (json_array_size(list) == 0 && *stk_str(why, "change") != '\0')
        (void)printf("%s.\n", stk_text_clean(text, sizeof(text), stk_str(why, "change"), false));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *c = json_array_get(list, i);

        (void)printf("%s: %s\n", stk_text_clean(text, sizeof(text), stk_str(c, "sentence"), false),
                     stk_text_clean(command, sizeof(command), stk_str(c, "command"), false));
    }
}

static void print_outlook(const json_t *why)
{
    char text[400];

    if (*stk_view_start(why, text, sizeof(text)) != '\0')
        (void)printf("It is expected to start %s.\n", text);
    if (*stk_view_deadline(why, text, sizeof(text)) != '\0')
        (void)printf("Its deadline is %s.\n", text);
}

static int why_one(struct stk_ask *k, uint32_t id, json_t *all)
{
    json_t *why = NULL;
    char text[2048], name[40];
    int rc = stk_ask_get(k, &why, "/v1/jobs/%u/why", id);

    if (rc != STK_EXIT_OK)
        return rc;
    if (!k->json) {
        if (json_array_size(all) > 0)
            (void)putchar('\n');
        (void)printf("job %s %s.\n", stk_view_id(why, name, sizeof(name)),
                     stk_text_clean(text, sizeof(text), stk_str(why, "sentence"), false));
        print_reasons(why);
        print_claim(why);
        print_outlook(why);
        print_changes(why);
        print_holders(why);
    }
    (void)json_array_append_new(all, why);
    return STK_EXIT_OK;
}

static int run_why(const struct stk_args *a)
{
    return stk_ids_each(a, why_one);
}

const struct stk_command stk_cmd_why = {
    .name = "why",
    .synopsis = "JOB...",
    .help = "why a job does not run, and what would make it run",
    .complete = "@jobs",
    .section = STK_SECTION_LOOK,
    .run = run_why,
};
