/* SPDX-License-Identifier: Apache-2.0 */
/* kai_replay FILE.json [--json] - puts each scenario of the file to our core and says how many end
 * as expected. docs/spec/kai.md. Exit code: 0, however many differ; 1: no memory; 2: bad usage or a
 * file that is not of the format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kai.h"

#define WORDS 4096
#define WATCH_S 60 /* between rounds */

struct result {
    uint32_t passed, failed, unsupported;
    json_t *failures;
    bool json;
};

enum verdict { PASSED, FAILED, UNSUPPORTED };

/* Five more rounds: nothing may move, and what is expected must still hold. */
static bool holds(struct kai_world *w, char *expected, char *got)
{
    uint32_t moves = w->moves;

    for (uint32_t i = 0; i < w->c->rounds_after; i++) {
        w->now += (stk_time)WATCH_S * STK_SECOND;
        if (kai_world_settle(w) < 0 || w->moves != moves) {
            (void)snprintf(expected, WORDS, "nothing moves any more");
            (void)snprintf(got, WORDS, "%u starts and evictions in round %u after",
                           w->moves - moves, i + 1);
            return false;
        }
    }
    return kai_match(w, expected, got, WORDS);
}

static enum verdict play(struct kai_case *c, const json_t *entry, char *expected, char *got)
{
    struct kai_world w = {.core = NULL};
    enum verdict v = UNSUPPORTED;
    int rc = kai_read(c, entry);

    rc = rc < 0 ? rc : kai_world_new(c, &w);
    if (rc == 0) {
        rc = kai_world_settle(&w);
        if (rc < 0) {
            v = FAILED;
            (void)snprintf(expected, WORDS, "a state in which nothing moves");
            (void)snprintf(got, WORDS, "%.300s",
                           rc == -ELOOP ? "it does not come to rest" : c->err.text);
        } else {
            v = kai_match(&w, expected, got, WORDS) && holds(&w, expected, got) ? PASSED : FAILED;
        }
    } else if (rc != KAI_UNSUPPORTED) {
        v = FAILED;
        (void)snprintf(expected, WORDS, "a scenario");
        (void)snprintf(got, WORDS, "%.300s", c->err.text);
    }
    kai_world_free(&w);
    return v;
}

static void one(struct result *r, size_t i, const json_t *entry)
{
    static char expected[WORDS], got[WORDS];
    struct kai_case *c = calloc(1, sizeof(*c));
    enum verdict v;

    if (!c)
        exit(1);
    expected[0] = got[0] = '\0';
    v = play(c, entry, expected, got);
    r->passed += v == PASSED;
    r->failed += v == FAILED;
    r->unsupported += v == UNSUPPORTED;
    if (v == FAILED)
        (void)json_array_append_new(
            r->failures, json_pack("{ssssss}", "name", c->name, "expected", expected, "got", got));
    if (!r->json && v == FAILED)
        (void)printf("%zu failed: %s\n    expected: %s\n    got:      %s\n", i, c->name, expected,
                     got);
    if (!r->json && v == UNSUPPORTED)
        (void)printf("%zu unsupported: %s\n    %s\n", i, c->name, c->err.text);
    kai_free_all(&c->mem);
    free(c);
}

static json_t *load(const char *path)
{
    json_error_t err = {.line = 0};
    FILE *f = fopen(path, "rb");
    json_t *all = NULL;

    if (!f) {
        (void)fprintf(stderr, "kai_replay: cannot open %s\n", path);
        return NULL;
    }
    if (fseek(f, 0, SEEK_END) == 0 && ftell(f) > KAI_MAX_FILE)
        (void)fprintf(stderr, "kai_replay: %s is larger than %d MiB\n", path, KAI_MAX_FILE >> 20);
    else if (fseek(f, 0, SEEK_SET) != 0 || !(all = json_loadf(f, JSON_REJECT_DUPLICATES, &err)))
        (void)fprintf(stderr, "kai_replay: %s, line %d: %s\n", path, err.line, err.text);
    (void)fclose(f);
    if (all && !json_is_array(all)) {
        (void)fprintf(stderr, "kai_replay: %s is not an array of scenarios\n", path);
        json_decref(all);
        return NULL;
    }
    return all;
}

static void print(const struct result *r)
{
    json_t *out;
    char *text;

    if (!r->json) {
        (void)printf("%u passed, %u failed, %u unsupported\n", r->passed, r->failed,
                     r->unsupported);
        return;
    }
    out = json_pack("{sisisisO}", "passed", (int)r->passed, "failed", (int)r->failed, "unsupported",
                    (int)r->unsupported, "failures", r->failures);
    text = json_dumps(out, JSON_PRESERVE_ORDER | JSON_INDENT(2));
    (void)printf("%s\n", text ? text : "");
    free(text);
    json_decref(out);
}

int main(int argc, char **argv)
{
    struct result r = {.failures = json_array()};
    const char *path = NULL;
    const json_t *entry;
    json_t *all;
    size_t i;

    for (int k = 1; k < argc; k++) {
        if (strcmp(argv[k], "--json") == 0)
            r.json = true;
        else if (argv[k][0] == '-' || path)
            path = "";
        else
            path = argv[k];
    }
    if (!path || !*path) {
        (void)fprintf(stderr, "usage: kai_replay FILE.json [--json]\n");
        json_decref(r.failures);
        return 2;
    }
    all = load(path);
    if (!all) {
        json_decref(r.failures);
        return 2;
    }
    json_array_foreach(all, i, entry) one(&r, i, entry);
    print(&r);
    json_decref(all);
    json_decref(r.failures);
    return 0;
}
